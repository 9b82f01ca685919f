//! DNS resolution with address checks at dial time: only addresses that passed the check are connected to.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address_policy::AddressPolicy;
use crate::error::ResolveError;

pub(crate) struct PolicyResolver {
    reach: AddressPolicy,
}

impl PolicyResolver {
    pub fn new(reach: AddressPolicy) -> Self {
        Self { reach }
    }
}

/// Resolves a host name with the system's resolver.
///
/// # Errors
///
/// Fails if the name cannot be resolved, or if no thread can be started for it.
pub async fn lookup_host(host: &str) -> io::Result<Vec<SocketAddr>> {
    let host = host.to_owned();
    let lookup = move || (host.as_str(), 0).to_socket_addrs().map(Iterator::collect);
    wharf_threads::run_blocking(lookup).await.flatten()
}

impl Resolve for PolicyResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = match lookup_host(&host).await {
                Ok(found) => found,
                Err(error) => return Err(ResolveError::Unknown { host, reason: error.to_string() }.into()),
            };
            let allowed: Vec<_> = found.iter().copied().filter(|address| reach.allows(address.ip())).collect();
            match (allowed.is_empty(), found.first()) {
                (false, _) => Ok(Box::new(allowed.into_iter()) as Addrs),
                (true, Some(refused)) => Err(ResolveError::Blocked(refused.ip()).into()),
                (true, None) => Err(ResolveError::Unknown { host, reason: "no addresses found".to_owned() }.into()),
            }
        })
    }
}
