//! Notices about content removed from a request to make it fit.

use crate::count_text::CountText;

/// Reports that the context was full and lists the content that was shortened or dropped.
pub fn context_shortened_notice(results: usize, answers: usize) -> String {
    let pieces = CountText(results, "tool or server output");
    let results = (results > 0).then(|| format!("{pieces} shortened or dropped"));
    let answers = (answers > 0).then(|| format!("{} dropped", CountText(answers, "old response")));
    let parts: Vec<String> = results.into_iter().chain(answers).collect();
    format!("the context is full: {}", parts.join(", "))
}

/// Reports a retry without images because the model rejected the request.
pub fn images_dropped_notice(images: usize) -> String {
    format!("the model rejected the request, retrying without {}", CountText(images, "picture"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_content_is_listed() {
        for (results, answers, expected) in [
            (1, 0, "the context is full: 1 tool or server output shortened or dropped"),
            (0, 2, "the context is full: 2 old responses dropped"),
            (3, 1, "the context is full: 3 tool or server outputs shortened or dropped, 1 old response dropped"),
        ] {
            assert_eq!(context_shortened_notice(results, answers), expected);
        }
    }
}
