//! Conversion of outcomes to tool results for a model.

use wharf_tools::{OutcomeBlock, ToolOutcome};

use super::CallReport;
use crate::conversation::ResultBlock;

/// Used for an empty result, because APIs disagree about those.
const EMPTY_RESULT: &str = "(the tool returned no content)";

/// Converts an outcome: first its text, with references for all non-text blocks, then its images.
pub(crate) fn report_from_outcome(outcome: &ToolOutcome) -> CallReport {
    let text = Some(outcome.text()).filter(|text| !text.trim().is_empty());
    let mut content = vec![ResultBlock::Text(text.unwrap_or_else(|| EMPTY_RESULT.to_owned()))];
    content.extend(outcome.blocks.iter().filter_map(image_block));
    CallReport::new(content, outcome.is_error)
}

fn image_block(block: &OutcomeBlock) -> Option<ResultBlock> {
    match block {
        OutcomeBlock::Image { data, mime, .. } => ResultBlock::image(mime, data),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_json::RawJson;
    use wharf_tools::Base64Text;

    fn image(data: &str, mime: &str) -> OutcomeBlock {
        let data = Base64Text::from_json(RawJson::parse(format!("\"{data}\"")).unwrap()).unwrap();
        OutcomeBlock::Image { data, mime: mime.into(), raw: None }
    }

    fn check(outcome: ToolOutcome, text: &str, images: &[(&str, &str)]) {
        let report = report_from_outcome(&outcome);
        let image_block = |&(media_type, data): &(&str, &str)| {
            let (media_type, data) = (media_type.to_owned(), data.to_owned());
            ResultBlock::Image { media_type, data }
        };
        let expected = std::iter::once(ResultBlock::Text(text.to_owned())).chain(images.iter().map(image_block));
        assert_eq!(report.content, expected.collect::<Vec<_>>());
        assert_eq!(report.is_error, outcome.is_error);
    }

    #[test]
    fn results_are_text_and_images() {
        check(ToolOutcome::new(Vec::new()), EMPTY_RESULT, &[]);
        check(ToolOutcome::error("no"), "no", &[]);
        check(ToolOutcome::from_text("a").with_data(RawJson::new_unchecked(r#"{"b":1}"#)), "a\n{\"b\":1}", &[]);
        let shot = || image("aGk=", "image/PNG");
        check(
            ToolOutcome::new(vec![OutcomeBlock::text("a"), shot(), OutcomeBlock::text("b")]),
            "a\n[image image/PNG, 2 bytes]\nb",
            &[("image/png", "aGk=")],
        );
        check(
            ToolOutcome::new(vec![image("aGk", "image/webp")]),
            "[image image/webp, 2 bytes]",
            &[("image/webp", "aGk=")],
        );
    }

    #[test]
    fn unsupported_images_are_references() {
        check(ToolOutcome::new(vec![image("aGk=", "image/tiff")]), "[image image/tiff, 2 bytes]", &[]);
        check(ToolOutcome::new(vec![image("a*k=", "image/png")]), "[image image/png, 2 bytes]", &[]);
    }
}
