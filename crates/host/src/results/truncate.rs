//! Truncation of large results. The full content is written to a file that the result names.

use std::sync::Arc;

use wharf_spec::EscapedText;
use wharf_store::{SpillDir, SpillError, SpillExtension, SpilledFile};
use wharf_tools::{EmbeddedContents, OutcomeBlock, ToolOutcome};

/// Limits of a result passed to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimits {
    /// Maximum bytes of all text together.
    pub text: usize,
    /// Maximum bytes of one image, audio clip or other attachment.
    pub attachment: usize,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self { text: 100_000, attachment: 5 << 20 }
    }
}

/// Maximum number of individually spilled attachments. Truncated texts and structured data may add two more files.
const MAX_SPILLED_ATTACHMENTS: usize = 6;
/// Maximum length of a displayed URI.
const MAX_URI_CHARS: usize = 300;

/// Truncates an outcome to the limits. The excess is written to a file, or dropped if there is no spill directory; the
/// outcome states which.
///
/// Files are written on a blocking thread. Dropping the future leaves the files in place until they expire.
pub(crate) async fn truncate(outcome: ToolOutcome, limits: ResultLimits, spill: Option<Arc<SpillDir>>) -> ToolOutcome {
    if fits_limits(&outcome, limits) {
        return outcome;
    }
    match wharf_threads::run_blocking(move || OutcomeTruncator::new(limits, spill.as_deref()).run(outcome)).await {
        Ok(outcome) => outcome,
        Err(error) => ToolOutcome::error(format!("the call was made, but its large result is lost: {error}")),
    }
}

/// Truncates an outcome on the current thread, which may block.
pub(crate) fn truncate_blocking(outcome: ToolOutcome, limits: ResultLimits, spill: Option<&SpillDir>) -> ToolOutcome {
    if fits_limits(&outcome, limits) { outcome } else { OutcomeTruncator::new(limits, spill).run(outcome) }
}

fn fits_limits(outcome: &ToolOutcome, limits: ResultLimits) -> bool {
    if outcome.blocks.iter().any(|block| attachment_size(block) > limits.attachment) {
        return false;
    }
    let blocks: usize = outcome.blocks.iter().map(text_size).sum();
    let data = outcome.data.as_ref().map_or(0, |data| data.as_bytes().len() + 1);
    // If a text repeats the structured data, only one of them is displayed.
    blocks + data <= limits.text + 1 || (blocks.max(data) <= limits.text + 1 && outcome.text().len() <= limits.text)
}

/// Returns the bytes that a block takes as text, including the line break before it.
fn text_size(block: &OutcomeBlock) -> usize {
    1 + match block {
        OutcomeBlock::Text { text, .. } => text.len(),
        OutcomeBlock::Resource { contents: EmbeddedContents::Text(text), uri, mime, .. } => {
            text.len() + uri.len() + mime.as_ref().map_or(0, String::len)
        }
        other => other.as_text().len(),
    }
}

/// Returns the bytes of a block's content that is not text.
fn attachment_size(block: &OutcomeBlock) -> usize {
    match block {
        OutcomeBlock::Image { data, .. } | OutcomeBlock::Audio { data, .. } => data.decoded_len(),
        OutcomeBlock::Resource { contents: EmbeddedContents::Bytes(data), .. } => data.decoded_len(),
        OutcomeBlock::Other { raw, .. } => raw.as_bytes().len(),
        _ => 0,
    }
}

struct OutcomeTruncator<'a> {
    /// Bytes of text left, including a line break before each block.
    left: usize,
    limits: ResultLimits,
    spill: Option<&'a SpillDir>,
    rest: OverflowText,
    /// Numbers of attachments spilled individually and of attachments dropped without a note.
    aside: usize,
    left_out: usize,
}

/// The texts from the first one that did not fit. They share one file.
#[derive(Default)]
struct OverflowText {
    texts: Vec<String>,
    /// Media type of the first text.
    mime: Option<String>,
    /// Bytes of the first text that are displayed.
    shown: usize,
}

impl<'a> OutcomeTruncator<'a> {
    fn new(limits: ResultLimits, spill: Option<&'a SpillDir>) -> Self {
        Self { left: limits.text + 1, limits, spill, rest: OverflowText::default(), aside: 0, left_out: 0 }
    }

    fn run(mut self, outcome: ToolOutcome) -> ToolOutcome {
        let mut blocks: Vec<OutcomeBlock> =
            outcome.blocks.into_iter().flat_map(|block| self.add_block(block)).collect();
        blocks.extend(self.spill_overflow());
        if self.left_out > 0 {
            blocks.push(OutcomeBlock::text(format!("[{} more attachments are not shown (too many)]", self.left_out)));
        }
        let mut data = outcome.data;
        if let Some(data) = data.take_if(|data| data.as_bytes().len() + 1 > self.left) {
            let written = self.spill(|dir| dir.write(SpillExtension::Json, data.as_bytes()));
            let what = format!("structured data of {} bytes", data.as_bytes().len());
            blocks.push(file_block(written, Some("application/json".to_owned()), &what));
        }
        let mut cut = ToolOutcome::new(blocks);
        (cut.is_error, cut.data) = (outcome.is_error, data);
        cut
    }

    fn add_block(&mut self, block: OutcomeBlock) -> Vec<OutcomeBlock> {
        let attached = attachment_size(&block);
        match self.left.checked_sub(text_size(&block)) {
            Some(left) if attached <= self.limits.attachment => {
                self.left = left;
                vec![block]
            }
            _ if attached > 0 => self.spill_attachment(block).into_iter().collect(),
            _ => self.truncate_text(block),
        }
    }

    /// Returns the part of a text that fits, if it is the first one that does not fit entirely. The full text goes to
    /// the file.
    fn truncate_text(&mut self, block: OutcomeBlock) -> Vec<OutcomeBlock> {
        let room = std::mem::take(&mut self.left).saturating_sub(1);
        match block {
            OutcomeBlock::Text { text, .. } if self.rest.texts.is_empty() => {
                self.rest.begin(text, None, room).collect()
            }
            OutcomeBlock::Resource { contents: EmbeddedContents::Text(text), mime, uri, .. }
                if self.rest.texts.is_empty() =>
            {
                let head =
                    OutcomeBlock::Resource { contents: EmbeddedContents::Nothing, mime: mime.clone(), uri, raw: None };
                std::iter::once(head).chain(self.rest.begin(text, mime, room)).collect()
            }
            other => {
                self.rest.texts.push(other.as_text().into_owned());
                Vec::new()
            }
        }
    }

    fn spill_overflow(&self) -> Option<OutcomeBlock> {
        let OverflowText { texts, mime, shown } = &self.rest;
        let bytes: usize = texts.iter().map(String::len).sum();
        let (kind, what) = match texts.len() {
            0 => return None,
            1 => (mime.as_deref(), format!("text of {bytes} bytes, first {shown} shown")),
            many => (None, format!("{many} texts of {bytes} bytes, first {shown} shown")),
        };
        let extension = kind.map_or(SpillExtension::Txt, SpillExtension::from_media_type);
        let lines = || texts.iter().enumerate().flat_map(|(n, text)| [if n == 0 { "" } else { "\n" }, text.as_str()]);
        let written = self.spill(|dir| dir.write_pieces(extension, lines()));
        Some(file_block(written, Some(kind.unwrap_or("text/plain").to_owned()), &what))
    }

    /// Writes an attachment to a file. Returns `None` if the maximum number has been reached.
    fn spill_attachment(&mut self, block: OutcomeBlock) -> Option<OutcomeBlock> {
        if self.aside == MAX_SPILLED_ATTACHMENTS {
            self.left_out += 1;
            return None;
        }
        self.aside += 1;
        let bytes = attachment_size(&block);
        let (what, mime, written) = match &block {
            OutcomeBlock::Image { data, mime, .. } => {
                ("image".to_owned(), Some(mime), self.spill_base64(mime, data.text()))
            }
            OutcomeBlock::Audio { data, mime, .. } => {
                ("audio clip".to_owned(), Some(mime), self.spill_base64(mime, data.text()))
            }
            OutcomeBlock::Resource { contents: EmbeddedContents::Bytes(data), mime, uri, .. } => {
                let what = format!("resource {}", EscapedText::single_line(uri, MAX_URI_CHARS));
                (what, mime.as_ref(), self.spill_base64(mime.as_deref().unwrap_or_default(), data.text()))
            }
            OutcomeBlock::Other { raw, .. } => {
                ("block".to_owned(), None, self.spill(|dir| dir.write(SpillExtension::Json, raw.as_bytes())))
            }
            _ => return Some(block),
        };
        Some(file_block(written, mime.cloned(), &format!("{what} of {bytes} bytes")))
    }

    fn spill_base64(&self, mime: &str, text: &str) -> Result<SpilledFile, String> {
        self.spill(|dir| dir.write_base64(SpillExtension::from_media_type(mime), text.as_bytes()))
    }

    fn spill(&self, write: impl Fn(&SpillDir) -> Result<SpilledFile, SpillError>) -> Result<SpilledFile, String> {
        let Some(dir) = self.spill else { return Err("no state directory is configured".to_owned()) };
        write(dir).map_err(|error| error.to_string())
    }
}

impl OverflowText {
    /// Stores the first text and returns the part of it that fits.
    fn begin(&mut self, text: String, mime: Option<String>, room: usize) -> impl Iterator<Item = OutcomeBlock> + use<> {
        let shown = text.floor_char_boundary(room);
        let start = (shown > 0).then(|| OutcomeBlock::text(format!("{}…", &text[..shown])));
        *self = Self { texts: vec![text], mime, shown };
        start.into_iter()
    }
}

/// Returns the block that replaces the removed content: the file's path, or the reason why the content is lost.
fn file_block(written: Result<SpilledFile, String>, mime: Option<String>, what: &str) -> OutcomeBlock {
    match written {
        Ok(SpilledFile { path, bytes }) => {
            OutcomeBlock::File { path, mime, bytes, note: format!("{what}: too large to show in full") }
        }
        Err(why) => OutcomeBlock::text(format!("[{what}: too large to show in full, and the rest is lost: {why}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_json::RawJson;
    use wharf_tools::Base64Text;

    const LIMITS: ResultLimits = ResultLimits { text: 10, attachment: 8 };

    async fn truncate_to_test_limits(outcome: ToolOutcome) -> (ToolOutcome, tempfile::TempDir) {
        let place = tempfile::tempdir().unwrap();
        let dir = SpillDir::open(&place.path().join("spill"), wharf_store::SpillLimits::default()).unwrap();
        (truncate(outcome, LIMITS, Some(Arc::new(dir))).await, place)
    }

    #[tokio::test]
    async fn outcome_within_limits_is_unchanged() {
        let outcome = ToolOutcome::new(vec![OutcomeBlock::text("012345")]).with_data(RawJson::parse("[1]").unwrap());
        let (found, _place) = truncate_to_test_limits(outcome.clone()).await;
        assert_eq!(found, outcome);
        let said_twice =
            ToolOutcome::new(vec![OutcomeBlock::text("[1,2,3,4]")]).with_data(RawJson::parse("[1,2,3,4]").unwrap());
        assert_eq!(truncate_to_test_limits(said_twice.clone()).await.0, said_twice);
    }

    #[tokio::test]
    async fn long_text_is_truncated_and_spilled_in_full() {
        let text = format!("012345678{}", "ü".repeat(50));
        let (found, _place) = truncate_to_test_limits(ToolOutcome::new(vec![
            OutcomeBlock::text(text.as_str()),
            OutcomeBlock::text("more"),
        ]))
        .await;
        let [OutcomeBlock::Text { text: shown, .. }, OutcomeBlock::File { path, bytes, .. }] = &found.blocks[..] else {
            panic!("{found:?}")
        };
        assert_eq!(shown, "012345678…");
        let whole = format!("{text}\nmore");
        assert_eq!((*bytes, std::fs::read_to_string(path).unwrap()), (whole.len() as u64, whole));
        assert!(found.text().contains(path.to_str().unwrap()), "{}", found.text());
    }

    #[tokio::test]
    async fn images_and_data_spill_to_files_of_their_type() {
        let image = OutcomeBlock::Image { data: Base64Text::encode(&[7; 9]), mime: "image/png".to_owned(), raw: None };
        let data = RawJson::parse(r#"{"a":12345678901234567890}"#).unwrap();
        let (found, _place) = truncate_to_test_limits(ToolOutcome::new(vec![image]).with_data(data.clone())).await;
        let [OutcomeBlock::File { path: picture, .. }, OutcomeBlock::File { path: kept, .. }] = &found.blocks[..]
        else {
            panic!("{found:?}")
        };
        assert!(found.data.is_none());
        assert_eq!((std::fs::read(picture).unwrap(), picture.extension().unwrap()), (vec![7; 9], "png".as_ref()));
        assert_eq!(
            (std::fs::read_to_string(kept).unwrap().as_str(), kept.extension().unwrap()),
            (data.as_str(), "json".as_ref())
        );
    }

    #[tokio::test]
    async fn many_blocks_spill_to_few_files_and_notes() {
        let link = || OutcomeBlock::Link {
            uri: "a:b".to_owned(),
            name: None,
            mime: None,
            description: None,
            size: None,
            raw: None,
        };
        let bytes = || EmbeddedContents::Bytes(Base64Text::encode(&[7; 9]));
        let resource = || OutcomeBlock::Resource { uri: "a:c".to_owned(), mime: None, contents: bytes(), raw: None };
        for make in [&|| OutcomeBlock::text("0123"), &link as &dyn Fn() -> OutcomeBlock, &resource] {
            let blocks: Vec<OutcomeBlock> = std::iter::repeat_with(make).take(2000).collect();
            let data = RawJson::parse("[12345678901]").unwrap();
            let (found, place) = truncate_to_test_limits(ToolOutcome::new(blocks).with_data(data)).await;
            let files = std::fs::read_dir(place.path().join("spill")).unwrap().count();
            assert!(files <= MAX_SPILLED_ATTACHMENTS + 3, "{files} files");
            assert!(found.text().len() < 5000, "{}", found.text());
        }
        let (found, _place) = truncate_to_test_limits(ToolOutcome::new(vec![resource()])).await;
        assert!(found.text().contains("resource a:c of 9 bytes"), "{}", found.text());
    }

    #[tokio::test]
    async fn truncation_without_spill_directory_reports_the_loss() {
        let mut outcome = ToolOutcome::from_text("x".repeat(50));
        outcome.is_error = true;
        let found = truncate(outcome, LIMITS, None).await;
        assert!(found.is_error && found.text().contains("the rest is lost"), "{}", found.text());
    }

    #[tokio::test]
    async fn invalid_base64_loses_only_its_own_block() {
        let image = OutcomeBlock::Image {
            data: Base64Text::from_json(RawJson::parse(format!("\"{}\"", "!".repeat(40))).unwrap()).unwrap(),
            mime: "image/png".to_owned(),
            raw: None,
        };
        let (found, _place) = truncate_to_test_limits(ToolOutcome::new(vec![image, OutcomeBlock::text("rest")])).await;
        assert!(found.text().ends_with("rest") && found.text().contains("lost"), "{}", found.text());
    }
}
