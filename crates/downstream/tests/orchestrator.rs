//! Tests as a user would write them.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::path::Path;

use agent_checkpoint::StepDone;
use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};
use agent_checkpoint::json::Document;
use agent_checkpoint::recorder::{Opened, Recorder};
use agent_checkpoint::store::{CheckpointStore, FileStore, MemoryStore, Put};
use agent_checkpoint::{CheckpointStoreExt, ErrorKind, Key, RuleContext, Timestamp};
use agent_checkpoint_downstream::{Errand, Next, Team, formats, next};

#[test]
fn an_errand_is_begun_resumed_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let key = Key::new("shopping").unwrap();
    let errands = store.checkpoints::<Errand>();
    let step = || next(&errands, &key, &["baker", "bank"], folder.path()).unwrap();
    assert_eq!(step(), Next::Begin);
    errands.update(&key, Errand::make_stop).unwrap();
    let Next::Resume(prompt) = step() else {
        unreachable!("a stop is left");
    };
    assert!(prompt.contains("bank"), "{prompt}");
    assert!(
        !cfg!(feature = "template") || prompt.contains("- baker\n"),
        "{prompt}"
    );
    errands.update(&key, Errand::make_stop).unwrap();
    assert_eq!(step(), Next::Nothing);
}

#[test]
fn an_errand_is_run_with_a_recorder() {
    let errands = MemoryStore::new().checkpoints::<Errand>();
    let key = Key::new("shopping").unwrap();
    let first = Errand::new(&["baker", "bank"], errands.now());
    let failed = Recorder::run(&errands, &key, "boy", &first, |step| match step.text() {
        "bank" => Err("closed"),
        _ => Ok(StepDone::current()),
    });
    assert_eq!(failed.unwrap_err().to_string(), "closed");
    let errand = errands.get(&key).unwrap().checkpoint;
    assert_eq!(errand.made, ["baker"]);
    assert_eq!(
        errand.in_the_way,
        ["closed"],
        "the error is in the checkpoint"
    );

    let Opened::Found(found) = Recorder::begin(&errands, &key, "girl", &first).unwrap() else {
        unreachable!("it was begun, and a stop is left");
    };
    let recorder = found.carry_on().unwrap();
    recorder.unblock().unwrap();
    assert_eq!(recorder.next_step().unwrap().as_deref(), Some("bank"));
    recorder.step_done(&StepDone::current()).unwrap();
    let beside = recorder.step_added("library", None).unwrap_err();
    assert!(
        matches!(beside.kind(), ErrorKind::Unsupported { .. }),
        "{beside}"
    );
    drop(recorder);
    let again = Recorder::begin(&errands, &key, "boy", &first).unwrap();
    assert!(matches!(again, Opened::Complete(_)));
}

#[cfg(feature = "schema")]
#[test]
fn the_schemas_were_written_when_the_crate_was_built() {
    use agent_checkpoint_downstream::ERRAND_SCHEMA;
    let errand: serde_json::Value = serde_json::from_str(ERRAND_SCHEMA).unwrap();
    assert_eq!(
        errand["$id"],
        "https://orchestrator.example/schemas/errand.1.read"
    );
    for (errand, good) in [
        (r#"{"left": ["bank"], "mood": "good"}"#, true),
        (r#"{"left": [], "seconds_per_stop": 600}"#, true),
        (r#"{"left": [], "seconds_per_stop": 1.5}"#, false),
        (r#"{"made": []}"#, false),
        (r#"{"left": [], "changed": "yesterday"}"#, false),
    ] {
        let value = serde_json::from_str(errand).unwrap();
        let schema = serde_json::from_str(ERRAND_SCHEMA).unwrap();
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        assert_eq!(validator.is_valid(&value), good, "{errand}");
    }
}

#[test]
fn each_team_has_errands_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let teams = ["blue", "red"].map(|name| Team::open(folder.path(), name));
    let key = Key::new("shopping").unwrap();
    for (team, stops) in teams.iter().zip([["baker"], ["bank"]]) {
        let step = || next(&team.checkpoints(), &key, &stops, folder.path()).unwrap();
        assert_eq!(step(), Next::Begin);
        assert!(matches!(step(), Next::Resume(text) if text.contains(stops[0])));
    }
    let errands = teams[1].checkpoints::<Errand>();
    errands.update(&key, Errand::make_stop).unwrap();
    let left = |team: &Team| {
        team.checkpoints::<Errand>()
            .get(&key)
            .unwrap()
            .checkpoint
            .left
    };
    assert_eq!(
        teams.each_ref().map(left),
        [vec!["baker".to_owned()], vec![]]
    );
}

#[test]
fn a_format_of_our_own_stands_beside_the_librarys() {
    let formats = formats();
    let document = Document::from_text(r#"{"made":[1]}"#).unwrap();
    let errand = formats.get("errand").unwrap();
    let violations = errand.violations(&document, &RuleContext::none()).unwrap();
    let found: Vec<_> = violations
        .iter()
        .map(|v| (&*v.pointer, v.code.as_str()))
        .collect();
    assert_eq!(found, [("/made/0", "wrong-type"), ("/left", "missing")]);
    let path = Path::new("builder-state.json");
    assert_eq!(
        formats.detect(path, None).unwrap().format.name(),
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
    store.put(&key, Put::new(document.clone())).unwrap();
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

#[cfg(feature = "proptest")]
mod properties {
    use agent_checkpoint::formats::task::TaskCheckpoint;
    use agent_checkpoint::store::Outcome;
    use agent_checkpoint::strategies::as_agents_write_it;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// This orchestrator loads any file that an agent writes, and destroys nothing in it.
        #[test]
        fn any_file_of_an_agent_loads_and_survives(
            text in as_agents_write_it::<TaskCheckpoint>()
        ) {
            let store = MemoryStore::new();
            let key = Key::new("a").unwrap();
            let document = Document::from_text(text).unwrap();
            store.put(&key, Put::new(document.clone())).unwrap();
            let tasks = store.checkpoints::<TaskCheckpoint>();
            tasks.get(&key).unwrap();
            prop_assert_eq!(tasks.update(&key, |_| {}).unwrap().outcome, Outcome::Unchanged);
        }
    }
}
