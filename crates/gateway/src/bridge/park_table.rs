//! Calls that wait for a stateless client to return with answers.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use wharf::spec::ServerName;

/// Maximum time that a call waits for its client.
pub(crate) const MAX_PARKED_TIME: Duration = Duration::from_secs(300);

/// Maximum number of waiting calls per server.
const MAX_PARKED_PER_SERVER: usize = 32;

/// Maximum number of waiting calls.
const MAX_PARKED: usize = 512;

/// Waiting calls `C` by number.
#[derive(Debug)]
pub(crate) struct ParkTable<C> {
    calls: HashMap<u64, ParkedEntry<C>>,
}

#[derive(Debug)]
struct ParkedEntry<C> {
    server: ServerName,
    expires: Instant,
    call: C,
}

/// Reason for which a call cannot wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParkRefusal {
    TooManyOfServer,
    TooMany,
}

impl<C> Default for ParkTable<C> {
    fn default() -> Self {
        Self { calls: HashMap::new() }
    }
}

impl<C> ParkTable<C> {
    /// Parks a call until `expires`. Drops it if too many wait.
    pub fn park(&mut self, number: u64, server: &ServerName, expires: Instant, call: C) -> Result<(), ParkRefusal> {
        if self.calls.len() >= MAX_PARKED {
            return Err(ParkRefusal::TooMany);
        }
        if self.calls.values().filter(|entry| entry.server == *server).count() >= MAX_PARKED_PER_SERVER {
            return Err(ParkRefusal::TooManyOfServer);
        }
        self.calls.insert(number, ParkedEntry { server: server.clone(), expires, call });
        Ok(())
    }

    /// Takes a call whose client has returned. `None` if it is unknown, has returned before, or came too late.
    pub fn take(&mut self, number: u64, now: Instant) -> Option<C> {
        self.calls.remove(&number).filter(|entry| now < entry.expires).map(|entry| entry.call)
    }

    /// Takes the calls whose clients have not returned in time.
    pub fn take_expired(&mut self, now: Instant) -> Vec<C> {
        let expired: Vec<u64> =
            self.calls.iter().filter(|(_, entry)| entry.expires <= now).map(|(number, _)| *number).collect();
        expired.iter().filter_map(|number| self.calls.remove(number)).map(|entry| entry.call).collect()
    }

    /// Takes all calls.
    pub fn take_all(&mut self) -> Vec<C> {
        self.calls.drain().map(|(_, entry)| entry.call).collect()
    }

    pub fn len(&self) -> usize {
        self.calls.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerName {
        ServerName::new(name).unwrap()
    }

    #[test]
    fn parked_call_returns_once_and_in_time() {
        let (mut table, now) = (ParkTable::default(), Instant::now());
        let expires = now + MAX_PARKED_TIME;
        table.park(1, &server("a"), expires, "one").unwrap();
        table.park(2, &server("a"), expires, "two").unwrap();
        assert_eq!((table.take(1, now), table.take(1, now), table.take(3, now)), (Some("one"), None, None));
        assert!(table.take_expired(now).is_empty());
        assert_eq!(table.take_expired(expires), ["two"]);
        table.park(4, &server("a"), expires, "four").unwrap();
        assert_eq!((table.take(4, expires), table.len()), (None, 0));
    }

    #[test]
    fn parked_calls_are_bounded_per_server_and_in_all() {
        let (mut table, now) = (ParkTable::default(), Instant::now());
        let mut number = 0;
        let mut park = |name: &str| {
            number += 1;
            table.park(number, &server(name), now + MAX_PARKED_TIME, ())
        };
        for name in 0..MAX_PARKED / MAX_PARKED_PER_SERVER {
            assert!((0..MAX_PARKED_PER_SERVER).all(|_| park(&format!("s{name}")).is_ok()));
            if name == 0 {
                assert_eq!(park("s0"), Err(ParkRefusal::TooManyOfServer));
            }
        }
        assert_eq!(park("other"), Err(ParkRefusal::TooMany));
        assert_eq!(table.take_all().len(), MAX_PARKED);
    }
}
