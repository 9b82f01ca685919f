//! Results over a limit are cut, and what was cut lies in a file that the result names.

use std::sync::Arc;

use wharf_store::{Extension, SpillDir, SpillError, Spilled};
use wharf_tools::{Block, Contents, Outcome};

/// How much of a result an agent is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimits {
    /// Bytes of text in all.
    pub text: usize,
    /// Bytes of one picture, sound or other attachment.
    pub attachment: usize,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self { text: 100_000, attachment: 5 << 20 }
    }
}

/// The outcome within the limits. What does not fit goes to a file, or is lost where there is none, and either is said.
///
/// Files are written on a thread that may block. Dropped while it waits, the files stay until their time is over.
pub(crate) async fn limited(outcome: Outcome, limits: ResultLimits, spill: Option<Arc<SpillDir>>) -> Outcome {
    if fits(&outcome, limits) {
        return outcome;
    }
    let cut = move || Cutter { left: limits.text, limits, spill: spill.as_deref() }.cut(outcome);
    match tokio::task::spawn_blocking(cut).await {
        Ok(outcome) => outcome,
        Err(_) => Outcome::error("the result was too large, and cutting it failed"),
    }
}

fn fits(outcome: &Outcome, limits: ResultLimits) -> bool {
    let data = outcome.data.as_ref().map_or(0, |data| data.as_bytes().len());
    let text: usize = outcome.blocks.iter().map(|block| text_of(block).map_or(0, str::len)).sum();
    let attached = outcome.blocks.iter().all(|block| attached(block) <= limits.attachment);
    data.max(text) <= limits.text && attached
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text, .. } | Block::Resource { contents: Contents::Text(text), .. } => Some(text),
        _ => None,
    }
}

/// The bytes of what is no text.
fn attached(block: &Block) -> usize {
    match block {
        Block::Image { data, .. } | Block::Audio { data, .. } => data.decoded_len(),
        Block::Resource { contents: Contents::Bytes(data), .. } => data.decoded_len(),
        Block::Other { raw, .. } => raw.as_bytes().len(),
        _ => 0,
    }
}

struct Cutter<'a> {
    /// Bytes of text that may still be shown.
    left: usize,
    limits: ResultLimits,
    spill: Option<&'a SpillDir>,
}

impl Cutter<'_> {
    fn cut(mut self, outcome: Outcome) -> Outcome {
        let blocks = outcome.blocks.into_iter().flat_map(|block| self.block(block)).collect();
        let mut cut = Outcome::new(blocks);
        cut.is_error = outcome.is_error;
        cut.data = outcome.data;
        if let Some(data) = cut.data.take_if(|data| data.as_bytes().len() > self.limits.text) {
            let written = self.write(|dir| dir.write(Extension::Json, data.as_bytes()));
            let what = format!("structured data of {} bytes", data.as_bytes().len());
            cut.blocks.push(file(written, Some("application/json".to_owned()), &what));
        }
        cut
    }

    fn block(&mut self, block: Block) -> Vec<Block> {
        match block {
            Block::Text { text, raw } if text.len() <= self.left => {
                self.left -= text.len();
                vec![Block::Text { text, raw }]
            }
            Block::Text { text, .. } => self.shorten(&text, Extension::Txt, None),
            Block::Resource { contents: Contents::Text(text), mime, uri, raw } => {
                if text.len() <= self.left {
                    self.left -= text.len();
                    return vec![Block::Resource { contents: Contents::Text(text), mime, uri, raw }];
                }
                let kind = mime.as_deref().map_or(Extension::Txt, Extension::of_media_type);
                let mut blocks =
                    vec![Block::Resource { contents: Contents::Nothing, mime: mime.clone(), uri, raw: None }];
                blocks.extend(self.shorten(&text, kind, mime));
                blocks
            }
            block if attached(&block) > self.limits.attachment => vec![self.put_aside(block)],
            block => vec![block],
        }
    }

    /// As much of a text as there is room for, and the whole of it in a file.
    fn shorten(&mut self, text: &str, kind: Extension, mime: Option<String>) -> Vec<Block> {
        let shown = text.floor_char_boundary(self.left);
        self.left = 0;
        let written = self.write(|dir| dir.write(kind, text.as_bytes()));
        let what = format!("text of {} bytes, of which the first {shown} are shown", text.len());
        let mut blocks = Vec::new();
        if shown > 0 {
            blocks.push(Block::text(format!("{}…", &text[..shown])));
        }
        blocks.push(file(written, mime.or_else(|| Some("text/plain".to_owned())), &what));
        blocks
    }

    /// Something that is no text, in a file.
    fn put_aside(&self, block: Block) -> Block {
        let bytes = attached(&block);
        let (what, mime, written) = match &block {
            Block::Image { data, mime, .. } => ("picture", Some(mime), self.decoded(mime, data.text())),
            Block::Audio { data, mime, .. } => ("sound", Some(mime), self.decoded(mime, data.text())),
            Block::Resource { contents: Contents::Bytes(data), mime, .. } => {
                ("resource", mime.as_ref(), self.decoded(mime.as_deref().unwrap_or_default(), data.text()))
            }
            Block::Other { raw, .. } => ("block", None, self.write(|dir| dir.write(Extension::Json, raw.as_bytes()))),
            _ => return block,
        };
        file(written, mime.cloned(), &format!("{what} of {bytes} bytes"))
    }

    fn decoded(&self, mime: &str, text: &str) -> Result<Spilled, String> {
        self.write(|dir| dir.write_base64(Extension::of_media_type(mime), text.as_bytes()))
    }

    fn write(&self, write: impl Fn(&SpillDir) -> Result<Spilled, SpillError>) -> Result<Spilled, String> {
        let Some(dir) = self.spill else { return Err("there is no place to keep it".to_owned()) };
        write(dir).map_err(|error| error.to_string())
    }
}

/// What is left in place of what was cut: where it is, or why it is lost.
fn file(written: Result<Spilled, String>, mime: Option<String>, what: &str) -> Block {
    match written {
        Ok(Spilled { path, bytes }) => {
            Block::File { path, mime, bytes, note: format!("{what}: too large to show whole") }
        }
        Err(why) => Block::text(format!("[{what}: too large to show whole, and the rest is lost: {why}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_json::Raw;
    use wharf_tools::Base64;

    const LIMITS: ResultLimits = ResultLimits { text: 10, attachment: 8 };

    async fn limit(outcome: Outcome) -> (Outcome, tempfile::TempDir) {
        let place = tempfile::tempdir().unwrap();
        let dir = SpillDir::open(&place.path().join("spill"), wharf_store::SpillLimits::default()).unwrap();
        (limited(outcome, LIMITS, Some(Arc::new(dir))).await, place)
    }

    #[tokio::test]
    async fn what_fits_is_left_alone() {
        let outcome = Outcome::new(vec![Block::text("0123456789")]).with_data(Raw::parse("[1]").unwrap());
        let (found, _place) = limit(outcome.clone()).await;
        assert_eq!(found, outcome);
    }

    #[tokio::test]
    async fn a_long_text_is_cut_between_characters_and_kept_whole() {
        let text = format!("012345678{}", "ü".repeat(50));
        let (found, _place) = limit(Outcome::new(vec![Block::text(text.as_str()), Block::text("more")])).await;
        let [Block::Text { text: shown, .. }, Block::File { path, bytes, .. }, Block::File { .. }] = &found.blocks[..]
        else {
            panic!("{found:?}")
        };
        assert_eq!(shown, "012345678…");
        assert_eq!((std::fs::read_to_string(path).unwrap(), *bytes), (text.clone(), text.len() as u64));
        assert!(found.text().contains(path.to_str().unwrap()), "{}", found.text());
    }

    #[tokio::test]
    async fn pictures_and_data_go_to_files_of_their_kind() {
        let image = Block::Image { data: Base64::of(&[7; 9]), mime: "image/png".to_owned(), raw: None };
        let data = Raw::parse(r#"{"a":12345678901234567890}"#).unwrap();
        let (found, _place) = limit(Outcome::new(vec![image]).with_data(data.clone())).await;
        let [Block::File { path: picture, .. }, Block::File { path: kept, .. }] = &found.blocks[..] else {
            panic!("{found:?}")
        };
        assert!(found.data.is_none());
        assert_eq!((std::fs::read(picture).unwrap(), picture.extension().unwrap()), (vec![7; 9], "png".as_ref()));
        assert_eq!(
            (std::fs::read_to_string(kept).unwrap().as_str(), kept.extension().unwrap()),
            (data.get(), "json".as_ref())
        );
    }

    #[tokio::test]
    async fn without_a_place_it_is_said_what_is_lost() {
        let mut outcome = Outcome::text_of("x".repeat(50));
        outcome.is_error = true;
        let found = limited(outcome, LIMITS, None).await;
        assert!(found.is_error && found.text().contains("the rest is lost"), "{}", found.text());
    }

    #[tokio::test]
    async fn a_lie_about_base64_loses_only_itself() {
        let image = Block::Image {
            data: Base64::from_json(Raw::parse(format!("\"{}\"", "!".repeat(40))).unwrap()).unwrap(),
            mime: "image/png".to_owned(),
            raw: None,
        };
        let (found, _place) = limit(Outcome::new(vec![image, Block::text("rest")])).await;
        assert!(found.text().ends_with("rest") && found.text().contains("lost"), "{}", found.text());
    }
}
