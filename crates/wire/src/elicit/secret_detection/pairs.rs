//! Secrets named by a pair of words: `authenticator code` is a secret, `code` and `authenticator` alone are not.

use super::skeleton;

/// Two sets of words. A text names a secret if a word of each set occurs within `max_distance`, in either order.
struct SecretWordPair {
    one: &'static [&'static str],
    other: &'static [&'static str],
    /// Maximum distance between the two words, in words.
    max_distance: usize,
}

/// Covers `cookie of your browser session`.
const NEAR_DISTANCE: usize = 4;
/// Covers `session id`, but not `ID of the conference session`.
const ADJACENT_DISTANCE: usize = 1;

const PAIRS: [SecretWordPair; 9] = [
    // One-time codes. Excludes `confirmation` (bookings) and digit counts (products).
    SecretWordPair {
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
        max_distance: NEAR_DISTANCE,
    },
    // Wallet recovery phrases.
    SecretWordPair {
        one: &["wallet", "seed", "recovery", "backup", "bip39", "semilla", "recuperacion", "recuperation", "сид"],
        other: &["phrase", "phrases", "words", "mnemonic", "mnemonics", "mots", "frase", "palabras", "фраза", "слова"],
        max_distance: NEAR_DISTANCE,
    },
    SecretWordPair {
        one: &["mnemonic", "мнемоническая", "секретная", "secrete"],
        other: &["phrase", "seed", "words", "фраза"],
        max_distance: NEAR_DISTANCE,
    },
    // Keys.
    SecretWordPair {
        one: &["private", "priv", "signing", "decryption", "master", "wallet", "deploy"],
        other: &["key", "keys", "keyfile", "pem"],
        max_distance: NEAR_DISTANCE,
    },
    SecretWordPair {
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
        max_distance: NEAR_DISTANCE,
    },
    // Browser sessions.
    SecretWordPair {
        one: &["session", "sitzung", "sesion", "sessao", "sessie", "auth", "login", "browser", "сессии"],
        other: &["cookie", "cookies", "куки"],
        max_distance: NEAR_DISTANCE,
    },
    SecretWordPair {
        one: &["session", "sitzungs", "sesion", "sessie", "сессии"],
        other: &["id", "ids", "sid", "identifiant"],
        max_distance: ADJACENT_DISTANCE,
    },
    SecretWordPair {
        one: &["cookie", "cookies"],
        other: &["header", "value", "string", "jar"],
        max_distance: ADJACENT_DISTANCE,
    },
    // Bank logins.
    SecretWordPair {
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
        max_distance: NEAR_DISTANCE,
    },
];

/// Reports whether two words of a pair occur near each other or as one word. Takes skeletons of words.
pub(super) fn has_secret_pair(words: &[String]) -> bool {
    PAIRS.iter().any(|pair| {
        let ones = word_positions(words, pair.one);
        let others = word_positions(words, pair.other);
        ones.iter().any(|one| others.iter().any(|other| one != other && one.abs_diff(*other) <= pair.max_distance))
            || words.iter().any(|word| pair.is_joined_in(word))
    })
}

fn word_positions(words: &[String], wanted: &[&str]) -> Vec<usize> {
    let is_wanted = |word: &String| wanted.iter().any(|wanted| is_alike(word, wanted));
    words.iter().enumerate().filter(|(_, word)| is_wanted(word)).map(|(place, _)| place).collect()
}

impl SecretWordPair {
    /// Reports whether a word is a word of each set written together: `sessionid`.
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
