//! Device login (RFC 8628). No user takes part: the outcome is set by a switch.

use serde_json::json;

use super::exchange::AuthExchange;
use super::http::AuthResponse;
use super::random::random_hex;
use super::request_log::lock_ignoring_poison;
use super::switches::DeviceLoginOutcome;
use super::token_store::{DeviceLogin, TokenOwner};

impl AuthExchange<'_> {
    /// Issues a device code and a user code.
    pub fn begin_device_login(&self) -> AuthResponse {
        let client = match self.authenticated_client() {
            Ok(client) => client,
            Err(refusal) => return refusal,
        };
        let mut book = lock_ignoring_poison(&self.shared.book);
        let scope = self.field("scope").unwrap_or_default().to_owned();
        let holder = TokenOwner { site: self.site, client, scope, key: None, family: book.new_family() };
        let code = book.secret("device");
        book.devices.insert(code.clone(), DeviceLogin { holder, questions: 0 });
        let page = format!("{}/device-login", self.issuer());
        let shown = random_hex(4).to_uppercase();
        AuthResponse::json(
            200,
            &json!({
                "device_code": code,
                "user_code": shown,
                "verification_uri": page,
                "verification_uri_complete": format!("{page}?user_code={shown}"),
                "expires_in": 600,
                "interval": self.switches.device.map_or(1, |device| device.interval),
            }),
        )
    }

    /// Answers a poll for the outcome of the login.
    pub fn poll_device_login(&self, client: &str, key: Option<String>) -> Result<AuthResponse, AuthResponse> {
        let refused = |code| Err(AuthResponse::error(400, code));
        let mut book = lock_ignoring_poison(&self.shared.book);
        let code = self.field("device_code").unwrap_or_default();
        let Some(login) = book.devices.get_mut(code).filter(|login| login.holder.client == client) else {
            return refused("invalid_grant");
        };
        login.questions += 1;
        let (questions, device) = (login.questions, self.switches.device.unwrap_or_default());
        match device.end {
            _ if questions <= device.pending => refused("authorization_pending"),
            _ if questions <= device.pending + device.slow_downs => refused("slow_down"),
            DeviceLoginOutcome::Denied => refused("access_denied"),
            DeviceLoginOutcome::Expired => refused("expired_token"),
            DeviceLoginOutcome::Granted => {
                let holder = TokenOwner { key, ..login.holder.clone() };
                book.devices.remove(code);
                let pair = book.issue(&holder, self.switches.refresh_tokens);
                Ok(self.token_response(&holder, &pair))
            }
        }
    }
}
