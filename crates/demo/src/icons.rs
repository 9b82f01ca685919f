//! Icons, available since 2025-11-25.

use serde_json::{Value, json};

use super::content::LOGO_PNG;
use super::revision::DemoRevision;

/// Adds the anchor icon to `thing`, as data and by URL, if `revision` has icons.
pub fn add_icons(thing: &mut Value, revision: DemoRevision) {
    if revision.has_icons() {
        thing["icons"] = json!([
            {"src": format!("data:image/png;base64,{LOGO_PNG}"), "mimeType": "image/png", "sizes": ["16x16"]},
            {"src": "https://harbour.example/anchor.png", "mimeType": "image/png", "sizes": ["48x48", "96x96"]},
        ]);
    }
}
