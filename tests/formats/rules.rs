//! The rules of each format, as files: `tests/rules/FORMAT/NAME.txt` has texts and the violations of each. The
//! README beside them has the form; a new case is a new paragraph, a new rule a new file.

use std::fs;
use std::path::Path;

use crate::common::{key, time};
use agent_checkpoint::formats::story_pipeline::StoryState;
use agent_checkpoint::formats::{Formats, Inputs};
use agent_checkpoint::json::Document;
use agent_checkpoint::{Key, RuleContext};
use chrono::{DateTime, Utc};
use serde_json::Value;

/// What is known from outside in a case, and in those after it.
#[derive(Default)]
struct Context {
    now: Option<DateTime<Utc>>,
    key: Option<Key>,
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
}

/// Sets the value at a pointer, or takes it away. Its parent must exist; a number one past a list's end appends.
fn change(root: &mut Value, pointer: &str, new: Option<Value>) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    match (root.pointer_mut(parent), new) {
        (Some(Value::Object(members)), Some(new)) => drop(members.insert(name, new)),
        (Some(Value::Object(members)), None) => drop(members.remove(&name).unwrap()),
        (Some(Value::Array(items)), Some(new)) => items[name.parse::<usize>().unwrap()] = new,
        (parent, _) => panic!("{pointer} leads nowhere: {parent:?}"),
    }
}

/// Runs the cases of a file and says how many there were.
fn run(format: &str, path: &Path) -> usize {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let formats = Formats::default();
    let format = formats.get(format).unwrap();
    let mut base = Value::Object(serde_json::Map::new());
    let mut context = Context::default();
    let mut count = 0;
    let file = fs::read_to_string(path).unwrap();
    for case in file.split("\n\n") {
        let mut value = base.clone();
        let mut expected = None;
        for line in case.lines().filter(|line| !line.starts_with('#')) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let known = (rest != "none").then_some(rest);
            match word {
                "base" => {
                    let text = match rest {
                        "nothing" => "{}".to_owned(),
                        file => fs::read_to_string(tests.join(file)).unwrap(),
                    };
                    base = serde_json::from_str(&text).unwrap();
                    value = base.clone();
                }
                "now" => context.now = known.map(time),
                "key" => context.key = known.map(key),
                "story-state" => {
                    let state = known.map(|state| Inputs::of(StoryState::from(state)));
                    context.inputs = state.unwrap_or_default();
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
                "valid" => expected = Some(Vec::new()),
                "violation" => expected.get_or_insert_default().push(rest.to_owned()),
                _ => panic!("{}: {line}", path.display()),
            }
        }
        let Some(mut expected) = expected else {
            base = value;
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
        assert_eq!(found, expected, "{}: {case}", path.display());
        count += 1;
    }
    count
}

/// Runs the files of one format.
fn run_all(format: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/rules")
        .join(format);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        assert!(run(format, &file) > 0, "{} has no case", file.display());
    }
}

#[test]
fn of_agent_session() {
    run_all("agent-session");
}

#[test]
fn of_build_pipeline() {
    run_all("build-pipeline");
}

#[test]
fn of_sitebuilder() {
    run_all("sitebuilder");
}

#[test]
fn of_story_pipeline() {
    run_all("story-pipeline");
}

#[test]
fn of_story_pipeline_state() {
    run_all("story-pipeline-state");
}
