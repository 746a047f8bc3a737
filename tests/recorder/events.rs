//! The events that a program can watch with `tracing`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Once;
use std::time::Duration;

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::{Opened, Recorder, RecorderOptions};
use agent_checkpoint::store::{
    CheckpointStore, DeleteOptions, FileStore, RecoverOptions, Recovery,
};
use agent_checkpoint::{CheckpointStoreExt, Expect, Limits, PutMode};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::key;

type Fields = BTreeMap<&'static str, String>;

thread_local! {
    static SEEN: RefCell<Vec<Fields>> = const { RefCell::new(Vec::new()) };
}

/// Records the events of the library, separately for each thread. It is the subscriber of the whole program: with a
/// subscriber of one thread, an event that another thread reaches first may count as one without subscribers.
struct Watching;

struct Reading<'f>(&'f mut Fields);

impl Visit for Reading<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Watching {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "agent_checkpoint::event"
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Reading(&mut fields));
        SEEN.with_borrow_mut(|seen| seen.push(fields));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The events of `work`, each with its revision.
fn events(work: impl FnOnce()) -> Vec<(String, Option<String>, Option<String>)> {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| tracing::subscriber::set_global_default(Watching).unwrap());
    SEEN.take();
    work();
    let events = SEEN.take();
    let event = |fields: &Fields| {
        assert_eq!(fields["key"], "x", "{fields:?}");
        assert!(fields["duration_ms"].parse::<f64>().unwrap() >= 0.0);
        let field = |name| fields.get(name).cloned();
        (fields["event"].clone(), field("revision"), field("agent"))
    };
    events.iter().map(event).collect()
}

#[test]
fn each_event_has_its_name_key_revision_agent_and_duration() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let mut limits = Limits::default();
    limits.completed_steps = Some(1);
    let tasks = store.checkpoints::<TaskCheckpoint>().with_limits(limits);
    let first = TaskCheckpoint::begin("dev", ["a", "b", "c"], tasks.now());
    let key = key("x");
    let revision = || Some(tasks.get(&key).unwrap().revision.to_string());
    let (dev, none) = (Some("dev".to_owned()), None::<String>);
    let named = |name: &str, revision: &Option<String>, agent: &Option<String>| {
        (name.to_owned(), revision.clone(), agent.clone())
    };

    let mut begun = None;
    let told = events(|| {
        let Opened::Begun(recorder) = Recorder::begin(&tasks, &key, "dev", &first).unwrap() else {
            panic!("it was there")
        };
        begun = Some(recorder);
    });
    let claimed = named("claimed", &none, &dev);
    assert_eq!(told, [claimed, named("saved", &revision(), &dev)]);

    let dead = begun.unwrap();
    dead.step_done(&StepDone::new("a")).unwrap();
    let told = events(|| drop(dead.step_done(&StepDone::new("b")).unwrap()));
    let saved = ["saved", "truncated"].map(|name| named(name, &revision(), &dev));
    assert_eq!(told, saved);
    assert_eq!(
        events(|| drop(dead.unblock().unwrap())),
        [],
        "nothing was saved"
    );

    let before = revision();
    let told = events(|| {
        let options = RecorderOptions::new("other").taking_over();
        let found = Recorder::resume(&tasks, &key, options).unwrap();
        drop(found.carry_on().unwrap());
    });
    let other = Some("other".to_owned());
    let expected = [
        named("resumed", &before, &dev),
        named("taken over", &none, &other),
        named("saved", &revision(), &other),
    ];
    assert_eq!(told, expected);

    let told = events(|| {
        let put = tasks.put(&key, &first, PutMode::Edit, &Expect::Absent);
        put.unwrap_err();
    });
    assert_eq!(told, [named("conflict", &revision(), &none)]);

    store.delete(&key, &DeleteOptions::new()).unwrap();
    let told = events(|| {
        let options = RecoverOptions::new(Recovery::Newest);
        store.recover(&key, &options).unwrap();
    });
    assert_eq!(told, [named("recovered", &revision(), &none)]);

    // Another thread holds the lock for a while.
    let (locked, is_locked) = std::sync::mpsc::channel();
    let holder = std::thread::spawn({
        let (store, key) = (store.clone(), key.clone());
        move || {
            let hold = |_: Option<&agent_checkpoint::store::Stored>| {
                locked.send(()).unwrap();
                std::thread::sleep(Duration::from_millis(200));
                Ok(None)
            };
            store.transact(&key, hold).unwrap();
        }
    });
    is_locked.recv().unwrap();
    let told = events(|| drop(tasks.update(&key, |task| task.blockers = vec!["x".into()])));
    holder.join().unwrap();
    let names: Vec<&str> = told.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["lock waited", "saved"]);
}
