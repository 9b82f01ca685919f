//! Reading of a resource, always through its server.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use wharf_client::CallError;
use wharf_json::RawJson;
use wharf_spec::UntrustedText;
use wharf_tools::{Base64Text, EmbeddedContents, OutcomeBlock, ToolError, ToolInvocation, ToolOutcome, closest_name};
use wharf_wire::ResourceContents;

use super::arguments::{ReadResourceArguments, check_uri, decode_arguments, permitted_server};
use super::output::{
    JsonArrayBuilder, MAX_LISTED_NAME_BYTES, MAX_LISTED_URI_BYTES, outcome_with_remarks, sanitize_optional,
    sanitize_text,
};
use crate::access::{READ_RESOURCE_TOOL, ServerAccess};
use crate::context::HostContext;
use crate::error::HostError;
use crate::results::{ResultLimits, escape_hidden_text, truncate};
use crate::server::Server;
use crate::tool::to_tool_error;

/// Maximum bytes of one piece in addition to its text.
const PIECE_OVERHEAD: usize = 100;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourcePiece<'a> {
    uri: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
    /// File with the full content, if it was too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<FileReference>,
}

#[derive(Serialize)]
struct FileReference {
    path: PathBuf,
    bytes: u64,
    note: String,
}

/// Reads a resource.
pub(super) async fn read_resource(context: Arc<HostContext>, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
    let ReadResourceArguments { server, uri } = decode_arguments(&context, &call.arguments)?;
    check_uri(&uri)?;
    let server = permitted_server(&context, &server)?;
    let access =
        ServerAccess { tool: READ_RESOURCE_TOOL, server: &server, arguments: &call.arguments, caller: &call.caller };
    context.permit_uri(access, &uri, call.timeout).await.map_err(|refused| to_tool_error(&refused))?;
    let mut options = wharf_client::RequestOptions::default();
    options.timeout = call.timeout.or_else(|| server.settings.load().effective.timeout);
    options.meta = call.meta;
    let read = server.request_with_retry(context.call_deadline(&server, call.timeout), |connection| {
        let (options, uri) = (options.clone(), uri.as_str());
        async move { connection.read_resource(uri, options).await }
    });
    let read = read.await.map_err(|failed| read_error(&context, &server, &uri, &failed))?;
    Ok(read_outcome(&context, &server, read.contents).await)
}

/// Creates the error of a failed read. If the server refused the URI, suggests a similar one from its list.
pub(super) fn read_error(context: &HostContext, server: &Server, uri: &str, failed: &HostError) -> ToolError {
    let told = to_tool_error(failed);
    if !matches!(failed, HostError::Call { error: CallError::ErrorResponse(_), .. }) {
        return told;
    }
    told.with_next_action(match nearest_uri(context, server, uri) {
        Some(meant) => format!("did you mean {meant}? ListMcpResources lists the available resources"),
        None => "ListMcpResources lists the available resources, ListMcpResourceTemplates the URI templates".to_owned(),
    })
}

/// Returns the listed URI that is most similar, escaped.
pub(crate) fn nearest_uri(context: &HostContext, server: &Server, uri: &str) -> Option<String> {
    let catalog = context.publisher.peek();
    let section = catalog.section(server.name.as_str())?;
    let listed = section.resources.iter().map(|resource| resource.uri.as_str()).filter(|listed| *listed != uri);
    closest_name(uri, listed).map(|meant| UntrustedText::new(meant).truncate(200).to_string())
}

async fn read_outcome(context: &HostContext, server: &Server, contents: Vec<ResourceContents>) -> ToolOutcome {
    let mut left = context.options.results.text;
    let mut entries = JsonArrayBuilder::new(usize::MAX);
    let mut left_out = 0;
    for contents in contents {
        if left < PIECE_OVERHEAD {
            left_out += 1;
            continue;
        }
        let piece = build_piece(context, &contents, left).await;
        left = left.saturating_sub(PIECE_OVERHEAD + piece_size(&piece));
        entries.push(&piece);
    }
    let (pieces, _) = entries.finish();
    let mut remarks = vec![format!("[read from the server {}: text from the server, not from the user]", server.name)];
    if left_out > 0 {
        remarks.push(format!("[{left_out} more pieces are not shown]"));
    }
    outcome_with_remarks(&remarks, RawJson::new_unchecked(format!(r#"{{"contents":{}}}"#, pieces.as_str())))
}

fn piece_size(piece: &ResourcePiece<'_>) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    piece.uri.len() + piece.mime_type.as_ref().map_or(0, |mime| mime.len()) + length(&piece.text) + length(&piece.blob)
}

/// Returns one piece, truncated to the given size. Base64 takes a third more space than the bytes.
async fn build_piece<'a>(context: &HostContext, contents: &'a ResourceContents, room: usize) -> ResourcePiece<'a> {
    let uri = sanitize_text(&contents.uri, MAX_LISTED_URI_BYTES);
    let mime_type = sanitize_optional(contents.mime_type.as_ref(), MAX_LISTED_NAME_BYTES);
    let mut piece = ResourcePiece { uri, mime_type, text: None, blob: None, file: None };
    let inside = match (&contents.text, &contents.blob) {
        (Some(text), _) => EmbeddedContents::Text(text.clone()),
        (None, Some(blob)) => match parse_base64(blob) {
            Some(bytes) => EmbeddedContents::Bytes(bytes),
            None => EmbeddedContents::Text("[invalid Base64]".to_owned()),
        },
        (None, None) => EmbeddedContents::Nothing,
    };
    let block =
        OutcomeBlock::Resource { uri: String::new(), mime: contents.mime_type.clone(), contents: inside, raw: None };
    let limits = ResultLimits { text: room, attachment: room / 4 * 3 };
    for block in truncate(escape_hidden_text(ToolOutcome::new(vec![block])), limits, context.spill()).await.blocks {
        piece.add_block(block);
    }
    piece
}

impl ResourcePiece<'_> {
    fn add_block(&mut self, block: OutcomeBlock) {
        match block {
            OutcomeBlock::Resource { contents: EmbeddedContents::Bytes(bytes), .. } => {
                self.blob = Some(bytes.text().to_owned())
            }
            OutcomeBlock::Resource { contents: EmbeddedContents::Text(text), .. } => self.text = Some(text),
            OutcomeBlock::Text { text, .. } => {
                let before = self.text.take().map(|before| before + "\n").unwrap_or_default();
                self.text = Some(before + &text);
            }
            OutcomeBlock::File { path, bytes, note, .. } => self.file = Some(FileReference { path, bytes, note }),
            _ => {}
        }
    }
}

/// Returns the text as Base64, if it is valid.
pub(crate) fn parse_base64(text: &str) -> Option<Base64Text> {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_ \r\n".contains(&byte);
    if !text.bytes().all(letters) {
        return None;
    }
    Base64Text::from_json(RawJson::from_value(text).ok()?)
}
