//! The rules of each format and the results of reports, as files: `tests/rules/FORMAT/NAME.txt` has texts, and the
//! violations of each, or the results of reports. The README beside them describes the form. A new case is a new
//! paragraph, a new rule a new file.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use crate::common::{Reporting, key, time};
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::{BuildCheckpoint, ExecutionSpec};
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{
    Pipeline, PipelineState, StoryCheckpoint, StoryState,
};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::formats::{Formats, Inputs};
use agent_checkpoint::json::Document;
use agent_checkpoint::{Checkpoint, Error, Key, OperationContext, Report, RuleContext};
use chrono::{DateTime, Utc};
use serde_json::Value;

/// The context of a case and of those after it.
#[derive(Default)]
struct Context {
    now: Option<DateTime<Utc>>,
    key: Option<Key>,
    agent: Option<String>,
    session: Option<String>,
    inputs: Inputs,
}

impl Context {
    fn of_rules(&self) -> RuleContext<'_> {
        let mut context = RuleContext::none().with_inputs(&self.inputs);
        if let Some(now) = self.now {
            context = context.with_now(now);
        }
        if let Some(key) = &self.key {
            context = context.with_key(key);
        }
        context
    }

    fn of_reports(&self) -> OperationContext<'_> {
        let now = self.now.unwrap_or_else(|| time("2026-01-15T15:00:00Z"));
        OperationContext::at(now)
            .by(self.agent.as_deref(), self.session.as_deref())
            .with_rules(self.of_rules())
    }
}

/// The result of a report: whether it changed something, or why it was refused.
type Outcome = Result<bool, String>;

/// An action on a checkpoint.
enum Act {
    Report(Report),
    TakeUp,
}

/// Applies the action to the value. A refusal leaves the value unchanged.
fn act<C: Checkpoint + Debug>(
    act: Act,
    value: &mut Value,
    context: &OperationContext<'_>,
) -> Outcome {
    let document = Document::from_text(value.to_string()).unwrap();
    let before = document.read::<C>().unwrap().value;
    let mut after = before.clone();
    let outcome = match act {
        Act::Report(report) => after.report_in(report, *context),
        Act::TakeUp => after.take_up(context),
    };
    match outcome {
        Ok(()) => *value = serde_json::to_value(&after).unwrap(),
        Err(_) => assert_eq!(after, before),
    }
    outcome
        .map(|()| after != before)
        .map_err(|error| error.to_string())
}

/// Sets the value at a pointer, or removes it. Its parent must exist; an index one past a list's end appends.
fn change(root: &mut Value, pointer: &str, new: Option<Value>) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    match (root.pointer_mut(parent), new) {
        (Some(Value::Object(members)), Some(new)) => drop(members.insert(name, new)),
        (Some(Value::Object(members)), None) => drop(members.remove(&name).unwrap()),
        (Some(Value::Array(items)), Some(new)) => match name.parse::<usize>().unwrap() {
            at if at == items.len() => items.push(new),
            at => items[at] = new,
        },
        (parent, _) => panic!("{pointer} leads nowhere: {parent:?}"),
    }
}

/// Runs the cases of a file and returns their number.
fn run<C: Checkpoint + Debug>(path: &Path) -> usize {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let formats = Formats::default();
    let format = formats.get(C::FORMAT).unwrap();
    let mut base = Value::Object(serde_json::Map::new());
    let mut context = Context::default();
    let mut count = 0;
    let file = fs::read_to_string(path).unwrap();
    for case in file.split("\n\n") {
        let at = path.display();
        let mut value = base.clone();
        let mut violations = None;
        let mut is_case = false;
        let mut outcome: Option<Outcome> = None;
        for text in case.lines().filter(|text| !text.starts_with('#')) {
            let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
            let known = (rest != "none").then_some(rest);
            // Unless the line expects it, no report is refused.
            if word != "refused"
                && let Some(Err(error)) = &outcome
            {
                panic!("{at}: before {text:?}: {error}");
            }
            is_case |= ["valid", "violation", "is", "refused", "unchanged"].contains(&word);
            match word {
                "base" => {
                    let json = match rest {
                        "nothing" => "{}".to_owned(),
                        file => fs::read_to_string(tests.join(file)).unwrap(),
                    };
                    base = serde_json::from_str(&json).unwrap();
                    value = base.clone();
                }
                "now" => context.now = known.map(time),
                "key" => context.key = known.map(key),
                "agent" => context.agent = known.map(str::to_owned),
                "session" => context.session = known.map(str::to_owned),
                "story-state" => {
                    let state = known.map(|state| Inputs::of(StoryState::from(state)));
                    context.inputs = state.unwrap_or_default();
                }
                "spec" => {
                    let spec =
                        known.map(|spec| serde_json::from_str::<ExecutionSpec>(spec).unwrap());
                    context.inputs = spec.map(Inputs::of).unwrap_or_default();
                }
                "pipeline" => {
                    let state = known.map(|it| serde_json::from_str::<PipelineState>(it).unwrap());
                    let pipeline = state.map(|state| Inputs::of(Pipeline::new(state)));
                    context.inputs = pipeline.unwrap_or_default();
                }
                "set" => {
                    let (pointer, new) = rest.split_once(' ').unwrap();
                    change(
                        &mut value,
                        pointer,
                        Some(serde_json::from_str(new).unwrap()),
                    );
                }
                "remove" => change(&mut value, rest, None),
                "report" => {
                    let report = rest.parse().map_err(|error: Error| error.to_string());
                    outcome = Some(report.and_then(|report| {
                        act::<C>(Act::Report(report), &mut value, &context.of_reports())
                    }));
                }
                "take-up" => {
                    outcome = Some(act::<C>(Act::TakeUp, &mut value, &context.of_reports()));
                }
                "refused" => {
                    let error = outcome.take().unwrap().unwrap_err();
                    assert!(error.contains(rest), "{at}: {error:?} lacks {rest:?}");
                }
                "unchanged" => assert_eq!(outcome, Some(Ok(false)), "{at}: {case}"),
                "is" => {
                    let (pointer, expected) = rest.split_once(' ').unwrap();
                    let expected: Value = serde_json::from_str(expected).unwrap();
                    let found = value.pointer(pointer).unwrap_or(&Value::Null);
                    assert_eq!(*found, expected, "{at}: {text}");
                }
                "valid" => violations = Some(Vec::new()),
                "violation" => violations.get_or_insert_default().push(rest.to_owned()),
                _ => panic!("{at}: {text}"),
            }
        }
        if let Some(Err(error)) = outcome {
            panic!("{at}: at the end of {case:?}: {error}");
        }
        if !is_case {
            base = value;
            continue;
        }
        count += 1;
        let Some(mut expected) = violations else {
            continue;
        };
        let document = Document::from_text(value.to_string()).unwrap();
        let found = format.violations(&document, &context.of_rules()).unwrap();
        let mut found: Vec<_> = found
            .iter()
            .map(|violation| format!("{} {}", violation.pointer, violation.code))
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{at}: {case}");
    }
    count
}

/// Runs the files of one format.
fn run_all<C: Checkpoint + Debug>() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/rules")
        .join(C::FORMAT);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        assert!(run::<C>(&file) > 0, "{} has no case", file.display());
    }
}

#[test]
fn of_task() {
    run_all::<TaskCheckpoint>();
}

#[test]
fn of_agent_session() {
    run_all::<AgentCheckpoint>();
}

#[test]
fn of_build_pipeline() {
    run_all::<BuildCheckpoint>();
}

#[test]
fn of_sitebuilder() {
    run_all::<SitebuilderCheckpoint>();
}

#[test]
fn of_story_pipeline() {
    run_all::<StoryCheckpoint>();
}

#[test]
fn of_story_pipeline_state() {
    run_all::<PipelineState>();
}
