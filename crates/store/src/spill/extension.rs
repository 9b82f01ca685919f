//! File name extensions of spilled files.

/// A file name extension of a content type that programs open but do not execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpillExtension {
    /// Any other content.
    Bin,
    /// Comma-separated values.
    Csv,
    /// A GIF image.
    Gif,
    /// A JPEG image.
    Jpg,
    /// A JSON text.
    Json,
    /// Markdown.
    Md,
    /// MP3 audio.
    Mp3,
    /// Ogg audio.
    Ogg,
    /// A PDF document.
    Pdf,
    /// A PNG image.
    Png,
    /// Plain text.
    Txt,
    /// WAV audio.
    Wav,
    /// A WebP image.
    Webp,
}

impl SpillExtension {
    /// All extensions.
    pub const ALL: [Self; 13] = [
        Self::Bin,
        Self::Csv,
        Self::Gif,
        Self::Jpg,
        Self::Json,
        Self::Md,
        Self::Mp3,
        Self::Ogg,
        Self::Pdf,
        Self::Png,
        Self::Txt,
        Self::Wav,
        Self::Webp,
    ];

    /// Returns the extension for a media type claimed by a server. Unknown types map to [`SpillExtension::Bin`].
    pub fn from_media_type(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/json" => Self::Json,
            "application/pdf" => Self::Pdf,
            "audio/mpeg" | "audio/mp3" => Self::Mp3,
            "audio/ogg" => Self::Ogg,
            "audio/wav" | "audio/x-wav" | "audio/wave" => Self::Wav,
            "image/gif" => Self::Gif,
            "image/jpeg" | "image/jpg" => Self::Jpg,
            "image/png" => Self::Png,
            "image/webp" => Self::Webp,
            "text/csv" => Self::Csv,
            "text/markdown" => Self::Md,
            essence if essence.ends_with("+json") => Self::Json,
            essence if essence.starts_with("text/") => Self::Txt,
            _ => Self::Bin,
        }
    }

    /// Returns the extension without the dot.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bin => "bin",
            Self::Csv => "csv",
            Self::Gif => "gif",
            Self::Jpg => "jpg",
            Self::Json => "json",
            Self::Md => "md",
            Self::Mp3 => "mp3",
            Self::Ogg => "ogg",
            Self::Pdf => "pdf",
            Self::Png => "png",
            Self::Txt => "txt",
            Self::Wav => "wav",
            Self::Webp => "webp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_map_to_safe_extensions() {
        for (media_type, expected) in [
            ("image/png", "png"),
            ("Image/JPEG; q=1", "jpg"),
            ("application/vnd.x+json", "json"),
            ("text/html", "txt"),
            ("text/x-shellscript", "txt"),
            ("image/svg+xml", "bin"),
            ("application/x-executable", "bin"),
            ("../../x", "bin"),
            ("", "bin"),
        ] {
            assert_eq!(SpillExtension::from_media_type(media_type).as_str(), expected, "{media_type}");
        }
    }
}
