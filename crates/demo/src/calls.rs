//! Long-running calls: each runs on its own thread and can be cancelled.
//!
//! A call is answered only if it is still in the table when its work is done. Cancelling removes it from the table, so
//! a call is never both answered and cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use super::call_signal::CallSignal;
use super::message::{Outbox, lock_unpoisoned};

/// Maximum number of concurrent calls. Each needs a thread.
const MAX_CALLS: usize = 256;

#[derive(Default)]
pub struct RunningCalls {
    running: Arc<Mutex<CallTable>>,
}

/// Running calls by the JSON of their id, which distinguishes `1` from `"1"`.
type CallTable = HashMap<String, Arc<CallSignal>>;

impl RunningCalls {
    pub fn is_running(&self, id: &Value) -> bool {
        lock_unpoisoned(&self.running).contains_key(&id.to_string())
    }

    /// Starts the call `id`.
    ///
    /// The work ends soon after its alarm rings. It returns the reply, or `None` if it was cancelled.
    ///
    /// # Errors
    ///
    /// Returns a sentence if there are too many calls or no thread can be started.
    pub fn start(
        &self,
        id: &Value,
        out: &Arc<dyn Outbox>,
        work: impl FnOnce(&Arc<CallSignal>) -> Option<Value> + Send + 'static,
    ) -> Result<(), String> {
        let key = id.to_string();
        let alarm = Arc::<CallSignal>::default();
        {
            let mut running = lock_unpoisoned(&self.running);
            if running.len() >= MAX_CALLS {
                return Err(format!("{MAX_CALLS} calls are waiting already; try again later."));
            }
            running.insert(key.clone(), Arc::clone(&alarm));
        }
        let (running, out, name) = (Arc::clone(&self.running), Arc::clone(out), key.clone());
        let carry_out = move || {
            let reply = work(&alarm);
            if let (true, Some(reply)) = (remove_own(&running, &name, &alarm), reply) {
                out.send(reply);
            }
        };
        let thread = thread::Builder::new().name("demo-call".to_owned());
        if let Err(error) = thread.spawn(carry_out) {
            lock_unpoisoned(&self.running).remove(&key);
            return Err(format!("No thread could be started: {error}."));
        }
        Ok(())
    }

    /// Cancels the call `id` if it is running. The call stops immediately and is never answered.
    pub fn cancel(&self, id: &Value) {
        if let Some(alarm) = lock_unpoisoned(&self.running).remove(&id.to_string()) {
            alarm.cancel();
        }
    }

    /// Cancels all calls.
    pub fn cancel_all(&self) {
        for (_, alarm) in lock_unpoisoned(&self.running).drain() {
            alarm.cancel();
        }
    }
}

/// Removes a call from the table and returns whether it was still there.
fn remove_own(running: &Mutex<CallTable>, key: &str, alarm: &Arc<CallSignal>) -> bool {
    let mut running = lock_unpoisoned(running);
    // A later call may have reused the id of a cancelled one.
    let is_ours = running.get(key).is_some_and(|entry| Arc::ptr_eq(entry, alarm));
    is_ours && running.remove(key).is_some()
}
