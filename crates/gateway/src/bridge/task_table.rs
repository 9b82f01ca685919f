//! The tasks of clients: calls that outlive their requests.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use wharf::RawJson;
use wharf::wire::RpcError;

/// Maximum number of tasks of one owner, including those that have ended.
pub(crate) const MAX_TASKS_PER_OWNER: usize = 32;

/// Maximum number of tasks.
const MAX_TASKS: usize = 1024;

/// Maximum bytes of the results that one owner's tasks keep. The oldest ones are forgotten first.
const MAX_RESULT_BYTES: usize = 16 * 1024 * 1024;

/// Time that a task is kept if its client does not say.
const DEFAULT_TTL: Duration = Duration::from_secs(3600);

/// Maximum time that a task is kept.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// Tasks by number. `R` is the running call, and is dropped with its end.
#[derive(Debug)]
pub(crate) struct TaskTable<R> {
    created: u64,
    tasks: BTreeMap<u64, TaskEntry<R>>,
}

/// One task.
#[derive(Debug)]
pub(crate) struct TaskEntry<R> {
    owner: String,
    expires: Instant,
    pub created: SystemTime,
    pub updated: SystemTime,
    pub ttl: Duration,
    pub state: TaskState<R>,
}

#[derive(Debug)]
pub(crate) enum TaskState<R> {
    Running(R),
    Ended(TaskEnd),
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TaskEnd {
    Result(RawJson),
    Error(RpcError),
    Cancelled,
}

/// The beginning of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskStart<'a> {
    /// The principal that may use the task.
    pub owner: &'a str,
    /// Time that the client wants the task to be kept.
    pub ttl: Option<Duration>,
    pub now: Instant,
    pub time: SystemTime,
}

/// The effect of a cancellation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CancelEffect {
    Cancelled,
    EndedBefore,
    Unknown,
}

/// There are too many running tasks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyTasks;

impl<R> Default for TaskTable<R> {
    fn default() -> Self {
        Self { created: 0, tasks: BTreeMap::new() }
    }
}

impl<R> TaskTable<R> {
    /// Adds a task and returns its number. Forgets the oldest ended task of the owner if there are too many.
    pub fn add(&mut self, start: TaskStart<'_>, running: R) -> Result<u64, TooManyTasks> {
        let TaskStart { owner, ttl, now, time } = start;
        self.forget_expired(now);
        if self.list(owner).count() >= MAX_TASKS_PER_OWNER && !self.forget_oldest_ended(owner) {
            return Err(TooManyTasks);
        }
        if self.tasks.len() >= MAX_TASKS {
            return Err(TooManyTasks);
        }
        let ttl = ttl.unwrap_or(DEFAULT_TTL).min(MAX_TTL);
        self.created += 1;
        let entry = TaskEntry {
            owner: owner.to_owned(),
            expires: now + ttl,
            created: time,
            updated: time,
            ttl,
            state: TaskState::Running(running),
        };
        self.tasks.insert(self.created, entry);
        Ok(self.created)
    }

    /// Returns a task of this owner.
    pub fn get(&self, owner: &str, number: u64) -> Option<&TaskEntry<R>> {
        self.tasks.get(&number).filter(|entry| entry.owner == owner)
    }

    /// Returns the tasks of an owner, oldest first.
    pub fn list(&self, owner: &str) -> impl Iterator<Item = (u64, &TaskEntry<R>)> {
        self.tasks.iter().filter(move |(_, entry)| entry.owner == owner).map(|(number, entry)| (*number, entry))
    }

    /// Ends a task. The first end counts.
    pub fn end(&mut self, number: u64, end: TaskEnd, time: SystemTime) {
        let Some(entry) = self.tasks.get_mut(&number) else { return };
        if matches!(entry.state, TaskState::Running(_)) {
            (entry.state, entry.updated) = (TaskState::Ended(end), time);
            let owner = entry.owner.clone();
            while self.result_bytes(&owner) > MAX_RESULT_BYTES && self.list(&owner).count() > 1 {
                if !self.forget_oldest_ended(&owner) {
                    break;
                }
            }
        }
    }

    /// Cancels a task of this owner.
    pub fn cancel(&mut self, owner: &str, number: u64, time: SystemTime) -> CancelEffect {
        match self.get(owner, number).map(|entry| &entry.state) {
            None => CancelEffect::Unknown,
            Some(TaskState::Ended(_)) => CancelEffect::EndedBefore,
            Some(TaskState::Running(_)) => {
                self.end(number, TaskEnd::Cancelled, time);
                CancelEffect::Cancelled
            }
        }
    }

    /// Forgets the tasks whose time is over, and cancels those that run.
    pub fn forget_expired(&mut self, now: Instant) {
        self.tasks.retain(|_, entry| now < entry.expires);
    }

    /// Forgets and cancels the tasks of an owner that does not return.
    pub fn forget_owner(&mut self, owner: &str) {
        self.tasks.retain(|_, entry| entry.owner != owner);
    }

    /// Forgets and cancels all tasks.
    pub fn clear(&mut self) {
        self.tasks.clear();
    }

    fn forget_oldest_ended(&mut self, owner: &str) -> bool {
        let ended = self.list(owner).find(|(_, entry)| matches!(entry.state, TaskState::Ended(_)));
        let number = ended.map(|(number, _)| number);
        number.is_some_and(|number| self.tasks.remove(&number).is_some())
    }

    fn result_bytes(&self, owner: &str) -> usize {
        let size = |entry: &TaskEntry<R>| match &entry.state {
            TaskState::Ended(TaskEnd::Result(result)) => result.as_bytes().len(),
            _ => 0,
        };
        self.list(owner).map(|(_, entry)| size(entry)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(owner: &str, now: Instant) -> TaskStart<'_> {
        TaskStart { owner, ttl: None, now, time: SystemTime::UNIX_EPOCH }
    }

    fn result(bytes: usize) -> TaskEnd {
        TaskEnd::Result(RawJson::new_unchecked(format!("\"{}\"", "x".repeat(bytes))))
    }

    const TIME: SystemTime = SystemTime::UNIX_EPOCH;

    #[test]
    fn task_is_unknown_to_others_and_ends_once() {
        let (mut table, now) = (TaskTable::default(), Instant::now());
        let number = table.add(start("ada", now), ()).unwrap();
        assert!(table.get("ada", number).is_some() && table.get("bob", number).is_none());
        assert_eq!(table.cancel("bob", number, TIME), CancelEffect::Unknown);
        assert_eq!(table.list("bob").count(), 0);
        assert_eq!(table.cancel("ada", number, TIME), CancelEffect::Cancelled);
        table.end(number, result(1), TIME);
        assert!(matches!(table.get("ada", number).unwrap().state, TaskState::Ended(TaskEnd::Cancelled)));
        assert_eq!(table.cancel("ada", number, TIME), CancelEffect::EndedBefore);
    }

    #[test]
    fn tasks_are_bounded_per_owner_and_ended_ones_make_room() {
        let (mut table, now) = (TaskTable::default(), Instant::now());
        let all: Vec<u64> = (0..MAX_TASKS_PER_OWNER).map(|_| table.add(start("ada", now), ()).unwrap()).collect();
        assert_eq!(table.add(start("ada", now), ()), Err(TooManyTasks));
        table.add(start("bob", now), ()).unwrap();
        table.end(all[3], result(1), TIME);
        table.add(start("ada", now), ()).unwrap();
        assert!(table.get("ada", all[3]).is_none() && table.get("ada", all[0]).is_some());
    }

    #[test]
    fn task_expires_and_large_results_are_forgotten() {
        let (mut table, now) = (TaskTable::default(), Instant::now());
        let short = table.add(TaskStart { ttl: Some(Duration::from_secs(5)), ..start("ada", now) }, ()).unwrap();
        let long = table.add(TaskStart { ttl: Some(Duration::MAX), ..start("ada", now) }, ()).unwrap();
        assert_eq!(table.get("ada", long).unwrap().ttl, MAX_TTL);
        table.forget_expired(now + Duration::from_secs(5));
        assert!(table.get("ada", short).is_none() && table.get("ada", long).is_some());
        let second = table.add(start("ada", now), ()).unwrap();
        table.end(long, result(MAX_RESULT_BYTES / 2), TIME);
        table.end(second, result(MAX_RESULT_BYTES / 2), TIME);
        assert!(table.get("ada", long).is_none() && table.get("ada", second).is_some());
        table.forget_owner("ada");
        assert_eq!(table.list("ada").count(), 0);
    }
}
