//! Loops over single requests that never see a pipe.

mod paginate;
mod rounds;
mod settle;
mod skills;
mod subscribe;
mod tasks;

pub(crate) use paginate::{ListKind, list};
pub use paginate::{Listing, Withheld};
pub(crate) use settle::settle;
pub use skills::{LoadedSkill, Mismatch, SkillContent, SkillError, skill_labels};
pub use subscribe::{Event, Subscription};
pub use tasks::{Started, TaskHandle, TaskOptions, TaskSink};
