//! Expansion of login settings.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use url::Url;
use wharf_spec::{AssertionSource, AuthSettings, DpopMode, Secret, TokenGrant};

use super::EntryResolver;
use crate::ConfigProblem;
use crate::server_definition::{OauthDefinition, SourcedValue};

/// Maximum bytes of a key file.
const MAX_KEY_BYTES: u64 = 64 << 10;

impl EntryResolver<'_> {
    pub(super) fn login(&self, oauth: &OauthDefinition) -> Result<AuthSettings, ConfigProblem> {
        let text = |name| oauth.text(name).map(|template| self.text(template)).transpose();
        let login = AuthSettings {
            authorization_url: text("authorization_url")?,
            token_url: text("token_url")?,
            registration_url: text("registration_url")?,
            device_url: text("device_url")?,
            issuer: text("issuer")?,
            client_id: text("client_id")?,
            client_secret: text("client_secret")?.map(Secret::new),
            client_metadata_url: text("client_metadata_url")?,
            scope: text("scope")?,
            callback_port: oauth.callback_port,
            grant: self.grant(oauth)?,
            dpop: match oauth.text("dpop").map(|word| word.value.as_str()) {
                Some("always") => DpopMode::Always,
                Some("never") => DpopMode::Never,
                _ => DpopMode::Automatic,
            },
        };
        self.check_login_origins(oauth, &login)?;
        Ok(login)
    }

    /// Rejects an `authorization_url` and a `device_url` of different origins without a `token_url`. With any
    /// discovered token endpoint, one of the two would give the user's login to a different authorization server.
    fn check_login_origins(&self, oauth: &OauthDefinition, login: &AuthSettings) -> Result<(), ConfigProblem> {
        let (Some(page), Some(device), None) = (&login.authorization_url, &login.device_url, &login.token_url) else {
            return Ok(());
        };
        let origin = |address: &str| Url::parse(address).ok().map(|url| url.origin());
        let place = oauth.text("device_url").map(|text| &text.place);
        let Some(place) = place.filter(|_| login.grant == TokenGrant::Person && origin(page) != origin(device)) else {
            return Ok(());
        };
        let text = "`authorization_url` and `device_url` have different origins, and `token_url` is missing";
        let fix = "add `token_url` to `oauth`".to_owned();
        Err(self.problem("incomplete_login", place, text.to_owned(), Some(fix)))
    }

    fn grant(&self, oauth: &OauthDefinition) -> Result<TokenGrant, ConfigProblem> {
        let Some(grant) = oauth.text("grant") else { return Ok(TokenGrant::Person) };
        let needed = |name| {
            let template = oauth.text(name).ok_or_else(|| self.incomplete_login(grant, &format!("`{name}`")))?;
            self.text(template)
        };
        let optional = |name| oauth.text(name).map(|template| self.text(template)).transpose();
        Ok(match grant.value.as_str() {
            "client_credentials" => match self.client_key(oauth)? {
                Some(key) => TokenGrant::ClientKey { key, algorithm: optional("signing_algorithm")? },
                None => {
                    let either = "`client_secret`, `private_key` or `private_key_file`";
                    oauth.text("client_secret").ok_or_else(|| self.incomplete_login(grant, either))?;
                    TokenGrant::ClientSecret
                }
            },
            "enterprise" => TokenGrant::Enterprise {
                token_url: needed("idp_token_url")?,
                client_id: needed("idp_client_id")?,
                client_secret: optional("idp_client_secret")?.map(Secret::new),
                id_token: self.assertion(oauth, grant, "id_token", "id_token_file")?,
            },
            "workload" => {
                TokenGrant::Workload { assertion: self.assertion(oauth, grant, "assertion", "assertion_file")? }
            }
            _ => TokenGrant::Person,
        })
    }

    /// Returns the client's private key, if there is one.
    fn client_key(&self, oauth: &OauthDefinition) -> Result<Option<Secret>, ConfigProblem> {
        if let Some(key) = oauth.text("private_key") {
            return self.text(key).map(|key| Some(Secret::new(key)));
        }
        let Some(template) = oauth.text("private_key_file") else { return Ok(None) };
        let path = self.path(template)?;
        match read_key_file(&path) {
            Ok(key) => Ok(Some(Secret::new(key))),
            Err(error) => {
                let text = format!("cannot read the key file `{}`: {error}", path.display());
                Err(self.problem("key_file", &template.place, text, None))
            }
        }
    }

    fn assertion(
        &self,
        oauth: &OauthDefinition,
        grant: &SourcedValue<String>,
        given: &str,
        file: &str,
    ) -> Result<AssertionSource, ConfigProblem> {
        match (oauth.text(given), oauth.text(file)) {
            (Some(template), _) => self.text(template).map(|text| AssertionSource::Given(Secret::new(text))),
            (None, Some(template)) => self.path(template).map(AssertionSource::File),
            (None, None) => Err(self.incomplete_login(grant, &format!("`{given}` or `{file}`"))),
        }
    }

    fn incomplete_login(&self, grant: &SourcedValue<String>, missing: &str) -> ConfigProblem {
        let text = format!("a login by `{}` needs {missing}", grant.value);
        self.problem("incomplete_login", &grant.place, text, Some(format!("add {missing} to `oauth`")))
    }
}

fn read_key_file(path: &Path) -> io::Result<String> {
    // Opening a pipe would block until there is a writer.
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_KEY_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
