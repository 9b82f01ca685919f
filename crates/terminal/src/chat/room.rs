//! Notices about content removed from a request to make it fit.

use crate::counted::CountText;

/// Reports that the context was full and lists the content that was shortened or dropped.
pub fn shortened(results: usize, answers: usize) -> String {
    let pieces = CountText(results, "piece");
    let results = (results > 0).then(|| format!("{pieces} of what tools and servers said shortened or left out"));
    let answers = (answers > 0).then(|| format!("{} left out", CountText(answers, "old answer")));
    let told: Vec<String> = results.into_iter().chain(answers).collect();
    format!("the context is full: {}", told.join(", "))
}

/// Reports a retry without images because the model rejected the request.
pub fn pictures_left_out(pictures: usize) -> String {
    format!("the model did not take that; it is asked again with {} left out", CountText(pictures, "picture"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_told() {
        for (results, answers, expected) in [
            (1, 0, "the context is full: 1 piece of what tools and servers said shortened or left out"),
            (0, 2, "the context is full: 2 old answers left out"),
            (
                3,
                1,
                "the context is full: 3 pieces of what tools and servers said shortened or left out, 1 old answer left out",
            ),
        ] {
            assert_eq!(shortened(results, answers), expected);
        }
    }
}
