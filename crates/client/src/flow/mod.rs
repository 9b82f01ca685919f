//! Multi-request operations on a connection, independent of the transport.

pub(crate) mod mirror;
mod paginate;
mod reread;
mod rounds;
mod settle;
mod skills;
mod subscribe;
mod tasks;

pub(crate) use paginate::{ListKind, list};
pub use paginate::{Listing, WithheldEntry};
pub(crate) use reread::ReadRetryBudget;
pub(crate) use settle::{TaskHandling, settle};
pub use skills::{LoadedSkill, SkillContent, SkillError, SkillMismatch, skill_labels};
pub use subscribe::{Event, Subscription};
pub use tasks::{Started, TaskHandle, TaskOptions, TaskSink};
