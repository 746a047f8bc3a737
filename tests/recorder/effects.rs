//! Effects outside of the checkpoint: begun once, and in doubt if it is unknown how they ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::ledger::{
    Effect, EffectDecision, EffectGuard, EffectRecord, EffectStatus, Settlement,
};
use agent_checkpoint::recorder::{Ran, Recorder};
use agent_checkpoint::resume::{ResumeDecision, ResumeOptions, ResumeReason};
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, FileOptions, FileStore, MemoryStore,
};
use agent_checkpoint::{CheckpointStoreExt, Error, ErrorKind, StepDone};

use crate::common::children::{Given, Running, say};
use crate::common::{EXAMPLE, key, task};
use crate::scenes::Scene;

fn mail() -> Effect {
    let mail = Effect::new("send-mail", &("team", "green")).unwrap();
    mail.with_check("look into the outbox")
}

#[track_caller]
fn begun(decision: EffectDecision) -> EffectGuard {
    match decision {
        EffectDecision::Do(guard) => guard,
        other => panic!("the effect is not to be brought about: {other:?}"),
    }
}

#[track_caller]
fn doubt(decision: EffectDecision) -> EffectRecord {
    match decision {
        EffectDecision::InDoubt(record) => record,
        other => panic!("not in doubt: {other:?}"),
    }
}

#[track_caller]
fn receipt(decision: EffectDecision) -> u32 {
    match decision {
        EffectDecision::AlreadyDone(receipt) => receipt.read().unwrap(),
        other => panic!("not done: {other:?}"),
    }
}

#[test]
fn an_effect_takes_place_once_whoever_goes_on() {
    let scene = Scene::new();
    let first = scene.task(&["Tell the team"]);
    begun(first.effect(&mail()).unwrap()).done(&7).unwrap();
    assert_eq!(receipt(first.effect(&mail()).unwrap()), 7);
    // A different effect is independent.
    let other = Effect::new("send-mail", &("team", "red")).unwrap();
    begun(first.effect(&other).unwrap()).not_done().unwrap();
    drop(first);

    let tasks = scene.view::<TaskCheckpoint>();
    let next = Recorder::resume(&tasks, &key("US-003"), "next").unwrap();
    let next = next.carry_on().unwrap();
    assert_eq!(receipt(next.effect(&mail()).unwrap()), 7);
    // An effect that did not take place may be begun again.
    begun(next.effect(&other).unwrap()).done(&8).unwrap();
    let all = next.ledger_state().unwrap().effects;
    assert_eq!(
        all.iter().map(|it| &*it.id).collect::<Vec<_>>(),
        [mail().id(), other.id()]
    );
    assert!(
        all.iter()
            .all(|it| matches!(it.status, EffectStatus::Done { .. }))
    );
    assert!(all[0].by.starts_with("dev, session ") && all[1].by.starts_with("next, session "));
}

#[test]
fn a_guard_that_is_dropped_leaves_a_doubt_which_only_a_finding_settles() {
    let scene = Scene::new();
    let recorder = scene.task(&["Tell the team"]);
    let effect = mail();
    for taken_place in [false, true] {
        let guard = begun(recorder.effect(&effect).unwrap());
        let EffectDecision::InProgress(record) = recorder.effect(&effect).unwrap() else {
            panic!("its guard is held");
        };
        let refused = recorder.settle(&record, Settlement::NotDone).unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::Refused { .. }),
            "{refused}"
        );
        drop(guard);
        let record = doubt(recorder.effect(&effect).unwrap());
        assert_eq!(record.how_to_check.as_deref(), Some("look into the outbox"));
        // A check without an answer changes nothing.
        doubt(recorder.effect_or_check(&effect, |_| None).unwrap());
        let decision = recorder.effect_or_check(&effect, |asked| {
            assert_eq!(asked.id, effect.id());
            Some(match taken_place {
                true => Settlement::done(&9).unwrap(),
                false => Settlement::NotDone,
            })
        });
        match taken_place {
            true => assert_eq!(receipt(decision.unwrap()), 9),
            false => begun(decision.unwrap()).not_done().unwrap(),
        }
    }
    // An effect that took place cannot be settled as not done.
    let done = &recorder.ledger_state().unwrap().effects[0];
    let refused = recorder.settle(done, Settlement::NotDone).unwrap_err();
    assert!(refused.to_string().contains("took place"), "{refused}");
    recorder
        .settle(done, Settlement::done(&1).unwrap())
        .unwrap();
    assert_eq!(receipt(recorder.effect(&effect).unwrap()), 9);
}

#[test]
fn what_was_found_out_about_one_time_settles_no_later_one() {
    let scene = Scene::new();
    let recorder = scene.task(&["Tell the team"]);
    drop(begun(recorder.effect(&mail()).unwrap()));
    let old = doubt(recorder.effect(&mail()).unwrap());
    recorder.settle(&old, Settlement::NotDone).unwrap();
    drop(begun(recorder.effect(&mail()).unwrap()));
    let late = recorder.settle(&old, Settlement::NotDone).unwrap_err();
    assert!(late.to_string().contains("was begun again since"), "{late}");
    doubt(recorder.effect(&mail()).unwrap());
}

#[test]
fn of_many_at_once_one_brings_the_effect_about() {
    let scene = Scene::new();
    let recorder = scene.task(&["Tell the team"]);
    let (sent, busy) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| match recorder.effect(&mail()).unwrap() {
                EffectDecision::Do(mut guard) => {
                    sent.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(20));
                    guard.done(&1).unwrap();
                }
                EffectDecision::InProgress(_) | EffectDecision::AlreadyDone(_) => {
                    busy.fetch_add(1, Ordering::Relaxed);
                }
                other => panic!("{other:?}"),
            });
        }
    });
    assert_eq!((sent.into_inner(), busy.into_inner()), (1, 7));
}

#[test]
fn an_agent_that_lost_its_task_begins_nothing_and_may_still_say_what_took_place() {
    let scene = Scene::new();
    let old = scene.task(&["Tell the team"]);
    let mut guard = begun(old.effect(&mail()).unwrap());
    scene.watch.pass(16);
    let tasks = scene.view::<TaskCheckpoint>();
    let new = Recorder::resume(&tasks, &key("US-003"), "other").unwrap();
    let new = new.carry_on().unwrap();
    let other = Effect::with_id("pay").unwrap();
    assert!(old.effect(&other).unwrap_err().is_taken_over());
    let there = &old.ledger_state().unwrap().effects[0];
    assert!(
        old.settle(there, Settlement::NotDone)
            .unwrap_err()
            .is_taken_over()
    );
    // Its process is still running: it is this one.
    assert!(matches!(
        new.effect(&mail()).unwrap(),
        EffectDecision::InProgress(_)
    ));
    guard.done(&7).unwrap();
    assert_eq!(receipt(new.effect(&mail()).unwrap()), 7);
    assert_eq!(
        new.ledger_state().unwrap().effects.len(),
        1,
        "and nothing else was begun"
    );
}

#[test]
fn an_end_that_comes_after_the_effect_was_begun_again_is_an_error() {
    let tasks = MemoryStore::new().checkpoints::<TaskCheckpoint>();
    tasks.create(&key("x"), &task(&["a"])).unwrap();
    let ledger = tasks.ledger(&key("x"), "one");
    let mut first = begun(ledger.begin(&mail()).unwrap());
    // As on another machine, which does not see the process: two lines written by hand.
    let store = tasks.store();
    let name = line(store, 0)["attempt"].as_str().unwrap().to_owned();
    let left = serde_json::json!({
        "is": "not-done", "at": "2026-03-02T08:00:00Z", "by": "two", "effect": mail().id(), "attempt": name,
    });
    assert!(
        store
            .beside()
            .append_to_ledger(&key("x"), &left.to_string(), 1, None)
            .unwrap()
    );
    let mut second = begun(ledger.begin(&mail()).unwrap());
    let late = first.done(&1).unwrap_err();
    assert!(matches!(late.kind(), ErrorKind::Refused { .. }), "{late}");
    second.done(&2).unwrap();
    drop(first);
    assert_eq!(receipt(ledger.begin(&mail()).unwrap()), 2);
}

fn line(store: &dyn CheckpointStore, at: usize) -> serde_json::Value {
    let lines = store.beside().ledger(&key("x")).unwrap();
    serde_json::from_str(&lines[at]).unwrap()
}

#[test]
fn a_doubt_is_a_question_of_the_plan_and_what_took_place_is_not_to_be_done_again() {
    let scene = Scene::new();
    let recorder = scene.task(&["Tell the team", "Clean up"]);
    let pay = Effect::with_id("pay invoice 7").unwrap();
    begun(recorder.effect(&pay).unwrap()).done(&()).unwrap();
    drop(begun(recorder.effect(&mail()).unwrap()));
    drop(recorder);
    let tasks = scene.view::<TaskCheckpoint>();
    let resume = tasks
        .resume(&key("US-003"), &ResumeOptions::new("."))
        .unwrap();
    assert_eq!(resume.plan.decision, ResumeDecision::Ask);
    let effects = vec![mail().id().to_owned()];
    assert!(
        resume
            .plan
            .reasons
            .contains(&ResumeReason::EffectsInDoubt { effects })
    );
    assert_eq!(resume.ledger.effects.len(), 2);
    let prompt = resume.prompt().unwrap();
    for said in [
        "To find out: look into the outbox",
        "Already took place, so do not do it again: pay invoice 7.",
    ] {
        assert!(prompt.contains(said), "{said} is not in: {prompt}");
    }
    let prompt = prompt.replace(mail().id(), "send-mail [digest]");
    insta::assert_snapshot!(
        "prompt_with_a_doubt",
        between(&prompt, "send-mail", "outbox")
    );

    // An agent's program continues: its effect is not begun blindly.
    let mut asked = 0;
    let ran = Recorder::run(&tasks, &key("US-003"), "next", &task(&[]), |step| {
        asked += usize::from(
            step.resume()
                .is_some_and(|resume| !resume.plan.questions.is_empty()),
        );
        if step.text() == "Tell the team" {
            let doubt = doubt(step.recorder().effect(&mail())?);
            step.recorder().settle(&doubt, Settlement::done(&7)?)?;
        }
        Ok::<_, agent_checkpoint::Error>(StepDone::current())
    });
    assert!(matches!(ran.unwrap(), Ran::Finished) && asked == 1);
}

/// The part of the text between `from` and `to`.
fn between(text: &str, from: &str, to: &str) -> String {
    let begin = text.find(from).unwrap();
    let line = &text[begin..];
    let at = line.find(to).map_or(line.len(), |at| at + to.len());
    // The time and the session id are different in each run.
    let mut words = line[..at].split(' ').map(|word| match word {
        word if word.starts_with("20") => "[time],",
        word if word.len() == 16 && word.chars().all(|c| c.is_ascii_hexdigit()) => "[session]",
        word => word,
    });
    words.by_ref().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_ledger_that_cannot_be_read_is_a_question_too_and_begins_nothing() {
    let tasks = MemoryStore::new().checkpoints::<TaskCheckpoint>();
    tasks.create(&key("x"), &task(&["a"])).unwrap();
    let ledger = tasks.ledger(&key("x"), "one");
    begun(ledger.begin(&mail()).unwrap()).done(&1).unwrap();
    let store = tasks.store();
    let later = r#"{"is": "proven", "at": "2026-03-02T08:00:00Z", "by": "a later version"}"#;
    assert!(
        store
            .beside()
            .append_to_ledger(&key("x"), later, 2, None)
            .unwrap()
    );
    for error in [
        ledger.effects().unwrap_err(),
        ledger.begin(&Effect::with_id("pay").unwrap()).unwrap_err(),
    ] {
        assert!(
            error.code() == "ledger" && error.to_string().contains("line 3 says `proven`"),
            "{error}"
        );
    }
    let plan = tasks
        .resume(&key("x"), &ResumeOptions::new("."))
        .unwrap()
        .plan;
    assert_eq!(plan.decision, ResumeDecision::Ask);
    assert!(
        plan.reasons.contains(&ResumeReason::EffectsUnknown),
        "{plan:?}"
    );
}

#[test]
fn a_ledger_ends_with_the_archive_of_the_complete_task_and_not_before() {
    let tasks = MemoryStore::new().checkpoints::<TaskCheckpoint>();
    let key = key("x");
    tasks.create(&key, &task(&["a"])).unwrap();
    let ledger = tasks.ledger(&key, "one");
    begun(ledger.begin(&mail()).unwrap()).done(&1).unwrap();
    let revision = || tasks.get(&key).unwrap().revision;
    let save = |text: &str| {
        let saved = tasks.update(&key, |task| task.blockers.push(text.into()));
        saved.unwrap();
    };
    let delete = || tasks.store().delete(&key, &Default::default());
    // Its archive fails, and it continues; so it does if the archive was killed before anything was moved.
    let fails = ledger.end_with(&revision(), || Err::<(), _>(Error::refused("full")));
    assert!(fails.unwrap_err().to_string().contains("full"));
    save("one more");
    assert_eq!(receipt(ledger.begin(&mail()).unwrap()), 1);
    let lines = || tasks.store().beside().ledger(&key).unwrap().len();
    let killed = r#"{"is":"ending","at":"2026-03-02T08:00:00Z","by":"one"}"#;
    for _ in 0..2 {
        let at = lines();
        assert!(
            tasks
                .store()
                .beside()
                .append_to_ledger(&key, killed, at, None)
                .unwrap()
        );
        save("and one more");
        assert_eq!(receipt(ledger.begin(&mail()).unwrap()), 1);
        // Then lines are added.
        begun(
            ledger
                .begin(&Effect::with_id(format!("pay {at}")).unwrap())
                .unwrap(),
        )
        .done(&2)
        .unwrap();
    }
    assert_eq!(ledger.effects().unwrap().len(), 3);

    // An effect in doubt must be settled first.
    let open = begun(ledger.begin(&Effect::with_id("fax").unwrap()).unwrap());
    for _ in 0..2 {
        let refused = ledger.end_with(&revision(), delete).unwrap_err();
        assert!(
            refused.to_string().contains("\"fax\" was begun"),
            "{refused}"
        );
    }
    drop(open);
    let fax = &ledger.effects().unwrap()[3];
    assert!(ledger.end_with(&revision(), delete).is_err());
    ledger.settle(fax, Settlement::NotDone).unwrap();
    let (text, of) = (tasks.get(&key).unwrap().checkpoint, revision());
    assert!(ledger.end_with(&of, delete).unwrap());
    assert!(ledger.effects().unwrap().is_empty());
    // Even if the same text comes again.
    tasks.create(&key, &text).unwrap();
    let again = begun(ledger.begin(&mail()).unwrap());
    assert_eq!(ledger.effects().unwrap().len(), 1);
    drop(again);
    // A checkpoint that was only deleted and created again has not ended; one that a killed program archived has.
    delete().unwrap();
    tasks.create(&key, &task(&["c"])).unwrap();
    doubt(ledger.begin(&mail()).unwrap());
    delete().unwrap();
    assert!(
        tasks
            .store()
            .beside()
            .append_to_ledger(&key, killed, lines(), None)
            .unwrap()
    );
    assert!(ledger.effects().unwrap().is_empty());
}

#[test]
fn an_archive_that_was_killed_before_it_said_so_ended_the_ledger_also_for_the_next_task() {
    for takes_place in [true, false] {
        let scene = Scene::new();
        let recorder = scene.task(&["Tell the team"]);
        begun(recorder.effect(&mail()).unwrap()).done(&1).unwrap();
        drop(recorder);
        let (tasks, key) = (scene.view::<TaskCheckpoint>(), key("US-003"));
        let ledger = tasks.ledger(&key, "one");
        let there = tasks.get(&key).unwrap();
        let lines = tasks.store().beside().ledger(&key).unwrap().len();
        let killed = format!(
            r#"{{"is":"ending","at":"2026-03-02T08:00:00Z","by":"one","document":"{}"}}"#,
            there.revision
        );
        let store = tasks.store().beside();
        assert!(store.append_to_ledger(&key, &killed, lines, None).unwrap());
        if takes_place {
            tasks.store().delete(&key, &Default::default()).unwrap();
            tasks.create(&key, &task(&["Another task"])).unwrap();
            assert!(ledger.effects().unwrap().is_empty());
            begun(ledger.begin(&mail()).unwrap()).done(&2).unwrap();
            assert_eq!(receipt(ledger.begin(&mail()).unwrap()), 2);
        } else {
            // It was killed before anything was moved, and its agent continues.
            let more = tasks.update(&key, |task| task.blockers.push("more".into()));
            more.unwrap();
            assert_eq!(receipt(ledger.begin(&mail()).unwrap()), 1);
        }
    }
}

#[test]
fn what_a_slot_was_for_when_an_effect_was_begun_gets_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("builder-state.json");
    std::fs::write(&path, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&path);
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let slot = store.list(&Default::default()).unwrap().entries[0]
        .key
        .clone();
    let ledger = tasks.ledger(&slot, "one");
    let mut guard = begun(ledger.begin(&mail()).unwrap());
    let of = store.load(&slot).unwrap().unwrap().context.task.unwrap();
    let host = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, host.replace(&of, "another-task")).unwrap();
    guard.done(&1).unwrap();
    assert!(ledger.effects().unwrap().is_empty());
    std::fs::write(&path, host).unwrap();
    assert_eq!(receipt(ledger.begin(&mail()).unwrap()), 1);
}

#[test]
fn each_task_of_a_slot_has_effects_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("builder-state.json");
    std::fs::write(&path, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&path);
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let slot = store.list(&Default::default()).unwrap().entries[0]
        .key
        .clone();
    let ledger = tasks.ledger(&slot, "one");
    begun(ledger.begin(&mail()).unwrap()).done(&1).unwrap();
    assert_eq!(receipt(ledger.begin(&mail()).unwrap()), 1);
    let of = store.load(&slot).unwrap().unwrap().context.task.unwrap();
    let host = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, host.replace(&of, "another-task")).unwrap();
    assert!(ledger.effects().unwrap().is_empty(), "those are of {of}");
    begun(ledger.begin(&mail()).unwrap()).done(&2).unwrap();
    std::fs::write(&path, host).unwrap();
    assert_eq!(receipt(ledger.begin(&mail()).unwrap()), 1);
}

#[test]
fn a_program_that_is_killed_leaves_a_doubt_once_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = FileStore::open(folder.path()).checkpoints::<TaskCheckpoint>();
    tasks.create(&key("x"), &task(&["a"])).unwrap();
    let function = "effects::child_begins_an_effect";
    let mut child = Running::start(function, folder.path(), "");
    assert_eq!(child.hear().as_deref(), Some("begun"));
    let ledger = tasks.ledger(&key("x"), "next");
    let seen = ledger.begin(&mail()).unwrap();
    match cfg!(target_os = "linux") {
        true => assert!(matches!(seen, EffectDecision::InProgress(_)), "{seen:?}"),
        // On other systems the process is not known to run, and it has no claim.
        false => assert!(matches!(seen, EffectDecision::InDoubt(_)), "{seen:?}"),
    }
    drop(child);
    assert!(doubt(ledger.begin(&mail()).unwrap()).by.contains("child"));
}

#[test]
fn child_begins_an_effect() {
    let Some(given) = Given::find() else { return };
    let tasks = FileStore::open(&given.folder).checkpoints::<TaskCheckpoint>();
    let ledger = tasks.ledger(&key("x"), "child");
    let _guard = begun(ledger.begin(&mail()).unwrap());
    say("begun");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn under_a_claim_of_another_an_effect_is_in_progress_until_the_claim_is_over() {
    let scene = Scene::new();
    let tasks = scene.view::<TaskCheckpoint>();
    let recorder = scene.task(&["a"]);
    // As a process on another machine leaves it.
    let begun = serde_json::json!({
        "is": "begun", "at": "2026-03-02T08:00:00Z", "by": "far away", "effect": "pay", "attempt": "1",
        "fence": recorder.fence(), "process": { "pid": 7, "boot": "another" },
    });
    let (store, key) = (tasks.store(), key("US-003"));
    let fence = recorder.fence();
    assert!(
        store
            .beside()
            .append_to_ledger(&key, &begun.to_string(), 0, fence)
            .unwrap()
    );
    let looker = tasks.ledger(&key, "looker");
    let status = || looker.effects().unwrap()[0].status.clone();
    assert_eq!(status(), EffectStatus::InProgress);
    // The owner of the claim does not wait for itself.
    doubt(recorder.effect(&Effect::with_id("pay").unwrap()).unwrap());
    scene.watch.pass(16);
    assert_eq!(status(), EffectStatus::InDoubt);
    assert!(
        !looker.effects().unwrap()[0].may_still_run(),
        "its claim kept it from going on"
    );
}

#[test]
fn what_cannot_be_seen_to_have_ended_is_checked_by_nobody() {
    let scene = Scene::new();
    let recorder = scene.task(&["a"]);
    let begun = serde_json::json!({
        "is": "begun", "at": "2026-03-02T08:00:00Z", "by": "far away", "effect": "pay", "attempt": "1",
        "process": { "pid": 7, "boot": "another" },
    });
    let (tasks, key) = (scene.view::<TaskCheckpoint>(), key("US-003"));
    let beside = tasks.store().beside();
    assert!(
        beside
            .append_to_ledger(&key, &begun.to_string(), 0, recorder.fence())
            .unwrap()
    );
    let pay = Effect::with_id("pay").unwrap();
    let decision = recorder.effect_or_check(&pay, |_| panic!("it may still run"));
    let seen = doubt(decision.unwrap());
    assert!(seen.may_still_run());
    // A person may know the answer.
    recorder.settle(&seen, Settlement::NotDone).unwrap();
}

#[test]
fn a_store_that_cannot_write_begins_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = FileStore::open(folder.path()).checkpoints::<TaskCheckpoint>();
    tasks.create(&key("x"), &task(&["a"])).unwrap();
    let reading = FileStore::with_options(folder.path(), FileOptions::read_only())
        .checkpoints::<TaskCheckpoint>();
    let refused = reading.ledger(&key("x"), "one").begin(&mail()).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::ReadOnly), "{refused}");
    assert!(
        reading
            .ledger(&key("x"), "one")
            .effects()
            .unwrap()
            .is_empty()
    );
}
