//! What crosses from one era to the other, decided without I/O.

mod input_rounds;
mod park_table;
mod question_sheet;
mod task_follower;
mod task_table;

pub(crate) use input_rounds::{InputRounds, RoundError, RoundStep};
pub(crate) use park_table::{MAX_PARKED_TIME, ParkTable};
pub(crate) use question_sheet::QuestionSheet;
pub(crate) use task_follower::{FollowStep, TaskFollower};
pub(crate) use task_table::{CancelEffect, TaskEnd, TaskEntry, TaskStart, TaskState, TaskTable};
