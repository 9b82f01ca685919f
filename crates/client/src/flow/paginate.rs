//! Lists, page by page to their end.

use std::collections::HashSet;
use std::time::Duration;

use wharf_spec::Untrusted;
use wharf_wire::{Bounds, CacheHint, Page, Raw, View, code};

use crate::connection::Connection;
use crate::error::{CallError, TimeLimit};
use crate::options::CallOptions;

/// Everything a server listed, and what of it could not be used.
#[derive(Debug, Clone)]
pub struct Listing<T> {
    /// The items in the server's order.
    pub items: Vec<T>,
    /// The items that are malformed: each costs only itself.
    pub withheld: Vec<Withheld>,
    /// How long the server says the list stays as it is, where it does.
    pub ttl: Option<Duration>,
}

/// An item of a list that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// Its position in the list, from 0.
    pub position: usize,
    /// Its name, where it has one; escaped.
    pub name: Option<String>,
    /// Why; escaped.
    pub reason: String,
}

/// Something a server lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListKind {
    pub method: &'static str,
    /// The member of the result that holds the items.
    pub key: &'static str,
    /// What to call it in an error.
    pub what: &'static str,
}

/// Lists to the end, from pages that are still fresh where there are any. A list that is cut short by an error is not
/// given at all.
pub(crate) async fn list<T: View>(connection: &Connection, kind: ListKind) -> Result<Listing<T>, CallError> {
    let limit = connection.limits().call_max;
    match tokio::time::timeout(limit, collect_anew(connection, kind)).await {
        Ok(Ok((items, ttl))) => Ok(Listing { ttl, ..view_all(items, &connection.limits().bounds) }),
        Ok(Err(error)) => {
            // Perhaps a kept page led to where it went wrong: the next attempt begins anew.
            connection.inner().manners.bulletin.cache().forget(kind.method);
            Err(error)
        }
        Err(_) => Err(CallError::TimedOut { after: limit, limit: TimeLimit::Total, hint: None }),
    }
}

/// A cursor that has grown invalid spoils every page that is kept: one more try from the beginning.
async fn collect_anew(connection: &Connection, kind: ListKind) -> Result<(Vec<Raw>, Option<Duration>), CallError> {
    let mut pages = 0;
    match collect(connection, kind, &mut pages).await {
        Err(CallError::Refused(error)) if error.code == code::INVALID_PARAMS && pages > 0 => {
            connection.inner().manners.bulletin.cache().forget(kind.method);
            collect(connection, kind, &mut pages).await
        }
        outcome => outcome,
    }
}

async fn collect(
    connection: &Connection,
    kind: ListKind,
    pages: &mut usize,
) -> Result<(Vec<Raw>, Option<Duration>), CallError> {
    let limits = connection.limits();
    let endless = |problem: String| CallError::Listing { what: kind.what, problem };
    let mut items = Vec::new();
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut fresh: Option<Duration> = None;
    for _ in 0..limits.pages {
        let target = cursor.as_deref().map(|cursor| ("cursor", cursor));
        let result = connection.request_kept(kind.method, target, CallOptions::default()).await?;
        let page = Page::view(&result, kind.key, &limits.bounds)?;
        let ttl = CacheHint::of(&result).ttl;
        if !ttl.is_zero() {
            fresh = Some(fresh.map_or(ttl, |least| least.min(ttl)));
        }
        *pages += 1;
        items.extend(page.items);
        if items.len() > limits.items {
            return Err(endless(format!("more than {} items", limits.items)));
        }
        // An empty string is a cursor like any other; only its absence ends the list.
        let Some(next) = page.next_cursor else { return Ok((items, fresh)) };
        if next.len() > limits.cursor {
            return Err(endless(format!("a cursor of {} bytes", next.len())));
        }
        if !seen.insert(next.clone()) {
            return Err(endless("it goes in circles: a cursor came a second time".to_owned()));
        }
        cursor = Some(next);
    }
    Err(endless(format!("more than {} pages", limits.pages)))
}

fn view_all<T: View>(raw: Vec<Raw>, bounds: &Bounds) -> Listing<T> {
    let mut listing = Listing { items: Vec::with_capacity(raw.len()), withheld: Vec::new(), ttl: None };
    for (position, item) in raw.into_iter().enumerate() {
        match T::view(item.clone(), bounds) {
            Ok(item) => listing.items.push(item),
            Err(error) => {
                let reason = Untrusted::new(error.to_string()).shortened(200).to_string();
                listing.withheld.push(Withheld { position, name: name_of(&item, bounds), reason });
            }
        }
    }
    listing
}

fn name_of(item: &Raw, bounds: &Bounds) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let Named { name } = item.decode(bounds).ok()?;
    Some(Untrusted::new(name).shortened(100).to_string())
}
