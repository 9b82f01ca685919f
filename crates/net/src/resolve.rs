//! DNS resolution with address checks at dial time: only addresses that passed the check are connected to.

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

impl Resolve for PolicyResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await.map(Iterator::collect::<Vec<_>>);
            let found = match found {
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
