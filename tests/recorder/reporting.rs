//! One path from a report to its save, for the recorder and for callers without one.

use std::time::{Duration, Instant};

use agent_checkpoint::formats::SourceFiles;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::store::{CheckpointStore, MemoryStore, Outcome};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, ErrorKind, Limits, Operation, OperationContext, Report,
    StepDone,
};

use crate::common::{key, time};
use crate::scenes::Scene;

fn note(text: &str) -> Report {
    Operation::Note { text: text.into() }.into()
}

fn decide(text: &str) -> Report {
    let text = text.into();
    let rationale = None;
    Operation::Decide { text, rationale }.into()
}

/// A few reports of a task with the steps `a` and `b`.
fn reports() -> Vec<Report> {
    vec![
        Operation::StepStart { text: "a".into() }.into(),
        StepDone::current().with_modified("src/a.rs").into(),
        decide("Keep it simple"),
        decide("Keep it simple"),
        Operation::StepStart { text: "a".into() }.into(),
    ]
}

#[test]
fn each_report_of_a_batch_says_what_it_did() {
    let scene = Scene::new();
    drop(scene.task(&["a", "b"]));
    let tasks = scene.view::<TaskCheckpoint>();
    let context = OperationContext::at(tasks.now());
    let reported = tasks
        .report(&key("US-003"), &reports(), &context, |effect| {
            assert_eq!(*effect.report, reports()[effect.index]);
            let after = effect.after;
            (
                effect.is_changed,
                (effect.before.count_left(), after.count_left()),
                after.in_progress.len(),
                after.done.last().map(|item| item.text.clone()),
                effect.was_done("a"),
            )
        })
        .unwrap();
    assert_eq!(reported.saved.outcome, Outcome::Replaced);
    let a = || Some("a".to_owned());
    assert_eq!(
        reported.effects,
        [
            (true, (2, 2), 1, None, false),
            (true, (2, 1), 0, a(), false),
            (true, (1, 1), 0, a(), true),
            (false, (1, 1), 0, a(), true),
            // A finished step that begins again is left again.
            (true, (1, 2), 1, a(), true),
        ]
    );
}

#[test]
fn the_recorder_and_the_view_save_the_same() {
    let text = |scene: &Scene| {
        let stored = scene.store.load(&key("US-003")).unwrap().unwrap();
        stored.document.into_text()
    };
    let (one, other) = (Scene::new(), Scene::new());
    one.task(&["a", "b"]).batch(reports()).unwrap();
    drop(other.task(&["a", "b"]));
    let tasks = other.view::<TaskCheckpoint>();
    let context = OperationContext::at(tasks.now()).by(Some("dev"), None);
    tasks
        .report(&key("US-003"), &reports(), &context, |_| ())
        .unwrap();
    assert_eq!(text(&one), text(&other));
    assert!(text(&one).contains("Keep it simple"));
}

#[test]
fn of_several_reports_the_refused_one_is_named_and_none_is_saved() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    let wrong = [note("half"), note(" "), note("all")];
    let saves = scene.saves("US-003");
    let error = recorder.batch(wrong.clone()).unwrap_err();
    assert_eq!(error.report(), Some(1));
    drop(recorder);
    let tasks = scene.view::<TaskCheckpoint>();
    let context = OperationContext::at(tasks.now());
    let mut told = 0;
    let refused = tasks.report(&key("US-003"), &wrong, &context, |_| told += 1);
    let error = refused.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
    assert_eq!((error.report(), told), (Some(1), 1));
    assert_eq!(scene.saves("US-003"), saves);
    // An error of another kind belongs to none of the reports.
    let error = tasks.report(&key("other"), &wrong, &context, |_| ());
    assert_eq!(error.unwrap_err().report(), None);
}

#[test]
fn files_that_are_no_sources_are_left_out_where_that_is_asked_for() {
    let scene = Scene::new();
    drop(scene.task(&["a", "b"]));
    let tasks = scene.view::<TaskCheckpoint>();
    let done = |text: &str| -> Report {
        let done = StepDone::new(text).with_created("node_modules/x.js");
        done.with_modified("src/a.rs").into()
    };
    let sources = SourceFiles::default();
    let context = OperationContext::at(tasks.now()).with_sources(&sources);
    let reports = [done("a"), done("b")];
    let reported = tasks.report(&key("US-003"), &reports, &context, |_| ());
    let left_out = reported.unwrap().left_out;
    assert_eq!(left_out, ["node_modules/x.js", "node_modules/x.js"]);
    let task = tasks.get(&key("US-003")).unwrap().checkpoint;
    assert_eq!(task.files(), ["src/a.rs"]);
}

/// The best of several runs, in seconds, because another process may use the core.
fn seconds(mut work: impl FnMut() -> Duration) -> f64 {
    let times = (0..3).map(|_| work().as_secs_f64());
    times.fold(f64::MAX, f64::min)
}

#[test]
fn a_batch_takes_time_in_proportion_to_its_length() {
    let time = |length: usize| {
        let done = (0..length).map(|number| StepDone::new(format!("step {number}")).into());
        let reports: Vec<Report> = done.collect();
        seconds(|| {
            let tasks = MemoryStore::new().checkpoints::<TaskCheckpoint>();
            let tasks = tasks.with_limits(Limits::unlimited());
            let first = TaskCheckpoint::begin("dev", ["begin"], tasks.now());
            tasks.create(&key("a"), &first).unwrap();
            let context = OperationContext::at(tasks.now());
            let began = Instant::now();
            let reported = tasks.report(&key("a"), &reports, &context, |effect| {
                effect.after.count_left()
            });
            let took = began.elapsed();
            assert_eq!(reported.unwrap().effects.last(), Some(&1));
            took
        })
    };
    // With quadratic time it would be 256 times as long.
    let (short, long) = (time(40), time(640));
    assert!(long < short * 100.0, "{short} s became {long} s");
}

/// Which steps are left if the first of two was begun and is then finished in words that read like the second.
fn left_after<C: Checkpoint>(first: &C) -> Vec<String> {
    let views = MemoryStore::new().checkpoints::<C>();
    views.create(&key("a"), first).unwrap();
    let context = OperationContext::at(time("2026-03-02T08:00:00Z")).by(Some("dev"), None);
    let report = |reports: &[Report]| views.report(&key("a"), reports, &context, |_| ());
    let current = StepDone::new("Wire the toggle")
        .with_pending("x")
        .finish_current();
    assert!(current.finishes_current() && current.pending().is_none());
    assert!(!current.clone().with_pending("x").finishes_current());

    let none_begun = report(&[current.clone().into()]).unwrap_err();
    assert!(matches!(none_begun.kind(), ErrorKind::Refused { .. }));
    // The library's message must not name options.
    assert!(!none_begun.to_string().contains("--"), "{none_begun}");
    let start = Operation::StepStart {
        text: "Write tests".into(),
    };
    report(&[start.into(), current.into()]).unwrap();
    let handoff = views.get(&key("a")).unwrap().checkpoint.handoff();
    assert_eq!(handoff.in_progress, [], "{}", C::FORMAT);
    handoff.pending
}

#[test]
fn each_format_finishes_the_current_step_where_that_is_said() {
    let now = time("2026-03-02T07:00:00Z");
    let plan = ["Write tests", "Wire toggle"].map(str::to_owned);
    let left = ["Wire toggle"];
    assert_eq!(left_after(&TaskCheckpoint::begin("dev", &plan, now)), left);
    let session = AgentCheckpoint::begin("dev", "s1", "toggle", &plan, now);
    assert_eq!(left_after(&session), left);
    let site = SitebuilderCheckpoint::begin("dev", "t1", &plan, now);
    assert_eq!(left_after(&site), left);
}
