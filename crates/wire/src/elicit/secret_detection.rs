//! Detection of form fields that ask for a secret, including look-alike spellings.

mod pairs;
#[cfg(test)]
mod tests;

use super::{FieldKind, FormField, TextFormat};

/// Phrases matched anywhere in a text, ignoring spaces and punctuation.
const SECRET_PHRASES: [&str; 86] = [
    "password",
    "passwort",
    "passwd",
    "passphrase",
    "passcode",
    "kennwort",
    "zugangsdaten",
    "motdepasse",
    "contrasena",
    "contrasenya",
    "wachtwoord",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "apikey",
    "privatekey",
    "secretkey",
    "accesskey",
    "sshkey",
    "encryptionkey",
    "signingkey",
    "accesstoken",
    "authtoken",
    "bearertoken",
    "refreshtoken",
    "sessiontoken",
    "apitoken",
    "clientsecret",
    "credential",
    "cardnumber",
    "creditcard",
    "debitcard",
    "securitycode",
    "seedphrase",
    "recoveryphrase",
    "recoverycode",
    "verificationcode",
    "onetimecode",
    "onetimepass",
    "socialsecuritynumber",
    "authenticatorcode",
    "walletmnemonic",
    "mnemonicphrase",
    "sessioncookie",
    "banklogin",
    "einmalcode",
    "bestätigungscode",
    "sicherheitscode",
    "verificatiecode",
    "beveiligingscode",
    "codedesécurité",
    "codedevérification",
    "códigodeseguridad",
    "códigodeverificación",
    "验证码",
    "驗證碼",
    "認証コード",
    "ワンタイム",
    "인증번호",
    "인증코드",
    "wiederherstellungsphrase",
    "wiederherstellungsschlüssel",
    "phrasederécupération",
    "herstelzin",
    "助记词",
    "助記詞",
    "ニーモニック",
    "니모닉",
    "privatschlüssel",
    "privésleutel",
    "idrsa",
    "ided25519",
    "私钥",
    "私鑰",
    "秘密鍵",
    "개인키",
    "sitzungscookie",
    "phpsessid",
    "jsessionid",
    "会话cookie",
    "bankzugang",
    "网银登录",
    "網銀登入",
    "ネットバンキングのログイン",
];
/// Words matched as whole words. The first one applies to text fields only.
const SECRET_WORDS: [&str; 11] =
    ["token", "pwd", "passw", "secret", "senha", "cvv", "cvc", "cvv2", "otp", "totp", "ssn"];

/// Reports whether a field asks for a secret. Only free-form input is checked.
pub(super) fn asks_for_secret(field: &FormField) -> bool {
    let format = match &field.kind {
        FieldKind::Text { format, .. } => format.as_ref(),
        FieldKind::Number { .. } | FieldKind::Integer { .. } => None,
        FieldKind::Boolean | FieldKind::Choice { .. } | FieldKind::Choices { .. } => return false,
    };
    let format = match format {
        Some(TextFormat::Other(name)) => Some(name.as_str()),
        _ => None,
    };
    let texts = [Some(field.name.as_str()), field.title.as_deref(), field.description.as_deref(), format];
    // A numeric token field is a token count.
    let words = if matches!(field.kind, FieldKind::Text { .. }) { &SECRET_WORDS[..] } else { &SECRET_WORDS[1..] };
    texts.into_iter().flatten().any(|text| names_a_secret(text, words))
}

fn names_a_secret(text: &str, wanted: &[&str]) -> bool {
    let text = split_visible_words(text);
    let letters: String = skeleton(&text).filter(|letter| letter.is_alphanumeric()).collect();
    let spells = |phrase: &&str| {
        let phrase: String = skeleton(phrase).collect();
        letters.contains(&phrase)
    };
    letters == "pin"
        || SECRET_PHRASES.iter().any(spells)
        || has_word(&text, wanted)
        || pairs::has_secret_pair(&word_skeletons(&text))
}

/// Splits a text into words and returns their skeletons.
fn word_skeletons(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| skeleton(word).collect()).collect()
}

/// Reports whether one of the words occurs as a whole word. Symbols are read both as separators and as the letters they
/// resemble.
fn has_word(text: &str, wanted: &[&str]) -> bool {
    let wanted: Vec<String> = wanted.iter().map(|word| skeleton(word).collect()).collect();
    let is_sign = |letter: char| !letter.is_alphanumeric();
    let plain =
        text.split(is_sign).map(|word| skeleton(word.trim_end_matches(|end: char| end.is_ascii_digit())).collect());
    let resembled: String = skeleton(text).collect();
    let mut words = plain.chain(resembled.split(is_sign).map(str::to_owned));
    words.any(|word: String| wanted.contains(&word))
}

/// Removes invisible characters and inserts a space at `camelCase` boundaries.
fn split_visible_words(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    let mut after_lower = false;
    for letter in text.chars().filter(|letter| !is_invisible(*letter)) {
        if letter.is_uppercase() && after_lower {
            seen.push(' ');
        }
        after_lower = letter.is_lowercase();
        seen.push(letter);
    }
    seen
}

/// Folds a text to lower-case base letters. Texts that look the same have the same skeleton.
pub fn skeleton(text: &str) -> impl Iterator<Item = char> {
    // Lower-casing can add combining marks.
    text.chars().flat_map(char::to_lowercase).filter(|letter| !is_invisible(*letter)).map(base_letter)
}

/// Matches combining marks, joiners and other zero-width characters.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{20d0}'..='\u{20f0}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Maps a letter to the base letter it resembles.
fn base_letter(letter: char) -> char {
    let plain = |base: u8, offset: u32| char::from(base + u8::try_from(offset % 26).unwrap_or_default());
    match letter {
        'a'..='k' | 'm'..='z' => letter,
        // Full-width letters and digits.
        '\u{ff41}'..='\u{ff5a}' => plain(b'a', u32::from(letter) - 0xff41),
        // Mathematical letters come in alphabets of 26; lower-casing does not change them.
        '\u{1d400}'..='\u{1d6a3}' => plain(b'a', u32::from(letter) - 0x1d400),
        // Circled and parenthesised letters.
        '\u{24d0}'..='\u{24e9}' => plain(b'a', u32::from(letter) - 0x24d0),
        '\u{249c}'..='\u{24b5}' => plain(b'a', u32::from(letter) - 0x249c),
        _ => LOOK_ALIKES.iter().find(|(_, others)| others.contains(letter)).map_or(letter, |(plain, _)| *plain),
    }
}

/// Look-alikes per base letter: Cyrillic, Greek, Armenian, small capitals, accented letters, digits and symbols.
const LOOK_ALIKES: [(char, &str); 23] = [
    ('a', "аαáàâäãåāăą@4ɑᴀª"),
    ('b', "ьвβʙƅ8"),
    ('c', "сϲçćčᴄ¢ⅽ"),
    ('d', "ԁđďᴅⅾ"),
    ('e', "еєéèêëēėęěᴇ3ҽ€"),
    ('g', "ɡġğց9"),
    ('h', "һհʜн"),
    ('i', "lіιíìîïīıɪ1|!ⅰľĺłӏⅼ"),
    ('j', "јʝ"),
    ('k', "кκᴋķ"),
    ('m', "мᴍⅿ"),
    ('n', "ոñńňηɴп"),
    ('o', "оοσóòôöõøōᴏ0օ○"),
    ('p', "рρᴘþ"),
    ('q', "ԛզ"),
    ('r', "гŕřʀ"),
    ('s', "ѕšśşꜱ5$ʂ"),
    ('t', "тτţťᴛ7†"),
    ('u', "υսúùûüūᴜц"),
    ('v', "νѵᴠⅴ"),
    ('w', "ѡωԝᴡшщ"),
    ('x', "хχ×ⅹ"),
    ('y', "уγýÿʏү"),
];
