//! Pagination: reads a list to its last page.

use std::collections::HashSet;
use std::time::Duration;

use wharf_spec::UntrustedText;
use wharf_wire::{CacheHint, JsonLimits, Page, RawJson, View, code};

use crate::budget::{BudgetCharge, BudgetExceeded, BudgetScope, attach_charge};
use crate::connection::Connection;
use crate::error::{CallError, TimeoutKind};
use crate::options::RequestOptions;

/// A complete list, and the items that cannot be used.
#[derive(Debug, Clone)]
pub struct Listing<T> {
    /// The items in the server's order.
    pub items: Vec<T>,
    /// The malformed items. They do not affect the others.
    pub withheld: Vec<WithheldEntry>,
    /// Time for which the list is valid according to the server, if given.
    pub ttl: Option<Duration>,
}

/// A list item that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldEntry {
    /// Position in the server's list, from 0.
    pub position: usize,
    /// Name of the item, if it has one. Escaped.
    pub name: Option<String>,
    /// The reason. Escaped.
    pub reason: String,
}

/// A kind of list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListKind {
    pub method: &'static str,
    /// The member of the result that holds the items.
    pub key: &'static str,
    /// Name of the items in an error.
    pub what: &'static str,
}

/// Reads a list to its end, using fresh cached pages. Returns no partial list on error.
pub(crate) async fn list_all<T: View + Send + 'static>(
    connection: &Connection,
    kind: ListKind,
) -> Result<Listing<T>, CallError> {
    let limit = connection.limits().call_total_timeout;
    match tokio::time::timeout(limit, collect_with_retry(connection, kind)).await {
        Ok(Ok(listing)) => Ok(listing),
        Ok(Err(error)) => {
            // A cached page may have caused the error: the next attempt reads all pages again.
            connection.inner().protocol.notifications.cache().invalidate_method(kind.method);
            Err(error)
        }
        Err(_) => Err(CallError::TimedOut { after: limit, limit: TimeoutKind::Total, hint: None }),
    }
}

/// Reads a list and retries once from the start if a cursor has become invalid.
async fn collect_with_retry<T: View + Send + 'static>(
    connection: &Connection,
    kind: ListKind,
) -> Result<Listing<T>, CallError> {
    let mut pages = 0;
    match collect_pages(connection, kind, &mut pages).await {
        Err(CallError::ErrorResponse(error)) if error.code == code::INVALID_PARAMS && pages > 0 => {
            connection.inner().protocol.notifications.cache().invalidate_method(kind.method);
            collect_pages(connection, kind, &mut pages).await
        }
        outcome => outcome,
    }
}

async fn collect_pages<T: View + Send + 'static>(
    connection: &Connection,
    kind: ListKind,
    pages: &mut usize,
) -> Result<Listing<T>, CallError> {
    let limits = connection.limits();
    let endless = |problem: String| CallError::Listing { what: kind.what, problem };
    let mut list = ListCollector::new(kind);
    let budget = connection.inner().server.engine.budget();
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..limits.pages {
        let target = cursor.as_deref().map(|cursor| ("cursor", cursor));
        let result = connection.request_cached(kind.method, target, RequestOptions::default()).await?;
        let (inner, bytes) = (connection.clone(), result.as_bytes().len().min(limits.list));
        let taken = budget.offload_if_large(bytes, move || {
            let next = list.add_page(&result, &inner);
            next.map(|next| (list, next))
        });
        let next;
        (list, next) = taken.await.ok_or(CallError::Ended)??;
        *pages += 1;
        // An empty string is a valid cursor; only its absence ends the list.
        let Some(next) = next else { return Ok(list.listing) };
        if next.len() > limits.cursor {
            return Err(endless(format!("cursor of {} bytes exceeds the limit", next.len())));
        }
        if !seen.insert(next.clone()) {
            return Err(endless("pagination loop: the same cursor was returned twice".to_owned()));
        }
        cursor = Some(next);
    }
    Err(endless(format!("more than {} pages", limits.pages)))
}

/// A list while its pages arrive. Only the items of a page are held, in a buffer that is charged to the list budget for
/// as long as any of them exists.
struct ListCollector<T> {
    kind: ListKind,
    listing: Listing<T>,
    /// Bytes of the pages so far.
    bytes: usize,
    /// Items so far, including withheld ones.
    items: usize,
}

impl<T: View> ListCollector<T> {
    fn new(kind: ListKind) -> Self {
        Self { kind, listing: Listing { items: Vec::new(), withheld: Vec::new(), ttl: None }, bytes: 0, items: 0 }
    }

    /// Adds a page and returns the cursor of the next. A page that exceeds the byte limit is not parsed.
    fn add_page(&mut self, result: &RawJson, connection: &Connection) -> Result<Option<String>, CallError> {
        let limits = connection.limits();
        self.bytes += result.as_bytes().len();
        if self.bytes > limits.list {
            return Err(self.list_error(format!("more than {} bytes", limits.list)));
        }
        let page = Page::view(result, self.kind.key, &limits.bounds)?;
        let ttl = CacheHint::from_result(result).ttl;
        if !ttl.is_zero() {
            self.listing.ttl = Some(self.listing.ttl.map_or(ttl, |least| least.min(ttl)));
        }
        if self.items + page.items.len() > limits.items {
            return Err(self.list_error(format!("more than {} items", limits.items)));
        }
        let kept: usize = page.items.iter().map(|item| item.as_bytes().len()).filter(|size| *size <= limits.item).sum();
        let charge =
            connection.inner().lists.charge(kept).map_err(|exceeded| self.list_error(list_budget_error(exceeded)))?;
        for item in copy_items(&page.items, kept, limits.item, charge) {
            self.add_item(item, &limits.bounds);
        }
        Ok(page.next_cursor)
    }

    fn add_item(&mut self, item: Result<RawJson, &RawJson>, bounds: &JsonLimits) {
        let position = self.items;
        self.items += 1;
        let (name, reason) = match item {
            Ok(item) => match T::from_raw(item.clone(), bounds) {
                Ok(item) => return self.listing.items.push(item),
                Err(error) => {
                    (item_name(&item, bounds), UntrustedText::new(error.to_string()).truncate(200).to_string())
                }
            },
            Err(large) => {
                (item_name(large, bounds), format!("definition too large ({} bytes)", large.as_bytes().len()))
            }
        };
        self.listing.withheld.push(WithheldEntry { position, name, reason });
    }

    fn list_error(&self, problem: String) -> CallError {
        CallError::Listing { what: self.kind.what, problem }
    }
}

/// Copies the items within the limit to their own buffer. Returns the larger ones uncopied, as errors.
fn copy_items(
    items: &[RawJson],
    bytes: usize,
    limit: usize,
    charge: BudgetCharge,
) -> impl Iterator<Item = Result<RawJson, &RawJson>> {
    let within = move |item: &RawJson| item.as_bytes().len() <= limit;
    let mut memory = Vec::with_capacity(bytes);
    items.iter().filter(|item| within(item)).for_each(|item| memory.extend_from_slice(item.as_bytes()));
    let (memory, mut at) = (attach_charge(memory, charge), 0);
    items.iter().map(move |item| {
        if !within(item) {
            return Err(item);
        }
        let start = at;
        at += item.as_bytes().len();
        Ok(RawJson::new_unchecked(memory.slice(start..at)))
    })
}

fn list_budget_error(BudgetExceeded { scope, limit }: BudgetExceeded) -> String {
    match scope {
        BudgetScope::Server => format!("the lists of this server exceed {limit} bytes"),
        BudgetScope::Host => format!("the lists of all servers exceed {limit} bytes"),
    }
}

fn item_name(item: &RawJson, bounds: &JsonLimits) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct NamedItem {
        name: String,
    }
    let NamedItem { name } = item.decode(bounds).ok()?;
    Some(UntrustedText::new(name).truncate(100).to_string())
}
