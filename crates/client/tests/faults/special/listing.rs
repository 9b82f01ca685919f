//! Lists and results that are malformed, endless or merely odd.

use super::*;

pub async fn bad_tool(cell: &Cell) -> Problems {
    let connection = opened!(cell);
    let listing = connection.list_tools().await;
    let outcome = call_tool(&connection, "echo").await;
    connection.close().await;
    let mut problems = Vec::new();
    match listing {
        Ok(listing) => {
            demand(&mut problems, listing.withheld.len() == 3, || format!("withheld: {:?}", listing.withheld));
            demand(&mut problems, listing.items.iter().any(|tool| tool.name == "echo"), || {
                "the good ones are lost".to_owned()
            });
        }
        Err(error) => problems.push(error.to_string()),
    }
    demand(&mut problems, outcome.is_ok(), || call_word(&outcome).to_owned());
    problems
}

pub async fn fidelity(cell: &Cell) -> Problems {
    let connection = opened!(cell);
    let listing = connection.list_tools().await;
    let outcome = connection.call_tool("odd", &RawJson::empty_object(), RequestOptions::default()).await;
    connection.close().await;
    let mut problems = Vec::new();
    let schema = listing
        .ok()
        .and_then(|listing| listing.items.into_iter().find(|tool| tool.name == "odd"))
        .and_then(|tool| tool.input_schema);
    demand(&mut problems, schema.as_ref().is_some_and(|schema| schema.as_str() == faultd::ODD_SCHEMA), || {
        format!("schema: {:?}", schema.map(|schema| schema.as_str().to_owned()))
    });
    match outcome {
        Ok(result) => {
            let whole = result.raw.as_str();
            demand(&mut problems, whole.contains("12345678901234567890123") || whole == faultd::ODD_RESULT, || {
                whole.to_owned()
            });
            demand(&mut problems, same_but_for_result_type(whole, faultd::ODD_RESULT), || {
                format!("{whole} is not {}", faultd::ODD_RESULT)
            });
        }
        Err(error) => problems.push(error.to_string()),
    }
    problems
}

/// The fixture adds `resultType` in the stateless era; everything else is as it was written.
fn same_but_for_result_type(whole: &str, written: &str) -> bool {
    whole.contains(written.trim_start_matches('{').trim_end_matches('}'))
}

pub async fn endless_list(cell: &Cell) -> Problems {
    let connection = opened!(cell);
    let listing = connection.list_tools().await;
    let outcome = call_tool(&connection, "echo").await;
    connection.close().await;
    let mut problems = Vec::new();
    demand(&mut problems, matches!(listing, Err(CallError::Listing { .. })), || format!("{listing:?}"));
    demand(&mut problems, outcome.is_ok(), || call_word(&outcome).to_owned());
    problems
}

pub async fn empty_cursor(cell: &Cell) -> Problems {
    let connection = opened!(cell);
    let listing = connection.list_tools().await;
    connection.close().await;
    match listing {
        Ok(listing) if listing.items.len() > 1 && listing.withheld.is_empty() => Vec::new(),
        other => vec![format!("{other:?}")],
    }
}
