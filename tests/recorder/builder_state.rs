//! The triggers of the builder-state document: "Checkpoints update on significant state transitions".

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::OpenEnum;
use agent_checkpoint::formats::task::{Phase, Reason, ResultStatus};
use agent_checkpoint::recorder::ContextAdvice;
use agent_checkpoint::store::Outcome;
use agent_checkpoint::{ErrorKind, Key};

use crate::scenes::Scene;

#[test]
fn trigger_step_completion() {
    let scene = Scene::new();
    let recorder = scene.task(&["Wire toggle", "Test it"]);
    recorder.step_started("Wire toggle").unwrap();
    scene.watch.pass(5);
    let done = StepDone::new("Wired toggle to context").with_modified("src/toggle.rs");
    recorder.step_done(&done).unwrap();
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.completed_steps.len(), 1);
    assert_eq!(task.completed_steps[0].files_modified, ["src/toggle.rs"]);
    assert_eq!(task.pending_steps, ["Test it"]);
    assert!(task.current_step.is_none());
    assert_eq!(task.metadata.reason, Some(Reason::Periodic));
    let stamp = task.metadata.last_updated_at.unwrap();
    assert_eq!(stamp.text(), "2026-03-02T08:05:00Z");
}

#[test]
fn trigger_decision_made() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    recorder.decide("CSS variables", Some("fast")).unwrap();
    let again = recorder.decide("CSS variables", Some("fast")).unwrap();
    assert_eq!(again.saved.outcome, Outcome::Unchanged);
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.decisions.len(), 1);
    assert_eq!(task.decisions[0].rationale.as_deref(), Some("fast"));
}

#[test]
fn trigger_reassignment() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    recorder.step_started("a").unwrap();
    let handed = recorder.reassign("go-tester").unwrap();
    let prompt = handed.resume.prompt().unwrap();
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.metadata.reason, Some(Reason::Reassignment));
    assert_eq!(task.metadata.previous_agents, ["dev"]);
    // It has done no work yet.
    assert_eq!(task.metadata.created_by.as_deref(), Some("dev"));
    assert!(prompt.contains("was begun by dev"), "{}", prompt);
    assert_eq!(handed.resume.plan.start_at.as_deref(), Some("a"));
}

#[test]
fn trigger_context_warning() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    assert_eq!(
        recorder.context_used(0.749).unwrap(),
        ContextAdvice::Continue
    );
    let reason = || recorder.checkpoint().unwrap().metadata.reason;
    assert_eq!(reason(), Some(Reason::Periodic));
    assert!(matches!(
        recorder.context_used(0.75).unwrap(),
        ContextAdvice::Warn(_)
    ));
    assert_eq!(reason(), Some(Reason::ContextLimit));
}

#[test]
fn trigger_failure() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    recorder.step_started("a").unwrap();
    recorder.failed("the tests do not compile").unwrap();
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.metadata.reason, Some(Reason::Failure));
    assert_eq!(task.blockers, ["the tests do not compile"]);
    assert!(task.current_step.is_some(), "the checkpoint is a full one");
    let again = recorder.failed("the tests do not compile").unwrap();
    assert!(!again.is_written());
}

#[test]
fn trigger_rate_limit() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    recorder.step_started("a").unwrap();
    recorder.rate_limited(Some("half of the rows")).unwrap();
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.metadata.reason, Some(Reason::RateLimit));
    let note = task.current_step.unwrap().partial_work;
    assert_eq!(note.as_deref(), Some("half of the rows"));
}

#[test]
fn a_context_warns_once_for_each_crossing_and_stops_whenever_it_is_full() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    let told = |fraction| recorder.context_used(fraction).unwrap();
    let warning = told(0.78);
    let words = Some("Context limit approaching, creating checkpoint");
    assert_eq!(warning.message(), words);
    let writes = scene.saves("US-003");
    assert_eq!(told(0.80), ContextAdvice::Continue);
    assert_eq!(scene.saves("US-003"), writes, "told once, written once");

    let stop = told(0.9);
    assert!(matches!(stop, ContextAdvice::Stop(Some(_))));
    let words = Some("Context limit reached. Resume with new session.");
    assert_eq!(stop.message(), words);
    assert_eq!(told(0.95), ContextAdvice::Stop(None));

    // After a compaction the next crossing counts again, even if both thresholds are crossed at once.
    assert_eq!(told(0.2), ContextAdvice::Continue);
    assert!(matches!(told(0.76), ContextAdvice::Warn(_)));
    assert_eq!(told(0.1), ContextAdvice::Continue);
    assert!(matches!(told(0.97), ContextAdvice::Stop(Some(_))));
    for wrong in [-0.1, 78.0, f64::NAN] {
        let refused = recorder.context_used(wrong).unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::Refused { .. }),
            "{wrong}"
        );
    }
}

#[test]
fn every_other_report_of_the_format_is_one_call() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    recorder.step_started("a").unwrap();
    recorder.note_partial("half of it").unwrap();
    let other = recorder.step_started("b").unwrap();
    let aside = other.superseded.unwrap();
    assert_eq!(
        (aside.text.as_str(), aside.note.as_deref()),
        ("a", Some("half of it"))
    );
    recorder.phase("verification").unwrap();
    recorder.verification("unit tests", "passed").unwrap();
    recorder.block("CI is down").unwrap();
    let task = recorder.checkpoint().unwrap();
    assert_eq!(task.phase, Some(Phase::Verification));
    assert_eq!(task.blockers, ["CI is down"]);
    let results = &task.verification.unwrap().results;
    assert_eq!(results[0].status, Some(ResultStatus::Passed));
    recorder.unblock().unwrap();
    assert!(recorder.checkpoint().unwrap().blockers.is_empty());
    assert!(!ResultStatus::KNOWN.is_empty());
}

#[test]
fn what_the_format_cannot_express_says_so_with_the_list() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    let refused = recorder.sync("Group 1").unwrap_err();
    let ErrorKind::Unsupported {
        operation,
        supported,
    } = refused.kind()
    else {
        panic!("{refused}");
    };
    assert_eq!(operation, "sync");
    assert!(
        supported.contains(&"rate-limit".to_owned()),
        "{supported:?}"
    );
    assert_eq!(refused.key(), Some(&Key::new("US-003").unwrap()));
    assert!(recorder.complete().is_err() && recorder.gate_passed("lint").is_err());
}
