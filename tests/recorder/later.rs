//! A task that waits for a time, and one whose attempts fail repeatedly.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use agent_checkpoint::formats::Interruption;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::{BuildCheckpoint, ExecutionSpec, SpecPhase};
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::StoryCheckpoint;
use agent_checkpoint::formats::task::{Reason, TaskCheckpoint};
use agent_checkpoint::ledger::Waiting;
use agent_checkpoint::recorder::{Found, Ran, Recorder, RecorderOptions};
use agent_checkpoint::resume::{ResumeDecision, ResumeOptions, ResumePlan, ResumeReason};
use agent_checkpoint::store::{BuilderStateStore, FileOptions, FileStore, MemoryStore};
use agent_checkpoint::testkit::seam::{Call, Verdict, Watch, watched};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, Checkpoints, ClaimRequest, Clock, Operation, OperationContext,
    Report, StepDone,
};
use chrono::{DateTime, TimeDelta, Utc};

use crate::common::children::{Given, Running, say};
use crate::common::{EXAMPLE, key, time, tree};
use crate::scenes::{Scene, begun};

/// Two hours after the scene begins.
const UNTIL: &str = "2026-03-02T10:00:00Z";

fn limited(until: Option<DateTime<Utc>>) -> Operation {
    Operation::RateLimit { note: None, until }
}

fn paused(until: Option<DateTime<Utc>>) -> Operation {
    Operation::Pause { until }
}

fn plan<C: Checkpoint>(view: &Checkpoints<C>, name: &str) -> ResumePlan {
    let options = ResumeOptions::new("").ignoring_claims();
    view.resume(&key(name), &options).unwrap().plan
}

fn waits(plan: &ResumePlan) -> bool {
    let reasons = plan.reasons.iter();
    reasons
        .clone()
        .any(|it| matches!(it, ResumeReason::NotBefore { .. }))
        && plan.decision == ResumeDecision::Wait
}

// ---------------------------------------------------------------------------------------------------------------------
// Not before a time

#[test]
fn a_task_is_not_to_go_on_before_its_time() {
    let scene = Scene::new();
    let recorder = scene.task(&["Wire toggle"]);
    recorder.step_started("Wire toggle").unwrap();
    recorder.report(limited(Some(time(UNTIL)))).unwrap();
    recorder.leave().unwrap();
    let tasks = scene.view::<TaskCheckpoint>();
    let waiting = plan(&tasks, "US-003");
    assert!(waits(&waiting), "{waiting:?}");
    let message = waiting
        .message
        .split(" by dev, session ")
        .collect::<Vec<_>>();
    assert_eq!(
        message[0],
        "Not before 2026-03-02T10:00:00Z (2 h from now): rate-limit"
    );
    assert!(
        message[1].ends_with(" at 2026-03-02T08:00:00Z"),
        "{message:?}"
    );
    let until = UNTIL.to_owned();
    assert_eq!(
        waiting.reasons.last(),
        Some(&ResumeReason::NotBefore { until })
    );
    #[cfg(feature = "template")]
    {
        let resume = tasks
            .resume(&key("US-003"), &ResumeOptions::new(""))
            .unwrap();
        assert!(resume.prompt().is_ok());
    }

    // The usual loop leaves it; a caller may decide to continue.
    let first = scene.first(&["Wire toggle"]);
    let run = || {
        let work = |_: agent_checkpoint::recorder::Step<'_, TaskCheckpoint>| {
            Ok::<_, std::io::Error>(StepDone::current())
        };
        Recorder::run(&tasks, &key("US-003"), "next", &first, work).unwrap()
    };
    assert!(matches!(run(), Ran::Left(_)));
    let found = Recorder::resume(&tasks, &key("US-003"), "dev").unwrap();
    found.carry_on().unwrap().leave().unwrap();
    assert!(waits(&plan(&tasks, "US-003")), "nothing was done");

    scene.watch.pass(119);
    assert!(waits(&plan(&tasks, "US-003")));
    scene.watch.pass(1);
    let due = plan(&tasks, "US-003");
    assert_eq!(due.decision, ResumeDecision::Continue, "{due:?}");
    assert!(matches!(run(), Ran::Finished));
}

#[test]
fn a_task_waits_only_while_it_stands_as_the_report_left_it() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    let tasks = scene.view::<TaskCheckpoint>();
    let is_waiting = || waits(&plan(&tasks, "US-003"));
    let until = Some(time(UNTIL));
    recorder.report(limited(until)).unwrap();
    assert!(is_waiting());
    // A supervisor changes the plan.
    let add = Operation::StepAdd {
        text: "c".into(),
        before: None,
    };
    recorder
        .checkpoints()
        .report(
            &key("US-003"),
            &[add.into()],
            &OperationContext::at(scene.watch.now()),
            |_| (),
        )
        .unwrap();
    // By the protocol it no longer waits once something was reported.
    assert!(!is_waiting());
    recorder.report(limited(until)).unwrap();
    recorder.step_started("a").unwrap();
    assert!(!is_waiting());
    // It stops for another reason, which is no wait.
    recorder
        .interrupted(&Interruption::Stopped("told to".into()))
        .unwrap();
    assert!(!is_waiting());
    recorder.report(limited(until)).unwrap();
    assert!(is_waiting());
    // A later report without a time ends it, and a later time counts.
    recorder.report(limited(None)).unwrap();
    assert!(!is_waiting());
    let later = time(UNTIL) + TimeDelta::hours(1);
    recorder.report(limited(until)).unwrap();
    recorder.report(limited(Some(later))).unwrap();
    scene.watch.pass(121);
    assert!(is_waiting());
    // A complete task waits for nothing.
    recorder
        .batch([
            Report::from(StepDone::new("a")),
            StepDone::new("b").into(),
            StepDone::new("c").into(),
        ])
        .unwrap();
    recorder.report(limited(Some(later))).unwrap();
    recorder.complete().unwrap();
    assert_eq!(plan(&tasks, "US-003").decision, ResumeDecision::Refuse);
}

/// A task of this format waits by this report until its time, or until an agent works on it before.
fn check_format<C: Checkpoint>(
    first: &C,
    wait: fn(Option<DateTime<Utc>>) -> Operation,
    work: Operation,
) {
    let scene = Scene::new();
    let view = scene.view::<C>();
    let recorder = begun(&view, "x", "dev", first);
    let report = Report::forced(wait(Some(time(UNTIL))));
    recorder.report(report).unwrap();
    let waiting = plan(&view, "x");
    assert!(waits(&waiting), "{}: {waiting:?}", C::FORMAT);
    let said = wait(None);
    assert!(waiting.message.contains(said.name()), "{}", waiting.message);
    let state = recorder.ledger_state().unwrap();
    let handoff = recorder.checkpoint().unwrap().handoff();
    let until = time(UNTIL);
    assert_eq!(
        state.waiting(&handoff, scene.watch.now()),
        Some(Waiting::Time { until })
    );
    assert_eq!(state.waiting(&handoff, until), None);
    scene.watch.pass(121);
    assert!(!waits(&plan(&view, "x")), "{}", C::FORMAT);
    scene.watch.pass(-60);
    assert!(waits(&plan(&view, "x")), "{}", C::FORMAT);
    recorder.report(Report::forced(work)).unwrap();
    assert!(!waits(&plan(&view, "x")), "{}", C::FORMAT);
    // Without a time nothing changes.
    recorder.report(Report::forced(wait(None))).unwrap();
    assert!(!waits(&plan(&view, "x")), "{}", C::FORMAT);
}

#[test]
fn every_format_with_a_report_that_waits_takes_a_time() {
    let now = Scene::new().watch.now();
    let start = Operation::StepStart { text: "a".into() };
    check_format(
        &TaskCheckpoint::begin("dev", ["a", "b"], now),
        limited,
        start.clone(),
    );
    let site = SitebuilderCheckpoint::begin("dev", "T060", ["a", "b"], now);
    check_format(&site, limited, Operation::SubtaskStart { id: "a".into() });
    let session = AgentCheckpoint::begin("x", "s1", "feature_02", ["a", "b"], now);
    check_format(&session, limited, start.clone());
    check_format(&session, paused, start);
    let phase = SpecPhase::new(1, [("WS1", "Database"), ("WS2", "Service")]);
    let spec = ExecutionSpec::new([phase], ["lint"]);
    let build = BuildCheckpoint::initialize("PRD-009", "x", &spec, now).unwrap();
    check_format(
        &build,
        paused,
        Operation::WorkstreamStart { id: "WS1".into() },
    );
}

#[test]
fn a_report_that_is_refused_leaves_no_time() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    let until = Some(time(UNTIL));
    // The format has no pause, and the batch is one change.
    recorder.report(paused(until)).unwrap_err();
    let lacks = Operation::StepDrop {
        text: "z".into(),
        because: "it".into(),
    };
    recorder.batch([limited(until), lacks]).unwrap_err();
    assert_eq!(recorder.ledger_state().unwrap().not_before, None);
    // A report of an agent that lost the task does not count either.
    let tasks = scene.view::<TaskCheckpoint>();
    let found = Recorder::resume(
        &tasks,
        &key("US-003"),
        RecorderOptions::new("next").taking_over(),
    );
    let next = found.unwrap().carry_on().unwrap();
    let refused = recorder.report(limited(until)).unwrap_err();
    assert!(refused.is_taken_over(), "{refused}");
    assert_eq!(next.ledger_state().unwrap().not_before, None);
    next.report(limited(until)).unwrap();
    assert!(next.ledger_state().unwrap().not_before.is_some());
}

#[test]
fn a_time_is_a_member_of_the_operation() {
    for (line, operation) in [
        (r#"{"op":"pause"}"#, paused(None)),
        (
            r#"{"op":"pause","until":"2026-03-02T10:00:00Z"}"#,
            paused(Some(time(UNTIL))),
        ),
        (r#"{"op":"rate-limit"}"#, limited(None)),
        (
            r#"{"op":"rate-limit","until":"2026-03-02T10:00:00Z"}"#,
            limited(Some(time(UNTIL))),
        ),
    ] {
        assert_eq!(line.parse::<Report>().unwrap(), operation.clone().into());
        assert_eq!(serde_json::to_string(&operation).unwrap(), line);
    }
    let other = r#"{"op":"pause","until":"2026-03-02T12:00:00+02:00"}"#;
    assert_eq!(
        other.parse::<Report>().unwrap(),
        paused(Some(time(UNTIL))).into()
    );
    let wrong = r#"{"op":"pause","until":"tomorrow"}"#.parse::<Report>().unwrap_err();
    assert!(
        wrong
            .to_string()
            .contains("\"until\" is a time such as 2026-03-02T14:30:00Z"),
        "{wrong}"
    );
}

/// Lets this many calls through; after that nothing happens any more, as after a kill.
struct Kill(usize, bool);

impl Watch for Kill {
    fn before(&mut self, _: &Call<'_>) -> Verdict {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => {
                self.1 = true;
                return Verdict::Fail(std::io::Error::other("killed"));
            }
        }
        Verdict::Go
    }
}

#[test]
fn a_checkpoint_that_says_it_waits_has_its_time_wherever_its_agent_was_killed() {
    let until = Utc::now() + TimeDelta::hours(1);
    let (mut without, mut with) = (0, 0);
    for place in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let tasks = files(folder.path());
        let first = TaskCheckpoint::begin("dev", ["a"], tasks.now());
        let recorder = begun(&tasks, "US-003", "dev", &first);
        let kill = Rc::new(RefCell::new(Kill(place, false)));
        let reported = watched(kill.clone(), || recorder.report(limited(Some(until))));
        let task = tasks.get(&key("US-003")).unwrap().checkpoint;
        let plan = plan(&tasks, "US-003");
        match task.metadata.reason {
            Some(Reason::RateLimit) => {
                assert!(waits(&plan), "killed at call {place}: {plan:?}");
                with += 1;
            }
            _ => {
                assert_eq!(
                    plan.decision,
                    ResumeDecision::Continue,
                    "killed at call {place}"
                );
                without += 1;
            }
        }
        if !kill.borrow().1 {
            reported.unwrap();
            break;
        }
    }
    assert!(
        without > 20 && with > 1,
        "{without} without it, {with} with it"
    );
}

#[test]
fn a_slot_of_a_host_file_and_a_copy_keep_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("builder-state.json");
    std::fs::write(&host, EXAMPLE).unwrap();
    let store = BuilderStateStore::with_options(&host, FileOptions::default());
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let until = Utc::now() + TimeDelta::hours(1);
    let report = [limited(Some(until)).into()];
    let context = OperationContext::at(Utc::now()).by(Some("dev"), None);
    tasks
        .report(&key("active"), &report, &context, |_| ())
        .unwrap();
    assert!(waits(&plan(&tasks, "active")));
    let to = MemoryStore::new();
    agent_checkpoint::store::copy(
        &store,
        &to,
        &agent_checkpoint::store::CopyOptions::default(),
        &mut |_| {},
    )
    .unwrap();
    let copied = to.checkpoints::<TaskCheckpoint>();
    assert!(waits(&plan(&copied, "active")));
}

// ---------------------------------------------------------------------------------------------------------------------
// Attempts

/// A task in a scene whose agent is gone and whose claim expired.
fn lost(scene: &Scene) -> Checkpoints<TaskCheckpoint> {
    let recorder = scene.task(&["a", "b", "c"]);
    recorder.step_started("a").unwrap();
    lose(scene, recorder);
    scene.view()
}

/// The agent disappears without a report.
fn lose<C: Checkpoint>(scene: &Scene, recorder: Recorder<C>) {
    std::mem::forget(recorder);
    scene.watch.pass(16);
}

fn found(tasks: &Checkpoints<TaskCheckpoint>, agent: &str) -> Found<TaskCheckpoint> {
    Recorder::resume(tasks, &key("US-003"), agent).unwrap()
}

fn poisoned(plan: &ResumePlan) -> Option<(usize, Vec<String>)> {
    let of = |reason: &ResumeReason| match reason {
        ResumeReason::Poisoned { attempts, errors } => Some((*attempts, errors.clone())),
        _ => None,
    };
    let found = plan.reasons.iter().find_map(of);
    assert_eq!(
        found.is_some(),
        plan.message.starts_with("Poisoned"),
        "{plan:?}"
    );
    found
}

fn attempts(tasks: &Checkpoints<TaskCheckpoint>) -> usize {
    tasks
        .ledger(&key("US-003"), "")
        .state()
        .unwrap()
        .attempts
        .len()
}

#[test]
fn after_three_attempts_without_progress_a_task_is_refused() {
    let scene = Scene::new();
    let tasks = lost(&scene);
    for (number, agent) in ["dev", "ann", "bob"].into_iter().enumerate() {
        assert_eq!(poisoned(&plan(&tasks, "US-003")), None, "{number}");
        let next = found(&tasks, agent).carry_on().unwrap();
        assert_eq!(attempts(&tasks), number + 1);
        // This is no progress: a heartbeat, a note, a step that begins again.
        scene.watch.pass(1);
        next.step_started("a").unwrap();
        next.report(Operation::Note {
            text: "looked at it".into(),
        })
        .unwrap();
        // Its own attempt is still running.
        assert_eq!(poisoned(&next.plan().unwrap().plan), None);
        lose(&scene, next);
    }
    let refused = plan(&tasks, "US-003");
    assert_eq!(refused.decision, ResumeDecision::Refuse);
    let error = "ended without a word at: a".to_owned();
    assert_eq!(poisoned(&refused), Some((3, vec![error])));
    assert_eq!(
        refused.message,
        "Poisoned: 3 attempts in a row ended without progress (ended without a word at: a). Fix the cause, then \
         reset the count with `ckpt claim --reset-attempts` or `Ledger::reset_attempts`"
    );
    let error = found(&tasks, "next").carry_on().unwrap_err();
    assert!(error.to_string().contains("Poisoned"), "{error}");
    assert_eq!(attempts(&tasks), 3, "who is refused tries nothing");

    // The caller may set another number.
    let most = |most| {
        let options = ResumeOptions::new("")
            .ignoring_claims()
            .with_most_attempts(most);
        poisoned(&tasks.resume(&key("US-003"), &options).unwrap().plan).is_some()
    };
    assert!(most(0) && most(2) && most(3) && !most(4));

    // After the cause is fixed the task continues.
    let ledger = tasks.ledger(&key("US-003"), "ops");
    assert!(ledger.reset_attempts().unwrap());
    assert!(!ledger.reset_attempts().unwrap());
    assert_eq!(poisoned(&plan(&tasks, "US-003")), None);
    let next = found(&tasks, "next").carry_on().unwrap();
    assert_eq!(attempts(&tasks), 1);
    next.step_done(&StepDone::new("a")).unwrap();
}

#[test]
fn progress_starts_the_count_anew() {
    let scene = Scene::new();
    let tasks = lost(&scene);
    for round in 0..6 {
        let next = found(&tasks, "dev").carry_on().unwrap();
        // One of two attempts makes progress.
        if round % 2 == 1 {
            next.step_done(&StepDone::new(format!("more {round}")))
                .unwrap();
        } else {
            // A step in other words is no progress.
            next.step_started(&format!("a {round}")).unwrap();
        }
        lose(&scene, next);
        assert_eq!(poisoned(&plan(&tasks, "US-003")), None, "{round}");
        assert!(attempts(&tasks) <= 2);
    }
}

#[test]
fn what_is_handed_over_in_order_was_no_failed_attempt() {
    let scene = Scene::new();
    let tasks = lost(&scene);
    let mut next = found(&tasks, "dev").carry_on().unwrap();
    assert_eq!(attempts(&tasks), 1);
    for agent in ["ann", "bob", "cyd", "dan"] {
        next.reassign(agent).unwrap();
        drop(next);
        scene.watch.pass(16);
        next = found(&tasks, agent).carry_on().unwrap();
        assert_eq!(attempts(&tasks), 1);
    }
    // An agent that released its claim, or that stopped in order and let its claim expire, does not count as an attempt
    // either.
    for _ in 0..4 {
        next.leave().unwrap();
        next = found(&tasks, "dan").carry_on().unwrap();
        next.report(limited(None)).unwrap();
        lose(&scene, next);
        next = found(&tasks, "dan").carry_on().unwrap();
    }
    assert_eq!(attempts(&tasks), 1);
    // An agent that takes over from such an agent and disappears does count.
    for number in 2..4 {
        lose(&scene, next);
        next = found(&tasks, "eve").carry_on().unwrap();
        assert_eq!(attempts(&tasks), number);
    }
}

#[test]
fn a_claim_that_is_renewed_or_the_owners_own_counts_nothing() {
    let scene = Scene::new();
    let tasks = scene.view::<TaskCheckpoint>();
    let owner = agent_checkpoint::recorder::Owner::new("dev").in_session("s1");
    let recorder = begun(&tasks, "US-003", owner.clone(), &scene.first(&["a", "b"]));
    recorder.step_started("a").unwrap();
    // The same owner again while its claim is valid.
    let again = Recorder::resume(&tasks, &key("US-003"), owner).unwrap();
    let again = again.carry_on().unwrap();
    assert_eq!(attempts(&tasks), 0);
    std::mem::forget(recorder);
    // An owner that was away for longer than its claim renews it.
    scene.watch.pass(30);
    again
        .report(Operation::Note {
            text: "back again".into(),
        })
        .unwrap();
    assert_eq!(attempts(&tasks), 0);
    // An owner without a claim.
    let options = RecorderOptions::new("x").without_claim();
    lose(&scene, again);
    let next = Recorder::resume(&tasks, &key("US-003"), options).unwrap();
    let next = next.carry_on().unwrap();
    next.scope(|_| Err::<(), _>("no")).unwrap_err();
    assert_eq!(attempts(&tasks), 0);
    // A forced take-over from an owner with a valid claim counts.
    let claims = tasks.store();
    claims
        .claim(
            &key("US-003"),
            &ClaimRequest::new("hung", Duration::from_secs(900)),
        )
        .unwrap();
    let options = RecorderOptions::new("y").taking_over();
    let next = Recorder::resume(&tasks, &key("US-003"), options).unwrap();
    let _next = next.carry_on().unwrap();
    assert_eq!(attempts(&tasks), 1);
}

#[test]
fn work_that_fails_is_an_attempt_and_its_crash_is_counted_once() {
    let scene = Scene::new();
    let recorder = scene.task(&["a", "b"]);
    let tasks = scene.view::<TaskCheckpoint>();
    recorder.step_started("a").unwrap();
    recorder
        .scope(|_| Err::<(), _>("no such table\nat line 7"))
        .unwrap_err();
    assert_eq!(attempts(&tasks), 1);
    // It releases its claim: nothing more is counted.
    drop(recorder);
    let next = found(&tasks, "dev").carry_on().unwrap();
    assert_eq!(attempts(&tasks), 1);
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        next.scope(|_| -> Result<(), String> { panic!("out of memory") })
    }));
    assert!(panics.is_err());
    assert_eq!(attempts(&tasks), 2);
    // It is killed before it releases its claim: this is the same failure.
    lose(&scene, next);
    let next = found(&tasks, "dev").carry_on().unwrap();
    assert_eq!(attempts(&tasks), 2);
    assert_eq!(poisoned(&next.plan().unwrap().plan), None);
    next.scope(|_| Err::<(), _>("no such table")).unwrap_err();
    // That attempt has ended.
    let errors = ["panicked: out of memory", "no such table"];
    let (count, told) = poisoned(&plan(&tasks, "US-003")).unwrap();
    assert_eq!((count, told), (3, errors.map(str::to_owned).to_vec()));
    drop(next);

    // The same in the usual loop.
    let scene = Scene::new();
    let tasks = scene.view::<TaskCheckpoint>();
    let first = scene.first(&["a"]);
    let run = Recorder::run(&tasks, &key("US-003"), "dev", &first, |_| {
        Err::<StepDone, _>("no")
    });
    run.unwrap_err();
    assert_eq!(attempts(&tasks), 1);
}

/// In this format, a lost agent and failing work are attempts with the same mark.
fn check_attempts<C: Checkpoint>(first: &C, owner: &str, work: Operation) {
    let scene = Scene::new();
    let view = scene.view::<C>();
    let recorder = begun(&view, "x", owner, first);
    recorder.report(Report::forced(work)).unwrap();
    lose(&scene, recorder);
    for number in 1..3 {
        let found = Recorder::resume(&view, &key("x"), owner).unwrap();
        let next = found.carry_on().unwrap();
        next.scope(|_| Err::<(), _>(format!("failure {number}")))
            .unwrap_err();
        next.leave().unwrap();
        let options = ResumeOptions::new("")
            .ignoring_claims()
            .with_most_attempts(usize::MAX);
        let resume = view.resume(&key("x"), &options).unwrap();
        let failed = resume
            .ledger
            .failed_attempts(&resume.handoff, None, scene.watch.now());
        let errors: Vec<&str> = failed.iter().map(|failed| &*failed.error).collect();
        assert_eq!(errors.len(), number + 1, "{}: {errors:?}", C::FORMAT);
        assert_eq!(errors[number], format!("failure {number}"), "{}", C::FORMAT);
    }
}

#[test]
fn attempts_are_counted_in_every_format() {
    let now = Scene::new().watch.now();
    let start = Operation::StepStart { text: "a".into() };
    check_attempts(
        &TaskCheckpoint::begin("dev", ["a", "b"], now),
        "dev",
        start.clone(),
    );
    let site = SitebuilderCheckpoint::begin("dev", "T060", ["a", "b"], now);
    check_attempts(&site, "dev", Operation::SubtaskStart { id: "a".into() });
    let session = AgentCheckpoint::begin("x", "s1", "feature_02", ["a", "b"], now);
    check_attempts(&session, "x", start);
    let story = StoryCheckpoint::begin("PROJ-42", "dev", ["PROJ-101", "PROJ-102"], now).unwrap();
    check_attempts(
        &story,
        "dev",
        Operation::TaskStart {
            id: "PROJ-101".into(),
        },
    );
    let phase = SpecPhase::new(1, [("WS1", "Database"), ("WS2", "Service")]);
    let spec = ExecutionSpec::new([phase], ["lint"]);
    let build = BuildCheckpoint::initialize("PRD-009", "x", &spec, now).unwrap();
    check_attempts(
        &build,
        "dev",
        Operation::WorkstreamStart { id: "WS1".into() },
    );
}

#[test]
fn a_ledger_that_cannot_be_written_keeps_no_agent_from_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = FileStore::open(folder.path()).checkpoints::<TaskCheckpoint>();
    let first = TaskCheckpoint::begin("dev", ["a"], tasks.now());
    std::mem::forget(begun(&tasks, "US-003", "dev", &first));
    let ledger = folder.path().join(".agent-checkpoint/ledger");
    std::fs::create_dir_all(&ledger).unwrap();
    std::fs::write(ledger.join("US-003.json.jsonl"), "no line\n{}\n").unwrap();
    let options = RecorderOptions::new("next").taking_over();
    let next = Recorder::resume(&tasks, &key("US-003"), options).unwrap();
    let next = next.carry_on().unwrap();
    next.step_started("a").unwrap();
    next.scope(|_| Err::<(), _>("no")).unwrap_err();
}

#[test]
fn ordinary_work_writes_no_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = FileStore::open(folder.path()).checkpoints::<TaskCheckpoint>();
    let first = TaskCheckpoint::begin("dev", ["a", "b"], tasks.now());
    let recorder = begun(&tasks, "US-003", "dev", &first);
    recorder.step_started("a").unwrap();
    recorder.report(limited(None)).unwrap();
    drop(recorder);
    let next = found(&tasks, "next").carry_on().unwrap();
    next.scope(|it| it.step_done(&StepDone::new("a"))).unwrap();
    next.reassign("dev").unwrap();
    let ran = Recorder::run(&tasks, &key("US-003"), "dev", &first, |_| {
        Ok::<_, std::io::Error>(StepDone::current())
    });
    assert!(matches!(ran, Ok(Ran::Finished)));
    let is_of_ledger = |name: &String| name.contains("ledger");
    let files = tree(folder.path());
    assert!(!files.iter().any(is_of_ledger), "{files:?}");
}

// ---------------------------------------------------------------------------------------------------------------------
// Real processes

fn files(folder: &Path) -> Checkpoints<TaskCheckpoint> {
    FileStore::open(folder).checkpoints::<TaskCheckpoint>()
}

/// Works on the task until it is killed at its step; with `progress` it finishes one step before.
#[test]
fn child_works_at_its_step() {
    let Some(given) = Given::find() else { return };
    let (tasks, agent) = (files(&given.folder), given.words[0].as_str());
    let first = TaskCheckpoint::begin(agent, ["a", "b", "c", "d", "e", "f", "g"], tasks.now());
    let makes_progress = given.words[1] == "progress";
    let mut is_first = true;
    let ran = Recorder::run(&tasks, &key("US-003"), agent, &first, |step| {
        if makes_progress && is_first {
            is_first = false;
            return Ok::<_, std::io::Error>(StepDone::current());
        }
        say(&format!("at {}", step.text()));
        std::thread::sleep(Duration::from_secs(60));
        Ok(StepDone::current())
    });
    match ran {
        Ok(Ran::Left(found)) => say(&format!("left {}", found.resume.plan.message)),
        other => panic!("{other:?}"),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_crash_loop_ends_and_one_that_makes_progress_does_not() {
    let child = "later::child_works_at_its_step";
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..4 {
        let mut running = Running::start(child, folder.path(), "dev stuck");
        assert_eq!(running.hear().as_deref(), Some("at a"));
        running.kill();
    }
    assert_eq!(attempts(&files(folder.path())), 3);
    let said = Running::start(child, folder.path(), "dev stuck").finish();
    assert!(
        said[0].starts_with(
            "left Poisoned: 3 attempts in a row ended without progress (ended without a word at: a)"
        ),
        "{said:?}"
    );
    assert_eq!(attempts(&files(folder.path())), 3);

    let folder = tempfile::tempdir().unwrap();
    for step in ["b", "c", "d", "e", "f", "g"] {
        let mut running = Running::start(child, folder.path(), "dev progress");
        assert_eq!(running.hear(), Some(format!("at {step}")));
        running.kill();
        assert!(attempts(&files(folder.path())) <= 1);
    }
}
