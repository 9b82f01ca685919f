//! Calls that take time: each has a thread of its own and can be cancelled.
//!
//! A call is answered if and only if it is still in the table when its work is done; cancelling
//! takes it out. So an answer and a cancellation can never both happen.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use super::alarm::Alarm;
use super::message::{Outbox, locked};

/// How many calls may be under way at once; each costs a thread.
const MOST_CALLS: usize = 256;

#[derive(Default)]
pub struct Calls {
    running: Arc<Mutex<Table>>,
}

/// The calls under way, by the JSON of their id, which keeps `1` and `"1"` apart.
type Table = HashMap<String, Arc<Alarm>>;

impl Calls {
    pub fn is_running(&self, id: &Value) -> bool {
        locked(&self.running).contains_key(&id.to_string())
    }

    /// Starts the call `id`, or gives the reason why it cannot be started.
    ///
    /// The work ends soon after its alarm rings. It gives the reply, or nothing if it was withdrawn.
    pub fn start(
        &self,
        id: &Value,
        out: &Arc<dyn Outbox>,
        work: impl FnOnce(&Arc<Alarm>) -> Option<Value> + Send + 'static,
    ) -> Result<(), String> {
        let key = id.to_string();
        let alarm = Arc::<Alarm>::default();
        {
            let mut running = locked(&self.running);
            if running.len() >= MOST_CALLS {
                return Err(format!("{MOST_CALLS} calls are waiting already; try again later."));
            }
            running.insert(key.clone(), Arc::clone(&alarm));
        }
        let (running, out, name) = (Arc::clone(&self.running), Arc::clone(out), key.clone());
        let carry_out = move || {
            let reply = work(&alarm);
            if let (true, Some(reply)) = (is_taken_out(&running, &name, &alarm), reply) {
                out.send(reply);
            }
        };
        let thread = thread::Builder::new().name("demo-call".to_owned());
        if let Err(error) = thread.spawn(carry_out) {
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

/// Takes a call out of the table, and says whether it still was there.
fn is_taken_out(running: &Mutex<Table>, key: &str, alarm: &Arc<Alarm>) -> bool {
    let mut running = locked(running);
    // A later call may have taken over the id of a cancelled one; its entry is not ours.
    let is_ours = running.get(key).is_some_and(|entry| Arc::ptr_eq(entry, alarm));
    is_ours && running.remove(key).is_some()
}
