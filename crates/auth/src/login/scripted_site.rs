//! A test server and the context of a login to it.

use std::ops::Deref;

use url::{Url, form_urlencoded};
use wharf_testkit::transport_faults::Http1Request;

use super::AuthServerContext;
use crate::auth_http::AuthHttpClient;
use crate::auth_http::static_site::StaticSite;
use crate::dpop::DpopNonces;
use crate::settings::AuthSettings;

/// A test server, and the context of a login to it.
pub(crate) struct ScriptedSite {
    site: StaticSite,
    outside: AuthHttpClient,
    url: Url,
    nonces: DpopNonces,
    pub settings: AuthSettings,
}

impl ScriptedSite {
    pub fn start() -> Self {
        let site = StaticSite::start();
        let url = Url::parse(&format!("{}/mcp", site.origin())).unwrap();
        let outside = AuthHttpClient::new(&url, wharf_net::NetOptions::default());
        let (nonces, settings) = (DpopNonces::default(), AuthSettings::default());
        Self { site, outside, url, nonces, settings }
    }

    pub fn attempt(&self) -> AuthServerContext<'_> {
        AuthServerContext {
            outside: &self.outside,
            url: &self.url,
            server: "notes",
            settings: &self.settings,
            nonces: &self.nonces,
            now: &|| 1_000_000,
        }
    }
}

impl Deref for ScriptedSite {
    type Target = StaticSite;

    fn deref(&self) -> &StaticSite {
        &self.site
    }
}

/// Returns a form field of a request. Returns `None` if it is missing or repeated.
pub(crate) fn form_field(asked: &Http1Request, name: &str) -> Option<String> {
    let mut found = form_urlencoded::parse(&asked.body).filter(|(key, _)| key == name);
    found.next().map(|(_, value)| value.into_owned()).filter(|_| found.next().is_none())
}
