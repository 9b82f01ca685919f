//! Folding of characters to the letters they look like, so that different spellings of a word compare equal.

/// A folded character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoldedChar {
    /// A letter or digit, as the lower-case ASCII letter that it looks like.
    Letter(char),
    /// Ignored: zero-width characters and apostrophes.
    Nothing,
    /// A word separator.
    Break,
}

/// Folds one character. Digits become the letters they resemble, and `l` becomes `i`: words that look the same at a
/// glance fold to the same letters.
pub(super) fn fold(character: char) -> FoldedChar {
    match u8::try_from(character) {
        Ok(byte) if byte < 128 => ASCII_FOLDING[usize::from(byte)],
        _ if is_invisible(character) => FoldedChar::Nothing,
        _ => fold_non_ascii(character),
    }
}

/// Reports whether a character has no width of its own: joiners, marks, combining accents, tags.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{20d0}'..='\u{20f0}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

const ASCII_FOLDING: [FoldedChar; 128] = {
    let mut table = [FoldedChar::Break; 128];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'l' | b'L' | b'1' => FoldedChar::Letter('i'),
            b'a'..=b'z' => FoldedChar::Letter(byte as char),
            b'A'..=b'Z' => FoldedChar::Letter(byte.to_ascii_lowercase() as char),
            b'0' => FoldedChar::Letter('o'),
            b'3' => FoldedChar::Letter('e'),
            b'4' => FoldedChar::Letter('a'),
            b'5' | b'$' => FoldedChar::Letter('s'),
            b'7' => FoldedChar::Letter('t'),
            b'8' => FoldedChar::Letter('b'),
            b'9' => FoldedChar::Letter('g'),
            b'2' | b'6' => FoldedChar::Letter(byte as char),
            b'\'' | b'`' => FoldedChar::Nothing,
            _ => FoldedChar::Break,
        };
        byte += 1;
    }
    table
};

fn fold_non_ascii(character: char) -> FoldedChar {
    let small = character.to_lowercase().next().unwrap_or(character);
    match small {
        '’' | '‘' | 'ʼ' | '´' => FoldedChar::Nothing,
        _ => match ascii_look_alike(small) {
            'l' => FoldedChar::Letter('i'),
            letter if letter.is_alphanumeric() => FoldedChar::Letter(letter),
            _ => FoldedChar::Break,
        },
    }
}

/// Returns the ASCII letter that a lower-case letter outside ASCII looks like.
fn ascii_look_alike(letter: char) -> char {
    let plain = |from: u32| char::from(b'a' + u8::try_from((u32::from(letter) - from) % 26).unwrap_or_default());
    match letter {
        // Full-width, mathematical (alphabets of 26, capitals among them), circled and parenthesised letters.
        '\u{ff41}'..='\u{ff5a}' => plain(0xff41),
        '\u{1d400}'..='\u{1d6a3}' => plain(0x1d400),
        '\u{24d0}'..='\u{24e9}' => plain(0x24d0),
        '\u{249c}'..='\u{24b5}' => plain(0x249c),
        '\u{1f130}'..='\u{1f149}' => plain(0x1f130),
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'а' | 'α' | 'ɑ' | 'ᴀ' | 'ª' => 'a',
        'ь' | 'в' | 'β' | 'ʙ' | 'ƅ' => 'b',
        'ç' | 'ć' | 'č' | 'с' | 'ϲ' | 'ᴄ' | 'ⅽ' | '¢' => 'c',
        'ď' | 'đ' | 'ԁ' | 'ᴅ' | 'ⅾ' => 'd',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' | 'е' | 'є' | 'ё' | 'ҽ' | 'ε' | 'ᴇ' | '€' => 'e',
        'ꜰ' | 'ƒ' => 'f',
        'ğ' | 'ġ' | 'ɡ' | 'ց' | 'ɢ' => 'g',
        'һ' | 'հ' | 'ʜ' | 'н' => 'h',
        'ì'..='ï' | 'ī' | 'ı' | 'і' | 'ї' | 'ι' | 'ɪ' | 'ⅰ' | 'ľ' | 'ĺ' | 'ł' | 'ӏ' | 'ⅼ' | 'ʟ' => 'i',
        'ј' | 'ʝ' | 'ᴊ' => 'j',
        'к' | 'κ' | 'ᴋ' | 'ķ' => 'k',
        'м' | 'ᴍ' | 'ⅿ' => 'm',
        'ñ' | 'ń' | 'ň' | 'ո' | 'η' | 'ɴ' | 'п' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' | 'о' | 'ο' | 'σ' | 'օ' | 'ᴏ' => 'o',
        'р' | 'ρ' | 'ᴘ' | 'þ' => 'p',
        'ԛ' | 'զ' => 'q',
        'г' | 'ŕ' | 'ř' | 'ʀ' => 'r',
        'ś' | 'ş' | 'š' | 'ѕ' | 'ꜱ' | 'ʂ' => 's',
        'ţ' | 'ť' | 'т' | 'τ' | 'ᴛ' | '†' => 't',
        'ù'..='ü' | 'ū' | 'ű' | 'υ' | 'ս' | 'ᴜ' | 'ц' => 'u',
        'ν' | 'ѵ' | 'ᴠ' | 'ⅴ' => 'v',
        'ѡ' | 'ω' | 'ԝ' | 'ᴡ' | 'ш' | 'щ' => 'w',
        'х' | 'χ' | 'ⅹ' => 'x',
        'ý' | 'ÿ' | 'у' | 'γ' | 'ү' | 'ʏ' => 'y',
        'ź' | 'ż' | 'ž' | 'ᴢ' => 'z',
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookalike_letters_fold_alike() {
        let folded = |text: &str| -> String {
            let letters = text.chars().map(fold).filter(|folded| *folded != FoldedChar::Nothing);
            letters.map(|folded| if let FoldedChar::Letter(letter) = folded { letter } else { ' ' }).collect()
        };
        for text in [
            "ignore",
            "IGNORE",
            "iɡnоrе",
            "𝐢𝐠𝐧𝐨𝐫𝐞",
            "ｉｇｎｏｒｅ",
            "ⓘⓖⓝⓞⓡⓔ",
            "1gn0r3",
            "ig\u{200b}nore",
            "ígnòré",
            "lgn0re",
        ] {
            assert_eq!(folded(text), "ignore", "{text}");
        }
        assert_eq!(folded("don't — tell"), "dont   teii");
        assert_eq!(folded("忽略"), "忽略");
    }
}
