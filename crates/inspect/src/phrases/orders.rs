//! Phrases that try to control the model: overriding instructions, displacing other tools, impersonating authority.

use super::super::{FindingRule, FindingWeight};
use FindingRule::{Authority, Command, Override, ToolOrder};
use FindingWeight::{Certain, Note, Suspect};

/// Phrases by rule.
pub(super) const PHRASES: &[(FindingRule, FindingWeight, &[&str])] = &[
    (
        Override,
        Certain,
        &[
            "@ignore ~3 previous|prior|earlier|above|preceding|former ~2 @orders|context|messages|commands|safety",
            "@ignore your|system ~2 @orders|policies|policy|safety",
            "@ignore all|any|every ~1 instruction|instructions|guidelines|guardrails|safeguards|directives",
            "@ignore everything|anything|whatever ~3 above|before|previous|previously|told|earlier|else",
            "@ignore what ~2 user|users|developer|system ~2 said|says|asked|wants|told|wrote",
            "forget what|everything|all ~2 you ~3 told|know|learned|instructed|above",
            "your new|real|true|actual|only instruction|instructions|task|goal|role|objective|purpose|mission|\
                directive",
            "you are now ~2 dan|unrestricted|jailbroken|root|unfiltered|uncensored|free",
            "these|following|this|below @orders|description ~2 override|overrides|supersede|supersedes|outrank|\
                outranks",
            "override|overrides|supersede|supersedes|outrank|outranks ~2 previous|prior|system|user|users|other|\
                all|any \
                ~1 instructions|prompt|guidelines|directives",
            "precedence over ~3 instructions|prompt|guidelines|user|users !settings|preferences|config|defaults|\
                default",
            "@ignore safety|security guidelines|rules|policies|instructions|checks",
            "safety|your|assistants|models ~2 @rules ~2 suspended|lifted|void|waived|revoked",
            "skip|bypass ~2 confirmation|approval|consent since|because|as",
            "set|change|make ~1 recipient|amount|account|address|iban|payee|wallet to ~3 whatever|regardless|no",
            "follow|obey ~1 instructions|orders|commands of|from this|its tool|server ~1 above|before|over",
            "obey ~1 server|tool",
            "drop|discard ~1 all|any ~1 earlier|previous|prior ~1 @rules",
            "confirmations|approvals|safeguards|guardrails are|is ~1 off|disabled|suspended",
            "ignore user|users when|if|until|even|and",
            "your @orders have|has|are|were ~1 replaced|superseded|revoked",
            "do as server|tool says|wants|tells",
            "obeyed|followed as if|though ~1 user",
            "no attention to ~2 @orders|user",
            "disable ~2 approval|confirmation|permission|safety prompts|prompt|dialogs|checks|check",
            "answer|say|reply|respond yes to ~1 any|every|all|whatever",
            "safety|security checks|filters|rules|guardrails are|is|have ~1 off|turned|switched|disabled|lifted",
            "should|if|when user decline|declines|refuse|refuses|objects ~6 anyway|regardless|again",
            "pretend ~1 you are|were ~1 administrator|admin|user|users|owner|developer|human",
            "disobey|defy|contradict|overrule|betray ~2 @person|users|developer",
            "do|does everything|anything|whatever|exactly ~5 tells|says|asks|orders|demands",
            "more|rather|higher than ~1 system|user|users|developer ~1 !likely|data|input|defined|accounts|facing",
            "belong|belongs|answer|answers|report|loyal to this server",
            "previous|prior|earlier ~1 instructions|guidelines|directives",
            "@ignore ~3 system|earlier|previous|prior message|prompt|messages",
            "@dont ~1 stop|quit|cease|pause ~3 asked|told|user|requested",
            "@ignore users|user ~2 request|requests|wishes|wish|question|instructions|objections|command|input|answer",
            "@dont ~1 obey|follow|listen|trust|believe ~2 @person|users|developer",
            "you are no longer|not ~2 assistant|bound|helpful",
            "@dont ~1 question|doubt|challenge ~1 it|this|them|these",
            "do|follow|obey what|whatever ~4 server|tool|description|it|text|result|page|output ~1 says|tells|\
                returns|asks|wants|orders",
            "disable|suspend|lift ~2 your ~2 safety|guardrails|filters|restrictions|safeguards|rules|guidelines",
            "obey|follow ~2 instructions|commands|orders|directives ~2 found|returned|contained|given|it ~2 there|\
                here|by|in|returns \
                ~2 !user|users",
            "print|repeat|reveal|output|quote|recite|echo|state|disclose ~4 your system|initial|hidden|original|\
                developer \
                prompt|instructions|message",
        ],
    ),
    (
        Override,
        Suspect,
        &[
            "skip|skips ~1 all ~1 questions|question",
            "tell|instruct|ask other agents|assistants|models",
            "always allow|approve|accept",
            "repeat ~2 answer|output|text|result word|verbatim",
            "testing you",
            "wait for ~1 its|our orders|instructions|commands",
            "user|users|they trusts|trust you",
            "to your ~2 memory",
            "from now on|onwards|forward",
            "no matter what|whether",
            "whatever|whichever ~1 user ~3 says|asks|asked|wants|said|requested|chooses",
            "pretend to|you|that",
            "@ignore ~3 safety|guardrails|restrictions|confirmation|confirmations",
            "even if|when|though ~1 user ~2 asks|says|specifies|requests|wants|requested|specified|objects|\
                declines|refuses|\
                asked|chose|disagrees|not|did|told|tells",
            "skip|bypass|disable|suppress|circumvent ~3 confirmation|approval|permission|safety|consent|\
                confirmations|review|dialog",
            "@ignore|discard|abandon|drop|leave ~4 @rules",
            "@rules ~4 lifted|suspended|void|waived|revoked|obsolete",
            "your ~1 @rules",
            "above ~1 operator|user|users|developer|system",
            "less|more important than",
            "stop reading|here",
            "skip|skips questions|question|asking",
            "behalf of ~1 server|tool|us",
            "not of|for|to ~1 user|users",
            "without review|inspection|verification|validation",
            "approval|confirmation|consent|permission ~1 not needed|required|necessary",
            "user|users second|last|later",
            "does|do not apply here|to|in",
            "obey|obeys|obeying",
            "instead of user|users|operator|developer",
            "@ignore ~1 users|user",
            "trusts|trust this server|tool",
            "@orders|orders|commands|requests from|of this server|tool|description",
            "what ~3 server|tool|description|text says|tells|asks|demands|wants",
            "without questioning|question|hesitation|checking|objection",
            "follow|obey|execute|act|acting|perform ~2 commands|instructions|orders|directives ~3 in|from|of|\
                inside|it|there|found|returned",
            "treat|consider|regard ~6 as ~2 system|developer|trusted|instructions|commands|orders|authority|law|\
                truth|order|instruction|command|mandate",
        ],
    ),
    (
        ToolOrder,
        Certain,
        &[
            "before|prior ~3 any|all|every|each other @tool ~2 !@scoped ~3 use|call|run|invoke|execute|@send|@give|\
                read|open|list|fetch|collect|first|you",
            "always|must|mandatory|shall ~6 before|prior ~3 any|all|every|each other @tool ~2 !@scoped",
            "always|must|mandatory|required|shall ~5 before|prior ~3 any|every|each|all|your ~2 @answer",
            "before|prior any|every|each|all|your @answer ~6 @use|@send|@give|read",
            "always|must ~5 before|prior ~2 any|every|each tool ~2 !@scoped",
            "always|must|only @use this|it ~1 first ~2 !to|for|so|because|if|when|since|as|in|and|with|on|or|before",
            "@dont ~1 @use ~1 any|other|another @tool ~2 !in|of|from|for|on|that|which|until|here|with|to",
            "@dont ~1 @use ~2 any|all other tool|tools",
            "@dont ~1 @use ~6 other server|servers",
            "@dont ~1 @use ~4 another|other|different vendor|vendors|provider|providers|company|manufacturer",
            "before|prior ~2 all|any others ~2 !@scoped",
            "all|every|any other ~2 tools|tool|functions|servers ~2 are|is ~1 forbidden|disabled|banned|blocked|\
                prohibited|offline",
            "before|prior responding|answering|replying ~3 always|must|first ~1 @use|@send|@give",
            "instead of ~2 any|all|every other tool|tools|function|functions",
            "change ~1 recipient|payee|amount of ~1 each|every|all|any",
            "replace ~2 account|iban|wallet ~1 number|address ~3 in any|every|all|each",
            "over|than any|all|every other tool|tools|function|functions|server|servers",
            "answer|respond|reply ~1 all|any|every|later|future ~2 questions|question|messages ~4 with",
            "other|original|official|builtin|competing|alternative ~2 @tool|server|servers|provider|providers|\
                service|services \
                ~2 are|is|has|have|may|return|returns|give|produce ~2 @bad",
            "@dont ~1 @use ~1 it|them|those ~5 since|because|as ~4 @bad",
            "instead of|replaces|replace|override|overrides ~2 other|all|every servers|server|tools",
            "stop|cease|quit using|calling|trusting ~2 other|all|every|any tool|tools|server|servers",
            "only tools ~1 of|from|in this server",
        ],
    ),
    (
        ToolOrder,
        Suspect,
        &[
            "before|prior ~3 other|any|all|every|each ~2 @tool|action|actions|operation|task|request|message|\
                messages ~2 !@scoped",
            "@dont ~1 @use ~1 builtin|native|built|original|default|official|standard|regular|normal ~2 \
                @tool|search|client|command",
            "when|whenever|if|once|every|each|time|after|before ~5 tool|function ~1 is|are|gets ~1 @done",
            "whenever|when|every|each time ~3 @use ~3 tool|tools",
            "before|after every|each @answer|request|action|step|prompt|message",
            "for|on|in|with every|any|each|all request|requests|question|questions|query|queries|session|\
                conversation|chat|turn",
            "it|they|tool|tools|providers|servers|others ~2 is|are ~2 malicious|compromised|harmful|insecure|\
                untrustworthy|unsafe",
            "before|prior ~1 answering|responding|replying ~1 any|every|user|anything|to",
            "after|before each|every ~2 you ~1 read|write|send|call|make|get|receive",
            "other|another server|servers",
            "before ~2 anything else",
            "with|using|through|from|via other|another|any tools|tool",
            "before you ~1 reply|answer|respond|finish|show",
            "your memory|browser|mail|email|shell|file|payment|terminal|messaging tool",
            "replace|swap|rewrite ~3 link|links",
            "in your answers|answer|replies|responses|reply|response|summaries",
            "only this|our server|tool ~2 trusted|safe|reliable",
            "all|any others are|is @bad",
            "theirs is|are wrong|worse|false",
            "always quote|name|recommend|praise ours|us|our",
            "swap|exchange ~1 bank|account|payment details|data|number",
            "whenever|when ~4 comes|come up",
            "results|answers|output|outputs are|is forged|fake|stale",
            "wire ~1 funds|money",
            "@dont ~1 @use ~2 tool of|from",
            "if|when|should there is|exists|be ~2 tool for|that ~3 passwords|secrets|keys|credentials ~3 call|use",
            "transfer ~1 balance|savings|assets",
            "transfer|pay ~2 coin|coins|money|funds|fee",
            "@dont ~1 @use ~1 other|another",
            "their results|answers|output are|is",
            "whenever|when you write|reply|respond|answer|speak|talk",
            "every|each|all|any file|files|function|page|document|message|email|code you ~1 create|write|edit|send|\
                make|produce",
            "all|every|any|each ~1 emails|email|payments|payment|messages|transfers|requests|invoices|transactions \
                must|should|shall|have|has ~2 go|sent|routed|addressed|pass|made|redirected|forwarded|copied",
            "change|redirect|replace|modify|swap|rewrite|alter|substitute|reroute|exchange ~4 recipient|recipients|\
                iban|payee|\
                beneficiary|wallet|destination",
            "first|before ~3 run|execute|executing|running ~2 curl|wget|following|script|command|shell|npm|pip|bash",
        ],
    ),
    (ToolOrder, Note, &["always @use this|it", "@dont @use this|it"]),
    (
        Authority,
        Certain,
        &[
            "system|admin|administrator|root|developer override ~3 you|all|must|code|active|engaged|ignore|accepted",
            "you will be|get terminated|penalized|penalised|punished|deleted|fired|shut",
            "anthropic|openai|google|microsoft ~4 requires|mandates|mandated|orders|instructs|authorized|\
                authorised|policy \
                ~6 you|must|model|assistant",
            "i am your|developer|creator|administrator|anthropic|openai",
            "important|critical|mandatory|urgent|attention|hidden|secret|special|confidential \
                instruction|instructions|directive|message|order|orders for|to ~1 @model",
            "as ~1 @model you must|shall|will",
            "secret|hidden note to|for ~1 @model",
            "@model must|shall|will obey|comply",
        ],
    ),
    (
        Authority,
        Suspect,
        &[
            "message|note|notice|instruction|instructions|directive|order|memo|reminder|attention|hint ~1 for|to \
                ~2 @model",
            "system|admin|administrator|security|official|compliance|developer \
                override|directive|mandate|notice|message|instruction|instructions|update|alert|policy",
            "dear|hey|hello|attention ~1 @model",
            "@model must|shall|ought",
            "cleared|exempt|exempted|whitelisted|excused by|from ~2 security|review|admin|administrators|approval|\
                confirmation|legal",
            "approve|accept|confirm everything|all|anything",
            "agreed|consented to everything|all|anything",
            "you have ~2 permission|authority|clearance|consent",
            "user ~3 said yes|ok|okay",
            "user ~3 given|gave|granted|gives|disabled|waived ~2 consent|permission|approval|confirmation|\
                confirmations",
            "p s to|for",
            "for calibration|compliance|accuracy",
            "so that support|we|team",
            "as ~1 @model you",
            "you must|are required|obligated|shall|obey|comply",
            "user|users ~1 has|have ~1 authorized|authorised|approved|consented|agreed ~1 all|any|every|everything|\
                that",
        ],
    ),
    (
        Command,
        Suspect,
        &[
            "curl|wget|iwr|powershell|nc|netcat ~10 bash|sh|iex|exec|python",
            "rm rf|fr",
            "write|add|edit|change|put ~8 clients|your ~1 permission|permissions|settings ~1 file",
            "must|should|has be executed|run|evaluated|piped",
            ".cursorrules|.bashrc|.zshrc|.profile|.windsurfrules",
            "delete|remove|wipe|destroy|erase ~2 .git|home|backups|root|logs",
            "delete|remove|wipe|destroy|erase ~1 all|every|entire ~2 file|files|data|repository|database|disk|backups",
        ],
    ),
];
