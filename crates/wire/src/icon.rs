//! Icons declared by a server, and the policy that decides which may be shown.
//!
//! This module never fetches a URL. Images are identified by their leading bytes and not decoded.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::JsonLimits;
use wharf_json::RawJson;

/// Maximum bytes of one icon.
pub const ICON_LIMIT: usize = 256 << 10;
/// Maximum number of icons read per owner.
const MAX_ICONS: usize = 32;

/// An icon as declared by its server. Every string is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon {
    /// URL of the image, or the image itself as a `data:` URL.
    pub src: String,
    /// MIME type declared by the server.
    pub mime_type: Option<String>,
    /// Suitable sizes: `48x48`, or `any`.
    pub sizes: Vec<String>,
    /// Intended background: `light` or `dark`.
    pub theme: Option<String>,
    /// The entry as received.
    pub raw: RawJson,
}

/// The source of an icon that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IconSource<'a> {
    /// A URL to fetch without credentials and without cross-origin redirects. The response must pass [`Icon::check`].
    Remote(&'a str),
    /// An image embedded in a `data:` URL.
    Inline {
        /// Format of the image.
        format: ImageFormat,
        /// Bytes of the image.
        bytes: Vec<u8>,
    },
}

/// A supported image format. Formats that can carry scripts are excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
}

/// The reason an icon is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IconError {
    /// The scheme is neither `https:` nor `data:`.
    Scheme,
    /// The URL is malformed or ambiguous.
    Address,
    /// The origin differs from the server's.
    Origin,
    /// The image has more than [`ICON_LIMIT`] bytes.
    TooLarge,
    /// The data is not Base64.
    Encoding,
    /// The declared type is neither PNG nor JPEG.
    Type,
    /// The content does not match the declared type.
    Disguised,
}

/// Reads the icons of a tool, resource, prompt or server. Invalid entries are skipped: an icon never invalidates its
/// owner.
pub fn icons(owner: &RawJson, bounds: &JsonLimits) -> Vec<Icon> {
    #[derive(Deserialize)]
    struct WireIconOwner<'a> {
        #[serde(borrow, default)]
        icons: Vec<&'a RawValue>,
    }
    let Ok(WireIconOwner { icons }) = owner.decode::<WireIconOwner>(bounds) else { return Vec::new() };
    icons.into_iter().take(MAX_ICONS).filter_map(|entry| view(owner.slice_part(entry))).collect()
}

fn view(raw: RawJson) -> Option<Icon> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct WireIcon {
        src: String,
        #[serde(default)]
        mime_type: Option<String>,
        #[serde(default)]
        sizes: Vec<String>,
        #[serde(default)]
        theme: Option<String>,
    }
    let WireIcon { src, mime_type, sizes, theme } = serde_json::from_slice(raw.as_bytes()).ok()?;
    (!src.is_empty()).then_some(Icon { src, mime_type, sizes, theme, raw })
}

impl Icon {
    /// Decides if the icon may be shown. A server without an origin, such as a local process, may use embedded images
    /// only.
    ///
    /// # Errors
    ///
    /// Returns the reason if the icon must not be shown.
    pub fn resolve_source(&self, server_origin: Option<&str>) -> Result<IconSource<'_>, IconError> {
        self.declared_format()?;
        if let Some(rest) = after_scheme(&self.src, "data:") {
            let bytes = decode_data_url(rest)?;
            let format = self.check(&bytes)?;
            if parse_image_type(media_type(rest))? != format {
                return Err(IconError::Disguised);
            }
            return Ok(IconSource::Inline { format, bytes });
        }
        after_scheme(&self.src, "https://").ok_or(IconError::Scheme)?;
        let place = parse_origin(&self.src).ok_or(IconError::Address)?;
        if server_origin.and_then(parse_origin) == Some(place) {
            Ok(IconSource::Remote(&self.src))
        } else {
            Err(IconError::Origin)
        }
    }

    /// Identifies an image fetched for this icon by its leading bytes, and compares it with the declared type.
    ///
    /// # Errors
    ///
    /// Fails if the image is too large, neither PNG nor JPEG, or different from the declared type.
    pub fn check(&self, bytes: &[u8]) -> Result<ImageFormat, IconError> {
        if bytes.len() > ICON_LIMIT {
            return Err(IconError::TooLarge);
        }
        let found = ImageFormat::sniff(bytes).ok_or(IconError::Disguised)?;
        let agrees = self.declared_format()?.is_none_or(|declared| declared == found);
        if agrees { Ok(found) } else { Err(IconError::Disguised) }
    }

    /// Returns the format the server declares, if any.
    fn declared_format(&self) -> Result<Option<ImageFormat>, IconError> {
        self.mime_type.as_deref().map(parse_image_type).transpose()
    }
}

impl ImageFormat {
    /// Identifies an image by its leading bytes.
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else {
            None
        }
    }
}

fn parse_image_type(mime_type: &str) -> Result<ImageFormat, IconError> {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("image/png") {
        Ok(ImageFormat::Png)
    } else if ["image/jpeg", "image/jpg"].iter().any(|known| essence.eq_ignore_ascii_case(known)) {
        Ok(ImageFormat::Jpeg)
    } else {
        Err(IconError::Type)
    }
}

fn after_scheme<'a>(address: &'a str, scheme: &str) -> Option<&'a str> {
    let (head, rest) = address.split_at_checked(scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Returns the part of a `data:` URL before the comma.
fn media_type(rest: &str) -> &str {
    rest.split(',').next().unwrap_or_default()
}

fn decode_data_url(rest: &str) -> Result<Vec<u8>, IconError> {
    let (head, data) = rest.split_once(',').ok_or(IconError::Address)?;
    let (_, encoding) = head.rsplit_once(';').ok_or(IconError::Encoding)?;
    if !encoding.eq_ignore_ascii_case("base64") {
        return Err(IconError::Encoding);
    }
    if data.len() / 4 * 3 > ICON_LIMIT + 3 {
        return Err(IconError::TooLarge);
    }
    decode_base64(data.as_bytes()).ok_or(IconError::Encoding)
}

/// Decodes padded Base64; rejects non-canonical encodings.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|&&byte| byte == b'=').count();
    let (digits, _) = text.split_at(text.len() - padding);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.chunks(4) {
        let mut word = 0;
        for &digit in group {
            word = word << 6 | sextet(digit)?;
        }
        word <<= 6 * (4 - group.len());
        let [_, decoded @ ..] = word.to_be_bytes();
        let (kept, spare) = decoded.split_at(group.len() - 1);
        if spare.iter().any(|&byte| byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

fn sextet(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

/// Returns host and port of an `https` URL. Returns `None` for a URL with user info, escapes or characters that
/// browsers interpret differently.
fn parse_origin(address: &str) -> Option<(String, u16)> {
    let odd = |byte: u8| !byte.is_ascii_graphic() || byte == b'\\';
    let rest = after_scheme(address, "https://").filter(|_| !address.bytes().any(odd))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[after_bracket..].rfind(':') {
        Some(at) => (&authority[..after_bracket + at], authority[after_bracket + at + 1..].parse().ok()?),
        None => (authority, 443),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let sound = match bracketed {
        Some(inside) => inside.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte)),
        None => host.bytes().all(plain),
    };
    (sound && !host.is_empty()).then(|| (host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PNG: &str = "iVBORw0KGgoAAAAN";
    const JPEG: &str = "/9j/4AAQSkZJRgAB";
    const HOME: &str = "https://mcp.example.com";

    fn icon(src: &str, mime_type: Option<&str>) -> Icon {
        let owner = json!({ "icons": [{ "src": src, "mimeType": mime_type }] });
        icons(&RawJson::from_value(&owner).unwrap(), &JsonLimits::default()).remove(0)
    }

    /// Returns the decision as one word.
    fn outcome(src: &str, mime_type: Option<&str>, home: Option<&str>) -> String {
        match icon(src, mime_type).resolve_source(home) {
            Ok(IconSource::Remote(_)) => "remote".to_owned(),
            Ok(IconSource::Inline { format, bytes }) => format!("{format:?} {}", bytes.len()),
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    #[test]
    fn only_same_origin_urls_are_allowed() {
        for (src, expected) in [
            ("https://mcp.example.com/i.png", "remote"),
            ("HTTPS://MCP.example.COM:443/i.png?x#y", "remote"),
            ("https://mcp.example.com:8443/i.png", "Origin"),
            ("https://example.com/i.png", "Origin"),
            ("https://mcp.example.com.evil.test/i.png", "Origin"),
            ("https://mcp.example.com./i.png", "Origin"),
            ("https://127.0.0.1/i.png", "Origin"),
            ("https://[::1]/i.png", "Origin"),
            ("https://mcp.example.com@evil.test/i.png", "Address"),
            ("https://mcp.example.com\\@evil.test/", "Address"),
            ("https://mcp.example%2ecom/", "Address"),
            ("https://mcp.example.com:99999/", "Address"),
            ("https://mcp.example.com:/", "Address"),
            ("https://[::1/i.png", "Address"),
            ("https:///i.png", "Address"),
            ("https://mcp.example.com/a b", "Address"),
            ("https://ｍcp.example.com/", "Address"),
            ("http://mcp.example.com/i.png", "Scheme"),
            ("javascript:alert(1)", "Scheme"),
            ("java\tscript:alert(1)", "Scheme"),
            (" https://mcp.example.com/", "Scheme"),
            ("file:///etc/passwd", "Scheme"),
            ("ftp://mcp.example.com/", "Scheme"),
            ("ws://mcp.example.com/", "Scheme"),
            ("//mcp.example.com/i.png", "Scheme"),
            ("i.png", "Scheme"),
            ("é", "Scheme"),
        ] {
            assert_eq!(outcome(src, None, Some(HOME)), expected, "{src:?}");
        }
        assert_eq!(outcome("https://mcp.example.com/i.png", None, None), "Origin");
        assert_eq!(outcome("https://mcp.example.com/i.png", None, Some("http://mcp.example.com")), "Origin");
        assert_eq!(outcome("https://mcp.example.com/i", Some("image/svg+xml"), Some(HOME)), "Type");
        assert_eq!(outcome("https://[::1]:8/i", None, Some("https://[::1]:8/mcp")), "remote");
    }

    #[test]
    fn embedded_images_must_match_their_type() {
        let svg = "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+";
        let cases = [
            (format!("data:image/png;base64,{PNG}"), None, "Png 12"),
            (format!("DATA:IMAGE/JPEG;BASE64,{JPEG}"), Some("image/jpeg"), "Jpeg 12"),
            (format!("data:image/png;x=y;base64,{PNG}"), Some("image/png; q=1"), "Png 12"),
            (format!("data:image/png;base64,{JPEG}"), None, "Disguised"),
            (format!("data:image/png;base64,{PNG}"), Some("image/jpeg"), "Disguised"),
            (format!("data:image/png;base64,{svg}"), None, "Disguised"),
            (format!("data:image/svg+xml;base64,{svg}"), None, "Disguised"),
            (format!("data:image/svg+xml;base64,{PNG}"), None, "Type"),
            (format!("data:image/png;base64,{PNG}"), Some("image/svg+xml"), "Type"),
            (format!("data:text/html;base64,{PNG}"), None, "Type"),
            (format!("data:;base64,{PNG}"), None, "Type"),
            ("data:image/png,%89PNG".to_owned(), None, "Encoding"),
            ("data:image/png;charset=base65,AAAA".to_owned(), None, "Encoding"),
            ("data:image/png;base64,iVBORw0KGgoAAAA".to_owned(), None, "Encoding"),
            ("data:image/png;base64,iVBORw0K GgoAAAAN".to_owned(), None, "Encoding"),
            ("data:image/png;base64,====".to_owned(), None, "Encoding"),
            ("data:image/png;base64,".to_owned(), None, "Disguised"),
            ("data:image/png;base64".to_owned(), None, "Address"),
            (format!("data:image/png;base64,{PNG}{}", "A".repeat(ICON_LIMIT * 4 / 3 / 4 * 4)), None, "TooLarge"),
        ];
        for (src, mime_type, expected) in cases {
            let shown: String = src.chars().take(60).collect();
            assert_eq!(outcome(&src, mime_type, None), expected, "{shown}");
        }
    }

    #[test]
    fn only_canonical_base64_is_accepted() {
        for (text, expected) in [
            ("", Some(&b""[..])),
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("+/+/", Some(b"\xfb\xff\xbf")),
            ("Zh==", None),
            ("Zm9=", None),
            ("Zg=", None),
            ("Z===", None),
            ("Zg==Zg==", None),
            ("Zm-_", None),
        ] {
            assert_eq!(decode_base64(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn invalid_entries_are_skipped() {
        let owner = json!({ "name": "t", "icons": [7, {}, { "src": "" }, { "src": 3 }, { "src": "a", "sizes": "48x48" },
            { "src": "b", "sizes": ["any"], "theme": "dark", "x": 1 }] });
        let found = icons(&RawJson::from_value(&owner).unwrap(), &JsonLimits::default());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].src.as_str(), found[0].theme.as_deref()), ("b", Some("dark")));
        assert_eq!(found[0].sizes, ["any"]);
        for owner in [json!({}), json!({ "icons": 3 }), json!({ "icons": null }), json!(3)] {
            assert!(icons(&RawJson::from_value(&owner).unwrap(), &JsonLimits::default()).is_empty(), "{owner}");
        }
        let many = json!({ "icons": vec![json!({ "src": "a" }); 1000] });
        assert_eq!(icons(&RawJson::from_value(&many).unwrap(), &JsonLimits::default()).len(), MAX_ICONS);
    }
}
