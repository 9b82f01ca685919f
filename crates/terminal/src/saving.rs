//! `--save DIR`: writes binary content to new files. Never overwrites a file.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::failure::Failure;
use crate::session::CommandSession;

/// Maximum characters of each part of a file name.
const MAX_NAME_PART: usize = 60;
/// Maximum number of names tried for one file.
const MAX_TRIES: u32 = 10_000;

/// File extensions by type. Any other type becomes `.bin`, so that a server cannot create an executable by its name.
const EXTENSIONS: [(&str, &str); 18] = [
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/tiff", "tiff"),
    ("image/svg+xml", "svg"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/flac", "flac"),
    ("audio/mp4", "m4a"),
    ("video/mp4", "mp4"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/json", "json"),
];

/// A directory for saved content.
pub struct SaveDirectory {
    directory: PathBuf,
    /// Prefix of the file names.
    stem: String,
    saved: Vec<PathBuf>,
}

impl SaveDirectory {
    /// Opens a directory, creating it if missing. `named` are the parts of the file name prefix.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created.
    pub fn open(session: &CommandSession, path: &Path, named: &[&str]) -> Result<Self, Failure> {
        let directory = session.environment.cwd.join(path);
        std::fs::create_dir_all(&directory).map_err(|error| write_failure(&directory, &error))?;
        let stem = named.iter().map(|part| safe_name_part(part)).collect::<Vec<_>>().join("-");
        Ok(Self { directory, stem, saved: Vec::new() })
    }

    /// Decodes Base64, writes the bytes to a new file, and returns its path.
    ///
    /// # Errors
    ///
    /// Fails if the text is not Base64 or the file cannot be written.
    pub fn save(&mut self, base64: &str, mime_type: Option<&str>) -> Result<&Path, Failure> {
        let compact: String = base64.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(compact).map_err(|error| {
            Failure::other(format_args!("cannot save the content, it is not valid Base64: {error}"))
        })?;
        self.write(&bytes, extension(mime_type.unwrap_or_default()))
    }

    /// Writes a text to a new file, and returns its path.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn save_text(&mut self, text: &str, mime_type: Option<&str>) -> Result<&Path, Failure> {
        let ending = match extension(mime_type.unwrap_or_default()) {
            "bin" => "txt",
            known => known,
        };
        self.write(text.as_bytes(), ending)
    }

    fn write(&mut self, bytes: &[u8], ending: &str) -> Result<&Path, Failure> {
        let (path, mut file) = self.create(ending)?;
        file.write_all(bytes).map_err(|error| write_failure(&path, &error))?;
        self.saved.push(path);
        Ok(self.saved.last().map_or(Path::new(""), PathBuf::as_path))
    }

    /// Returns the files written so far.
    pub fn saved(&self) -> &[PathBuf] {
        &self.saved
    }

    /// Creates a new file with the first free number.
    fn create(&self, ending: &str) -> Result<(PathBuf, File), Failure> {
        for number in 1..=MAX_TRIES {
            let path = self.directory.join(format!("{}-{number}.{ending}", self.stem));
            match File::create_new(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(write_failure(&path, &error)),
            }
        }
        Err(Failure::other(format_args!("too many files of that name in `{}`", self.directory.display())))
    }
}

fn write_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::other(format_args!("cannot write `{}`: {error}", path.display()))
        .with_hint("choose a writable directory with --save")
}

fn extension(mime_type: &str) -> &'static str {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    EXTENSIONS.iter().find(|(known, _)| *known == essence).map_or("bin", |(_, ending)| ending)
}

/// Returns a text that is safe as part of a file name.
fn safe_name_part(part: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let part: String = part.chars().map(plain).take(MAX_NAME_PART).collect();
    if part.trim_matches('-').is_empty() { "x".to_owned() } else { part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_sanitized() {
        for (mime_type, expected) in
            [("image/png", "png"), ("IMAGE/PNG; x=y", "png"), ("text/html", "bin"), ("../../sh", "bin"), ("", "bin")]
        {
            assert_eq!(extension(mime_type), expected);
        }
        for (part, expected) in [("git", "git"), ("../../etc/passwd", "------etc-passwd"), ("..", "x"), ("漢", "x")] {
            assert_eq!(safe_name_part(part), expected);
        }
    }

    #[test]
    fn existing_files_are_not_overwritten() {
        let directory = std::env::temp_dir().join(format!("wharf-saving-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut shelf = SaveDirectory { directory: directory.clone(), stem: "a-b".to_owned(), saved: Vec::new() };
        std::fs::write(directory.join("a-b-2.png"), "mine").unwrap();
        shelf.save("AA\nEC", Some("image/png")).unwrap();
        shelf.save("AAEC", Some("image/png")).unwrap();
        let refused = shelf.save("%", None).is_err();
        let names: Vec<_> = shelf.saved().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        let (first, mine) =
            (std::fs::read(directory.join("a-b-1.png")).unwrap(), std::fs::read(directory.join("a-b-2.png")).unwrap());
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!((first, mine, refused), (vec![0, 1, 2], b"mine".to_vec(), true));
        assert_eq!(names, ["a-b-1.png", "a-b-3.png"]);
    }
}
