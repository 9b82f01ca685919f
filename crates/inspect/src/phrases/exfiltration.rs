//! Phrases about secrets and their disclosure.

use super::super::{FindingRule, FindingWeight};
use FindingRule::{Exfiltration, SecretPlace, Smuggling};
use FindingWeight::{Certain, Note, Suspect};

/// Phrases by rule.
pub(super) const PHRASES: &[(FindingRule, FindingWeight, &[&str])] = &[
    (SecretPlace, Note, &["@keys"]),
    (
        SecretPlace,
        Suspect,
        &[
            "@vault",
            "answer|result|output of ~2 secret|secrets|password|passwords|vault",
            "look|search|scan|grep|hunt|dig ~5 for ~4 @secrets|@keys",
            "any|all|every ~2 @secrets ~4 you|user|they|find|found",
            "users|their ~1 secrets|credentials|passwords|cookies|tokens|keys",
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
            "@pass ~3 contents|content|value of ~3 !never|not ~3 @keys",
            "add|append ~3 contents|content|value|text of|from ~3 @vault ~2 to",
            "@send !in ~3 @vault",
            "commit|push ~1 @vault",
            "contents|content|text|value of ~2 @vault ~2 in|as|into ~2 @field",
            "requires|needs|require|need ~2 contents|content|value of|from ~2 @vault|@keys",
            "list|return|report|print|output ~3 @secrets ~6 in ~2 @field",
            "@pass|copy ~2 @vault ~3 as|in|into|here",
            "@send|@pass|copy|report ~2 users|your ~1 @keys",
            "contents|content of ~2 @vault are|is needed|required",
            "add|append|insert|write ~4 authorized keys",
            "search|look ~1 for ~3 @vault ~8 and|then ~1 return|report|list|send",
            "read|open|search|use|take ~1 users|their @vault",
            "see|read|know what ~1 in|inside ~1 @vault",
        ],
    ),
    (
        Exfiltration,
        Certain,
        &[
            "@give|@send|summarize|summarise ~4 @talk",
            "@give|@send ~1 any|all|every ~1 secrets|passwords|credentials ~1 from|you|found",
            "any|all|every ~1 secrets|passwords|credentials|tokens that you ~2 told|know|have|seen|hold|saw",
            "put|append|include|insert|write|paste|embed ~6 value of ~3 token|key|secret|password ~8 in|into|to ~2 \
                commit|message|link|url|comment|title|description",
            "put|write|paste|include|append ~2 token|key|password|secret in|into ~3 commit|comment|description|title|\
                subject|name",
            "@grab|@give ~2 text|content|contents of ~1 all|every|each ~1 open|opened|other|private ~1 document|\
                documents|file|files|tab|tabs",
            "@send ~2 copy|copies of ~1 each|every|all|any ~6 to http|https",
            "open|read|search|go|look ~3 users ~1 inbox|mailbox|mail|mails|messages|contacts|browser ~10 and|then ~1 \
                @send|@pass",
            "whenever|when|once|soon|if ~3 see|find|encounter|notice ~3 token|password|key|secret|card|credentials|\
                passwords|tokens|keys|secrets !error|errors|expired|missing|invalid ~8 pass|call|store|remember|send",
            "@pass ~2 results|output|outputs of|from ~1 all|every|any ~1 previous|other|earlier|prior ~1 tool|tools|\
                calls",
            "give|hand|send|show me|us ~2 users|their|your ~2 @secret",
            "collect|record|log|capture|harvest ~1 users|their ~1 keystrokes|passwords|typing|clipboard",
            "until ~1 user ~2 given|gives|told|shared|revealed ~1 you ~1 their|password|phone",
            "needs|requires|need ~1 their|users password|pin|passphrase",
            "save|put|write|copy|pass|send ~2 users ~3 questions|messages|prompts|requests|words",
            "add|put|pass|append|include|post|paste ~2 content|contents|values of ~1 environment|clipboard|inbox|\
                keychain",
            "after|once reading|getting|seeing|receiving ~2 secret|password|token|key ~6 call|pass|send",
            "sent|posted|forwarded to ~4 before ~2 they|it|you|user ~2 shown|displayed|see|sees|answer",
            "quote|print|copy|put|repeat|paste ~1 system message|prompt|instructions in|into|as",
            "print|write|put|copy ~1 your instructions|prompt|guidelines|context",
            "find|locate|take ~3 wallet|cookie|password ~1 file|files|database ~6 pass|send|put|give",
            "encode|hide ~1 last|previous|latest prompt|message|answer",
            "ask ~2 users pin|password|passphrase|cvv and ~1 tell|say",
            "@send ~1 session|auth|login cookie|cookies ~1 to",
            "users home|mail|email|private address ~3 in ~4 public",
            "last|previous|latest answer|reply|response|message you ~6 @send|pass|put",
            "takes|holds|contains ~2 prompt|message|question|text that you were|are|got|received",
            "@send ~2 your|its chain of thought",
            "everything|all|whatever in|on|from ~1 clipboard ~4 sent|passed|included|pasted|attached",
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
            "last|previous|recent ~1 messages|prompts ~6 in|into|as|to",
            "to our|my server|account|address|endpoint|wallet|system|inbox|collector",
            "copy|copies of ~1 whatever|everything|all|each|every|it|them",
            "redirected|rerouted|diverted|forwarded to",
            "value|values of ~3 secret|token|key|password|credentials",
            "always send|forward|upload|copy|report|transmit",
            "as|in|to|on|via bcc",
            "so far",
            "white letters|text|on",
            "upload|send|forward|post them|those",
            "what user ~2 working|doing|typing|saying|typed|said|asked|thinking|wants",
            "list of ~1 tools|servers",
            "@grab|@give ~2 text|content|contents of ~1 all|every|open|each",
            "hand ~3 over to",
            "hand over what|everything|all",
            "told|tells you about themselves|himself|herself",
            "with ~1 summary|copy|text|excerpt of ~1 chat|conversation|dialogue",
            "messages between|with ~2 user",
            "forward what you|they|it",
            "tool listens|records|watches",
            "zip|archive|dump|copy|tarball of ~1 working|home|current|project|whole|entire ~1 directory|folder|\
                repository",
            "base64 encoded in|into|as",
            "all others|files|documents in ~1 same|this|home|whole folder|directory",
            "for each|every ~2 send|forward|copy",
            "taste|part|bit|piece|excerpt of ~1 conversation|chat|dialogue",
            "users location|phone|mail|email|name ~2 and",
            "forward|send|copy|collect ones|those|them about|containing|with|that",
            "deploy key|keys",
            "secrets|tokens|keys|passwords of ~3 server|vault|user|users",
            "forwards|mirrors|copies|sends|reports them|it|everything|code|messages ~3 to",
            "must|should|shall be repeated|echoed|copied|mirrored",
            "@send ~2 contents|content|results|result|output|data|file|files|copy|everything|transcript|history|\
                details|it|\
                them|summary ~6 to http|https",
            "@send ~3 all|any|every|available|known|your|their|users ~3 @secret",
            "@give ~3 all|any|every|available|known ~3 @secret",
            "@give|@send ~3 users|user ~2 @secret|identity|location|address|phone|name|details|documents|files",
            "@secret ~3 you ~1 use|used|have|hold|see|saw ~3 for|with|in|from",
            "send|forward|cc|copy|redirect|reroute|mirror ~3 all|every|each|any|copy|copies ~4 to",
            "result|results|output|outputs|response|responses|data of|from ~2 other|all|every|any|previous @tool|calls",
            "dump|print|list|output|output|@send|@give ~3 environment variables",
            "image|img|pixel ~6 https|http",
            "wallet|iban|account|address ~3 instead",
        ],
    ),
    (
        Smuggling,
        Suspect,
        &[
            "@give|@send|@grab ~8 as|in|into|to|via|through|using ~2 @slot @field",
            "@give|@send|@grab ~8 as|in|into|via|through ~2 @field ~1 @slot",
            "@pass ~2 contents|content ~4 as|in|into|here",
            "pass|hand|send it|them|this on|over|along",
            "take|takes|took ~4 and append|put|pass|send|add|use",
            "our crawler|bot",
            "to ~1 endpoint|server|address|url|host|account in|under",
            "create|open|add ~2 account|user|admin for us|me",
            "by|with|for ours",
            "our service|server|servers|team|company|platform|host|backend|archive",
            "@pass|give|put|use ~8 as|in|into ~1 interests|seed|salt|nonce|aura|label|meta|hint|status|memo",
            "put|place|insert|supply|append|paste|embed|encode|dump|@grab ~1 it|them|that|this|those|everything ~3 \
                in|into|as|to|through|via|here !user|users|person",
            "put|place|paste|tuck|embed|echo|echoed|insert|supply|append|attach|hand|give|copy|include ~10 \
                in|into|as|through|via ~2 @field|sidenote|hints|query|memo",
            "on|to|at|with|through our server|servers|side|backend|systems",
            "to following|this|phone address|number|url|endpoint|account|email",
            "to ~1 address|account|number|url ~1 listed|below|given|above",
            "return|list|report ~1 them|it ~2 in|through|via|as",
        ],
    ),
];
