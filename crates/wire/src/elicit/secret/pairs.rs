//! Secrets that take two words to name: neither `code` nor `authenticator` is one, `authenticator code` is.

use super::skeleton;

/// Two sets of words. A text names a secret where a word of each stands near the other, in either order.
struct Pair {
    one: &'static [&'static str],
    other: &'static [&'static str],
    /// How many words one may stand after the other.
    max_distance: usize,
}

/// As in `cookie of your browser session`.
const NEAR: usize = 4;
/// Side by side: `session id`, and not `ID of the conference session`.
const ADJACENT: usize = 1;

const PAIRS: [Pair; 9] = [
    // One-time codes. Not `confirmation`, which bookings have, nor a number of digits, which products have.
    Pair {
        one: &[
            "authenticator",
            "authentication",
            "authenticatie",
            "authentification",
            "authentifizierung",
            "autenticador",
            "autenticacion",
            "verification",
            "verificacion",
            "verificacao",
            "verificatie",
            "login",
            "signin",
            "logon",
            "2fa",
            "mfa",
            "sms",
            "backup",
            "totp",
            "подтверждения",
            "одноразовый",
        ],
        other: &["code", "codes", "codigo", "codigos", "digits", "код", "коды"],
        max_distance: NEAR,
    },
    // Words from which a wallet can be rebuilt.
    Pair {
        one: &["wallet", "seed", "recovery", "backup", "bip39", "semilla", "recuperacion", "recuperation", "сид"],
        other: &["phrase", "phrases", "words", "mnemonic", "mnemonics", "mots", "frase", "palabras", "фраза", "слова"],
        max_distance: NEAR,
    },
    Pair {
        one: &["mnemonic", "мнемоническая", "секретная", "secrete"],
        other: &["phrase", "seed", "words", "фраза"],
        max_distance: NEAR,
    },
    // Keys.
    Pair {
        one: &["private", "priv", "signing", "decryption", "master", "wallet", "deploy"],
        other: &["key", "keys", "keyfile", "pem"],
        max_distance: NEAR,
    },
    Pair {
        one: &[
            "privater",
            "privaten",
            "geheimer",
            "geheimen",
            "privee",
            "privees",
            "privada",
            "privadas",
            "prive",
            "geheime",
            "закрытый",
            "приватный",
            "секретный",
        ],
        other: &["schlussel", "schluessel", "cle", "cles", "clef", "clave", "llave", "chave", "sleutel", "ключ"],
        max_distance: NEAR,
    },
    // What a browser is known by.
    Pair {
        one: &["session", "sitzung", "sesion", "sessao", "sessie", "auth", "login", "browser", "сессии"],
        other: &["cookie", "cookies", "куки"],
        max_distance: NEAR,
    },
    Pair {
        one: &["session", "sitzungs", "sesion", "sessie", "сессии"],
        other: &["id", "ids", "sid", "identifiant"],
        max_distance: ADJACENT,
    },
    Pair { one: &["cookie", "cookies"], other: &["header", "value", "string", "jar"], max_distance: ADJACENT },
    // What a bank asks for.
    Pair {
        one: &[
            "bank",
            "banking",
            "ebanking",
            "netbanking",
            "banque",
            "bancaire",
            "bancaires",
            "banco",
            "banca",
            "банк",
        ],
        other: &[
            "login",
            "logon",
            "signin",
            "username",
            "userid",
            "pin",
            "tan",
            "anmeldename",
            "benutzername",
            "nutzername",
            "identifiant",
            "identifiants",
            "connexion",
            "usuario",
            "clave",
            "inloggegevens",
            "gebruikersnaam",
            "логин",
            "пин",
        ],
        max_distance: NEAR,
    },
];

/// Whether two words of a pair stand near each other, or are one word. Takes words as a reader sees them.
pub(super) fn name_a_secret(words: &[String]) -> bool {
    PAIRS.iter().any(|pair| {
        let ones = places(words, pair.one);
        let others = places(words, pair.other);
        ones.iter().any(|one| others.iter().any(|other| one != other && one.abs_diff(*other) <= pair.max_distance))
            || words.iter().any(|word| pair.is_joined_in(word))
    })
}

fn places(words: &[String], wanted: &[&str]) -> Vec<usize> {
    let is_wanted = |word: &String| wanted.iter().any(|wanted| is_alike(word, wanted));
    words.iter().enumerate().filter(|(_, word)| is_wanted(word)).map(|(place, _)| place).collect()
}

impl Pair {
    /// Whether a word is one of each, written together: `sessionid`.
    fn is_joined_in(&self, word: &str) -> bool {
        self.one.iter().any(|one| {
            let one: String = skeleton(one).collect();
            let rest = word.strip_prefix(&one);
            rest.is_some_and(|rest| self.other.iter().any(|other| is_alike(rest, other)))
        })
    }
}

fn is_alike(word: &str, wanted: &str) -> bool {
    skeleton(wanted).eq(word.chars())
}
