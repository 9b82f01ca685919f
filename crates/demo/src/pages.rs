//! Pagination of lists.

use serde_json::{Map, Value, json};

use super::message::RpcError;

const PAGE_SIZE: usize = 15;

/// Returns one page of `items` under the key `kind`, at the cursor in `params`.
///
/// # Errors
///
/// Fails with invalid params for a cursor that this list has not issued.
pub fn page(kind: &str, items: Vec<Value>, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let start = start_of_page(kind, items.len(), params)?;
    let end = items.len().min(start + PAGE_SIZE);
    let mut result = json!({kind: items[start..end]});
    if end < items.len() {
        result["nextCursor"] = cursor_at(kind, end).into();
    }
    Ok(result)
}

fn start_of_page(kind: &str, length: usize, params: &Map<String, Value>) -> Result<usize, RpcError> {
    let cursor = match params.get("cursor") {
        None | Some(Value::Null) => return Ok(0),
        Some(cursor) => cursor,
    };
    // Cursors are not decoded, only compared with the valid ones.
    (PAGE_SIZE..length)
        .step_by(PAGE_SIZE)
        .find(|start| cursor.as_str() == Some(&cursor_at(kind, *start)))
        .ok_or_else(|| RpcError::invalid_params(format!("invalid cursor {cursor} for {kind}")))
}

/// Returns the cursor of a position, in hexadecimal to keep it opaque.
fn cursor_at(kind: &str, start: usize) -> String {
    let plain = format!("{kind}/{start}");
    plain.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{PAGE_SIZE, page};

    fn params(cursor: &Value) -> Map<String, Value> {
        Map::from_iter([("cursor".to_owned(), cursor.clone())])
    }

    #[test]
    fn pages_join_to_the_whole_list() {
        for length in 0..=3 * PAGE_SIZE {
            let items: Vec<Value> = (0..length).map(Value::from).collect();
            let mut joined = Vec::new();
            let mut cursor = Value::Null;
            loop {
                let page = page("things", items.clone(), &params(&cursor)).unwrap();
                joined.extend(page["things"].as_array().unwrap().clone());
                cursor = page["nextCursor"].clone();
                if cursor.is_null() {
                    break;
                }
            }
            assert_eq!(joined, items);
        }
    }

    #[test]
    fn foreign_cursors_are_invalid() {
        let items = vec![json!(1); PAGE_SIZE + 1];
        let other = page("others", items.clone(), &Map::new()).unwrap()["nextCursor"].clone();
        for cursor in [json!(""), json!("5"), json!(5), json!({}), other] {
            let error = page("things", items.clone(), &params(&cursor)).unwrap_err();
            assert_eq!(error.code, -32602, "{cursor}");
        }
    }
}
