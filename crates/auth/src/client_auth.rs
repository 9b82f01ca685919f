//! Client authentication at the endpoints of an authorization server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use url::form_urlencoded;
use wharf_net::{HeaderMap, HeaderValue, header};
use wharf_spec::Secret;

use crate::client::{OAuthClient, TokenEndpointAuth};
use crate::error::LoginError;
use crate::jwt::{JwtSigner, random_token};
use crate::settings::TokenGrant;

/// Lifetime of a client assertion in seconds.
const ASSERTION_LIFETIME_SECS: u64 = 60;
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Form fields and headers that authenticate a client. Holds secrets.
pub(crate) struct ClientAuthentication {
    pub fields: Vec<(&'static str, String)>,
    pub headers: HeaderMap,
}

/// Context of a client authentication.
pub(crate) struct ClientAuthContext<'a> {
    /// Issuer identifier of the authorization server.
    pub issuer: &'a str,
    /// The configured grant. Holds the private key, if any.
    pub grant: &'a TokenGrant,
    /// Current time in Unix milliseconds.
    pub now: u64,
}

impl OAuthClient {
    /// Returns the form fields and headers that authenticate this client. A signed assertion is new on each call.
    pub(crate) fn authenticate(&self, occasion: &ClientAuthContext<'_>) -> Result<ClientAuthentication, LoginError> {
        let mut headers = HeaderMap::new();
        let id = ("client_id", self.id.clone());
        let fields = match self.proof {
            TokenEndpointAuth::None => vec![id],
            TokenEndpointAuth::ClientSecretPost => {
                vec![id, ("client_secret", self.required_secret()?.reveal().to_owned())]
            }
            TokenEndpointAuth::ClientSecretBasic => {
                headers.insert(header::AUTHORIZATION, basic_header(&self.id, self.required_secret()?)?);
                Vec::new()
            }
            TokenEndpointAuth::PrivateKeyJwt => {
                let statement = client_assertion(&self.id, occasion)?;
                vec![("client_assertion_type", ASSERTION_TYPE.to_owned()), ("client_assertion", statement)]
            }
        };
        Ok(ClientAuthentication { fields, headers })
    }

    fn required_secret(&self) -> Result<&Secret, LoginError> {
        self.secret.as_ref().ok_or_else(|| LoginError::Proof("a client secret is required but not set".to_owned()))
    }
}

/// Formats the `Basic` header. ID and secret are encoded separately (RFC 6749, 2.3.1), since either may contain a
/// colon.
fn basic_header(id: &str, secret: &Secret) -> Result<HeaderValue, LoginError> {
    let pair = STANDARD.encode(format!("{}:{}", percent_encoded(id), percent_encoded(secret.reveal())));
    let mut value = HeaderValue::try_from(format!("Basic {pair}")).map_err(|_| {
        LoginError::Proof("the client secret contains characters that are invalid in a header".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Form-encodes a text, but a space becomes `%20`: not all decoders accept `+`.
fn percent_encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

/// Signs a client assertion for this issuer, valid for one minute (RFC 7523, 3). Its audience is the issuer, not the
/// endpoint, because another server could claim the same endpoint.
fn client_assertion(id: &str, occasion: &ClientAuthContext<'_>) -> Result<String, LoginError> {
    let TokenGrant::ClientKey { key, algorithm } = occasion.grant else {
        return Err(LoginError::Proof("a private key is required but not set".to_owned()));
    };
    let seconds = occasion.now / 1000;
    let claims = json!({
        "iss": id,
        "sub": id,
        "aud": occasion.issuer,
        "jti": random_token()?,
        "iat": seconds,
        "exp": seconds + ASSERTION_LIFETIME_SECS,
    });
    JwtSigner::from_pem(key, algorithm.as_deref())?.sign(json!({"typ": "JWT"}), &claims)
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::Value;

    use super::*;
    use crate::client::ClientOrigin;

    fn client(proof: TokenEndpointAuth, id: &str, secret: Option<&str>) -> OAuthClient {
        let (id, secret) = (id.to_owned(), secret.map(Secret::new));
        OAuthClient { id, secret, proof, origin: ClientOrigin::Given, expires_at: None }
    }

    fn shown(client: &OAuthClient, grant: &TokenGrant) -> Result<ClientAuthentication, LoginError> {
        client.authenticate(&ClientAuthContext { issuer: "https://as", grant, now: 5_000 })
    }

    #[test]
    fn fields_and_headers_follow_the_auth_method() {
        for (proof, fields, basic) in [
            (TokenEndpointAuth::None, "client_id=i d:+", None),
            (TokenEndpointAuth::ClientSecretPost, "client_id=i d:+ client_secret=s:%ü +", None),
            (TokenEndpointAuth::ClientSecretBasic, "", Some("i%20d%3A%2B:s%3A%25%C3%BC%20%2B")),
        ] {
            let shown = shown(&client(proof, "i d:+", Some("s:%ü +")), &TokenGrant::Person).unwrap();
            let found: Vec<_> = shown.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(found.join(" "), fields, "{proof:?}");
            let header = shown.headers.get(header::AUTHORIZATION);
            assert!(header.is_none_or(HeaderValue::is_sensitive));
            let header = header.map(|value| value.to_str().unwrap().strip_prefix("Basic ").unwrap());
            let header = header.map(|pair| String::from_utf8(STANDARD.decode(pair).unwrap()).unwrap());
            assert_eq!(header.as_deref(), basic, "{proof:?}");
        }
    }

    #[test]
    fn auth_method_without_credential_is_an_error() {
        for proof in [
            TokenEndpointAuth::ClientSecretBasic,
            TokenEndpointAuth::ClientSecretPost,
            TokenEndpointAuth::PrivateKeyJwt,
        ] {
            let error = shown(&client(proof, "id", None), &TokenGrant::Person).err();
            assert!(matches!(error, Some(LoginError::Proof(_))), "{proof:?}");
        }
    }

    #[test]
    fn assertion_names_the_issuer_and_is_unique() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let der = STANDARD.encode(pair.to_pkcs8v1().unwrap().as_ref());
        let key = Secret::new(format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"));
        let grant = TokenGrant::ClientKey { key, algorithm: None };
        let claims = || {
            let shown = shown(&client(TokenEndpointAuth::PrivateKeyJwt, "me", None), &grant).unwrap();
            assert_eq!(shown.fields[0], ("client_assertion_type", ASSERTION_TYPE.to_owned()));
            let claims = URL_SAFE_NO_PAD.decode(shown.fields[1].1.split('.').nth(1).unwrap()).unwrap();
            serde_json::from_slice::<Value>(&claims).unwrap()
        };
        let (mut first, second) = (claims(), claims());
        assert_ne!(first["jti"], second["jti"]);
        first.as_object_mut().unwrap().remove("jti");
        assert_eq!(first, json!({"iss": "me", "sub": "me", "aud": "https://as", "iat": 5, "exp": 65}));
    }
}
