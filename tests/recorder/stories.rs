//! The acceptance lists of the builder-state document, one test for each story.

use std::cell::RefCell;
use std::fs;
use std::io;

use agent_checkpoint::formats::task::{Reason, TaskCheckpoint};
use agent_checkpoint::recorder::{ContextAdvice, Opened, Recorder, RecorderOptions};
use agent_checkpoint::resume::{
    PromptOptions, Prompts, ResumeDecision, ResumeOptions, ResumeReason,
};
use agent_checkpoint::staleness::Staleness;
use agent_checkpoint::store::BuilderStateStore;
use agent_checkpoint::{CheckpointStoreExt, Precision};
use agent_checkpoint::{Operation, StepDone};

use crate::common::{EXAMPLE, key};
use crate::scenes::Scene;

/// The active task of the document's own example, continued by another agent.
fn with_example(work: impl FnOnce(&Recorder<TaskCheckpoint>, &dyn Fn() -> String)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("builder-state.json");
    fs::write(&path, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&path);
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let options = RecorderOptions::new("react-dev");
    let found = Recorder::resume(&tasks, &key("active"), options).unwrap();
    work(&found.carry_on().unwrap(), &|| {
        fs::read_to_string(&path).unwrap()
    });
}

#[test]
fn us_002_checkpoint_creation_on_step_completion() {
    with_example(|recorder, text| {
        let before = recorder.checkpoint().unwrap();
        let done = StepDone::new("Wired toggle to context")
            .with_created("src/theme.css")
            .with_modified("src/components/DarkModeToggle.tsx")
            .with_modified("node_modules/react/index.js");
        let recorded = recorder.step_done(&done).unwrap();
        let after = recorder.checkpoint().unwrap();
        // The description, the files, the plan, the current step, the stamp.
        let step = after.completed_steps.last().unwrap();
        assert_eq!(step.step.as_deref(), Some("Wired toggle to context"));
        assert_eq!(step.files_created, ["src/theme.css"]);
        assert_eq!(step.files_modified, ["src/components/DarkModeToggle.tsx"]);
        assert_eq!(recorded.left_out, ["node_modules/react/index.js"]);
        assert_eq!(after.pending_steps, before.pending_steps[1..]);
        assert!(after.current_step.is_none());
        assert_ne!(
            after.metadata.last_updated_at,
            before.metadata.last_updated_at
        );
        // Read, changed and written as one: the builder's own members are unchanged.
        assert!(text().contains("\"storiesPending\": [\"US-004\"]"));
        assert!(serde_json::to_vec(&after).unwrap().len() < 2048);
    });
}

#[test]
fn us_003_checkpoint_creation_on_failure_or_rate_limit() {
    with_example(|recorder, text| {
        recorder
            .rate_limited(Some("onClick handler is half done"))
            .unwrap();
        let task = recorder.checkpoint().unwrap();
        assert_eq!(task.metadata.reason, Some(Reason::RateLimit));
        let current = task.current_step.unwrap();
        let note = current.partial_work.as_deref();
        assert_eq!(note, Some("onClick handler is half done"));

        // The failure is in the checkpoint before it is handled, even if the work does not report it.
        let retries = RefCell::new(0);
        let failed = recorder.scope(|_| {
            *retries.borrow_mut() += 1;
            Err::<(), _>(io::Error::other("build fails: no such token"))
        });
        let seen_by_whoever_is_told = text();
        let broken = failed.unwrap_err();
        assert_eq!(broken.to_string(), "build fails: no such token");
        assert!(broken.checkpoint.unwrap().is_written());
        assert!(seen_by_whoever_is_told.contains("\"reason\": \"failure\""));
        let task = recorder.checkpoint().unwrap();
        assert_eq!(task.metadata.reason, Some(Reason::Failure));
        assert_eq!(task.blockers, ["build fails: no such token"]);
        assert_eq!(task.completed_steps.len(), 2, "a full checkpoint");
    });
}

#[test]
fn us_004_checkpoint_creation_on_reassignment() {
    with_example(|recorder, _| {
        let before = recorder.checkpoint().unwrap();
        let handed = recorder.reassign("css-dev").unwrap();
        let prompt = handed.resume.prompt().unwrap();
        let task = recorder.checkpoint().unwrap();
        assert_eq!(task.metadata.reason, Some(Reason::Reassignment));
        assert_eq!(task.metadata.previous_agents, ["react-dev"]);
        // The other agent gets the formatted prompt with all the progress.
        for part in [
            "# Resuming Task: US-003",
            "partially completed by react-dev",
            "Created DarkModeToggle component",
            "Use CSS custom properties for theming",
            "Partial work: Added useTheme import, started onClick handler",
        ] {
            assert!(prompt.contains(part), "{part:?} in:\n{}", prompt);
        }
        assert_eq!(task.completed_steps, before.completed_steps);
        assert_eq!(task.decisions, before.decisions);
        // The agent that handed the task over writes no more.
        assert!(recorder.decide("late", None).unwrap_err().is_taken_over());
    });
}

#[test]
fn us_005_resume_from_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let file = root.join("a.rs");
    let store = agent_checkpoint::store::FileStore::open(root.join("checkpoints"));
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let name = key("US-003");
    let first = TaskCheckpoint::begin("react-dev", ["Make a", "Make b", "Make c"], tasks.now())
        .with_precision(Precision::MILLISECONDS);
    let Opened::Begun(recorder) = Recorder::begin(&tasks, &name, "react-dev", &first).unwrap()
    else {
        panic!("there was none");
    };
    fs::write(&file, "a").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(30));
    recorder
        .batch([
            Operation::StepStart {
                text: "Make a".into(),
            },
            Operation::Decide {
                text: "Plain files".into(),
                rationale: None,
            },
            StepDone::current().with_created("a.rs").into(),
            Operation::StepStart {
                text: "Make b".into(),
            },
        ])
        .unwrap();
    recorder.leave().unwrap();

    let options = || RecorderOptions::new("jest-tester").resuming_with(ResumeOptions::new(root));
    let found = Recorder::resume(&tasks, &name, options()).unwrap();
    let plan = &found.resume.plan;
    assert_eq!(
        plan.message,
        "Resuming from checkpoint (created by react-dev)"
    );
    assert_eq!(plan.files_unchanged, ["a.rs"]);
    assert!(plan.files_to_review.is_empty());
    assert_eq!(plan.start_at.as_deref(), Some("Make b"), "the current step");
    // Its agent disappeared in the middle of a step: how far that came is the only question.
    assert_eq!(plan.decision, ResumeDecision::Ask);
    let steps = vec!["Make b".to_owned()];
    assert_eq!(plan.reasons, [ResumeReason::StepInFlight { steps }]);
    let header = PromptOptions::new().with_header();
    let prompt = Prompts::default()
        .render("resume", &found.resume, &header)
        .unwrap()
        .text;
    assert!(
        prompt.starts_with("Resuming from checkpoint (created by react-dev)"),
        "{prompt}"
    );
    assert!(prompt.contains("Plain files"), "{prompt}");

    // A changed file gives a warning.
    std::thread::sleep(std::time::Duration::from_millis(30));
    fs::write(&file, "changed").unwrap();
    let found = Recorder::resume(&tasks, &name, options()).unwrap();
    assert!(matches!(found.resume.staleness, Staleness::Stale(_)));
    assert!(found.resume.plan.decision >= ResumeDecision::Verify);
    let warning = &found.resume.plan.warnings[0];
    assert!(warning.starts_with("Checkpoint may be stale — files modified since checkpoint"));

    // The whole task is finished, not only the begun steps.
    let recorder = found.carry_on().unwrap();
    recorder.step_done(&StepDone::current()).unwrap();
    let next = recorder.plan().unwrap().plan.start_at;
    assert_eq!(
        next.as_deref(),
        Some("Make c"),
        "the first pending one where none is current"
    );
    recorder.step_done(&StepDone::new("Make c")).unwrap();
    assert_eq!(
        recorder.plan().unwrap().plan.decision,
        ResumeDecision::Refuse
    );
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.metadata.previous_agents, ["react-dev"]);
}

#[test]
fn us_006_context_overflow_checkpoint() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b", "c", "d"]);
    for (at, step) in ["a", "b", "c"].into_iter().enumerate() {
        recorder.step_started(step).unwrap();
        recorder.step_done(&StepDone::current()).unwrap();
        // 26, 52 and 78 % of the context.
        let told = recorder.context_used(0.26 * (at + 1) as f64).unwrap();
        assert_eq!(matches!(told, ContextAdvice::Warn(_)), at == 2);
    }
    let reason = recorder.checkpoint().unwrap().metadata.reason;
    assert_eq!(reason, Some(Reason::ContextLimit));
    // Work can continue, until it must not.
    recorder.step_started("d").unwrap();
    recorder.note_partial("two of five cases").unwrap();
    let stop = recorder.context_used(0.93).unwrap();
    let message = stop.message().unwrap();
    assert_eq!(message, "Context limit reached. Resume with new session.");
    let last = recorder.checkpoint().unwrap();
    assert_eq!(last.metadata.reason, Some(Reason::ContextLimit));
    recorder.leave().unwrap();

    // A new session finds the checkpoint and is offered to resume.
    let first = scene.first(&["a", "b", "c", "d"]);
    let opened = Recorder::begin(&scene.view(), &key("US-003"), "dev", &first).unwrap();
    let Opened::Found(found) = opened else {
        panic!("the checkpoint was overwritten");
    };
    let kept = found.resume.handoff.done.len();
    assert!(
        kept * 2 > 4,
        "{kept} of 4 steps: more than the half is kept"
    );
    let recorder = found.carry_on().unwrap();
    let current = recorder.checkpoint().unwrap().current_step.unwrap();
    assert_eq!(current.partial_work.as_deref(), Some("two of five cases"));
}

/// The page for authors of agents: its examples are compiled and run with the documentation tests.
#[test]
fn us_007_update_builder_state_skill() {
    let page = include_str!("../../docs/recorder.md");
    for heading in [
        "## When to call what",
        "## Beginning and resuming",
        "## A stale checkpoint",
        "## When the work ends early",
    ] {
        assert!(page.contains(heading), "{heading}");
    }
    for call in [
        "step_done",
        "decide",
        "reassign",
        "context_used",
        "failed",
        "rate_limited",
    ] {
        assert!(page.contains(&format!("`{call}`")), "{call}");
    }
    assert!(page.matches("```rust").count() >= 3, "examples");
}
