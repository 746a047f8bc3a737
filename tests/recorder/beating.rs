//! Heartbeats beside the work, only in formats where they are no progress.

use std::fs;
use std::time::Duration;

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::build_pipeline::{BuildCheckpoint, ExecutionSpec, SpecPhase};
use agent_checkpoint::formats::builder_state::BuilderState;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::Recorder;
use agent_checkpoint::staleness::{Staleness, Tracking};
use agent_checkpoint::store::{BuilderStateStore, FileOptions, FileStore};
use agent_checkpoint::{Checkpoint, CheckpointStoreExt, Clock, ErrorKind};

use crate::common::{EXAMPLE, children::wait_until, key};
use crate::scenes::{Scene, Watch, begun};

const OFTEN: Duration = Duration::from_millis(1);

#[test]
fn the_heartbeat_of_a_host_is_its_own_and_leaves_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("builder-state.json");
    fs::write(&path, EXAMPLE).unwrap();
    let watch = Watch::at("2026-03-02T08:00:00Z");
    let options = FileOptions::default().with_clock(watch.clone());
    let store = BuilderStateStore::with_options(&path, options);
    let tasks = store
        .checkpoints::<TaskCheckpoint>()
        .with_clock(watch.clone());
    let recorder = Recorder::resume(&tasks, &key("active"), "react-dev").unwrap();
    let recorder = recorder.carry_on().unwrap();
    let before = tasks.get(&key("active")).unwrap();
    let entries = store.states(&key("active")).unwrap().len();

    watch.pass(3);
    let beat = recorder.heartbeat().unwrap();
    assert!(beat.is_written() && !recorder.heartbeat().unwrap().is_written());
    let after = tasks.get(&key("active")).unwrap();
    assert_eq!(after.revision, before.revision);
    assert_eq!(after.checkpoint, before.checkpoint);
    assert_eq!(
        after.context.heartbeat.unwrap().text(),
        "2026-03-02T08:03:00Z"
    );
    assert_eq!(
        store.states(&key("active")).unwrap().len(),
        entries,
        "no state of the history"
    );
    let host = fs::read_to_string(&path).unwrap();
    assert_eq!(
        host.replace("2026-03-02T08:03:00Z", "2026-02-28T10:15:00Z"),
        EXAMPLE
    );
    let _ = std::marker::PhantomData::<BuilderState>;

    // In the background, for as long as the work takes.
    let watched = recorder.beating(OFTEN, || {
        watch.pass(2);
        wait_until("beat", || {
            fs::read_to_string(&path).unwrap().contains("08:05:00Z")
        });
        recorder.step_done(&StepDone::current()).unwrap();
        "done"
    });
    assert_eq!(watched.unwrap(), "done");
    assert_eq!(
        tasks
            .get(&key("active"))
            .unwrap()
            .checkpoint
            .completed_steps
            .len(),
        3
    );
}

#[test]
fn a_host_without_a_checkpoint_or_with_anothers_claim_gets_no_beat() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("builder-state.json");
    fs::write(
        &path,
        "{\"activePrd\": {\"id\": \"x\", \"checkpoint\": null}}",
    )
    .unwrap();
    let store = BuilderStateStore::open(&path);
    let now = chrono::Utc::now();
    let none = store.beat(&key("active"), now, None).unwrap_err();
    assert_eq!(*none.kind(), ErrorKind::NotFound);
    fs::write(&path, EXAMPLE).unwrap();
    let request = agent_checkpoint::ClaimRequest::new("other", Duration::from_secs(60));
    store.claim(&key("active"), &request).unwrap();
    let refused = store.beat(&key("active"), now, None).unwrap_err();
    assert!(refused.is_taken_over(), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), EXAMPLE);
    let files = FileStore::open(folder.path());
    let refused = files.beat(&key("x"), now, None).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::NotOffered { .. }));
}

#[test]
fn a_beat_of_a_sitebuilder_is_no_progress_no_state_of_the_history_and_no_look_at_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let watch = Watch::at("2026-03-02T08:00:00Z");
    let options = FileOptions::default().with_clock(watch.clone());
    let store = FileStore::with_options(root.join("progress"), options);
    let sites = store
        .checkpoints::<SitebuilderCheckpoint>()
        .with_clock(watch.clone())
        .tracking(Tracking::new(root));
    let first = SitebuilderCheckpoint::begin("migration", "T1", ["a", "b"], watch.now());
    let recorder = begun(&sites, "migration-T1", "migration", &first);
    fs::write(root.join("a.md"), "a").unwrap();
    recorder
        .step_done(&StepDone::new("a").with_created("a.md"))
        .unwrap();
    let before = recorder.checkpoint().unwrap();
    let entries = store.states(&key("migration-T1")).unwrap().len();
    let fresh = sites.stale(&key("migration-T1"), root).unwrap();
    assert!(matches!(fresh, Staleness::Fresh(_)), "{fresh:?}");

    // Half of the next subtask is written when the agent sends a heartbeat.
    fs::write(root.join("a.md"), "changed since").unwrap();
    watch.pass(5);
    let beaten = recorder.beating(OFTEN, || {
        wait_until("beat", || {
            recorder.checkpoint().unwrap().heartbeat.is_some()
        });
    });
    beaten.unwrap();
    let after = recorder.checkpoint().unwrap();
    assert_eq!(after.updated_at, before.updated_at);
    assert_eq!(store.states(&key("migration-T1")).unwrap().len(), entries);
    let stale = sites.stale(&key("migration-T1"), root).unwrap();
    assert!(
        matches!(stale, Staleness::Stale(_)),
        "it still shows that the file changed: {stale:?}"
    );
}

#[test]
fn the_lead_of_a_pipeline_beats_and_formats_without_a_heartbeat_of_their_own_refuse() {
    let scene = Scene::new();
    let mut state = PipelineState::default();
    state.complete = Some(false);
    let lead = begun(&scene.view(), "state", "lead", &state);
    scene.watch.pass(5);
    lead.beating(OFTEN, || {
        wait_until("beat", || {
            lead.checkpoint()
                .unwrap()
                .last_check
                .unwrap()
                .text()
                .contains("08:05")
        });
    })
    .unwrap();

    fn refuses<C: Checkpoint>(recorder: &Recorder<C>) {
        let mut began = false;
        let refused = recorder.beating(OFTEN, || began = true).unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::Refused { .. }),
            "{refused}"
        );
        assert!(!began && !recorder.has_heartbeat());
    }
    refuses(&scene.task(&["a"]));
    let now = scene.watch.now();
    let story = StoryCheckpoint::begin("PROJ-1", "a", ["PROJ-2"], now).unwrap();
    refuses(&begun(&scene.view(), "PROJ-1", "a", &story));
    let spec = ExecutionSpec::new([SpecPhase::new(1, [("WS1", "x")])], ["lint"]);
    let build = BuildCheckpoint::initialize("PRD-001", "x", &spec, now).unwrap();
    refuses(&begun(&scene.view(), "PRD-001", "a", &build));
    assert!(lead.beating(Duration::ZERO, || ()).is_err());
}

#[test]
fn the_beats_end_with_the_work_also_when_that_panics() {
    let scene = Scene::new();
    let first = SitebuilderCheckpoint::begin("m", "T1", ["a"], scene.watch.now());
    let recorder = begun(&scene.view(), "m-T1", "m", &first);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = recorder.beating(Duration::from_secs(3600), || panic!("on purpose"));
    }));
    assert!(panicked.is_err());
}
