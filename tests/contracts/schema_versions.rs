//! Released versions of a format's schema: older ones stay readable, newer ones are not overwritten.

use std::sync::Arc;

use crate::common::key;
use agent_checkpoint::formats::{Format, Inspection, SchemaVersion};
use agent_checkpoint::json::{Code, Document};
use agent_checkpoint::resume::ResumeOptions;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, FileStore, MemoryStore, Outcome, Put,
};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, Checkpoints, ErrorKind, Expect, Handoff, PutMode, Result,
    RuleContext, Timestamp,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A trip: version 1 had `stops` and minutes, version 2 calls them `left`, version 3 counts seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Trip {
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_version: Option<u64>,
    left: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Timestamp>,
}

fn stops_are_left(document: &mut Document) -> Result<()> {
    document.rename("/stops", "left")?;
    Ok(())
}

fn pauses_in_seconds(document: &mut Document) -> Result<()> {
    if let Some(minutes) = document.get("/pause_minutes").and_then(|it| it.as_u64()) {
        document.set("/pause_minutes", &(minutes * 60))?;
    }
    document.rename("/pause_minutes", "pause_seconds")?;
    Ok(())
}

impl Checkpoint for Trip {
    const FORMAT: &'static str = "trip";
    const VERSION_POINTER: Option<&'static str> = Some("/schema_version");
    const SCHEMA_VERSIONS: &'static [SchemaVersion] = &[
        SchemaVersion::new(1, "Stops, and pauses in minutes."),
        SchemaVersion::migrated(2, "Stops are called left.", stops_are_left),
        SchemaVersion::migrated(3, "Pauses are in seconds.", pauses_in_seconds),
    ];

    fn schema_version(&self) -> Option<u64> {
        self.schema_version
    }

    fn set_schema_version(&mut self, version: u64) {
        self.schema_version = Some(version);
    }

    fn updated_at(&self) -> Option<&Timestamp> {
        self.changed.as_ref()
    }

    fn stamp(&mut self, now: DateTime<Utc>) {
        self.changed = Some(Timestamp::like(self.changed.as_ref(), now));
    }

    fn files(&self) -> Vec<&str> {
        Vec::new()
    }

    fn handoff(&self) -> Handoff {
        let mut handoff = Handoff::default();
        handoff.pending.clone_from(&self.left);
        handoff
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        inspection.require("left");
    }
}

const FIRST: &str =
    "{\n    \"stops\": [\"a\",  \"b\"],\n    \"pause_minutes\": 5,\n    \"mood\": 1.50\n}\n";

#[test]
fn an_older_version_is_read_as_the_latest_and_is_as_it_was_until_something_is_saved() {
    let store = MemoryStore::new();
    let a = key("a");
    let document = Document::from_text(FIRST).unwrap();
    store.put(&a, Put::new(document.clone())).unwrap();
    let trips = store.checkpoints::<Trip>();
    let loaded = trips.get(&a).unwrap();
    assert_eq!(loaded.migrated_from, Some(1));
    assert_eq!(loaded.checkpoint.left, ["a", "b"]);
    assert_eq!(loaded.checkpoint.pause_seconds, Some(300));
    assert_eq!(loaded.checkpoint.schema_version, Some(3));
    assert_eq!(loaded.violations, []);
    let untouched = trips.update(&a, |_| {}).unwrap();
    assert_eq!(untouched.outcome, Outcome::Unchanged);
    assert_eq!(store.load(&a).unwrap().unwrap().document.text(), FIRST);
    let plan = trips.resume(&a, &ResumeOptions::new(".")).unwrap();
    assert_eq!(plan.handoff.pending, ["a", "b"]);
    trips
        .update(&a, |trip| {
            trip.left.remove(0);
        })
        .unwrap();
    let text = store.load(&a).unwrap().unwrap().document.text().to_owned();
    assert!(text.contains("    \"left\": [\"b\"],\n"), "{text}");
    assert!(text.contains("    \"pause_seconds\": 300,\n"), "{text}");
    assert!(text.contains("\"mood\": 1.50"), "{text}");
    assert!(text.contains("\"schema_version\": 3"), "{text}");
    assert_eq!(trips.get(&a).unwrap().migrated_from, None);
}

#[test]
fn each_version_between_is_migrated_by_the_later_ones_only() {
    let store = MemoryStore::new();
    let a = key("a");
    let trips = store.checkpoints::<Trip>();
    for (text, from, seconds) in [
        (
            "{\"schema_version\":2,\"left\":[],\"pause_minutes\":2}",
            Some(2),
            Some(120),
        ),
        (
            "{\"schema_version\":3,\"left\":[],\"pause_seconds\":2}",
            None,
            Some(2),
        ),
        // Leftovers of an older version count as the file's own members.
        (
            "{\"schema_version\":3,\"left\":[],\"pause_minutes\":2}",
            None,
            None,
        ),
        ("{\"schema_version\":1,\"stops\":[]}", Some(1), None),
    ] {
        let document = Document::from_text(text).unwrap();
        store.put(&a, Put::new(document.clone())).unwrap();
        let loaded = trips.get(&a).unwrap();
        assert_eq!(
            (loaded.migrated_from, loaded.checkpoint.pause_seconds),
            (from, seconds),
            "{text}"
        );
        assert_eq!(loaded.violations, [], "{text}");
    }
}

#[test]
fn a_whole_checkpoint_put_over_an_older_one_keeps_what_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let a = key("a");
    std::fs::write(folder.path().join("a.json"), FIRST).unwrap();
    let trips = store.checkpoints::<Trip>();
    let mut wanted = trips.get(&a).unwrap().checkpoint;
    trips.put(&a, &wanted, PutMode::Edit, &Expect::Any).unwrap();
    let text = || std::fs::read_to_string(folder.path().join("a.json")).unwrap();
    assert_eq!(text(), FIRST, "nothing changed");
    wanted.left.push("c".to_owned());
    trips.put(&a, &wanted, PutMode::Edit, &Expect::Any).unwrap();
    assert!(
        text().contains("\"mood\": 1.50") && !text().contains("stops"),
        "{}",
        text()
    );
}

#[test]
fn a_newer_version_is_read_reported_and_not_overwritten() {
    let store = MemoryStore::new();
    let a = key("a");
    let newer = "{\"schema_version\":4,\"left\":[\"a\"],\"wings\":2}";
    let document = Document::from_text(newer).unwrap();
    store.put(&a, Put::new(document.clone())).unwrap();
    let trips = store.checkpoints::<Trip>();
    let loaded = trips.get(&a).unwrap();
    assert_eq!(loaded.checkpoint.left, ["a"]);
    let found: Vec<_> = loaded
        .violations
        .iter()
        .map(|it| (&*it.pointer, it.code.clone()))
        .collect();
    assert_eq!(found, [("/schema_version", Code::NEWER_SCHEMA)]);
    for result in [
        trips.update(&a, |trip| trip.left.clear()),
        trips.put(&a, &Trip::default(), PutMode::Edit, &Expect::Any),
        trips.put(&a, &Trip::default(), PutMode::Replace, &Expect::Any),
    ] {
        let error = result.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::NewerSchema { found: 4, known: 3 });
    }
    assert_eq!(store.load(&a).unwrap().unwrap().document.text(), newer);
}

#[test]
fn a_version_that_cannot_be_read_is_migrated_by_nobody() {
    let store = MemoryStore::new();
    let a = key("a");
    let text = "{\"schema_version\":\"one\",\"stops\":[\"a\"]}";
    let document = Document::from_text(text).unwrap();
    store.put(&a, Put::new(document.clone())).unwrap();
    let trips = store.checkpoints::<Trip>();
    let loaded = trips.get(&a).unwrap();
    assert_eq!(
        (loaded.migrated_from, loaded.checkpoint.left.len()),
        (None, 0)
    );
    // A newer program may have written it.
    let error = trips
        .update(&a, |trip| trip.left.push("b".to_owned()))
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
    assert_eq!(store.load(&a).unwrap().unwrap().document.text(), text);
}

/// Its second version cannot be made of a document that has both names.
#[test]
fn a_migration_that_fails_is_an_error_that_names_both_versions_and_changes_nothing() {
    let store = MemoryStore::new();
    let a = key("a");
    let text = "{\"stops\":[\"a\"],\"left\":[\"b\"]}";
    let document = Document::from_text(text).unwrap();
    store.put(&a, Put::new(document.clone())).unwrap();
    let trips = store.checkpoints::<Trip>();
    for error in [
        trips.get(&a).unwrap_err(),
        trips.update(&a, |_| {}).unwrap_err(),
        trips
            .put(&a, &Trip::default(), PutMode::Replace, &Expect::Any)
            .unwrap_err(),
    ] {
        assert_eq!(error.code(), "migration");
        assert_eq!(error.key(), Some(&a));
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("/left"), "{source}");
    }
    assert_eq!(store.load(&a).unwrap().unwrap().document.text(), text);
}

#[test]
fn tools_and_fleets_see_the_latest_version_too() {
    let document = Document::from_text(FIRST).unwrap();
    let format = Format::of::<Trip>();
    let examined = format.inspect(&document, &RuleContext::none()).unwrap();
    assert_eq!(examined.handoff.pending, ["a", "b"]);
    assert_eq!(examined.violations, []);
    let surveyed = format
        .inspect(&document, &RuleContext::none().with_now(Utc::now()))
        .unwrap();
    assert_eq!(surveyed.handoff.pending, ["a", "b"]);
}

/// A pause of 2 minutes of version 2 is 120 seconds in version 3; migrated once more it would be 7,200.
fn pause(trips: &Checkpoints<Trip>) -> Option<u64> {
    trips.get(&key("top")).unwrap().checkpoint.pause_seconds
}

fn trip(seconds: u64) -> Trip {
    Trip {
        pause_seconds: Some(seconds),
        ..Trip::default()
    }
}

/// Every way to save writes the version, so no migration runs on a document of the latest version.
#[test]
fn no_migration_runs_twice_however_a_checkpoint_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("builder-state.json");
    std::fs::write(&host, "{}").unwrap();
    let memory = MemoryStore::new();
    let files = FileStore::open(folder.path().join("files"));
    let slots = BuilderStateStore::open(&host);
    let stores: [Arc<dyn CheckpointStore>; 3] =
        [Arc::new(memory), Arc::new(files), Arc::new(slots)];
    let top = key("top");
    for store in stores {
        let trips = store.checkpoints::<Trip>();
        trips.create(&top, &trip(120)).unwrap();
        assert_eq!(pause(&trips), Some(120));
        trips.update(&top, |it| *it = trip(60)).unwrap();
        assert_eq!(pause(&trips), Some(60));
        for (mode, seconds) in [(PutMode::Edit, 30), (PutMode::Replace, 15)] {
            trips.put(&top, &trip(seconds), mode, &Expect::Any).unwrap();
            assert_eq!(pause(&trips), Some(seconds), "{mode:?}");
        }
        // A value in memory with an older version number still has the latest layout.
        trips
            .update(&top, |it| {
                *it = trip(10);
                it.schema_version = Some(1);
            })
            .unwrap();
        assert_eq!(pause(&trips), Some(10));
        let text = store.load(&top).unwrap().unwrap().document.into_text();
        assert!(text.contains("\"schema_version\": 3"), "{text}");
    }
}

#[test]
fn a_document_of_an_older_version_in_a_host_file_is_migrated_once() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("builder-state.json");
    let text = "{\n  \"checkpoint\": {\n    \"stops\": [],\n    \"pause_minutes\": 2\n  },\n  \"mine\": 1.50\n}\n";
    std::fs::write(&host, text).unwrap();
    let slots = BuilderStateStore::open(&host);
    let trips = slots.checkpoints::<Trip>();
    for n in 0..3 {
        assert_eq!(pause(&trips), Some(120));
        trips
            .update(&key("top"), |it| it.left.push(format!("stop {n}")))
            .unwrap();
    }
    let text = std::fs::read_to_string(&host).unwrap();
    assert!(
        text.contains("\"pause_seconds\": 120") && text.contains("\"mine\": 1.50"),
        "{text}"
    );
}

/// Only the member that the format names is its version.
#[test]
fn a_member_of_that_name_elsewhere_is_no_version() {
    let store = MemoryStore::new();
    let a = key("a");
    for text in [
        "{\"schema_version\":1,\"stops\":[\"a\"],\"deps\":[{\"schema_version\":\"^1.2\"}]}",
        "{\"schema_version\":1,\"stops\":[\"a\"],\"schemaVersion\":9}",
    ] {
        store
            .put(&a, Put::new(Document::from_text(text).unwrap()))
            .unwrap();
        let trips = store.checkpoints::<Trip>();
        let loaded = trips.get(&a).unwrap();
        assert_eq!(
            (loaded.migrated_from, loaded.violations.len()),
            (Some(1), 0),
            "{text}"
        );
        trips.update(&a, |trip| trip.left.clear()).unwrap();
        store
            .delete(&a, &agent_checkpoint::store::DeleteOptions::new())
            .unwrap();
    }
}
