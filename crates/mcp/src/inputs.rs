//! The inputs of the tools.
//!
//! A model reads the documentation of each member.

use agent_checkpoint::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::bounds;
use crate::failed::Failed;

/// The largest number of operations in a report, and of steps in a plan.
pub(crate) const MOST_ITEMS: usize = 500;

/// The longest input of a call, in bytes of JSON.
const MOST_BYTES: usize = 1 << 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begin {
    /// The id of the task, such as US-003. It names a checkpoint of the store; it is not a path.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key: String,
    /// The steps of the plan, in order. Used only where the task has no checkpoint yet.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub(crate) plan: Vec<String>,
    /// What a first checkpoint of this format has besides the plan.
    #[serde(default)]
    pub(crate) details: Map<String, Value>,
    /// Your name, which stays the same over all of your sessions. Leave it out to use the one of the server.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) agent: Option<String>,
    /// The id of your session. Leave it out to use the one of the server.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) session: Option<String>,
    /// Where the task has a checkpoint: claim the task and go on with it. Heed the answer of `begin` without this, or of
    /// `resume`, first: it says what to verify and which questions to answer.
    #[serde(default)]
    pub(crate) carry_on: bool,
    /// The size of the prompt in tokens; the oldest finished steps are left out first.
    #[schemars(range(min = 200, max = 30000))]
    pub(crate) budget_tokens: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportAll {
    /// The id of the task.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key: String,
    /// The fence that `begin` gave you for this task.
    pub(crate) fence: u64,
    /// What happened, in order. All of it is saved as one change, or nothing. With "force": true an operation makes a
    /// transition that the protocol does not have.
    #[serde(deserialize_with = "values")]
    #[schemars(with = "Vec<Value>", length(min = 1, max = 500))]
    pub(crate) operations: Vec<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decide {
    /// The id of the task.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key: String,
    /// The fence that `begin` gave you for this task.
    pub(crate) fence: u64,
    /// The decision, in a sentence.
    #[schemars(length(min = 1))]
    pub(crate) text: String,
    /// Why, so that the next agent does not decide otherwise.
    pub(crate) why: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resume {
    /// The id of the task.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key: String,
    /// The size of the prompt in tokens; the oldest finished steps are left out first.
    #[schemars(range(min = 200, max = 30000))]
    pub(crate) budget_tokens: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandOver {
    /// The id of the task.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key: String,
    /// The fence that `begin` gave you for this task.
    pub(crate) fence: u64,
    /// The agent that goes on with it. Leave it out to give the claim back, so that any agent may go on.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) to: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Effect {
    /// The id of the task.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key: String,
    /// The fence that `begin` gave you for this task.
    pub(crate) fence: u64,
    /// What the effect is, such as `mail the team about 1.4`: the same id is the same effect, for every agent of the task.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) id: String,
    /// `begin` before you do it; afterwards `done`, or `not_done` if it surely did not take place.
    #[serde(rename = "do")]
    pub(crate) doing: Doing,
    /// With `begin`: how a person or an agent finds out whether it took place.
    #[schemars(length(max = 2000))]
    pub(crate) how_to_check: Option<String>,
    /// With `begin`: the action that `approval` was asked for under this id, exactly as it was given there. The approval is
    /// used up by this.
    #[serde(default, deserialize_with = "given")]
    pub(crate) action: Option<Value>,
    /// With `done`: what it gave back, such as the id of the message that was sent. Any JSON, up to 64 KiB.
    #[serde(default)]
    pub(crate) receipt: Value,
}

/// What an agent says of an effect.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Doing {
    Begin,
    Done,
    NotDone,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approval {
    /// The id of the task.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key: String,
    /// The fence that `begin` gave you for this task; needed to ask.
    pub(crate) fence: Option<u64>,
    /// What the action is for. The effect that is begun with the approval has the same id.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) id: String,
    /// To ask: the exact action, a text or any JSON. The approval is of this and of nothing else. Leave it out to look at
    /// what was decided.
    #[serde(default, deserialize_with = "given")]
    pub(crate) action: Option<Value>,
    /// To ask: why it is needed, for the person who decides.
    #[schemars(length(max = 2000))]
    pub(crate) why: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fleet {
    /// Only the tasks that an agent can go on with.
    #[serde(default)]
    pub(crate) resumable: bool,
    /// The most tasks to list.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) limit: Option<u32>,
}

/// Reads a value for which `null` is a value too, and does not mean that there is none.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a list. Its items are parsed later, one by one, so that an error names the position.
fn values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    Vec::deserialize(deserializer)
}

/// Reads the input of a tool.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(input: Map<String, Value>) -> Result<T, Failed> {
    let input = Value::Object(input);
    let bytes = input.to_string().len();
    if bytes > MOST_BYTES {
        return Err(Failed::input(format!(
            "the input has {bytes} bytes, and at most {MOST_BYTES} are taken; nothing was written, send it in parts"
        )));
    }
    T::deserialize(input).map_err(|error| {
        Failed::input(format!(
            "{}; nothing was written, call it again as its schema says",
            bounds::line(&error.to_string())
        ))
    })
}

/// Reads the operations of a report.
pub(crate) fn reports(operations: Vec<Value>) -> Result<Vec<Report>, Failed> {
    check_count("operations", operations.len())?;
    if operations.is_empty() {
        return Err(Failed::input(
            "operations is empty; name at least one, such as {\"op\": \"step done\"}",
        ));
    }
    let read = operations.into_iter().enumerate().map(|(index, value)| {
        let wrong = |why: &str| {
            let why = bounds::line(why);
            Failed::input(format!("operations[{index}] {why}; nothing was written"))
        };
        match value {
            Value::Object(_) => {
                Report::deserialize(value).map_err(|error| wrong(&error.to_string()))
            }
            _ => Err(wrong("is no object, such as {\"op\": \"step done\"}")),
        }
    });
    read.collect()
}

pub(crate) fn check_count(what: &str, count: usize) -> Result<(), Failed> {
    match count > MOST_ITEMS {
        true => Err(Failed::input(format!(
            "{what} has {count} items, and at most {MOST_ITEMS} are taken at once; nothing was written, send it in parts"
        ))),
        false => Ok(()),
    }
}

/// Checks the length of a text for a person or an agent.
pub(crate) fn short(what: &str, text: &str) -> Result<(), Failed> {
    const MOST: usize = 2_000;
    match text.len() > MOST {
        true => Err(Failed::input(format!(
            "{what} has {} bytes, and at most {MOST} are taken; nothing was written",
            text.len()
        ))),
        false => Ok(()),
    }
}

/// Checks the name of an agent or a session.
pub(crate) fn name(what: &str, text: &str) -> Result<(), Failed> {
    let is_wrong = agent_checkpoint::is_blank(text)
        || text.len() > agent_checkpoint::Key::MAX_BYTES
        || text.chars().any(char::is_control);
    match is_wrong {
        true => Err(Failed::input(format!(
            "{what} is a name of 1 to 200 bytes without control characters; nothing was written"
        ))),
        false => Ok(()),
    }
}
