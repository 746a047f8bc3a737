//! What a user's own tests look like.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::path::Path;

use agent_checkpoint::fleet::{FleetOptions, Source};
use agent_checkpoint::store::PutOptions;
use agent_checkpoint::strategies::as_agents_write_it;
use agent_checkpoint::{
    CheckpointStore, CheckpointStoreExt, Document, FileStore, Fleet, Key, Knowledge, MemoryStore,
    Outcome, TaskCheckpoint, Timestamp,
};
use agent_checkpoint_downstream::{BUILD_SCHEMA, Errand, Next, TASK_SCHEMA, formats, next};
use proptest::prelude::*;

#[test]
fn an_errand_is_begun_resumed_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let key = Key::new("shopping").unwrap();
    let step = || next(&store, &key, &["baker", "bank"], folder.path()).unwrap();
    assert_eq!(step(), Next::Begin);
    let errands = store.checkpoints::<Errand>();
    errands.update(&key, Errand::make_stop).unwrap();
    let Next::Resume(prompt) = step() else {
        unreachable!("a stop is left");
    };
    assert!(
        prompt.contains("- baker\n") && prompt.contains("1. bank\n"),
        "{prompt}"
    );
    errands.update(&key, Errand::make_stop).unwrap();
    assert_eq!(step(), Next::Nothing);
}

#[test]
fn the_schemas_were_written_when_the_crate_was_built() {
    for (schema, member) in [
        (TASK_SCHEMA, "pendingSteps"),
        (BUILD_SCHEMA, "gates_passed"),
    ] {
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        assert!(schema["properties"][member].is_object(), "{member}");
    }
}

#[test]
fn a_format_of_our_own_stands_beside_the_librarys() {
    let formats = formats();
    let document = Document::from_text(r#"{"made":[1]}"#).unwrap();
    let examine = formats.get("errand").unwrap().examine;
    let violations = examine(&document, &Knowledge::none()).unwrap();
    let found: Vec<_> = violations
        .iter()
        .map(|v| (&*v.pointer, v.code.as_str()))
        .collect();
    assert_eq!(found, [("/made/0", "wrong-type"), ("/left", "missing")]);
    let path = Path::new("builder-state.json");
    assert_eq!(
        formats.detect(path, None).unwrap().format.name,
        "builder-state"
    );
}

#[test]
fn an_errand_is_watched_like_every_other_checkpoint() {
    let time = |text| Timestamp::parse(text).time().unwrap().to_utc();
    let start = time("2026-03-02T08:00:00Z");
    let store = MemoryStore::new();
    let mut errand = Errand::new(&["baker", "bank"], start);
    errand.make_stop();
    let document = Document::new(&errand).unwrap();
    let key = Key::new("shopping").unwrap();
    store.put(&key, &document, &PutOptions::new()).unwrap();
    let sources = [Source::store_of("errands", &store, "errand")];
    let options = FleetOptions::new().with_formats(formats());
    for (now, result) in [
        ("2026-03-02T08:29:59Z", "active"),
        ("2026-03-02T08:30:00Z", "late"),
        ("2026-03-02T09:00:00Z", "stalled"),
    ] {
        let fleet = Fleet::scan(&sources, &options, time(now));
        let row = &fleet.rows()[0];
        assert_eq!((row.result(), row.progress.percent), (result, Some(50)));
    }
}

proptest! {
    /// Whatever agents write, this orchestrator loads it and destroys nothing.
    #[test]
    fn any_file_of_an_agent_loads_and_survives(
        text in as_agents_write_it::<TaskCheckpoint>()
    ) {
        let store = MemoryStore::new();
        let key = Key::new("a").unwrap();
        let document = Document::from_text(text).unwrap();
        store.put(&key, &document, &PutOptions::new()).unwrap();
        let tasks = store.checkpoints::<TaskCheckpoint>();
        tasks.get(&key).unwrap();
        prop_assert_eq!(tasks.update(&key, |_| {}).unwrap().outcome, Outcome::Unchanged);
    }
}
