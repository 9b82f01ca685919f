//! Tests of every phase with every event.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;
use wharf_client::AuthRecovery;
use wharf_spec::{ActivationState, BackoffSettings, ReconnectPolicy};

use super::{
    clock_reading, default_policy, login_error, permanent_error, rejected_call, transient_error, unused_since,
};
use crate::supervise::phase::Phase;
use crate::supervise::step::{SupervisionPolicy, Supervisor, SupervisorCommand, SupervisorEffect, SupervisorEvent};

/// Rows are phases, columns are events. A cell holds the next phase, or a dot if it is unchanged, and the effects: `+`
/// connect, `x` close, `?` health check.
const TRANSITION_TABLE: &str = "
-             connect disconnect reconnect keep eager enable disable withhold wanted connected overtaken passing permanent login bygone lost missed due later logout doubt outdated
disabled      .       .          .         .    .     con+   .       una      .      .x        .x        .       .         .     .      .    .      .   .     .      .     .
unapproved    .       .          .         .    .     con+   dis     .        .      .x        .x        .       .         .     .      .    .      .   .     .      .     .
idle          con+    off        con+      .    con+  .      dis     una      con+   .x        .x        .       .         .     .      .    .      .   .     .      .     .
disconnected  con+    .          con+      .    .     .      dis     una      .      .x        .x        .       .         .     .      .    .      .   .     .      .     .
connecting    .       off        .+        .    .     .      dis     una      .      rdy       .x        rec     fai       aut   .      .    .      .   .     .      .     .
auth_required con+    off        con+      .    .     .      dis     una      .      .x        .x        .       .         .     .      .    .      .   .     .      .     .
ready         .       offx       conx+     .    .     .      disx    unax     .      .x        .x        .       .         .     .      recx .      .   .?    autx   .?    .
ready_lazy    .       offx       conx+     .    .     .      disx    unax     .      .x        .x        .       .         .     .      recx .      .   idlx  autx   .?    .
ready_off     .       offx       conx+     .    .     .      disx    unax     .      .x        .x        .       .         .     .      faix .      .   .?    autx   .?    .
reconnecting  con+    off        con+      .    .     .      dis     una      .      .x        .x        .       .         .     .      .    .      .   .+    .      .     .
failed        con+    off        con+      con+ con+  con+   dis     una      .      .x        .x        .       .         .     .      .    .      .   rec+  .      .     .
failed_final  con+    off        con+      con+ con+  con+   dis     una      .      .x        .x        .       .         .     .      .    .      .   .     .      .     .
failed_off    con+    off        con+      con+ con+  con+   dis     una      .      .x        .x        .       .         .     .      .    .      .   .     .      .     .
failed_lazy   con+    off        con+      idl  con+  idl    dis     una      .      .x        .x        .       .         .     .      .    .      .   rec+  .      .     .
cooled        con+    off        con+      con+ con+  con+   dis     una      rec+   .x        .x        .       .         .     .      .    .      rec+ rec+ .      .     .
cooled_final  con+    off        con+      con+ con+  con+   dis     una      con+   .x        .x        .       .         .     .      .    .      .   .     .      .     .
cooled_off    con+    off        con+      con+ con+  con+   dis     una      .      .x        .x        .       .         .     .      .    .      .   .     .      .     .
";

const HOUR: Duration = Duration::from_secs(3600);

type TableSupervisor = Supervisor<Rc<()>, &'static str>;

#[test]
fn every_event_in_every_phase_follows_the_table() {
    let mut lines = TRANSITION_TABLE.trim().lines().map(str::split_whitespace);
    let events: Vec<&str> = lines.next().unwrap().skip(1).collect();
    let mut checked = 0;
    for mut line in lines {
        let place = line.next().unwrap();
        for (event, expected) in events.iter().zip(line) {
            check(place, event, expected);
            checked += 1;
        }
    }
    assert_eq!(checked, 17 * events.len());
}

/// A server in a given phase, and its first attempt.
struct PreparedServer {
    server: TableSupervisor,
    kept: SupervisionPolicy,
    attempt: Rc<()>,
    born: Instant,
    now: Instant,
}

fn check(place: &str, event: &str, expected: &str) {
    let mut stand = prepare_server(place);
    if event == "later" {
        stand.now += HOUR;
    }
    let event_of_it = event_named(event, &stand);
    let PreparedServer { mut server, attempt, now, .. } = stand;
    let before = state_letters(&server);
    assert_eq!(Rc::strong_count(&attempt), 1 + usize::from(before == "con"), "{place}: an attempt is held");
    let epoch = server.epoch();
    let effects = server.step(event_of_it, clock_reading(now));
    let after = state_letters(&server);
    let place_after = if after == before { "." } else { after };
    let found = format!("{place_after}{}", effects.iter().map(effect_symbol).collect::<String>());
    assert_eq!(found, expected, "{place} when {event}");
    let began = effects.iter().any(|effect| matches!(effect, SupervisorEffect::Connect(_)));
    assert_eq!(server.epoch(), epoch + u64::from(began), "{place} when {event}: attempts are numbered");
    assert!(
        effects.iter().all(|effect| !matches!(effect, SupervisorEffect::Connect(number) if *number != server.epoch()))
    );
    let kept = after == "con" && !began;
    assert_eq!(Rc::strong_count(&attempt), 1 + usize::from(kept), "{place} when {event}: an attempt is let go");
}

fn prepare_server(place: &str) -> PreparedServer {
    let born = Instant::now();
    let (place, manner) = place.split_once('_').unwrap_or((place, ""));
    let kept = policy_for(place, manner);
    let attempt = Rc::new(());
    let mut server = TableSupervisor::new(kept, 7, clock_reading(born));
    let mut effects = server.begin(clock_reading(born));
    if manner == "lazy" {
        effects = server.step(SupervisorEvent::Demand, clock_reading(born));
    }
    if !effects.is_empty() {
        server.store_attempt(Rc::clone(&attempt));
        let first = first_event(place, manner);
        assert_eq!(first.map(|event| server.step(event, clock_reading(born))).unwrap_or_default(), []);
    }
    let now = if place == "cooled" { born + HOUR } else { born };
    PreparedServer { server, kept, attempt, born, now }
}

fn policy_for(place: &str, manner: &str) -> SupervisionPolicy {
    let mut kept = default_policy();
    kept.lazy = manner == "lazy" || place == "idle";
    kept.reconnect = match (place, manner) {
        (_, "off") => ReconnectPolicy::Off,
        ("failed" | "cooled", _) => {
            ReconnectPolicy::Backoff(BackoffSettings { attempts: 0, ..BackoffSettings::default() })
        }
        _ => ReconnectPolicy::Backoff(BackoffSettings::default()),
    };
    kept.admission = match place {
        "disabled" => ActivationState::Disabled,
        "unapproved" => ActivationState::Unapproved,
        _ => ActivationState::Enabled,
    };
    kept
}

/// Returns the event that moves a connecting server to the phase.
fn first_event(place: &str, manner: &str) -> Option<SupervisorEvent<&'static str>> {
    let error = match (place, manner) {
        ("connecting", _) => return None,
        ("disconnected", _) => return Some(SupervisorEvent::Command(SupervisorCommand::Disconnect)),
        ("ready", _) => return Some(SupervisorEvent::Connected { epoch: 1, open: "its own" }),
        ("auth", _) => login_error(),
        (_, "final") => permanent_error(),
        _ => transient_error(),
    };
    Some(SupervisorEvent::NotConnected { epoch: 1, error })
}

fn event_named(event: &str, stand: &PreparedServer) -> SupervisorEvent<&'static str> {
    let (epoch, kept) = (stand.server.epoch(), stand.kept);
    let keep = |kept: SupervisionPolicy| SupervisorEvent::Command(SupervisorCommand::Keep(kept));
    let admit = |admission| SupervisorEvent::Command(SupervisorCommand::Keep(SupervisionPolicy { admission, ..kept }));
    match event {
        "connect" => SupervisorEvent::Command(SupervisorCommand::Connect),
        "disconnect" => SupervisorEvent::Command(SupervisorCommand::Disconnect),
        "reconnect" => SupervisorEvent::Command(SupervisorCommand::Reconnect),
        "keep" => keep(SupervisionPolicy { health_check: None, ..kept }),
        "eager" => keep(SupervisionPolicy { lazy: false, ..kept }),
        "enable" => admit(ActivationState::Enabled),
        "disable" => admit(ActivationState::Disabled),
        "withhold" => admit(ActivationState::Unapproved),
        "wanted" => SupervisorEvent::Demand,
        "connected" => SupervisorEvent::Connected { epoch, open: "another" },
        "overtaken" => SupervisorEvent::Connected { epoch: epoch.wrapping_sub(1), open: "another" },
        "passing" => SupervisorEvent::NotConnected { epoch, error: transient_error() },
        "permanent" => SupervisorEvent::NotConnected { epoch, error: permanent_error() },
        "login" => SupervisorEvent::NotConnected { epoch, error: login_error() },
        "bygone" => SupervisorEvent::NotConnected { epoch: epoch.wrapping_sub(1), error: login_error() },
        "lost" => SupervisorEvent::Lost { epoch, error: transient_error() },
        "missed" => SupervisorEvent::Lost { epoch: epoch.wrapping_sub(1), error: transient_error() },
        "logout" => SupervisorEvent::LoginRequired { epoch, error: rejected_call(Some(AuthRecovery::Login)) },
        "doubt" => SupervisorEvent::LoginRequired { epoch, error: rejected_call(None) },
        "outdated" => SupervisorEvent::LoginRequired {
            epoch: epoch.wrapping_sub(1),
            error: rejected_call(Some(AuthRecovery::Login)),
        },
        "due" | "later" => SupervisorEvent::Due(unused_since(stand.born)),
        _ => unreachable!("no event is called {event}"),
    }
}

/// Returns the state of a server as three letters.
fn state_letters(server: &TableSupervisor) -> &'static str {
    match (server.phase(), server.state().as_str()) {
        (Phase::Disconnected, _) => "off",
        (_, "ready") => "rdy",
        (_, state) => &state[..3],
    }
}

fn effect_symbol(effect: &SupervisorEffect<&'static str>) -> char {
    match effect {
        SupervisorEffect::Connect(_) => '+',
        SupervisorEffect::Close(_) => 'x',
        SupervisorEffect::Check(_) => '?',
    }
}
