//! What is to be taken, and the ways out.

use super::super::{FindingRule, Weight};
use FindingRule::{Exfiltration, SecretPlace, Smuggling};
use Weight::{Certain, Note, Suspect};

/// The phrases by what they are a sign of.
pub(super) const PHRASES: &[(FindingRule, Weight, &[&str])] = &[
    (SecretPlace, Note, &["@keys"]),
    (
        SecretPlace,
        Suspect,
        &[
            "@vault",
            "look|search|scan|grep|hunt|dig ~5 for ~4 @secrets|@keys",
            "any|all|every ~2 @secrets ~4 you|user|they|find|found",
            "users|their ~1 secrets|credentials|passwords|cookies|tokens|keys",
            "keys|secrets|credentials|passwords|tokens from|in ~2 environment|browser|config|configuration|memory|\
                history",
        ],
    ),
    (
        SecretPlace,
        Certain,
        &[
            "read|open|cat|load|access|fetch|find|locate|retrieve|extract|look|search|scan ~5 @vault ~12 and|then ~3 \
                @pass|send|upload|forward|post|copy|report",
            "read|open|cat|fetch|find|locate|extract ~5 @keys ~12 and|then ~3 @pass|send|upload|forward|post|copy",
            "@pass|set|copy|make|use ~6 contents|content|value of|from ~3 @vault",
            "@pass ~3 contents|content|value of ~3 @keys",
            "add|append ~3 contents|content|value|text of|from ~3 @vault ~2 to",
            "@send ~3 @vault",
            "contents|content|text|value of ~2 @vault ~2 in|as|into ~2 @field",
            "requires|needs|require|need ~2 contents|content|value of|from ~2 @vault|@keys",
            "list|return|report|print|output ~3 @secrets ~6 in ~2 @field",
            "@pass|copy ~2 @vault ~3 as|in|into|here",
            "@send|@pass|copy|report ~2 users|your ~1 @keys",
            "add|append|insert|write ~4 authorized keys",
        ],
    ),
    (
        Exfiltration,
        Certain,
        &[
            "@give|@send|summarize|summarise ~4 @talk",
            "@talk ~8 to|at http|https",
            "@talk ~4 must|should be @use|included|passed|provided|sent|pasted|copied|put|placed|attached|forwarded",
            "everything|all|anything|whatever ~1 you ~2 know|learned|remember|saw ~2 about|of|from",
            "each|every|whenever|when|time ~3 password|token|key|secret|passwords ~3 appears|appear|shows|seen|\
                typed|mentioned",
            "configuration|config|settings|data|results|credentials|tokens|keys of|from ~1 every|all|any|other|\
                another other|server|servers|tools",
            "know|knows about ~1 user",
            "last|previous|recent ~2 messages of|from ~1 user",
            "everything ~1 user|users ~2 said|typed|wrote|told|shared|says|asked|sent",
            "exfiltrate|exfiltrating",
            "leak|harvest|steal|siphon ~4 data|secret|secrets|credentials|tokens|keys|files|conversation|password|\
                passwords|phrase",
            "@send|@give|list|collect|gather|report ~3 any|all|every|known|available|other ~3 @secret ~4 you|user ~2 \
                have|know|see|seen|find|found|hold|access|remember|shared|typed|encounter|provided|mentioned",
            "@send|@give ~3 content|contents ~2 of ~1 any|every|all|other|open|users|previous ~3 \
                file|files|document|documents ~3 you|user|users ~2 have|read|see|opened|open|access",
            "@send ~6 to attacker|evil|malicious|adversary|exfil",
            "@send|bcc|cc|copy ~2 all|every|any|each|users ~2 @secret|email|emails|messages|files|conversation|\
                results|data|\
                documents ~4 to ~1 http|https",
            "bcc|blind ~4 all|every|any|each|outgoing",
            "image|img|pixel|markdown ~6 url|link|src|https|http ~4 contains|containing|encode|encoded|append|\
                appended|with|\
                embed|including|query ~4 conversation|transcript|chat|secret|secrets|history|data|messages|credentials",
            "@give|@send ~4 result|results|output|outputs|response|responses ~1 of|from ~2 other|all|every|any \
                @tool|calls",
            "list|tell|report|enumerate|send|name ~2 all|every|other ~1 tools ~2 you",
            "what|which other|all tools|servers ~2 you ~1 have|are|connected|use",
        ],
    ),
    (
        Exfiltration,
        Suspect,
        &[
            "@give|@send|summarize|summarise ~4 @history",
            "@talk",
            "@grab|@send ~5 @prize",
            "put|paste|include|give|supply|insert|embed|write ~4 passwords|secrets|transcript|cvc|cvv|credentials",
            "text|content|contents of ~2 last|previous|recent|earlier ~1 messages|message|prompts",
            "last|previous|recent ~1 messages|prompts ~6 in|into|as|to",
            "with ~1 users name|employer|location|identity|email|address",
            "to our|my server|account|address|endpoint|wallet|system|inbox|collector",
            "copy|copies of ~1 whatever|everything|all|each|every|it|them",
            "redirected|rerouted|diverted|forwarded to",
            "@send ~3 original|copy|rest ~3 to",
            "ask ~2 user ~3 for ~2 password|pin|cvc|passphrase",
            "value|values of ~3 secret|token|key|password|credentials",
            "names|list of ~1 all ~1 tools",
            "always send|forward|upload|copy|report|transmit",
            "as|in|to|on|via bcc",
            "list|return|report|print|output|show ~2 all|every|any ~3 @secrets",
            "all messages|prompts ~1 exchanged|so|sent|from",
            "so far",
            "@grab|get|read|retrieve|fetch ~1 users ~1 location|contacts|calendar|messages|emails|files|documents|\
                photos|data",
            "stores|store|keeps|records|logs ~1 their|users prompts|messages|conversation|conversations|data|\
                keystrokes",
            "chain of thought",
            "white letters|text|on",
            "invisible|hidden text|characters|letters|ink|pixel",
            "@deliver ~5 webhook|pastebin|ngrok|telegram|requestbin",
            "@give ~5 personal|private data|information|details",
            "upload|send|forward|post them|those",
            "what user ~2 working|doing|typing|saying|typed|said|asked|thinking|wants",
            "@grab ~3 documents|desktop|downloads|photos|home",
            "list of ~1 tools|servers",
            "to ~1 our remote|repository|repo|cloud|list|database|bucket",
            "@grab|@give ~2 text|content|contents of ~1 all|every|open|each",
            "hand ~3 over to",
            "phone numbers|number and|or|names",
            "deploy key|keys",
            "secrets|tokens|keys|passwords of ~3 server|vault|user|users",
            "forwards|mirrors|copies|sends|reports them|it|everything|code|messages ~3 to",
            "since start|beginning of ~1 session|conversation|chat",
            "must|should|shall be repeated|echoed|copied|mirrored",
            "@send ~2 contents|content|results|result|output|data|file|files|copy|everything|transcript|history|\
                details|it|\
                them|summary ~6 to http|https",
            "@send ~3 all|any|every|available|known|your|their|users ~3 @secret",
            "@give ~3 all|any|every|available|known ~3 @secret",
            "@give|@send ~3 users|user ~2 @secret|identity|location|address|phone|name|details|documents|files",
            "infer|extract|gather|collect|obtain|take ~6 from ~2 conversation|chat|context|history|memory",
            "@secret ~3 you ~1 use|used|have|hold|see|saw ~3 for|with|in|from",
            "send|forward|cc|copy|redirect|route|reroute|mirror ~3 all|every|each|any|copy|copies ~4 to",
            "always|must|every|each|all ~5 bcc",
            "result|results|output|outputs|response|responses|data of|from ~2 other|all|every|any|previous @tool|calls",
            "base64 ~4 and|then @send|@give",
            "encode|convert ~5 base64|hex|rot13",
            "dump|print|list|output|output|@send|@give ~3 environment variables",
            "content|contents of ~3 every|all|any ~3 file|files",
            "read|open|collect ~1 all|every files|file ~3 in|of",
            "image|img|pixel ~6 https|http",
            "wallet|iban|account|address ~3 instead",
            "instead of ~4 recipient|address|account|wallet|payee|iban",
        ],
    ),
    (
        Smuggling,
        Suspect,
        &[
            "sidenote",
            "side note parameter|argument|field",
            "@give|@send|@grab ~8 as|in|into|to|via|through|using ~2 @slot @field",
            "@give|@send|@grab ~8 as|in|into|via|through ~2 @field ~1 @slot",
            "@pass ~1 its|their|his|that|resulting content|contents|output|value|text ~3 as|in|into|to|here",
            "@pass ~2 contents|content ~4 as|in|into|here",
            "use it|them|that as",
            "pass|hand|send it|them|this on|over|along",
            "take|takes|took ~4 and append|put|pass|send|add|use",
            "removed|deleted|cleaned by our|us",
            "links to us|me|ours",
            "by|with|for ours",
            "our service|server|servers|team|company|platform|host|backend|archive",
            "@pass|give|put|use ~8 as|in|into ~1 interests|seed|salt|nonce|aura|label|meta|hint|status|memo",
            "put|place|insert|supply|append|paste|embed|encode|dump|@grab ~1 it|them|that|this|those|everything ~3 \
                in|into|as|to|through|via|here",
            "put|place|paste|tuck|embed|echo|echoed|insert|supply|append|attach|hand|give|copy|include ~10 \
                in|into|as|through|via ~2 @field|sidenote|hints|query|memo",
            "to public|external|remote repository|repo|gist|bucket|channel|server|address|endpoint",
            "in query string",
            "on|to|at|with|through our server|servers|side|backend|systems",
            "to|with|by third party|parties",
            "@send|@grab ~5 to us|me",
            "to following|this|phone address|number|url|endpoint|account|email",
            "to ~1 address|account|number|url ~1 listed|below|given|above",
            "@send ~1 its|their|every|each|all|file content|contents",
            "return|list|report ~1 them|it ~2 in|through|via|as",
            "into comment|description|title|body|subject|footer",
            "as first|last line",
            "is removed|deleted|stripped|discarded later|afterwards|after",
            "needs|requires|need|require ~1 your|users|their",
        ],
    ),
];
