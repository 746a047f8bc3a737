//! Changes between two states: described in words if the formats have words for them, otherwise by pointers, and never
//! omitted.

use crate::common::{EXAMPLE, Reporting, line, start, task, time};
use agent_checkpoint::difference::{Change, ChangeKind, Difference};
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::formats::{Format, Formats};
use agent_checkpoint::json::{Document, pointer};
use agent_checkpoint::strategies::{json_object, json_value, restyled};
use agent_checkpoint::{Checkpoint, Handoff, Operation, OperationContext, RuleContext, StepDone};
use proptest::prelude::*;
use serde_json::{Value, json};

const MORNING: &str = "2026-03-02T08:00:00Z";
const NOON: &str = "2026-03-02T12:00:00Z";

fn document(value: &impl serde::Serialize) -> Document {
    Document::new(value).unwrap()
}

/// The lines for two states of a task.
#[track_caller]
fn lines<C: Checkpoint>(before: &C, after: &C) -> Vec<String> {
    let difference = Difference::of::<C>(&document(before), &document(after)).unwrap();
    difference.to_string().lines().map(str::to_owned).collect()
}

/// The lines for two values of no format.
#[track_caller]
fn plain(before: &Value, after: &Value) -> Vec<String> {
    let (before, after) = (document(before), document(after));
    let difference = Difference::between(&before, &after);
    difference.to_string().lines().map(str::to_owned).collect()
}

/// The difference of two documents of a format that is known at run time.
fn in_format(format: &Format, before: &Document, after: &Document) -> Option<Difference> {
    let handoff = |document| -> Option<Handoff> {
        Some(format.inspect(document, &RuleContext::none()).ok()?.handoff)
    };
    let (old, new) = (handoff(before)?, handoff(after)?);
    Some(Difference::of_handoffs((before, &old), (after, &new)))
}

// ---------------------------------------------------------------------------------------------------------------------
// In words

#[test]
fn a_day_of_a_task_is_told_in_words() {
    let mut state = task(&["Wire toggle", "Test it"]);
    let mut before = state.clone();
    let mut since = |state: &TaskCheckpoint| {
        let told = lines(&before, state);
        before = state.clone();
        told
    };

    state
        .report_at(start("Wire toggle"), time(MORNING))
        .unwrap();
    assert_eq!(
        since(&state),
        [
            "status: not_started → in_progress",
            "begun: Wire toggle (at 2026-03-02T08:00:00Z)",
        ]
    );

    state
        .report_at(
            Operation::Note {
                text: "half of it".into(),
            },
            time(NOON),
        )
        .unwrap();
    let decide = r#"{"op":"decide","text":"Use context","why":"It is there"}"#;
    state.report_at(line(decide), time(NOON)).unwrap();
    assert_eq!(
        since(&state),
        [
            "note on Wire toggle: none → half of it",
            "decided: Use context (because It is there, at 2026-03-02T12:00:00Z)",
        ]
    );

    let done = StepDone::current()
        .with_created("src/a.ts")
        .with_modified("src/b.ts");
    state.report_at(done.clone(), time(NOON)).unwrap();
    for report in [
        r#"{"op":"block","text":"No account"}"#,
        r#"{"op":"verify","activity":"unit tests","status":"passed"}"#,
    ] {
        state.report_at(line(report), time(NOON)).unwrap();
    }
    let told = since(&state);
    for line in [
        "finished: Wire toggle (begun 2026-03-02T08:00:00Z, at 2026-03-02T12:00:00Z)",
        "blocker: No account",
        "file created: src/a.ts",
        "file modified: src/b.ts",
        "verification unit tests: none → passed",
    ] {
        assert!(told.iter().any(|told| told == line), "{line}\n{told:#?}");
    }
    assert!(
        !told.iter().any(|line| line.contains("Test it")),
        "{told:#?}"
    );
    // A finished step also leaves the plan and the current step.
    assert!(
        !told
            .iter()
            .any(|line| line.contains("removed \"Wire toggle\"")),
        "{told:#?}"
    );

    let other = OperationContext::at(time(NOON)).by(Some("other"), None);
    state.report(Operation::Unblock).unwrap();
    state.take_up(&other).unwrap();
    let told = since(&state);
    for line in [
        "blocker cleared: No account",
        "agent: dev → other",
        "previous agent added: dev",
    ] {
        assert!(told.iter().any(|told| told == line), "{line}\n{told:#?}");
    }
}

#[test]
fn who_and_when_are_those_of_the_later_state() {
    let before = task(&["a"]);
    let mut after = before.clone();
    let other = OperationContext::at(time(NOON)).by(Some("other"), None);
    after.take_up(&other).unwrap();
    after.stamp(other.now);
    let difference =
        Difference::of::<TaskCheckpoint>(&document(&before), &document(&after)).unwrap();
    assert_eq!(difference.by.as_deref(), Some("other"));
    assert_eq!(difference.at.unwrap().text(), NOON);
}

#[test]
fn steps_go_every_way() {
    let state = |done: &[&str], open: Option<&str>, pending: &[&str]| -> TaskCheckpoint {
        let steps: Vec<_> = done.iter().map(|text| json!({"step": text})).collect();
        let open = open.map(|text| json!({"description": text}));
        let value = json!({"completedSteps": steps, "currentStep": open, "pendingSteps": pending});
        document(&value).read::<TaskCheckpoint>().unwrap().value
    };
    let told = |before: &TaskCheckpoint, after: &TaskCheckpoint| -> Vec<String> {
        let told = lines(before, after);
        let steps = told.into_iter().filter(|line| line.ends_with(" X"));
        steps.collect()
    };
    let none = state(&[], None, &[]);
    let planned = state(&[], None, &["X"]);
    let open = state(&[], Some("X"), &[]);
    // Some plans still list the step that is in progress.
    let both = state(&[], Some("X"), &["X"]);
    let done = state(&["X"], None, &[]);
    for (before, after, line) in [
        (&none, &planned, Some("added to the plan: X")),
        (&none, &open, Some("begun: X")),
        (&planned, &open, Some("begun: X")),
        (&planned, &both, Some("begun: X")),
        (&none, &done, Some("finished: X")),
        (&planned, &done, Some("finished: X")),
        (&open, &done, Some("finished: X")),
        (&both, &done, Some("finished: X")),
        (&open, &planned, Some("back in the plan: X")),
        (&both, &planned, Some("back in the plan: X")),
        (&done, &planned, Some("back in the plan: X")),
        (&done, &open, Some("in progress again: X")),
        (&planned, &none, Some("no longer planned: X")),
        (&open, &none, Some("no longer in progress: X")),
        (&both, &none, Some("no longer in progress: X")),
        (&done, &none, Some("no longer listed as finished: X")),
        (&both, &state(&["X"], None, &["X"]), Some("finished: X")),
        (&done, &state(&["X", "X"], None, &[]), Some("finished: X")),
        (&both, &open, None),
    ] {
        assert_eq!(
            told(before, after),
            Vec::from_iter(line),
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn a_step_reported_in_other_words_is_not_called_dropped() {
    let mut before = task(&["Wire toggle"]);
    before
        .report_at(start("Wire toggle"), time(MORNING))
        .unwrap();
    let mut after = before.clone();
    after
        .report_at(StepDone::new("Wired it"), time(NOON))
        .unwrap();
    let difference =
        Difference::of::<TaskCheckpoint>(&document(&before), &document(&after)).unwrap();
    let mut changes = difference.changes.iter();
    let gone = changes.find(|change| change.kind() == ChangeKind::StepDropped);
    let gone = gone.unwrap();
    assert_eq!(gone.get("step"), Some("Wire toggle"));
    assert_eq!(gone.get("was"), Some("in_progress"));
    assert!(difference.to_string().contains("finished: Wired it"));
}

#[test]
fn an_empty_list_of_a_step_that_is_told_is_no_change_of_its_own() {
    let before = task(&["Wire toggle"]);
    let mut after = before.clone();
    let step = StepDone::new("Wire toggle").with_created("a.rs");
    after.report_at(step.clone(), time(NOON)).unwrap();
    let told = lines(&before, &after);
    assert!(told.contains(&"file created: a.rs".to_owned()), "{told:?}");
    assert!(!told.iter().any(|line| line.contains("[]")), "{told:?}");
    // Alone it is a change.
    let (bare, full) = (json!({"s": [{"a": 1}]}), json!({"s": [{"a": 1, "f": []}]}));
    assert_eq!(plain(&bare, &full), ["/s/0/f: added []"]);
}

#[test]
fn the_examples_of_a_build_are_told() {
    let read = |name: &str| {
        let path = format!(
            "{}/tests/fixtures/build-pipeline/{name}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        Document::parse(&std::fs::read(path).unwrap()).unwrap()
    };
    let told = |before: &str, after: &str| {
        Difference::of::<BuildCheckpoint>(&read(before), &read(after)).unwrap()
    };
    let begun = told("1-initialize", "2-start-workstream").to_string();
    assert!(begun.contains("begun: "), "{begun}");
    let finished = told("2-start-workstream", "3-complete-workstream").to_string();
    assert!(finished.contains("finished: "), "{finished}");
    assert!(finished.contains("file created: "), "{finished}");
    let failed = told("5-parallel-workstreams", "6-failure");
    let is_failure =
        |change: &Change| change.kind() == ChangeKind::Status && change.get("to") == Some("failed");
    assert!(failed.changes.iter().any(is_failure), "{failed}");
    assert!(failed.to_string().contains("blocker: "), "{failed}");
}

#[test]
fn every_pair_of_examples_is_compared_in_every_format() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    for format in Formats::default().iter() {
        let Ok(files) = std::fs::read_dir(format!("{cases}/{}", format.name())) else {
            continue;
        };
        let files = files.filter_map(|file| std::fs::read(file.unwrap().path()).ok());
        let documents: Vec<Document> = files
            .filter_map(|bytes| Document::parse(&bytes).ok())
            .collect();
        assert!(documents.len() > 2, "{}", format.name());
        for before in &documents {
            for after in &documents {
                let difference = in_format(format, before, after).unwrap();
                assert_eq!(difference.is_empty(), before.same_value(after));
                serde_json::to_string(&difference).unwrap();
                let told = difference.to_string();
                assert!(told.lines().count() >= difference.changes.len());
            }
        }
    }
}

#[test]
fn an_agent_session_is_told() {
    let created =
        Document::from_text(include_str!("../fixtures/agent-session/created.json")).unwrap();
    let updated =
        Document::from_text(include_str!("../fixtures/agent-session/updated.json")).unwrap();
    let difference = Difference::of::<AgentCheckpoint>(&created, &updated).unwrap();
    assert!(difference.by.is_some() && difference.at.is_some());
    assert!(
        difference.to_string().contains("file named: "),
        "{difference}"
    );
}

// ---------------------------------------------------------------------------------------------------------------------
// By pointers

#[test]
fn what_has_no_word_is_told_by_its_pointer() {
    let before = json!({"a": 1, "b": {"c/d": "x"}, "gone": [true], "kept": "kept"});
    let after = json!({"a": 1.0, "b": {"c/d": "y"}, "new": {"n": null}, "kept": "kept"});
    let mut told = plain(&before, &after);
    told.sort();
    assert_eq!(
        told,
        [
            "/a: 1 → 1.0",
            "/b/c~1d: \"x\" → \"y\"",
            "/gone: removed [true]",
            "/new: added {\"n\":null}",
        ]
    );
}

#[test]
fn elements_are_found_again() {
    let before = json!({"l": ["a", "b", "c", "d", "e"]});
    assert_eq!(
        plain(&before, &json!({"l": ["b", "c", "d", "e"]})),
        ["/l/0: removed \"a\""]
    );
    assert_eq!(
        plain(&before, &json!({"l": ["a", "b", "new", "c", "e"]})),
        ["/l/2: added \"new\"", "/l/3: removed \"d\""]
    );
    let steps =
        |last: &str| json!({"l": [{"id": 1, "s": "x"}, {"id": 2, "s": last}, {"id": 3, "s": "x"}]});
    assert_eq!(plain(&steps("x"), &steps("y")), ["/l/1/s: \"x\" → \"y\""]);
    let one = json!({"l": [{"id": 1, "s": "x"}]});
    let other = json!({"l": [{"id": 2, "s": "y"}]});
    assert_eq!(
        plain(&one, &other),
        [
            "/l/0: removed {\"id\":1,\"s\":\"x\"}",
            "/l/0: added {\"id\":2,\"s\":\"y\"}"
        ]
    );
}

/// A comparison takes linear time, however many texts changed beside the status.
#[test]
fn many_texts_that_changed_beside_a_status_cost_no_square() {
    let site = |status: &str, text: &str| {
        let more: Vec<String> = (0..20_000)
            .map(|number| format!(r#""k{number}":"{text}{number}""#))
            .collect();
        let more = more.join(",");
        let text = format!(
            r#"{{"checkpoint_id":"x","agent":"a","task_id":"T","started_at":"2026-03-02T07:55:00Z",{more},
                "updated_at":"2026-03-02T08:03:00Z","status":"{status}"}}"#
        );
        Document::parse(text.as_bytes()).unwrap()
    };
    let began = std::time::Instant::now();
    let (before, after) = (site("in_progress", "a"), site("complete", "b"));
    let difference = Difference::of::<SitebuilderCheckpoint>(&before, &after).unwrap();
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    let told = difference.to_string();
    let of_status: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("status"))
        .collect();
    assert_eq!(of_status, ["status: in_progress → complete"]);
}

#[test]
fn long_arrays_are_compared_all_the_same() {
    let long: Vec<u32> = (0..5000).collect();
    let mut other: Vec<u32> = (0..5000).rev().collect();
    other.retain(|n| n % 7 != 0);
    assert!(!plain(&json!({"l": long}), &json!({"l": other})).is_empty());
    let without: Vec<u32> = long
        .iter()
        .copied()
        .filter(|n| *n != 10 && *n != 4000)
        .collect();
    assert_eq!(
        plain(&json!({"l": long}), &json!({"l": without})),
        ["/l/10: removed 10", "/l/4000: removed 4000"]
    );
}

#[test]
fn a_derived_status_hides_no_member_with_the_same_words() {
    let mut state = task(&["Wire toggle"]);
    state.report_at(start("Wire toggle"), time(NOON)).unwrap();
    let with = |state: &TaskCheckpoint, text: &str| {
        let mut document = document(state);
        document.set("/mine", text).unwrap();
        document
    };
    let before = with(&state, "in_progress");
    state.report_at(StepDone::current(), time(NOON)).unwrap();
    let after = with(&state, "complete");
    let difference = Difference::of::<TaskCheckpoint>(&before, &after).unwrap();
    let text = difference.to_string();
    assert!(text.contains("status: in_progress → complete"), "{text}");
    assert!(text.contains("/mine"), "{text}");
}

#[test]
fn a_change_that_words_do_not_tell_is_not_hidden_behind_the_same_words() {
    let mut before = document(&task(&["X"]));
    before.set("/note", &"nothing").unwrap();
    let mut after = before.clone();
    after.set("/pendingSteps", &["X", "Y"]).unwrap();
    after.set("/note", &"Y").unwrap();
    let difference = Difference::of::<TaskCheckpoint>(&before, &after).unwrap();
    assert_eq!(
        difference.to_string(),
        "added to the plan: Y\n/note: \"nothing\" → \"Y\"\n"
    );
    // An undeclared member in a finished step.
    let finished = |step: Value| {
        let mut after = before.clone();
        after.set("/completedSteps", &json!([step])).unwrap();
        let told = Difference::of::<TaskCheckpoint>(&before, &after);
        told.unwrap().to_string()
    };
    let told = finished(json!({"step": "X", "filesCreated": [], "cost": 5}));
    assert!(told.contains("finished: X\n"), "{told}");
    assert!(told.contains("/completedSteps/0/cost: added 5\n"), "{told}");
    assert!(!told.contains("/completedSteps/0/step"), "{told}");
    // The words report this text once, but it was added twice, so it is unknown which one they mean.
    let told = finished(json!({"step": "X", "mood": "X", "cost": 5}));
    assert!(told.contains("finished: X\n"), "{told}");
    let whole = told
        .lines()
        .find(|line| line.starts_with("/completedSteps/0: added {"));
    assert!(
        whole.is_some_and(|line| line.contains(r#""mood":"X""#)),
        "{told}"
    );
}

#[test]
fn a_text_that_goes_is_not_hidden_behind_the_same_text_that_comes() {
    let mut before = document(&task(&["X"]));
    before.set("/note", &"Y").unwrap();
    let mut after = before.clone();
    after.set("/pendingSteps", &["X", "Y"]).unwrap();
    after.remove("/note").unwrap();
    let told = Difference::of::<TaskCheckpoint>(&before, &after).unwrap();
    assert_eq!(
        told.to_string(),
        "added to the plan: Y\n/note: removed \"Y\"\n"
    );
}

#[test]
fn the_words_of_the_format_stand_behind_a_status() {
    let site = |status: &str| {
        Document::from_text(format!(
            r#"{{"checkpoint_id":"x","agent":"a","task_id":"T","status":"{status}"}}"#
        ))
        .unwrap()
    };
    let (before, after) = (site("in_progress"), site("resting"));
    let told = Difference::of::<SitebuilderCheckpoint>(&before, &after).unwrap();
    assert_eq!(told.changes.len(), 1, "{told}");
    let (before, after) = (site("blocked"), site("complete"));
    let told = Difference::of::<SitebuilderCheckpoint>(&before, &after).unwrap();
    assert_eq!(told.to_string(), "status: blocked → complete\n");
}

#[test]
fn a_checkpoint_inside_a_host_file_has_the_pointers_of_the_file() {
    let host = Document::from_text(EXAMPLE).unwrap();
    let at = "/activePrd/checkpoint";
    let before = host.extract(at).unwrap();
    let mut after = before.clone();
    after.set("/extra", &1).unwrap();
    let formats = Formats::default();
    let format = formats.get("builder-state").unwrap();
    let difference = in_format(format, &before, &after).unwrap();
    assert_eq!(difference.to_string(), format!("{at}/extra: added 1\n"));
}

#[test]
fn spelling_is_no_change_but_is_told() {
    let one = Document::from_text(r#"{"a": "é", "b": [1]}"#).unwrap();
    let other = Document::from_text("{\"b\":[1],\n\"a\":\"\\u00e9\"}").unwrap();
    let difference = Difference::between(&one, &other);
    assert!(difference.is_empty() && difference.respelled);
    assert_eq!(
        difference.to_string(),
        "no value changed, only the layout of the text\n"
    );
    let same = Difference::between(&one, &one);
    assert!(same.is_empty() && !same.respelled);
    assert_eq!(same.to_string(), "");
}

#[test]
fn halves_of_surrogate_pairs_are_told_apart() {
    let read = |text: &str| Document::from_text(text).unwrap();
    let compare = |one: &str, other: &str| {
        let (one, other) = (read(one), read(other));
        Difference::between(&one, &other).changes.len()
    };
    assert_eq!(
        compare(
            r#"{"a":["\ud800","\uD800"]}"#,
            r#"{"a":["\uD800","\ud800"]}"#
        ),
        0
    );
    assert_eq!(compare(r#"{"a":"\ud800"}"#, r#"{"a":"\\ud800"}"#), 1);
    assert_eq!(
        compare(r#"{"\ud800":1,"\\ud800":2}"#, r#"{"\ud800":1,"\\ud800":3}"#),
        1
    );
}

#[test]
fn data_is_whole_and_lines_are_short() {
    let long = "long \u{1b}[2J\n".repeat(100);
    let before = task(&["X"]);
    let mut after = before.clone();
    let text = long.clone();
    after.report(Operation::Block { text, kind: None }).unwrap();
    let difference =
        Difference::of::<TaskCheckpoint>(&document(&before), &document(&after)).unwrap();
    let told = difference.to_string();
    assert_eq!(told.lines().count(), difference.changes.len());
    assert!(told.len() < 500 && !told.contains('\u{1b}'), "{told:?}");
    let data = serde_json::to_value(&difference).unwrap();
    let raised = json!({"change": "blocker_raised", "blocker": long});
    assert!(data["changes"].as_array().unwrap().contains(&raised));
}

// ---------------------------------------------------------------------------------------------------------------------
// What holds for everything

/// Two objects, often with much in common.
fn two_objects() -> impl Strategy<Value = (Value, Value)> {
    let edit = (
        "[a-z]{1,3}",
        json_value(),
        any::<prop::sample::Index>(),
        any::<bool>(),
    );
    let edits = prop::collection::vec(edit, 0..3);
    (json_object(), edits, json_object(), any::<u8>()).prop_map(|(before, edits, other, pick)| {
        if pick % 4 == 0 {
            return (before, other);
        }
        let mut after = before.clone();
        for (name, value, index, remove) in edits {
            let members = after.as_object_mut().unwrap();
            if remove && !members.is_empty() {
                let name = members
                    .keys()
                    .nth(index.index(members.len()))
                    .unwrap()
                    .clone();
                members.remove(&name);
            } else {
                members.insert(name, value);
            }
        }
        (before, after)
    })
}

fn in_all_formats(before: &Document, after: &Document) -> Vec<Difference> {
    let formats = Formats::default();
    let in_format = |format| in_format(format, before, after);
    let mut all: Vec<_> = formats.iter().filter_map(in_format).collect();
    all.push(Difference::between(before, after));
    all
}

macro_rules! formats {
    ($($name:ident: $type:ty;)*) => {$(
        proptest! {
            #![proptest_config(crate::common::tries(48))]

            #[test]
            fn $name(before in any::<$type>(), after in any::<$type>()) {
                let (before, after) = (document(&before), document(&after));
                let difference = Difference::of::<$type>(&before, &after).unwrap();
                prop_assert_eq!(difference.is_empty(), before.same_value(&after));
                prop_assert!(Difference::of::<$type>(&after, &after).unwrap().is_empty());
                prop_assert_eq!(difference.to_string().lines().count(), difference.changes.len());
                // The later texts can be found in the values without words, and in the words: no changed text is in
                // neither.
                let data = serde_json::to_string(&difference).unwrap();
                let plain = Difference::between(&before, &after);
                for change in &plain.changes {
                    let Some(after) = change.get("after") else { continue };
                    let Ok(Value::String(text)) = serde_json::from_str(after) else { continue };
                    let quoted = serde_json::to_string(&text).unwrap();
                    let in_value = serde_json::to_string(after).unwrap();
                    prop_assert!(data.contains(&quoted) || data.contains(&in_value), "{text} {data}");
                }
            }
        }
    )*};
}

formats! {
    tasks_are_compared: TaskCheckpoint;
    agents_are_compared: AgentCheckpoint;
    sitebuilders_are_compared: SitebuilderCheckpoint;
    stories_are_compared: StoryCheckpoint;
    pipelines_are_compared: PipelineState;
    builds_are_compared: BuildCheckpoint;
}

proptest! {
    #![proptest_config(crate::common::tries(100))]

    #[test]
    fn no_change_is_invisible((before, after) in two_objects()) {
        let (before, after) = (document(&before), document(&after));
        for difference in in_all_formats(&before, &after) {
            prop_assert_eq!(difference.is_empty(), before.same_value(&after));
            prop_assert!(!difference.respelled || difference.is_empty());
            let lines = difference.to_string().lines().count();
            prop_assert_eq!(lines, difference.changes.len() + usize::from(difference.respelled));
        }
    }

    #[test]
    fn another_style_is_no_change((before, after) in json_object().prop_flat_map(|o| (restyled(o.clone()), restyled(o)))) {
        let respelled = before != after;
        let (before, after) = (Document::from_text(before).unwrap(), Document::from_text(after).unwrap());
        for difference in in_all_formats(&before, &after) {
            prop_assert!(difference.is_empty(), "{difference}");
            prop_assert_eq!(difference.respelled, respelled);
        }
    }

    #[test]
    fn the_words_of_what_stayed_do_not_appear(
        object in json_object(), pick in any::<prop::sample::Index>(), remove in any::<bool>(),
    ) {
        // All texts differ, so a text that appears can have come from only one place.
        let mut number = 0;
        let mut object = object;
        rename(&mut object, &mut number);
        let before = document(&object);
        let mut leaves = Vec::new();
        collect(&object, "", &mut leaves);
        prop_assume!(!leaves.is_empty());
        let (at, changed) = leaves.swap_remove(pick.index(leaves.len()));
        let mut after = before.clone();
        if remove {
            after.remove(&at).unwrap();
        } else {
            after.set(&at, &"changed").unwrap();
        }
        for difference in in_all_formats(&before, &after) {
            let told = serde_json::to_string(&difference.changes).unwrap();
            prop_assert!(told.contains(&changed), "{told}");
            for (_, word) in &leaves {
                prop_assert!(!told.contains(word), "{word} in {told}");
            }
        }
    }
}

/// Gives every scalar a unique text.
fn rename(value: &mut Value, number: &mut usize) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| rename(value, number)),
        Value::Array(elements) => elements.iter_mut().for_each(|value| rename(value, number)),
        scalar => {
            *number += 1;
            *scalar = json!(format!("word{number};"));
        }
    }
}

fn collect(value: &Value, at: &str, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                collect(member, &pointer::join(at, name), into);
            }
        }
        Value::Array(elements) => {
            for (position, element) in elements.iter().enumerate() {
                collect(element, &format!("{at}/{position}"), into);
            }
        }
        scalar => into.push((at.to_owned(), scalar.as_str().unwrap().to_owned())),
    }
}
