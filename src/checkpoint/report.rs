//! How an operation is reported: forced or not, with which context, and as a line of JSON.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::de::{self, Error as _, MapAccess, Visitor};
use serde::ser::{self, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{ContextUse, Error, Operation, Result, RuleContext, SourceFiles, StepDone};
use crate::json::{Document, shortened};
use crate::{is_blank, quoted};

/// How many messages count as a whole context, if the report does not say.
const MOST_MESSAGES: u64 = 200;

/// An operation as it is reported, for example as one of several in a [batch](crate::recorder::Recorder::batch).
///
/// ```
/// use agent_checkpoint::{Operation, Report};
///
/// let line = r#"{"op": "stage", "name": 2, "force": true}"#;
/// let stage = Operation::Stage { name: "2".into() };
/// assert_eq!(line.parse::<Report>()?, Report::forced(stage));
/// # Ok::<(), agent_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The operation.
    pub operation: Operation,
    /// Whether to make a transition that the protocol does not have.
    pub force: bool,
}

impl Report {
    /// A report that may make a transition that the protocol does not have.
    #[must_use]
    pub fn forced(operation: Operation) -> Self {
        Report {
            operation,
            force: true,
        }
    }

    /// Reads the members of an object: those of the operation, and optionally `force`.
    fn from_members(mut members: Map<String, Value>) -> Result<Report, String> {
        let force = match members.remove("force") {
            None => false,
            Some(Value::Bool(force)) => force,
            Some(other) => return Err(is_not("force", "true or false", &other)),
        };
        let operation = operation(members)?;
        Ok(Report { operation, force })
    }
}

impl From<Operation> for Report {
    fn from(operation: Operation) -> Report {
        Report {
            operation,
            force: false,
        }
    }
}

impl From<StepDone> for Report {
    fn from(done: StepDone) -> Report {
        Operation::StepDone(done).into()
    }
}

/// A line of `ckpt batch`.
impl FromStr for Report {
    type Err = Error;

    fn from_str(line: &str) -> Result<Report> {
        let Members(members) = serde_json::from_str(line).map_err(|error| {
            Error::refused(match Document::from_text(line) {
                Err(corrupt) => format!(
                    "is not a JSON object: {} (column {})",
                    corrupt.message, corrupt.column
                ),
                Ok(_) if line.starts_with('\u{feff}') => {
                    "begins with a byte order mark; remove it".to_owned()
                }
                // The line is an object with a duplicate member or half of a surrogate pair.
                Ok(_) => match without_place(&error.to_string()) {
                    escape if escape.ends_with("hex escape") => {
                        "has half of a surrogate pair, such as \\ud83d alone, which is not valid Unicode".to_owned()
                    }
                    says => says.to_owned(),
                },
            })
        })?;
        Report::from_members(members).map_err(Error::refused)
    }
}

/// The message of serde_json without the position.
fn without_place(error: &str) -> &str {
    error
        .rsplit_once(" at line ")
        .map_or(error, |(says, _)| says)
}

/// Whether a member is blank where it must not be. The name of a planned step may be blank if the step is, and
/// a reason is optional.
fn is_empty(operation: &str, (member, value): (&String, &Value)) -> bool {
    let says_nothing = |value: &Value| value.as_str().is_some_and(is_blank);
    let may_be_empty = match member.as_str() {
        "pending" | "before" | "why" => true,
        "text" => ["step drop", "step edit", "step move"].contains(&operation),
        _ => false,
    };
    !may_be_empty
        && match value {
            Value::Array(values) => values.iter().any(says_nothing),
            value => says_nothing(value),
        }
}

fn check_texts(name: &str, members: &Map<String, Value>) -> Result<(), String> {
    match members.iter().find(|&member| is_empty(name, member)) {
        Some((member, _)) => Err(format!(
            "{name}: {member} is empty; describe it in a few words",
            name = quoted(name),
            member = quoted(member)
        )),
        None => Ok(()),
    }
}

impl Operation {
    /// Refuses an operation with a blank text, as [its JSON](Operation#as-json) is refused.
    pub(crate) fn check_texts(&self) -> Result<()> {
        let (name, members) = self.named_members().map_err(Error::refused)?;
        check_texts(&name, &members).map_err(Error::refused)
    }

    /// The name, which is `op`, and the other members.
    fn named_members(&self) -> Result<(String, Map<String, Value>), String> {
        let derived = Operation::serialize(self, serde_json::value::Serializer);
        let named = match derived.map_err(|error| error.to_string())? {
            Value::Object(named) => named.into_iter().next().unwrap_or_default(),
            name => (name.as_str().unwrap_or_default().to_owned(), Value::Null),
        };
        Ok(match named {
            (name, Value::Object(members)) => (name, members),
            (name, _) => (name, Map::new()),
        })
    }
}

impl<'de> Deserialize<'de> for Report {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Report, D::Error> {
        let Members(members) = Members::deserialize(deserializer)?;
        Report::from_members(members).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Operation, D::Error> {
        let Members(members) = Members::deserialize(deserializer)?;
        operation(members).map_err(D::Error::custom)
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (name, members) = self.named_members().map_err(ser::Error::custom)?;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("op", &name)?;
        for (member, value) in &members {
            if !value.is_null() {
                map.serialize_entry(member, value)?;
            }
        }
        map.end()
    }
}

/// The operation with these members, or what is wrong with them. Its texts and names must not be blank.
fn operation(mut members: Map<String, Value>) -> Result<Operation, String> {
    let name = match members.remove("op") {
        Some(Value::String(name)) => name,
        Some(other) => return Err(is_not("op", "a text", &other)),
        None => return Err("has no \"op\", such as \"step done\"".to_owned()),
    };
    let named = Map::from_iter([(name.clone(), Value::Object(members.clone()))]);
    let operation = Operation::deserialize(Value::Object(named))
        .map_err(|error| in_words(&name, &members, &error.to_string()))?;
    check_texts(&name, &members)?;
    match &operation {
        Operation::StepDone(done) if done.finishes_current() && done.pending().is_some() => {
            Err("has either \"pending\" or \"current\"".to_owned())
        }
        Operation::Detail(detail) if detail.given().next().is_none() => {
            Err(format!("{name}: no detail is given", name = quoted(&name)))
        }
        _ => Ok(operation),
    }
}

/// What is wrong with the members of this operation, in words for a user instead of serde's.
fn in_words(name: &str, members: &Map<String, Value>, error: &str) -> String {
    let name = quoted(name);
    let after = |begin: &str| error.strip_prefix(begin)?.split_once(", ");
    let listed = |list: &str| {
        let list = list.strip_prefix("expected ").unwrap_or("nothing else");
        list.trim_start_matches("one of ").to_owned()
    };
    if let Some((_, list)) = after("unknown variant ") {
        let list = listed(list);
        return format!("{name} is not an operation; the operations are {list}");
    }
    if let Some((member, list)) = after("unknown field ") {
        let list = listed(list);
        return format!("{name} has no member {member}; it takes {list}");
    }
    if let Some(member) = error.strip_prefix("missing field ") {
        return format!("{name} lacks its member {member}");
    }
    // A wrong value is reported before a `null`, because an optional member may be `null`.
    let wrong = |is_null: bool| {
        let mut members = members
            .iter()
            .filter(|(_, value)| value.is_null() == is_null);
        members.find_map(|(member, value)| {
            let (what, fits) = kind_of(member);
            (!fits(value)).then(|| is_not(member, what, value))
        })
    };
    match wrong(false).or_else(|| wrong(true)) {
        Some(wrong) => format!("{name}: {wrong}"),
        None => format!("{name}: {error}"),
    }
}

/// The kind of value that a member takes, and a check for it.
fn kind_of(member: &str) -> (&'static str, fn(&Value) -> bool) {
    let is_number = |value: &Value| value.as_u64().is_some();
    match member {
        "created" | "modified" | "plan" | "files" => ("a list of texts", |value| {
            let values = value.as_array();
            values.is_some_and(|values| values.iter().all(Value::is_string))
        }),
        "committed" | "overview" | "status_file" | "current" => {
            ("true or false", Value::is_boolean)
        }
        "messages" | "of" => ("a whole number", is_number),
        "unread" | "p0" | "p1" | "attempt" | "line" | "phase" => {
            ("a whole number below 2^32", |value| {
                value
                    .as_u64()
                    .is_some_and(|number| u32::try_from(number).is_ok())
            })
        }
        "until" => ("a time such as 2026-03-02T14:30:00Z", |value| {
            value
                .as_str()
                .is_some_and(|text| DateTime::parse_from_rfc3339(text).is_ok())
        }),
        "used" => ("a number", Value::is_number),
        "name" => ("a text or a whole number", |value| {
            value.is_string() || value.is_u64()
        }),
        _ => ("a text", Value::is_string),
    }
}

fn is_not(member: &str, what: &str, value: &Value) -> String {
    let (member, value) = (quoted(member), value.to_string());
    format!("{member} is {what}, not {}", shortened(&value))
}

/// The members of an object without duplicates: one of two values would be lost.
struct Members(Map<String, Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        deserializer.deserialize_map(EachOnce)
    }
}

struct EachOnce;

impl<'de> Visitor<'de> for EachOnce {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut found: A) -> Result<Members, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = found.next_entry::<String, Value>()? {
            if members.contains_key(&name) {
                return Err(de::Error::custom(format_args!(
                    "{name} is given twice",
                    name = quoted(&name)
                )));
            }
            members.insert(name, value);
        }
        Ok(Members(members))
    }
}

/// Reads an operation without members.
pub(super) fn nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    Nothing::deserialize(deserializer).map(|Nothing {}| ())
}

/// Reads a name, or a number in place of one.
pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) if number.is_u64() => Ok(number.to_string()),
        other => Err(D::Error::custom(format_args!(
            "a name or a whole number is expected, not {other}"
        ))),
    }
}

#[cfg(feature = "schema")]
pub(super) fn name_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["string", "integer"]})
}

/// How much of a context is used: a fraction, or a number of messages.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ContextMembers {
    /// The fraction that is used.
    used: Option<f64>,
    /// The messages so far, where the tokens are not known.
    messages: Option<u64>,
    /// How many messages stand for the whole context.
    of: Option<u64>,
}

pub(super) fn context_use<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ContextUse, D::Error> {
    let members = ContextMembers::deserialize(deserializer)?;
    match (members.used, members.messages, members.of) {
        (Some(used), None, None) => ContextUse::new(used)
            .ok_or("a part of the context is a fraction, such as 0.78 for 78 %"),
        (None, Some(messages), of) => {
            ContextUse::of(messages, of.unwrap_or(MOST_MESSAGES)).ok_or("\"of\" is at least 1")
        }
        _ => Err("has either \"used\", or \"messages\" and perhaps \"of\""),
    }
    .map_err(D::Error::custom)
}

/// What an operation needs from outside the checkpoint.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OperationContext<'a> {
    /// The present time.
    pub now: DateTime<Utc>,
    /// The agent that reports.
    pub agent: Option<&'a str>,
    /// The session that reports.
    pub session: Option<&'a str>,
    /// Whether to make a transition that the protocol does not have.
    pub force: bool,
    /// What the format's rules need from outside the checkpoint, such as how often the work was retried. A rule
    /// whose input is missing refuses nothing.
    pub rules: RuleContext<'a>,
    /// Which files are source files, for formats that record no others.
    pub sources: Option<&'a SourceFiles>,
}

impl<'a> OperationContext<'a> {
    /// A report at this time by an unnamed agent.
    #[must_use]
    pub fn at(now: DateTime<Utc>) -> Self {
        OperationContext {
            now,
            agent: None,
            session: None,
            force: false,
            rules: RuleContext::none(),
            sources: None,
        }
    }

    /// Names the agent and the session that report.
    #[must_use]
    pub fn by(mut self, agent: Option<&'a str>, session: Option<&'a str>) -> Self {
        self.agent = agent;
        self.session = session;
        self
    }

    /// Sets what the format's rules need from outside the checkpoint.
    #[must_use]
    pub fn with_rules(mut self, rules: RuleContext<'a>) -> Self {
        self.rules = rules;
        self
    }

    /// Sets which files are source files, for formats that record no others.
    #[must_use]
    pub fn with_sources(mut self, sources: &'a SourceFiles) -> Self {
        self.sources = Some(sources);
        self
    }

    /// Sets whether to make a transition that the protocol does not have.
    #[must_use]
    pub fn with_force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Refuses an operation that needs all work to be finished while an unreadable item may be open.
    pub(crate) fn nothing_hidden(&self, cannot: &str) -> Result<()> {
        let unreadable = self.rules.unreadable.iter();
        let open: Vec<String> = unreadable
            .filter(|item| item.may_be_open())
            .map(ToString::to_string)
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{cannot}: it is unknown whether this is finished: {}; correct it first",
            open.join("; ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_its_name_says() {
        for (line, name) in [
            (r#"{"op":"step start","text":"a"}"#, "step start"),
            (r#"{"op":"step done"}"#, "step done"),
            (
                r#"{"op":"step done","text":"a","current":true}"#,
                "step done",
            ),
            (r#"{"op":"step add","text":"a","before":"b"}"#, "step add"),
            (
                r#"{"op":"step drop","text":"a","because":"b"}"#,
                "step drop",
            ),
            (r#"{"op":"step edit","text":"a","to":"b"}"#, "step edit"),
            (r#"{"op":"step move","text":"a","before":"b"}"#, "step move"),
            // The plan may contain such steps.
            (r#"{"op":"step move","text":"","before":""}"#, "step move"),
            (r#"{"op":"decide","text":"a","why":"b"}"#, "decide"),
            (r#"{"op":"note","text":"a"}"#, "note"),
            (r#"{"op":"block","text":"a"}"#, "block"),
            (
                r#"{"op":"block","text":"a","type":"b"}"#,
                "block with a type",
            ),
            (r#"{"op":"detail","unread":2,"plan":["a"]}"#, "detail"),
            (r#"{"op":"unblock"}"#, "unblock"),
            (r#"{"op":"heartbeat"}"#, "heartbeat"),
            (r#"{"op":"fail","text":"a"}"#, "fail"),
            (r#"{"op":"rate-limit"}"#, "rate-limit"),
            (r#"{"op":"rate-limit","text":"half"}"#, "rate-limit"),
            (r#"{"op":"context","used":0.78}"#, "context"),
            (r#"{"op":"context","messages":30}"#, "context"),
            (r#"{"op":"context","messages":30,"of":40}"#, "context"),
            (r#"{"op":"reassign","to":"a"}"#, "reassign"),
            (r#"{"op":"pause"}"#, "pause"),
            (r#"{"op":"complete"}"#, "complete"),
            (r#"{"op":"phase","name":"a"}"#, "phase"),
            (r#"{"op":"stage","name":2}"#, "stage"),
            (r#"{"op":"sync","name":"a"}"#, "sync"),
            (r#"{"op":"restart","because":"a"}"#, "restart"),
            (r#"{"op":"verify","activity":"a","status":"b"}"#, "verify"),
            (r#"{"op":"subtask start","id":"a"}"#, "subtask start"),
            (
                r#"{"op":"subtask done","id":"a","files":["f"]}"#,
                "subtask done",
            ),
            (
                r#"{"op":"subtask fail","id":"a","because":"b"}"#,
                "subtask fail",
            ),
            (r#"{"op":"workstream start","id":"a"}"#, "workstream start"),
            (r#"{"op":"workstream done","id":"a"}"#, "workstream done"),
            (r#"{"op":"workstream fail","id":"a"}"#, "workstream fail"),
            (r#"{"op":"task start","id":"a"}"#, "task start"),
            (r#"{"op":"task done","id":"a"}"#, "task done"),
            (r#"{"op":"task fail","id":"a"}"#, "task fail"),
            (r#"{"op":"gate pass","name":"a"}"#, "gate pass"),
            (r#"{"op":"gate pass","name":"a","phase":2}"#, "gate pass"),
            (
                r#"{"op":"gate fail","name":"a","because":"b","workstream":"c","file":"d","line":4}"#,
                "gate fail",
            ),
            (r#"{"op":"task add","id":"a"}"#, "task add"),
            (r#"{"op":"subtask add","id":"a"}"#, "subtask add"),
            (r#"{"op":"workstream add","id":"a"}"#, "workstream add"),
            (
                r#"{"op":"workstream dormant","id":"a","because":"b"}"#,
                "workstream dormant",
            ),
            (r#"{"op":"waive","issue":"a","because":"b"}"#, "waive"),
            (r#"{"op":"review","verdict":"ship","p1":2}"#, "review"),
        ] {
            let reported = line.parse::<Report>().unwrap();
            assert_eq!(reported.operation.name(), name);
            assert!(!reported.force);
            let json = serde_json::to_string(&reported.operation).unwrap();
            let again: Operation = serde_json::from_str(&json).unwrap();
            assert_eq!(again, reported.operation, "{json}");
        }
        let forced = r#"{"op":"stage","name":2,"force":true}"#.parse::<Report>().unwrap();
        let name = "2".to_owned();
        assert_eq!(forced.operation, Operation::Stage { name });
        assert!(forced.force);
    }

    #[test]
    fn a_wrong_line_says_what_is_wrong() {
        for (line, says) in [
            ("[]", "is not a JSON object"),
            ("{\"op\"", "is not a JSON object"),
            ("{}", "has no \"op\""),
            (r#"{"op":1}"#, "\"op\" is a text"),
            (
                r#"{"op":"fly"}"#,
                "\"fly\" is not an operation; the operations are `step start`",
            ),
            (r#"{"op":"note"}"#, "lacks its member `text`"),
            (r#"{"op":"note","text":" "}"#, "\"note\": \"text\" is empty"),
            (
                r#"{"op":"step drop","text":"","because":" "}"#,
                "\"step drop\": \"because\" is empty",
            ),
            (
                r#"{"op":"detail","plan":["a",""]}"#,
                "\"detail\": \"plan\" is empty",
            ),
            (
                r#"{"op":"step drop","text":"a","because":"\u200b"}"#,
                "\"because\" is empty",
            ),
            (r#"{"op":"detail"}"#, "no detail is given"),
            (
                r#"{"op":"note","text":5}"#,
                "\"note\": \"text\" is a text, not 5",
            ),
            (
                r#"{"op":"note","text":null}"#,
                "\"note\": \"text\" is a text, not null",
            ),
            (
                r#"{"op":"step done","pending":null,"created":"a"}"#,
                "\"created\" is a list of texts, not \"a\"",
            ),
            (
                r#"{"op":"detail","unread":-1}"#,
                "\"unread\" is a whole number below 2^32, not -1",
            ),
            (r#"{"op":"context","used":"half"}"#, "\"used\" is a number"),
            (
                r#"{"op":"step done","current":1}"#,
                "\"current\" is true or false, not 1",
            ),
            (r#"{"op":"context"}"#, "either \"used\""),
            (r#"{"op":"context","used":0.5,"messages":3}"#, "either"),
            (r#"{"op":"context","messages":3,"of":0}"#, "at least 1"),
            (
                r#"{"op":"note","text":"a","why":"b"}"#,
                "\"note\" has no member `why`; it takes `text`",
            ),
            (
                r#"{"op":"decide","text":"a","text":"b"}"#,
                "\"text\" is given twice",
            ),
            (
                r#"{"op":"note","op":"block","text":"a"}"#,
                "\"op\" is given twice",
            ),
            (
                r#"{"op":"pause","force":false,"force":true}"#,
                "\"force\" is given twice",
            ),
            (
                r#"{"op":"stage","name":1.5}"#,
                "\"name\" is a text or a whole number, not 1.5",
            ),
            (
                r#"{"op":"note","text":"\ud800"}"#,
                "half of a surrogate pair",
            ),
            (
                r#"{"op":"note","text":"\udc00 x"}"#,
                "half of a surrogate pair",
            ),
            ("\u{feff}{\"op\":\"pause\"}", "a byte order mark"),
            (r#"{"op":"context","used":78}"#, "a fraction, such as 0.78"),
            (r#"{"op":"pause","force":1}"#, "\"force\" is true or false"),
        ] {
            let error = line.parse::<Report>().unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
            for of_serde in ["expected", "invalid", " at line ", "sequence"] {
                assert!(!error.contains(of_serde), "{line}: {error}");
            }
            // The result is the same whichever way the line is read.
            assert!(serde_json::from_str::<Report>(line).is_err(), "{line}");
        }
    }
}
