//! What a picture has to be so that it can be shown to a model.

use wharf_json::Raw;
use wharf_tools::Base64;

use crate::conversation::{Block, ResultBlock};

/// What every API takes as a picture.
const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Letters of one picture in Base64. Anthropic's API takes no more, and the others do.
const LARGEST: usize = 5 << 20;

impl Block {
    /// How many bytes of text take as much of a context as a picture does, about: 1600 tokens, however large it is.
    pub const PICTURE_SIZE: usize = 6400;

    /// A picture of the user's turn, given in Base64; nothing where not every API would take it.
    pub fn picture(media_type: &str, base64: &str) -> Option<Self> {
        let string = Raw::parse(serde_json::to_string(base64).ok()?).ok()?;
        let (media_type, data) = picture(media_type, &Base64::from_json(string)?)?;
        Some(Self::Image { media_type, data })
    }
}

impl ResultBlock {
    /// A picture of a result; nothing where not every API would take it.
    pub(crate) fn picture(media_type: &str, data: &Base64) -> Option<Self> {
        picture(media_type, data).map(|(media_type, data)| Self::Image { media_type, data })
    }
}

/// The type as APIs spell it, and the picture in Base64 written anew: not every API takes it without its padding.
fn picture(media_type: &str, data: &Base64) -> Option<(String, String)> {
    let media_type = KINDS.into_iter().find(|known| known.eq_ignore_ascii_case(media_type))?;
    if data.text().len() > LARGEST {
        return None;
    }
    let data = Base64::of(&data.decode().ok().filter(|bytes| !bytes.is_empty())?);
    (data.text().len() <= LARGEST).then(|| (media_type.to_owned(), data.text().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_what_every_api_takes() {
        for (media_type, data, expected) in [
            ("image/png", "aGk=", Some(("image/png", "aGk="))),
            ("image/JPEG", "aGk", Some(("image/jpeg", "aGk="))),
            ("image/webp", "aG\r\nk=", Some(("image/webp", "aGk="))),
            ("image/tiff", "aGk=", None),
            ("image/png", "a*k=", None),
            ("image/png", "a\"k=", None),
            ("image/png", "", None),
        ] {
            let expected = expected
                .map(|(media_type, data)| Block::Image { media_type: media_type.to_owned(), data: data.to_owned() });
            assert_eq!(Block::picture(media_type, data), expected, "{media_type} {data}");
        }
    }

    #[test]
    fn its_letters_are_counted_and_not_its_bytes() {
        for (letters, is_one) in [(LARGEST, true), (LARGEST + 4, false)] {
            let data = Base64::of(&vec![0; letters / 4 * 3]);
            assert_eq!(ResultBlock::picture("image/png", &data).is_some(), is_one, "{letters}");
            assert_eq!(Block::picture("image/png", data.text()).is_some(), is_one, "{letters}");
        }
    }
}
