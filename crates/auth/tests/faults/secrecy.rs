//! Nothing that is secret turns up where it does not belong (T46, T50).

use std::fmt::{Debug, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use wharf_testkit::authd::{ClientAuthMethod, ScopeRequirement, TokenBehaviour};

use crate::scene::Scene;

static LOG: Mutex<String> = Mutex::new(String::new());

#[tokio::test]
async fn t50_secrets_are_absent_from_logs_errors_and_debug() {
    tracing::subscriber::set_global_default(Log).unwrap();
    let mut said = String::new();
    for auth in [ClientAuthMethod::None, ClientAuthMethod::Basic, ClientAuthMethod::Post] {
        let scene = Scene::new(|switches| switches.client_auth = auth);
        let account = scene.attended();
        write!(said, "{:?}", scene.ask(&account, "tools/list").await).unwrap();
        scene.authd.expire_access_tokens();
        write!(said, "{:?}", scene.ask(&account, "tools/list").await).unwrap();
        for fault in [
            TokenBehaviour::ServerError,
            TokenBehaviour::Garbage,
            TokenBehaviour::CutAfter,
            TokenBehaviour::InvalidGrant,
        ] {
            scene
                .authd
                .change_switches(|switches| (switches.refresh, switches.grant) = (fault, TokenBehaviour::OtherError));
            scene.authd.expire_access_tokens();
            let account = scene.attended();
            let failed = scene.ask(&account, "tools/list").await.unwrap_err();
            let login = account.log_in(scene.person()).await.unwrap_err();
            write!(said, "{failed} {failed:?} {login} {login:?} {:?}", account.status().await).unwrap();
        }
        scene.authd.change_switches(|switches| switches.step_up = ScopeRequirement::Forever);
        write!(said, "{:?}", account.log_out().await).unwrap();
        said.push_str(&LOG.lock().unwrap_or_else(PoisonError::into_inner));
        let told: Vec<_> = scene.authd.secrets().into_iter().filter(|secret| said.contains(secret.as_str())).collect();
        assert!(told.is_empty(), "{auth:?}: {told:?}");
    }
    assert!(said.len() > 1000, "something must have been said for this to mean anything");
}

#[tokio::test]
async fn t46_stored_files_are_private() {
    let scene = Scene::new(|_| {});
    scene.logged_in().await;
    let mut files = 0;
    for entry in std::fs::read_dir(scene.directory.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o177, 0, "{:?}", entry.path());
        files += 1;
    }
    assert!(files > 0);
}

/// Writes down everything at every level.
struct Log;

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Line);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Line);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line;

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(LOG.lock().unwrap_or_else(PoisonError::into_inner), "{field}={value:?}").unwrap();
    }
}
