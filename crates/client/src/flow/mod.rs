//! Multi-request operations on a connection, independent of the transport.

mod call_rounds;
pub(crate) mod header_params;
mod input_rounds;
mod paginate;
mod read_retries;
mod reopen_pace;
mod skills;
mod subscribe;
mod tasks;

pub(crate) use call_rounds::{TaskHandling, call_tool, run_call};
pub(crate) use paginate::{ListKind, list_all};
pub use paginate::{Listing, WithheldEntry};
pub(crate) use read_retries::ReadRetryBudget;
pub use skills::{LoadedSkill, SkillContent, SkillError, SkillMismatch, skill_labels};
pub use subscribe::{Event, Subscription};
pub use tasks::{Started, TaskHandle, TaskOptions, TaskSink};
