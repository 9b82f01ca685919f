//! Calls that take time: each waits on a thread of its own and can be cancelled.
//!
//! A call is answered if and only if it is still in the table when its wait is over; cancelling
//! takes it out. So an answer and a cancellation can never both happen.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::message::{Outbox, locked};
use super::tools::Wait;

/// How many calls may wait at once; each costs a thread.
const MOST_CALLS: usize = 256;

#[derive(Default)]
pub struct Calls {
    running: Arc<Mutex<Table>>,
}

/// The calls that wait, by the JSON of their id, which keeps `1` and `"1"` apart.
type Table = HashMap<String, Arc<Alarm>>;

/// What a call needs besides the time.
pub struct Call {
    pub id: Value,
    pub wait: Wait,
    /// The whole reply to send at the end.
    pub reply: Value,
    pub progress: Option<Progress>,
    pub out: Arc<dyn Outbox>,
}

/// How the client wants to hear of progress.
pub struct Progress {
    pub token: Value,
    pub with_message: bool,
}

impl Calls {
    pub fn is_running(&self, id: &Value) -> bool {
        locked(&self.running).contains_key(&id.to_string())
    }

    /// Starts a call, or gives the reason why it cannot be started.
    pub fn start(&self, call: Call) -> Result<(), String> {
        let key = call.id.to_string();
        let alarm = Arc::<Alarm>::default();
        {
            let mut running = locked(&self.running);
            if running.len() >= MOST_CALLS {
                return Err(format!("{MOST_CALLS} calls are waiting already; try again later."));
            }
            running.insert(key.clone(), Arc::clone(&alarm));
        }
        let running = Arc::clone(&self.running);
        let thread = thread::Builder::new().name("demo-call".to_owned());
        let waiter = move || carry_out(&call, &alarm, &running);
        if let Err(error) = thread.spawn(waiter) {
            locked(&self.running).remove(&key);
            return Err(format!("No thread could be started: {error}."));
        }
        Ok(())
    }

    /// Cancels the call `id`, if it runs; it stops at once and is never answered.
    pub fn cancel(&self, id: &Value) {
        if let Some(alarm) = locked(&self.running).remove(&id.to_string()) {
            alarm.ring();
        }
    }

    /// Cancels every call.
    pub fn cancel_all(&self) {
        for (_, alarm) in locked(&self.running).drain() {
            alarm.ring();
        }
    }
}

fn carry_out(call: &Call, alarm: &Arc<Alarm>, running: &Mutex<Table>) {
    let started = Instant::now();
    let Wait { duration, steps } = call.wait;
    for step in 1..=steps {
        let due = duration.mul_f64(f64::from(step) / f64::from(steps));
        if alarm.rings_before(started, due) {
            return;
        }
        if let Some(progress) = &call.progress {
            call.out.send(progress.after(step, steps));
        }
    }
    // A later call may have taken over the id of a cancelled one; its entry is not ours.
    let key = call.id.to_string();
    let is_ours = |entry: &Arc<Alarm>| Arc::ptr_eq(entry, alarm);
    let answers = {
        let mut running = locked(running);
        let still_there = running.get(&key).is_some_and(is_ours);
        still_there && running.remove(&key).is_some()
    };
    if answers {
        call.out.send(call.reply.clone());
    }
}

impl Progress {
    fn after(&self, step: u32, steps: u32) -> Value {
        let mut params = json!({"progressToken": self.token, "progress": step, "total": steps});
        if self.with_message {
            params["message"] = format!("step {step} of {steps}").into();
        }
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    }
}

/// Wakes a waiting thread early.
#[derive(Default)]
struct Alarm {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Alarm {
    fn ring(&self) {
        *locked(&self.rung) = true;
        self.changed.notify_all();
    }

    /// Waits until `due` has passed since `started`; says whether the alarm rang meanwhile.
    fn rings_before(&self, started: Instant, due: Duration) -> bool {
        let mut rung = locked(&self.rung);
        loop {
            let left = due.saturating_sub(started.elapsed());
            if *rung || left.is_zero() {
                return *rung;
            }
            rung = match self.changed.wait_timeout(rung, left) {
                Ok((rung, _)) => rung,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}
