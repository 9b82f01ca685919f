//! Tests of the supervisor's scheduled times.

use std::time::Duration;

use tokio::time::Instant;
use wharf_spec::{BackoffSettings, ReconnectPolicy};

use super::{clock_reading, default_policy, transient_error, unused_since};
use crate::supervise::ServerState;
use crate::supervise::step::{
    ServerActivity, SupervisionPolicy, Supervisor, SupervisorCommand, SupervisorEffect, SupervisorEvent,
};

type ScheduledSupervisor = Supervisor<(), &'static str>;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Creates a server that became ready `after` its creation.
fn ready_server(kept: SupervisionPolicy, born: Instant, after: Duration) -> ScheduledSupervisor {
    let mut server = ScheduledSupervisor::new(kept, 7, clock_reading(born));
    server.begin(clock_reading(born));
    server.step(SupervisorEvent::Command(SupervisorCommand::Connect), clock_reading(born + after));
    let epoch = server.epoch();
    server.step(SupervisorEvent::Connected { epoch, open: "" }, clock_reading(born + after));
    server
}

/// A lazy server becomes ready 1,000 s after its creation. Checks the time of its next event, in seconds after it
/// became ready, for several uses.
#[test]
fn ready_server_is_due_for_idle_stop_or_health_check() {
    let lazy = SupervisionPolicy { lazy: true, health_check: None, ..default_policy() };
    let (busy, held) = ((1, 0), (0, 1));
    let check =
        |kept: SupervisionPolicy, (in_flight, held): (usize, usize), used: u64, now: u64, expected: Option<u64>| {
            let born = Instant::now();
            let server = ready_server(kept, born, seconds(1000));
            let activity = ServerActivity { in_flight, held, last_used: born + seconds(used) };
            let due = server.next_due(activity, born + seconds(1000 + now));
            assert_eq!(due, expected.map(|time| born + seconds(1000 + time)), "{kept:?} {activity:?} at {now}");
        };
    let healthy = SupervisionPolicy { health_check: Some(seconds(60)), ..lazy };
    // Never used, or last used before it was stopped: the idle time starts with the connection.
    check(lazy, (0, 0), 0, 0, Some(600));
    check(lazy, (0, 0), 1100, 200, Some(700));
    check(lazy, busy, 1100, 100, Some(700));
    check(lazy, held, 1000, 5000, Some(5600));
    check(SupervisionPolicy { lazy: false, ..lazy }, (0, 0), 0, 0, None);
    check(SupervisionPolicy { idle_stop: None, ..lazy }, (0, 0), 0, 0, None);
    check(SupervisionPolicy { idle_stop: Some(Duration::MAX), ..lazy }, (0, 0), 0, 0, None);
    check(SupervisionPolicy { idle_stop: Some(Duration::MAX), ..lazy }, busy, 1000, 0, None);
    check(SupervisionPolicy { idle_stop: Some(Duration::ZERO), ..lazy }, (0, 0), 0, 0, Some(0));
    // With a zero idle timeout, a server in use is not checked in a busy loop.
    check(SupervisionPolicy { idle_stop: Some(Duration::ZERO), ..lazy }, busy, 1000, 0, Some(1));
    check(healthy, (0, 0), 0, 0, Some(60));
    check(healthy, (0, 0), 1010, 10, Some(70));
    check(SupervisionPolicy { health_check: Some(Duration::ZERO), ..lazy }, (0, 0), 0, 0, Some(1));
    check(SupervisionPolicy { health_check: Some(Duration::MAX), ..lazy }, (0, 0), 0, 0, Some(600));
}

#[test]
fn overflowing_backoff_still_schedules_a_retry() {
    let endless = BackoffSettings { attempts: 3, base: Duration::MAX, max: Duration::MAX };
    let born = Instant::now();
    for lasted in [1, 3600] {
        let mut server = ready_server(
            SupervisionPolicy { reconnect: ReconnectPolicy::Backoff(endless), ..default_policy() },
            born,
            seconds(0),
        );
        let now = born + seconds(lasted);
        server.step(SupervisorEvent::Lost { epoch: server.epoch(), error: transient_error() }, clock_reading(now));
        assert_eq!(server.state(), ServerState::Reconnecting);
        assert!(server.next_due(unused_since(born), now).is_some_and(|due| due > now));
    }
}

#[test]
fn repeatedly_lost_server_is_flapping_until_stable() {
    let born = Instant::now();
    let mut server = ready_server(default_policy(), born, seconds(0));
    let mut now = born + seconds(1);
    for lost in 1..=2 {
        server.step(SupervisorEvent::Lost { epoch: server.epoch(), error: transient_error() }, clock_reading(now));
        assert_eq!(server.is_flapping(), lost == 2);
        now = server.next_due(unused_since(born), now).unwrap();
        let effects = server.step(SupervisorEvent::Due(unused_since(born)), clock_reading(now));
        assert_eq!(effects, [SupervisorEffect::Connect(server.epoch())]);
        server.step(SupervisorEvent::Connected { epoch: server.epoch(), open: "" }, clock_reading(now));
    }
    assert_eq!((server.state(), server.restarts), (ServerState::Ready, 2));
    assert!(server.is_flapping(), "it has only just come back");
    let firm = server.next_due(unused_since(born), now).unwrap();
    assert_eq!(firm, now + seconds(10));
    assert_eq!(server.step(SupervisorEvent::Due(unused_since(born)), clock_reading(firm)), []);
    assert!(!server.is_flapping() && server.next_due(unused_since(born), firm).unwrap() > firm);
}

#[test]
fn failed_server_gets_one_attempt_per_growing_cool_down() {
    let born = Instant::now();
    let backoff = BackoffSettings { attempts: 2, ..BackoffSettings::default() };
    let mut server = ScheduledSupervisor::new(
        SupervisionPolicy { reconnect: ReconnectPolicy::Backoff(backoff), ..default_policy() },
        7,
        clock_reading(born),
    );
    server.begin(clock_reading(born));
    let (mut now, mut rests, mut starts) = (born, Vec::new(), 1);
    while rests.len() < 6 {
        server.step(
            SupervisorEvent::NotConnected { epoch: server.epoch(), error: transient_error() },
            clock_reading(now),
        );
        let due = server.next_due(unused_since(born), now).unwrap();
        if server.state() == ServerState::Failed {
            rests.push((due - now).as_secs() / 60);
        }
        now = due;
        starts += server.step(SupervisorEvent::Due(unused_since(born)), clock_reading(now)).len();
    }
    // Three attempts at first, then one after each cool-down.
    assert_eq!(starts, 3 + rests.len());
    assert_eq!(rests, [1, 2, 4, 8, 10, 10]);
}
