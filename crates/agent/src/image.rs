//! Validation of images for models.

use wharf_json::RawJson;
use wharf_tools::Base64Text;

use crate::conversation::{ResultBlock, TurnBlock};

/// Image types that every API accepts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Maximum Base64 characters of one image. Anthropic's limit is the lowest of all APIs.
const MAX_BASE64_CHARS: usize = 5 << 20;

impl TurnBlock {
    /// Approximate context cost of an image in bytes of text: 1600 tokens, regardless of the image's size.
    pub const IMAGE_COST_BYTES: usize = 6400;

    /// Creates an image block for the user's turn from Base64. Returns `None` if any API would reject the image.
    pub fn image(media_type: &str, base64: &str) -> Option<Self> {
        let string = RawJson::parse(serde_json::to_string(base64).ok()?).ok()?;
        let (media_type, data) = validate_image(media_type, &Base64Text::from_json(string)?)?;
        Some(Self::Image { media_type, data })
    }
}

impl ResultBlock {
    /// Creates an image block for a tool result. Returns `None` if any API would reject the image.
    pub(crate) fn image(media_type: &str, data: &Base64Text) -> Option<Self> {
        validate_image(media_type, data).map(|(media_type, data)| Self::Image { media_type, data })
    }
}

/// Returns the media type in lower case and the image in padded Base64. Some APIs reject Base64 without padding.
fn validate_image(media_type: &str, data: &Base64Text) -> Option<(String, String)> {
    let media_type = IMAGE_TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(media_type))?;
    if data.text().len() > MAX_BASE64_CHARS {
        return None;
    }
    let data = Base64Text::encode(&data.decode().ok().filter(|bytes| !bytes.is_empty())?);
    (data.text().len() <= MAX_BASE64_CHARS).then(|| (media_type.to_owned(), data.text().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_supported_image_types_and_base64_are_accepted() {
        for (media_type, data, expected) in [
            ("image/png", "aGk=", Some(("image/png", "aGk="))),
            ("image/JPEG", "aGk", Some(("image/jpeg", "aGk="))),
            ("image/webp", "aG\r\nk=", Some(("image/webp", "aGk="))),
            ("image/tiff", "aGk=", None),
            ("image/png", "a*k=", None),
            ("image/png", "a\"k=", None),
            ("image/png", "", None),
        ] {
            let expected = expected.map(|(media_type, data)| TurnBlock::Image {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            });
            assert_eq!(TurnBlock::image(media_type, data), expected, "{media_type} {data}");
        }
    }

    #[test]
    fn image_limit_counts_base64_characters() {
        for (letters, is_one) in [(MAX_BASE64_CHARS, true), (MAX_BASE64_CHARS + 4, false)] {
            let data = Base64Text::encode(&vec![0; letters / 4 * 3]);
            assert_eq!(ResultBlock::image("image/png", &data).is_some(), is_one, "{letters}");
            assert_eq!(TurnBlock::image("image/png", data.text()).is_some(), is_one, "{letters}");
        }
    }
}
