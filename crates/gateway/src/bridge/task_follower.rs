//! A task of a stateless server, followed to its end for a call.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use wharf::RawJson;
use wharf::wire::{RpcError, Task, TaskStatus, code};

use super::TaskEnd;

/// Bounds of the time between two polls.
const MIN_POLL: Duration = Duration::from_millis(20);
const MAX_POLL: Duration = Duration::from_secs(60);

/// Time between two polls if the server does not say.
const DEFAULT_POLL: Duration = Duration::from_secs(1);

/// What is known of the task.
#[derive(Debug, Default)]
pub(crate) struct TaskFollower {
    /// Keys of the answered input requests. They are unique for the life of a task.
    answered: HashSet<String>,
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub(crate) enum FollowStep {
    /// Poll after this time.
    Poll(Duration),
    /// Ask the client, as by this `input_required` result, and send the answers.
    Ask(RawJson),
    End(TaskEnd),
}

impl TaskFollower {
    /// Decides by the newest status of the task.
    pub fn step(&mut self, task: &Task) -> FollowStep {
        let open: Vec<_> =
            task.requests.iter().filter(|request| self.answered.insert(request.key.as_str().to_owned())).collect();
        match (task.status, &task.result, &task.error) {
            (TaskStatus::Completed, Some(result), _) => FollowStep::End(TaskEnd::Result(result.clone())),
            (TaskStatus::Failed, _, Some(error)) => FollowStep::End(TaskEnd::Error(error.clone())),
            (TaskStatus::Cancelled, ..) => FollowStep::End(TaskEnd::Cancelled),
            (TaskStatus::Completed | TaskStatus::Failed, ..) => {
                let message = "the server's task ended without a result".to_owned();
                FollowStep::End(TaskEnd::Error(RpcError { code: code::INTERNAL, message, data: None }))
            }
            (TaskStatus::InputRequired, ..) if !open.is_empty() => {
                let requests = open.iter().map(|request| {
                    let params = request.params.as_ref().map(|params| format!(",\"params\":{}", params.as_str()));
                    let method = json!(request.method);
                    format!("{}:{{\"method\":{method}{}}}", request.key.as_str(), params.unwrap_or_default())
                });
                let requests = requests.collect::<Vec<_>>().join(",");
                FollowStep::Ask(RawJson::new_unchecked(format!(
                    r#"{{"resultType":"input_required","inputRequests":{{{requests}}}}}"#
                )))
            }
            _ => FollowStep::Poll(task.poll.unwrap_or(DEFAULT_POLL).clamp(MIN_POLL, MAX_POLL)),
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf::wire::{JsonLimits, View as _};

    use super::*;

    fn task(text: &str) -> Task {
        Task::from_raw(RawJson::new_unchecked(text.to_owned()), &JsonLimits::default()).unwrap()
    }

    #[test]
    fn question_of_a_task_is_asked_once() {
        let mut follower = TaskFollower::default();
        let asking = |keys: &str| {
            task(&format!(
                r#"{{"taskId":"t","status":"input_required","pollIntervalMs":1,"inputRequests":{{{keys}}}}}"#
            ))
        };
        let one = r#""a":{"method":"roots/list"}"#;
        let asked = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}"#;
        assert_eq!(follower.step(&asking(one)), FollowStep::Ask(RawJson::new_unchecked(asked)));
        assert_eq!(follower.step(&asking(one)), FollowStep::Poll(MIN_POLL), "its answer is on the way");
        let two = format!(r#"{one},"b":{{"method":"elicitation/create","params":{{"x":1e400}}}}"#);
        let FollowStep::Ask(asked) = follower.step(&asking(&two)) else { panic!("nothing asked") };
        assert!(asked.as_str().contains(r#""params":{"x":1e400}"#) && !asked.as_str().contains("roots"));
    }

    #[test]
    fn every_end_of_a_task_ends_the_call() {
        let end = |text: &str| match TaskFollower::default().step(&task(text)) {
            FollowStep::End(end) => end,
            other => panic!("{other:?}"),
        };
        let result = RawJson::new_unchecked(r#"{"content":[]}"#);
        let text = r#"{"taskId":"t","status":"completed","result":{"content":[]}}"#;
        assert_eq!(end(text), TaskEnd::Result(result));
        let text = r#"{"taskId":"t","status":"failed","error":{"code":7,"message":"m"}}"#;
        assert!(matches!(end(text), TaskEnd::Error(error) if error.code == 7));
        assert_eq!(end(r#"{"taskId":"t","status":"cancelled"}"#), TaskEnd::Cancelled);
        assert!(matches!(end(r#"{"taskId":"t","status":"completed"}"#), TaskEnd::Error(_)));
        let working = TaskFollower::default().step(&task(r#"{"taskId":"t","status":"working"}"#));
        assert_eq!(working, FollowStep::Poll(DEFAULT_POLL));
    }
}
