//! Tool results with images for OpenAI's formats, which only allow text in a result.

use crate::conversation::ResultBlock;

/// Returns the text of a result. The text states a failure, because the format has no error flag.
pub(super) fn result_text(content: &[ResultBlock], is_error: bool) -> String {
    let texts = content.iter().map(|block| match block {
        ResultBlock::Text(text) => text.as_str(),
        ResultBlock::Image { .. } => "[image, shown below]",
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if is_error { format!("The tool failed: {text}") } else { text }
}

/// Returns the images of a result as message parts, after a part that names the call. Empty if there are no images.
pub(super) fn image_parts<T>(
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
    let heading = (!images.is_empty()).then(|| text(format!("Images from the result of call {id}:")));
    heading.into_iter().chain(images).collect()
}

/// Returns an image as a data URL.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}
