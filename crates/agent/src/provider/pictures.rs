//! Results and their pictures, for the formats of OpenAI, whose results are a text.

use crate::conversation::ResultBlock;

/// The text of a result. There is no mark for a failure, so that the text says so.
pub(super) fn result_text(content: &[ResultBlock], is_error: bool) -> String {
    let texts = content.iter().map(|block| match block {
        ResultBlock::Text(text) => text.as_str(),
        ResultBlock::Image { .. } => "[a picture, shown below]",
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if is_error { format!("The tool failed: {text}") } else { text }
}

/// The pictures of a result as parts of a message, behind one that says whose they are; nothing where there are none.
pub(super) fn pictures<T>(
    id: &str,
    content: &[ResultBlock],
    text: impl FnOnce(String) -> T,
    picture: impl Fn(String) -> T,
) -> Vec<T> {
    let images = content.iter().filter_map(|block| match block {
        ResultBlock::Image { media_type, data } => Some(picture(data_url(media_type, data))),
        ResultBlock::Text(_) => None,
    });
    let images: Vec<T> = images.collect();
    let heading = (!images.is_empty()).then(|| text(format!("Pictures of the result of the call {id}:")));
    heading.into_iter().chain(images).collect()
}

/// A picture as an address that holds it.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}
