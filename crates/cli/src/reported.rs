//! What is reported, from the words of the command line or a line of JSON.

use agent_checkpoint::quoted;
use std::fmt;

use agent_checkpoint::{ContextUse, Detail, ItemKind, Operation};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::args::{self, Forcible, Gate, Item, Report, Step, Workstream};

/// One thing that is reported.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reported {
    pub(crate) operation: Operation,
    /// Whether the protocol need not have the way there.
    pub(crate) force: bool,
    /// Whether it is the current step that is finished, whatever its text reads like.
    pub(crate) current: bool,
}

impl Reported {
    fn new<T: clap::Args>(report: Forcible<T>, operation: impl FnOnce(T) -> Operation) -> Reported {
        Reported {
            operation: operation(report.what),
            force: report.force,
            current: false,
        }
    }

    /// What a line of JSON reports, or what is wrong with the line.
    pub(crate) fn parse(line: &str) -> Result<Reported, String> {
        let Members(mut members) =
            serde_json::from_str(line).map_err(|error| format!("is no JSON object ({error})"))?;
        let force = match members.remove("force") {
            None => false,
            Some(Value::Bool(force)) => force,
            Some(other) => return Err(format!("\"force\" is true or false, not {other}")),
        };
        let name = match members.remove("op") {
            Some(Value::String(name)) => name,
            Some(other) => return Err(format!("\"op\" is a text, not {other}")),
            None => return Err("has no \"op\", such as \"step done\"".to_owned()),
        };
        let named = Map::from_iter([(name.clone(), Value::Object(members))]);
        let line: Line = serde_json::from_value(Value::Object(named))
            .map_err(|error| in_words(&name, &error.to_string()))?;
        let current = matches!(&line, Line::StepDone(it) if it.current);
        let operation = line.operation();
        if let (
            true,
            Operation::StepDone {
                pending: Some(_), ..
            },
        ) = (current, &operation)
        {
            return Err("has either \"pending\" or \"current\"".to_owned());
        }
        Ok(Reported {
            operation,
            force,
            current,
        })
    }
}

/// What is wrong with a line of this operation, without the words of serde.
fn in_words(name: &str, error: &str) -> String {
    let after = |begin: &str| error.strip_prefix(begin)?.split_once(", ");
    let listed = |list: &str| {
        let list = list.strip_prefix("expected ").unwrap_or("nothing else");
        list.trim_start_matches("one of ").to_owned()
    };
    if let Some((_, list)) = after("unknown variant ") {
        let list = listed(list);
        return format!(
            "{name} is no operation; the operations are {list}",
            name = quoted(name)
        );
    }
    if let Some((member, list)) = after("unknown field ") {
        let list = listed(list);
        return format!(
            "{name} has no member {member}; it takes {list}",
            name = quoted(name)
        );
    }
    match error.strip_prefix("missing field ") {
        Some(member) => format!("{name} lacks its member {member}", name = quoted(name)),
        None => format!("{name}: {error}", name = quoted(name)),
    }
}

/// The members of a line, each of them once: of two values one would be lost.
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
                    "{name} is there twice",
                    name = quoted(&name)
                )));
            }
            members.insert(name, value);
        }
        Ok(Members(members))
    }
}

impl From<Report> for Reported {
    fn from(report: Report) -> Reported {
        match report {
            Report::Step(Step::Start(it)) => {
                Reported::new(it, |it| Operation::StepStart { text: it.text })
            }
            Report::Step(Step::Done(it)) => Reported {
                current: it.what.current,
                ..Reported::new(it, |it| Operation::StepDone {
                    text: it.text,
                    pending: it.pending,
                    files_created: it.created,
                    files_modified: it.modified,
                })
            },
            Report::Step(Step::Add(it)) => Reported::new(it, |it| Operation::StepAdd {
                text: it.text,
                before: it.before,
            }),
            Report::Step(Step::Drop(it)) => Reported::new(it, |it| Operation::StepDrop {
                text: it.text,
                because: it.because,
            }),
            Report::Step(Step::Edit(it)) => Reported::new(it, |it| Operation::StepEdit {
                text: it.text,
                to: it.to,
            }),
            Report::Step(Step::Move(it)) => Reported::new(it, |it| Operation::StepMove {
                text: it.text,
                before: it.before,
            }),
            Report::Decide(it) => Reported::new(it, |it| Operation::Decide {
                text: it.text,
                rationale: it.why,
            }),
            Report::Note(it) => Reported::new(it, |it| Operation::Note { text: it.text }),
            Report::Block(it) => Reported::new(it, |it| blocked(it.text, it.kind)),
            Report::Detail(it) => Reported::new(it, |it| detail(it.into())),
            Report::Unblock(it) => Reported::new(it, |_| Operation::Unblock),
            Report::Heartbeat(it) => Reported::new(it, |_| Operation::Heartbeat),
            Report::Fail(it) => Reported::new(it, |it| Operation::Fail { text: it.text }),
            Report::RateLimit(it) => Reported::new(it, |it| Operation::RateLimit { note: it.text }),
            Report::Context(it) => Reported::new(it, |it| Operation::Context {
                // The command line takes one of the two.
                used: it.part().unwrap_or(ContextUse::NONE),
            }),
            Report::Reassign(it) => Reported::new(it, |it| Operation::Reassign { to: it.to }),
            Report::Pause(it) => Reported::new(it, |_| Operation::Pause),
            Report::Complete(it) => Reported::new(it, |_| Operation::Complete),
            Report::Phase(it) => Reported::new(it, |it| Operation::Phase { name: it.name }),
            Report::Stage(it) => Reported::new(it, |it| Operation::Stage { name: it.name }),
            Report::Sync(it) => Reported::new(it, |it| Operation::Sync { name: it.name }),
            Report::Restart(it) => Reported::new(it, |it| Operation::Restart {
                because: it.because,
            }),
            Report::Verify(it) => Reported::new(it, |it| Operation::Verify {
                activity: it.activity,
                status: it.status,
            }),
            Report::Subtask(item) => of_item(ItemKind::Subtask, item),
            Report::Workstream(Workstream::Item(item)) => of_item(ItemKind::Workstream, item),
            Report::Workstream(Workstream::Dormant(it)) => {
                Reported::new(it, |it| Operation::WorkstreamDormant {
                    id: it.id,
                    because: it.because,
                })
            }
            Report::Task(item) => of_item(ItemKind::Task, item),
            Report::Gate(Gate::Pass(it)) => Reported::new(it, |it| Operation::GatePass {
                name: it.name,
                phase: it.phase,
            }),
            Report::Gate(Gate::Fail(it)) => Reported::new(it, |it| Operation::GateFail {
                name: it.name,
                because: it.because,
                workstream: it.workstream,
                file: it.file,
                line: it.line,
            }),
            Report::Waive(it) => Reported::new(it, |it| Operation::Waive {
                issue: it.issue,
                because: it.because,
            }),
            Report::Review(it) => Reported::new(it, |it| Operation::Review {
                verdict: it.verdict,
                p0_count: it.p0,
                p1_count: it.p1,
                attempt: it.attempt,
                findings: it.findings,
                because: it.because,
            }),
        }
    }
}

fn blocked(text: String, kind: Option<String>) -> Operation {
    match kind {
        Some(kind) => Operation::BlockAs { kind, text },
        None => Operation::Block { text },
    }
}

fn detail(line: DetailLine) -> Operation {
    let mut detail = Detail::default();
    detail.files_created = all(line.created);
    detail.files_modified = all(line.modified);
    detail.committed = line.committed;
    detail.instructions = line.instructions.map(|text| text.0);
    detail.plan = line.plan.map(all);
    detail.processed = line.processed.map(|text| text.0);
    detail.next = line.next.map(|text| text.0);
    detail.unread = line.unread;
    detail.overview = line.overview;
    detail.status_file = line.status_file;
    detail.contract = line.contract.map(|text| text.0);
    Operation::Detail { detail }
}

fn of_item(kind: ItemKind, item: Item) -> Reported {
    match item {
        Item::Add(it) => Reported::new(it, |it| Operation::ItemAdd { kind, id: it.id }),
        Item::Start(it) => Reported::new(it, |it| Operation::ItemStart { kind, id: it.id }),
        Item::Done(it) => Reported::new(it, |it| Operation::ItemDone {
            kind,
            id: it.id,
            files: it.files,
        }),
        Item::Fail(it) => Reported::new(it, |it| Operation::ItemFail {
            kind,
            id: it.id,
            because: it.because,
        }),
    }
}

/// A text that says something.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Words(String);

impl TryFrom<String> for Words {
    type Error = String;

    fn try_from(text: String) -> Result<Words, String> {
        args::words(&text).map(Words)
    }
}

fn all(words: Vec<Words>) -> Vec<String> {
    words.into_iter().map(|words| words.0).collect()
}

/// A name, or the number that stands for one.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
struct Name(String);

impl TryFrom<Value> for Name {
    type Error = String;

    fn try_from(value: Value) -> Result<Name, String> {
        match value {
            Value::String(text) => args::words(&text).map(Name),
            Value::Number(number) if number.is_u64() => Ok(Name(number.to_string())),
            other => Err(format!("a name or a whole number is expected, not {other}")),
        }
    }
}

/// A part of a context.
#[derive(Debug, Deserialize)]
#[serde(try_from = "f64")]
struct Used(ContextUse);

impl TryFrom<f64> for Used {
    type Error = &'static str;

    fn try_from(used: f64) -> Result<Used, &'static str> {
        ContextUse::new(used).map(Used).ok_or(args::NO_FRACTION)
    }
}

/// A line of `ckpt batch`, by its `op`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
enum Line {
    #[serde(rename = "step start")]
    StepStart(TextLine),
    #[serde(rename = "step done")]
    StepDone(StepDoneLine),
    #[serde(rename = "step add")]
    StepAdd(StepAddLine),
    #[serde(rename = "step drop")]
    StepDrop(StepDropLine),
    #[serde(rename = "step edit")]
    StepEdit(StepEditLine),
    #[serde(rename = "step move")]
    StepMove(StepMoveLine),
    #[serde(rename = "decide")]
    Decide(DecideLine),
    #[serde(rename = "note")]
    Note(TextLine),
    #[serde(rename = "block")]
    Block(BlockLine),
    #[serde(rename = "detail")]
    Detail(DetailLine),
    #[serde(rename = "unblock")]
    Unblock(EmptyLine),
    #[serde(rename = "heartbeat")]
    Heartbeat(EmptyLine),
    #[serde(rename = "fail")]
    Fail(TextLine),
    #[serde(rename = "rate-limit")]
    RateLimit(OptionalTextLine),
    #[serde(rename = "context")]
    Context(ContextLine),
    #[serde(rename = "reassign")]
    Reassign(ReassignLine),
    #[serde(rename = "pause")]
    Pause(EmptyLine),
    #[serde(rename = "complete")]
    Complete(EmptyLine),
    #[serde(rename = "phase")]
    Phase(NameLine),
    #[serde(rename = "stage")]
    Stage(NameLine),
    #[serde(rename = "sync")]
    Sync(NameLine),
    #[serde(rename = "restart")]
    Restart(RestartLine),
    #[serde(rename = "verify")]
    Verify(VerifyLine),
    #[serde(rename = "subtask start")]
    SubtaskStart(ItemLine),
    #[serde(rename = "subtask done")]
    SubtaskDone(ItemDoneLine),
    #[serde(rename = "subtask fail")]
    SubtaskFail(ItemFailLine),
    #[serde(rename = "workstream start")]
    WorkstreamStart(ItemLine),
    #[serde(rename = "workstream done")]
    WorkstreamDone(ItemDoneLine),
    #[serde(rename = "workstream fail")]
    WorkstreamFail(ItemFailLine),
    #[serde(rename = "task start")]
    TaskStart(ItemLine),
    #[serde(rename = "task done")]
    TaskDone(ItemDoneLine),
    #[serde(rename = "task fail")]
    TaskFail(ItemFailLine),
    #[serde(rename = "subtask add")]
    SubtaskAdd(ItemLine),
    #[serde(rename = "workstream add")]
    WorkstreamAdd(ItemLine),
    #[serde(rename = "task add")]
    TaskAdd(ItemLine),
    #[serde(rename = "workstream dormant")]
    WorkstreamDormant(DormantLine),
    #[serde(rename = "gate pass")]
    GatePass(GatePassLine),
    #[serde(rename = "gate fail")]
    GateFail(GateFailLine),
    #[serde(rename = "waive")]
    Waive(WaiveLine),
    #[serde(rename = "review")]
    Review(ReviewLine),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DormantLine {
    id: Words,
    because: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GatePassLine {
    name: Name,
    #[serde(default)]
    phase: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GateFailLine {
    name: Name,
    because: Words,
    #[serde(default)]
    workstream: Option<Words>,
    #[serde(default)]
    file: Option<Words>,
    #[serde(default)]
    line: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WaiveLine {
    issue: Words,
    because: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewLine {
    verdict: Words,
    #[serde(default)]
    p0: u32,
    #[serde(default)]
    p1: u32,
    #[serde(default)]
    attempt: Option<u32>,
    #[serde(default)]
    findings: Option<Words>,
    #[serde(default)]
    because: Option<Words>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyLine {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TextLine {
    text: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockLine {
    text: Words,
    #[serde(default, rename = "type")]
    kind: Option<Words>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DetailLine {
    created: Vec<Words>,
    modified: Vec<Words>,
    committed: bool,
    instructions: Option<Words>,
    plan: Option<Vec<Words>>,
    processed: Option<Words>,
    next: Option<Words>,
    unread: Option<u32>,
    overview: bool,
    status_file: bool,
    contract: Option<Words>,
}

impl From<args::Details> for DetailLine {
    fn from(it: args::Details) -> DetailLine {
        let each = |texts: Vec<String>| texts.into_iter().map(Words).collect();
        DetailLine {
            created: each(it.created),
            modified: each(it.modified),
            committed: it.committed,
            instructions: it.instructions.map(Words),
            plan: it.plan.map(each),
            processed: it.processed.map(Words),
            next: it.next.map(Words),
            unread: it.unread,
            overview: it.overview,
            status_file: it.status_file,
            contract: it.contract.map(Words),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NameLine {
    name: Name,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RestartLine {
    because: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyLine {
    activity: Words,
    status: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecideLine {
    text: Words,
    #[serde(default)]
    why: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepAddLine {
    text: Words,
    #[serde(default)]
    before: Option<Words>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepDropLine {
    text: Words,
    because: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepEditLine {
    text: Words,
    to: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepMoveLine {
    text: Words,
    before: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepDoneLine {
    #[serde(default)]
    text: Option<Words>,
    #[serde(default)]
    pending: Option<String>,
    #[serde(default)]
    current: bool,
    #[serde(default)]
    created: Vec<Words>,
    #[serde(default)]
    modified: Vec<Words>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OptionalTextLine {
    #[serde(default)]
    text: Option<Words>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextWords {
    #[serde(default)]
    used: Option<Used>,
    #[serde(default)]
    messages: Option<u64>,
    #[serde(default)]
    of: Option<u64>,
}

/// How much of a context is used, as a part or in messages.
#[derive(Debug, Deserialize)]
#[serde(try_from = "ContextWords")]
struct ContextLine {
    used: ContextUse,
}

impl TryFrom<ContextWords> for ContextLine {
    type Error = &'static str;

    fn try_from(words: ContextWords) -> Result<ContextLine, &'static str> {
        let used = match (words.used, words.messages, words.of) {
            (Some(Used(used)), None, None) => used,
            (None, Some(messages), of) => {
                ContextUse::of(messages, of.unwrap_or(args::MOST_MESSAGES))
                    .ok_or("\"of\" is at least 1")?
            }
            _ => return Err("has either \"used\", or \"messages\" and perhaps \"of\""),
        };
        Ok(ContextLine { used })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReassignLine {
    to: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemLine {
    id: Words,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemDoneLine {
    id: Words,
    #[serde(default)]
    files: Vec<Words>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemFailLine {
    id: Words,
    #[serde(default)]
    because: Option<Words>,
}

impl Line {
    fn operation(self) -> Operation {
        let add = |kind, it: ItemLine| Operation::ItemAdd { kind, id: it.id.0 };
        let start = |kind, it: ItemLine| Operation::ItemStart { kind, id: it.id.0 };
        let done = |kind, it: ItemDoneLine| Operation::ItemDone {
            kind,
            id: it.id.0,
            files: all(it.files),
        };
        let fail = |kind, it: ItemFailLine| Operation::ItemFail {
            kind,
            id: it.id.0,
            because: it.because.map(|because| because.0),
        };
        match self {
            Line::StepStart(it) => Operation::StepStart { text: it.text.0 },
            Line::StepDone(it) => Operation::StepDone {
                text: it.text.map(|text| text.0),
                pending: it.pending,
                files_created: all(it.created),
                files_modified: all(it.modified),
            },
            Line::StepAdd(it) => Operation::StepAdd {
                text: it.text.0,
                before: it.before.map(|before| before.0),
            },
            Line::StepDrop(it) => Operation::StepDrop {
                text: it.text.0,
                because: it.because.0,
            },
            Line::StepEdit(it) => Operation::StepEdit {
                text: it.text.0,
                to: it.to.0,
            },
            Line::StepMove(it) => Operation::StepMove {
                text: it.text.0,
                before: it.before.0,
            },
            Line::Decide(it) => Operation::Decide {
                text: it.text.0,
                rationale: it.why,
            },
            Line::Note(it) => Operation::Note { text: it.text.0 },
            Line::Block(it) => blocked(it.text.0, it.kind.map(|kind| kind.0)),
            Line::Detail(it) => detail(it),
            Line::Unblock(_) => Operation::Unblock,
            Line::Heartbeat(_) => Operation::Heartbeat,
            Line::Fail(it) => Operation::Fail { text: it.text.0 },
            Line::RateLimit(it) => Operation::RateLimit {
                note: it.text.map(|text| text.0),
            },
            Line::Context(it) => Operation::Context { used: it.used },
            Line::Reassign(it) => Operation::Reassign { to: it.to.0 },
            Line::Pause(_) => Operation::Pause,
            Line::Complete(_) => Operation::Complete,
            Line::Phase(it) => Operation::Phase { name: it.name.0 },
            Line::Stage(it) => Operation::Stage { name: it.name.0 },
            Line::Sync(it) => Operation::Sync { name: it.name.0 },
            Line::Restart(it) => Operation::Restart {
                because: it.because.0,
            },
            Line::Verify(it) => Operation::Verify {
                activity: it.activity.0,
                status: it.status.0,
            },
            Line::SubtaskStart(it) => start(ItemKind::Subtask, it),
            Line::SubtaskDone(it) => done(ItemKind::Subtask, it),
            Line::SubtaskFail(it) => fail(ItemKind::Subtask, it),
            Line::WorkstreamStart(it) => start(ItemKind::Workstream, it),
            Line::WorkstreamDone(it) => done(ItemKind::Workstream, it),
            Line::WorkstreamFail(it) => fail(ItemKind::Workstream, it),
            Line::TaskStart(it) => start(ItemKind::Task, it),
            Line::TaskDone(it) => done(ItemKind::Task, it),
            Line::TaskFail(it) => fail(ItemKind::Task, it),
            Line::SubtaskAdd(it) => add(ItemKind::Subtask, it),
            Line::WorkstreamAdd(it) => add(ItemKind::Workstream, it),
            Line::TaskAdd(it) => add(ItemKind::Task, it),
            Line::WorkstreamDormant(it) => Operation::WorkstreamDormant {
                id: it.id.0,
                because: it.because.0,
            },
            Line::GatePass(it) => Operation::GatePass {
                name: it.name.0,
                phase: it.phase,
            },
            Line::GateFail(it) => Operation::GateFail {
                name: it.name.0,
                because: it.because.0,
                workstream: it.workstream.map(|words| words.0),
                file: it.file.map(|words| words.0),
                line: it.line,
            },
            Line::Waive(it) => Operation::Waive {
                issue: it.issue.0,
                because: it.because.0,
            },
            Line::Review(it) => Operation::Review {
                verdict: it.verdict.0,
                p0_count: it.p0,
                p1_count: it.p1,
                attempt: it.attempt.unwrap_or(1),
                findings: it.findings.map(|words| words.0),
                because: it.because.map(|words| words.0),
            },
        }
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
            let reported = Reported::parse(line).unwrap();
            assert_eq!(reported.operation.name(), name);
            assert!(!reported.force);
        }
        let forced = Reported::parse(r#"{"op":"stage","name":2,"force":true}"#).unwrap();
        let name = "2".to_owned();
        assert_eq!(forced.operation, Operation::Stage { name });
        assert!(forced.force);
    }

    #[test]
    fn a_wrong_line_says_what_is_wrong() {
        for (line, says) in [
            ("[]", "no JSON object"),
            ("{\"op\"", "no JSON object"),
            ("{}", "has no \"op\""),
            (r#"{"op":1}"#, "\"op\" is a text"),
            (
                r#"{"op":"fly"}"#,
                "\"fly\" is no operation; the operations are `step start`",
            ),
            (r#"{"op":"note"}"#, "lacks its member `text`"),
            (r#"{"op":"note","text":" "}"#, "it is empty"),
            (r#"{"op":"context"}"#, "either \"used\""),
            (r#"{"op":"context","used":0.5,"messages":3}"#, "either"),
            (r#"{"op":"context","messages":3,"of":0}"#, "at least 1"),
            (
                r#"{"op":"note","text":"a","why":"b"}"#,
                "\"note\" has no member `why`; it takes `text`",
            ),
            (
                r#"{"op":"decide","text":"a","text":"b"}"#,
                "\"text\" is there twice",
            ),
            (
                r#"{"op":"note","op":"block","text":"a"}"#,
                "\"op\" is there twice",
            ),
            (
                r#"{"op":"pause","force":false,"force":true}"#,
                "\"force\" is there twice",
            ),
            (r#"{"op":"stage","name":1.5}"#, "a whole number"),
            (r#"{"op":"context","used":78}"#, "a fraction, such as 0.78"),
            (r#"{"op":"pause","force":1}"#, "\"force\" is true or false"),
        ] {
            let error = Reported::parse(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
