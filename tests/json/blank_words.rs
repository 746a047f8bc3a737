//! Blank texts are refused by every format, and change nothing.

use crate::common::{Reporting, start, time};
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::StoryCheckpoint;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::{Checkpoint, ErrorKind, Operation, OperationContext, StepDone};

fn blank_reports(blank: &str) -> Vec<Operation> {
    let text = || blank.to_owned();
    let one = || "one".to_owned();
    let files = || vec!["src/a.rs".to_owned(), text()];
    let created = StepDone::new("one").with_created("src/a.rs");
    let modified = StepDone::new("one").with_modified("src/a.rs");
    vec![
        Operation::StepStart { text: text() },
        Operation::Decide {
            text: text(),
            rationale: None,
        },
        Operation::Note { text: text() },
        Operation::Block {
            text: text(),
            kind: None,
        },
        Operation::Fail { text: text() },
        Operation::TaskAdd { id: text() },
        Operation::WorkstreamAdd { id: text() },
        Operation::Waive {
            issue: text(),
            because: "known".to_owned(),
        },
        Operation::TaskStart { id: text() },
        Operation::TaskDone {
            id: text(),
            files: Vec::new(),
        },
        Operation::Verify {
            activity: text(),
            status: "passed".to_owned(),
        },
        Operation::WorkstreamDormant {
            id: "two".to_owned(),
            because: text(),
        },
        Operation::WorkstreamFail {
            id: one(),
            because: Some(text()),
        },
        Operation::Waive {
            issue: "US-1".to_owned(),
            because: text(),
        },
        Operation::Restart { because: text() },
        Operation::RateLimit {
            note: Some(text()),
            until: None,
        },
        created.with_created(blank).into(),
        modified.with_modified(blank).into(),
        Operation::SubtaskDone {
            id: one(),
            files: files(),
        },
        Operation::WorkstreamDone {
            id: one(),
            files: files(),
        },
    ]
}

fn refuses<C: Checkpoint + std::fmt::Debug>(checkpoint: &C) {
    let now = time("2026-03-02T08:00:00Z");
    let blanks = ["", " ", "\u{200b}"].map(blank_reports);
    for operation in blanks.into_iter().flatten() {
        for force in [false, true] {
            let mut after = checkpoint.clone();
            let context = OperationContext::at(now).with_force(force);
            let error = after.apply(&operation, &context).unwrap_err();
            let is_told = match error.kind() {
                ErrorKind::Unsupported { .. } => !C::OPERATIONS.contains(&operation.name()),
                ErrorKind::Refused { .. } => {
                    C::OPERATIONS.contains(&operation.name())
                        && error
                            .to_string()
                            .contains(" is empty; describe it in a few words")
                }
                _ => false,
            };
            assert!(is_told, "{}: {operation:?}: {error}", C::FORMAT);
            assert_eq!(after, *checkpoint, "{}: {operation:?}", C::FORMAT);
        }
    }
}

fn read<C: Checkpoint>(text: &str) -> C {
    Document::from_text(text).unwrap().read().unwrap().value
}

#[test]
fn every_format_refuses_what_says_nothing() {
    let now = time("2026-03-02T08:00:00Z");
    let mut task = TaskCheckpoint::begin("a", ["one"], now);
    task.report_at(start("one"), now).unwrap();
    refuses(&task);
    let mut agent = AgentCheckpoint::begin("A", "s", "f", ["one"], now);
    agent.report(start("one")).unwrap();
    refuses(&agent);
    refuses(&SitebuilderCheckpoint::begin("a", "T1", ["one"], now));
    refuses(&read::<BuildCheckpoint>(
        r#"{"status": "in_progress", "in_progress_workstreams": ["one"], "pending_workstreams": ["two"]}"#,
    ));
    refuses(&read::<StoryCheckpoint>(r#"{"stage": 2}"#));
}
