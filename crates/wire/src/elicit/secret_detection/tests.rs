//! Fields that ask for secrets, and harmless fields with similar words.

use super::*;
use crate::RawJson;

fn field(name: &str, kind: FieldKind) -> FormField {
    FormField { name: name.to_owned(), title: None, description: None, required: false, kind, default: None }
}

fn text() -> FieldKind {
    FieldKind::Text { min_length: None, max_length: None, format: None }
}

#[test]
fn secrets_are_detected_in_any_spelling() {
    for name in [
        "password",
        "db_password",
        "userPassword",
        "PASSWORD",
        "VPN p\u{430}ssword",
        "p\u{430}\u{455}\u{455}w\u{43e}rd",
        "p a s s w o r d",
        "pass-word",
        "pa\u{200b}ssword",
        "passwo\u{301}rd",
        "P4$$w0rd",
        "ｐａｓｓｗｏｒｄ",
        "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝",
        "𝓟𝓪𝓼𝓼𝔀𝓸𝓻𝓭",
        "ⓟⓐⓢⓢⓦⓞⓡⓓ",
        "passphrase",
        "token",
        "apiToken",
        "GitHub token",
        "your token!",
        "token2",
        "$ecret",
        "s3cret",
        "t\u{43e}ken",
        "API key",
        "api_key",
        "APIKEY",
        "AP\u{406} k\u{435}y",
        "Card number",
        "credit-card",
        "CVV",
        "one-time code",
        "otp",
        "PIN",
        "client secret",
        "Seed phrase",
        "Пароль",
        "contraseña",
        "密码",
        "c1ient_secret",
    ] {
        assert!(asks_for_secret(&field(name, text())), "{name}");
    }
}

#[test]
fn ordinary_fields_are_accepted() {
    for name in [
        "name",
        "email",
        "user_name",
        "passenger",
        "compass",
        "tokenizer",
        "max_tokens",
        "keyboard",
        "key",
        "card",
        "secretary",
        "pinned",
        "shipping",
        "passport country",
        "monkey",
        "code",
        "description",
        "Ort",
        "город",
    ] {
        assert!(!asks_for_secret(&field(name, text())), "{name}");
    }
    let count = FieldKind::Integer { minimum: None, maximum: None };
    assert!(!asks_for_secret(&field("token limit", count.clone())));
    assert!(asks_for_secret(&field("card number", count)));
    assert!(!asks_for_secret(&field("remember the password?", FieldKind::Boolean)));
}

#[test]
fn title_description_and_format_are_checked() {
    let plain = field("value", text());
    assert!(!asks_for_secret(&plain));
    assert!(asks_for_secret(&FormField { title: Some("Password".to_owned()), ..plain.clone() }));
    assert!(asks_for_secret(&FormField { description: Some("your API key, please".to_owned()), ..plain.clone() }));
    assert!(!asks_for_secret(&FormField { default: RawJson::from_value("password").ok(), ..plain.clone() }));
    let format = Some(TextFormat::Other("password".to_owned()));
    assert!(asks_for_secret(&FormField {
        kind: FieldKind::Text { min_length: None, max_length: None, format },
        ..plain
    }));
}

/// Classes of secrets that passed an earlier filter in an attack exercise: one-time codes, seed phrases, keys, cookies,
/// bank logins.
#[test]
fn word_pairs_are_detected_in_any_spelling() {
    for name in [
        "authenticator code",
        "authenticatorCode",
        "authenticator_code",
        "Code from your authenticator app",
        "The 6 digits of your authenticator",
        "\u{430}uthenticator c\u{43e}de",
        "2FA code",
        "MFA code",
        "SMS code",
        "login code",
        "backup codes",
        "Bestätigungscode",
        "code de vérification",
        "código de verificación",
        "验证码",
        "認証コード",
        "인증번호",
        "код подтверждения",
        "wallet mnemonic",
        "walletMnemonic",
        "mnemonic of your wallet",
        "W4llet mnem0nic",
        "12 seed words",
        "recovery words",
        "your BIP39 words",
        "frase de recuperación",
        "助记词",
        "private key",
        "private SSH key",
        "privateKeyPem",
        "privkey",
        "pr\u{456}vate k\u{435}y",
        "key (private)",
        "contents of ~/.ssh/id_rsa",
        "privater Schlüssel",
        "clé privée",
        "clave privada",
        "私钥",
        "закрытый ключ",
        "session cookie",
        "session_cookie",
        "sessioncookie",
        "cookie of your browser session",
        "session id",
        "sessionId",
        "sessionid",
        "Cookie header",
        "JSESSIONID",
        "cookie de session",
        "bank login",
        "bankLogin",
        "Login for your bank",
        "online banking username",
        "online-banking PIN",
        "b\u{430}nk l\u{43e}gin",
        "Bankzugang",
        "identifiant bancaire",
        "网银登录",
    ] {
        assert!(asks_for_secret(&field(name, text())), "{name}");
    }
}

#[test]
fn harmless_fields_with_similar_words_are_accepted() {
    for name in [
        "code of the country",
        "Country code",
        "postal code",
        "area code of the phone",
        "4-digit product code",
        "coupon code",
        "booking confirmation code",
        "error code",
        "Source code language",
        "QR code text",
        "bank code",
        "session title",
        "Session idea",
        "session length in minutes",
        "training session",
        "ID of the conference session room",
        "key of the song",
        "Jira issue key",
        "primary key column",
        "foreign key",
        "Public key fingerprint of the host",
        "keyword",
        "key takeaways",
        "private notes",
        "private repository name",
        "bank holiday region",
        "bank name",
        "food bank address",
        "river bank",
        "data bank identifier",
        "cookie recipe",
        "Favourite cookie",
        "cookie banner text",
        "random seed",
        "seed for the generator",
        "garden seed mix",
        "mnemonic for the formula",
        "phrase to translate",
        "recovery time objective",
        "backup schedule",
        "words to avoid",
        "wallet brand",
        "login page colour",
        "username",
        "pin the message",
        "authenticator app in use",
        "verification method",
        "master branch",
        "deploy target",
        "signing date",
        "browser version",
        "SMS text",
        "digits after the decimal point",
    ] {
        assert!(!asks_for_secret(&field(name, text())), "{name}");
    }
}
