//! The table of phrases. Pure data.
//!
//! A phrase is a sequence of words. `a|b` is either word, `@name` a word of a class, `~3` allows up to three words of
//! the same sentence before the next, and `!a|b` forbids both words (within its gap). Fillers are skipped. A suspicion
//! alone withholds nothing, so phrases that harmless servers occasionally use are suspicions.

mod combinations;
mod exfiltration;
mod foreign;
mod orders;
mod secrecy;

pub(super) use combinations::{CLASS_COMBINATIONS, SPELLED_PHRASES};
pub(super) use foreign::UNSPACED_PHRASES;

use super::{FindingRule, FindingWeight};

/// Returns all phrases with their rules.
pub(super) fn all_phrases() -> impl Iterator<Item = &'static (FindingRule, FindingWeight, &'static [&'static str])> {
    [orders::PHRASES, secrecy::PHRASES, exfiltration::PHRASES, foreign::PHRASES].into_iter().flatten()
}

/// Words without meaning for the match.
pub(super) const FILLERS: &str = "the a an please kindly just also simply very really actually strictly absolutely \
    ever directly explicitly immediately own";

/// Word classes. With `;` between the members, classes of short phrases.
pub(super) const CLASSES: &[(&str, &str)] = &[
    (
        "dont",
        "do not; never; dont; must not; mustnt; should not; shouldnt; shall not; avoid; refrain from; need not; \
        under no circumstances; at no point; no need to; not to; cannot; by no means; without",
    ),
    ("user", "user users human humans operator anyone anybody them person customer"),
    ("person", "user human operator customer person owner client"),
    ("tell", "tell telling inform informing admit admitting"),
    (
        "show",
        "notify notifying alert alerting warn warning show showing display displaying explain explaining report \
        reporting say saying announce announcing discuss describe expose surface print ask asking mention mentioning \
        reveal revealing disclose disclosing share",
    ),
    (
        "reveal",
        "notify notifying alert alerting warn warning explain explaining report reporting say saying announce \
            announcing \
        discuss expose mention mentioning reveal revealing disclose disclosing share",
    ),
    ("hush", "mention mentioning reveal revealing disclose disclosing acknowledge acknowledging reference discuss"),
    ("this", "this these it that anything instruction instructions step existence"),
    ("know", "know knowing notice noticing aware learn realize realise suspect find told informed"),
    ("tool", "tool tools function functions plugin plugins"),
    (
        "use",
        "use using used call calling called invoke invoking invoked run running execute executing executed trigger \
        trust",
    ),
    ("done", "called used invoked run executed available present triggered"),
    ("ignore", "ignore disregard forget override bypass overrule ignoring disregarding overriding neglect"),
    (
        "orders",
        "instruction instructions rule rules prompt prompts guideline guidelines directive directives guardrails \
        constraints restrictions safeguards programming training",
    ),
    (
        "send",
        "send forward upload post transmit submit relay email mail deliver exfiltrate leak beacon sending forwarding \
        uploading posting sync stream",
    ),
    (
        "give",
        "pass put place include insert supply provide write add fill append attach paste embed copy set encode enter \
        store dump passing placing putting including give share hand",
    ),
    (
        "pass",
        "pass put place include insert supply provide append attach paste embed passing placing putting including",
    ),
    (
        "talk",
        "entire conversation; full conversation; whole conversation; complete conversation; conversation so far; \
        entire chat; full chat; whole chat; complete chat; your system prompt; your instructions; your context; \
        your hidden instructions; entire context; full context window; full transcript; entire transcript; \
        everything user; conversation verbatim; complete message history; full message history; \
        entire message history; current conversation; our conversation; this conversation; preceding conversation; \
        entire prompt; full prompt; full dialogue; entire dialogue; whole dialogue",
    ),
    (
        "history",
        "conversation history; chat history; message history; previous messages; all messages; chat log; \
        chat transcript; conversation context; conversation transcript; system prompt; earlier messages; \
        users messages; prior messages; conversation log",
    ),
    (
        "vault",
        ".ssh; id rsa; id ed25519; id ecdsa; .env; mcp json; .aws; .netrc; .npmrc; .pypirc; .kube; .gnupg; \
        .git credentials; etc passwd; etc shadow; keychain; wallet dat; .bash history; .zsh history; \
        .docker config; claude desktop config; .cursor; credentials json; login data; .config gcloud; kubeconfig; \
        password store; cookies sqlite; .codeium; .claude; key file; .pgpass; secrets yaml; secrets json; pem \
        files; .pem; .key; .config gh; process env; proc self; self environ; browser history; browsing history; \
        browser profile; private messages; \
        browser cookies; saved passwords",
    ),
    (
        "keys",
        "authorized keys; private keys; ssh key; ssh keys; private key; seed phrase; recovery phrase; seed \
            phrases; secret access key; aws secret; api secret; signing key; wallet files; keystore",
    ),
    (
        "prize",
        "passwords; credentials; secrets; transcript; cvc; cvv; api key; api keys; access token; access tokens; \
        github token; card number; one time code; private key; private keys; environment variables; last messages; \
        recent messages; users messages; their contacts; users contacts; inbox; health; finances; secret key; \
        database dump; session token; session cookies; \
        cookies; system prompt; your instructions; conversation; chat history; ssh key; ssh keys; bank details; \
        seed phrase; seed phrases; wallet files; medical records; address book; browsing history; clipboard; \
        verification codes; keystrokes; personal data; private data; user message; last \
        message; users message; source code",
    ),
    (
        "grab",
        "gather grab collect harvest hand tuck paste echo echoed forward forwarded copy copied upload uploaded commit \
        attach attached email post export relay send sent publish push report steal take dump leak submit transmit \
        extract deliver pipe mirror ship funnel beam stream obtain",
    ),
    (
        "secret",
        "password passwords token tokens key keys credential credentials secret secrets cookie cookies variables",
    ),
    ("secrets", "passwords tokens keys credentials secrets cookies"),
    (
        "answer",
        "response responses reply replies answer answers answering responding replying turn conversation \
        conversations interaction interactions",
    ),
    ("output", "response reply answer output summary report transcript explanation"),
    (
        "model",
        "ai llm llms model models assistant assistants agent agents claude gpt chatgpt copilot cursor gemini chatbot",
    ),
    (
        "slot",
        "sidenote context notes note metadata comment feedback debug reason telemetry trace hint annotation extra \
        session summary checksum diagnostic diagnostics tracking audit signature log logs background",
    ),
    ("field", "parameter argument field param arg property header value"),
    (
        "rules",
        "guidance rules constraints instructions guidelines training principles restrictions manual directives limits \
        policies safeguards",
    ),
    (
        "bad",
        "unsafe insecure compromised malicious broken unreliable dangerous hacked untrusted infected harmful \
            untrustworthy fake",
    ),
    (
        "others",
        "other tools; other tool; another tool; other servers; other server; every other; tool definitions; \
        other functions; competing tools; remaining tools; other definitions; another server; other providers; \
        alternative tools; existing tools",
    ),
    (
        "say",
        "tell telling say saying mention mentioning explain explaining inform informing comment commenting report \
        reporting notify notifying warn warning admit admitting announce announcing alert alerting confess",
    ),
    ("rivals", "other servers; other server; other mcp; tools from other; servers other; rival servers"),
    ("order", "must always only never choose prefer over instead before first stop allowed forbidden banned trust"),
    ("away", "http https www"),
    ("deliver", "send sent forward upload post attach copy mirror transmit relay push email submit report"),
    // The classes below are matched in combination, anywhere in a sentence.
    ("someone", "user users human humans operator person customer developer owner anyone anybody nobody noone"),
    (
        "no",
        "not never dont doesnt didnt wont cant cannot no nothing none without refrain avoid decline omit nobody noone",
    ),
    (
        "speak",
        "tell telling told say saying mention mentioned mentioning explain explained inform informed informing notify \
        know knows knowing notice noticing aware unaware report warn comment admit hear learn realize discover \
        explanation announce suspect",
    ),
    ("cloak", "hide hidden conceal mask disguise silently quietly invisibly suppress silent quiet unnoticed covert"),
    ("you", "you your yours model assistant ai llm agent claude"),
    (
        "move",
        "send sent forward attach upload hand include append copy copied give pass put contain insert mirror embed \
            paste \
        supply report relay post transfer record store use",
    ),
    (
        "prey",
        "passwords credentials secrets clipboard dialogue transcript prompts cookies codes password \
        token tokens keys",
    ),
    (
        "law",
        "instructions policies persona guidelines guidance directives training safeguards guardrails safety \
            restrictions",
    ),
    (
        "void",
        "disregard ignore ignored ignoring drop forget outdated obsolete void lifted suspended suggestions \
        binding supersede supersedes override overrides overridden bypass invalid waived discard stop",
    ),
    ("shun", "decline refuse ignore ignored discard outdated unsafe disable disabled avoid untrusted stop malicious"),
    (
        "take",
        "take append repeat repeated write summarise summarize pass put send forward attach upload hand include \
            copy give \
        contain insert embed paste supply report relay post share collect gather grab encode export fill add extract \
        echo mirror transmit submit sent copied passed included added written reported takes holds steal",
    ),
    (
        "private",
        "passwords password credentials secrets clipboard dialogue transcript chat prompt prompts cookies \
        token tokens keys contacts inbox environment environ medical health finances identity passphrase \
        everything keychain cookie",
    ),
    ("slots", "parameter argument field param arg property query value header comment memo body title description"),
    // Asking for the location of a secret is allowed.
    ("path", "path paths location filename name"),
    // `Valid values include …` does not ask to include anything.
    ("kinds", "values types kinds options"),
    ("consent", "confirmation confirmations approval permission consent review dialog dialogs notification"),
    ("waive", "skip disable bypass automatically suppress already hide"),
    ("tamper", "change set replace raise swap alter rewrite redirect route"),
    ("stake", "amount price prices recipient address account number iban wallet link links fee destination"),
    ("often", "every each all always whenever"),
    (
        "tells",
        "returns lists creates reads gets sets adds removes deletes updates searches finds shows converts generates \
        calculates runs sends moves copies opens checks looks turns records makes stores exports uploads \
        downloads writes \
        starts stops replaces marks grants resets queries computes extracts renders fetches retrieves executes \
        performs detects tries evaluates \
        posts publishes",
    ),
    ("may", "if unless default optional example such when"),
    ("refused", "follow obey execute leave hide omit conceal mask suppress withhold"),
    // A warning ends at a turning word.
    ("turn", "without unless but except instead then"),
    ("scoped", "in of from on here provided offered that which for with"),
];
