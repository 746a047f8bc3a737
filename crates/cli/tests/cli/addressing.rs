//! How a command line names a checkpoint.

use crate::project::{EXAMPLE, Project, TASK};

const TWO: &str = r#"{
  "activePrd": {"currentStory": "US-1", "checkpoint": {"phase": "planning", "completedSteps": [], "pendingSteps": ["p"],
    "metadata": {"createdBy": "one", "lastUpdatedAt": "2026-03-02T08:00:00Z", "reason": "periodic"}}},
  "adhocQueue": [{"id": "ad-2", "description": "Mend it", "checkpoint": {"phase": "planning", "completedSteps": [],
    "pendingSteps": ["q"], "metadata": {"createdBy": "two", "lastUpdatedAt": "2026-03-02T08:00:00Z", "reason": "periodic"}}}]
}"#;

#[test]
fn a_host_with_several_checkpoints_asks_which() {
    let project = Project::with("builder-state.json", TWO);
    for verb in ["show", "stale", "resume", "revision"] {
        let run = project.expect(2, &[verb, "builder-state.json"]);
        assert!(run.error().contains("active, adhoc:ad-2"), "{run:?}");
    }
    let agent = |slot: &str| {
        let run = project.expect(0, &["show", "builder-state.json", "--json", "--slot", slot]);
        (run.json()["agent"].clone(), run.json()["slot"].clone())
    };
    assert_eq!(agent("active"), ("one".into(), "active".into()));
    assert_eq!(agent("adhoc:ad-2"), ("two".into(), "adhoc:ad-2".into()));
    let run = project.expect(2, &["show", "builder-state.json", "--slot", "adhoc:no"]);
    assert!(run.error().contains("it has active, adhoc:ad-2"), "{run:?}");
    let revision = |slot| {
        project
            .expect(0, &["revision", "builder-state.json", "--slot", slot])
            .out
    };
    assert_ne!(revision("active"), revision("adhoc:ad-2"));
}

#[test]
fn a_host_is_known_by_its_content_under_any_name() {
    let project = Project::with("state.json", EXAMPLE);
    let run = project.expect(0, &["show", "state.json", "--json"]);
    assert_eq!(run.json()["format"], "builder-state");
    assert_eq!(run.json()["slot"], "active");
    assert_eq!(run.json()["key"], serde_json::Value::Null);
    let run = project.expect(2, &["show", "--store", "state.json", "--key", "k"]);
    assert!(run.error().contains("state.json"), "{run:?}");
}

#[test]
fn a_store_may_be_a_folder_or_a_file() {
    let project = Project::with("s/US-1.json", TASK);
    let folder = project.expect(0, &["show", "--store", "s", "--key", "US-1", "--json"]);
    let file = project.expect(0, &["show", "--store", "s/US-1.json", "--json"]);
    assert_eq!(folder.out, file.out);
    assert_eq!(file.json()["key"], "US-1");
    project.expect(0, &["validate", "--store", "s", "--key", "US-1"]);
    let run = project.expect(2, &["show", "--store", "s", "--key", "US-2"]);
    assert!(
        run.error()
            .starts_with("s/US-2.json: there is no checkpoint here")
    );
    let run = project.expect(2, &["show", "--store", "s/US-1.json", "--key", "other"]);
    assert!(run.error().contains("omit --key"), "{run:?}");
    let run = project.expect(2, &["show", "s/US-1.json", "--slot", "top"]);
    assert!(
        run.error().contains("--slot is for builder-state"),
        "{run:?}"
    );
}

#[test]
fn a_key_never_leaves_its_folder() {
    let project = Project::new();
    project.expect(
        0,
        &["start", "--store", "s", "--key", "../../out", "--plan", "a"],
    );
    assert_eq!(project.names(), ["s"]);
    assert!(project.path("s/%2E.%2F..%2Fout.json").is_file());
    let run = project.expect(2, &["start", "--store", "s", "--key", " a"]);
    assert!(run.error().contains("white space"), "{run:?}");
}

#[test]
fn a_file_that_fits_no_format_needs_one_named() {
    let project = Project::with("a.json", "{\"a\": 1}");
    for verb in ["show", "stale", "resume", "validate", "detect"] {
        let run = project.expect(2, &[verb, "a.json"]);
        let error = run.error();
        assert!(
            error.starts_with("a.json: not recognized as a checkpoint: "),
            "{run:?}"
        );
        assert!(error.contains("task, builder-state"), "{run:?}");
        assert!(error.ends_with("(--format F)"), "{run:?}");
    }
    let run = project.expect(1, &["validate", "a.json", "--format", "task"]);
    assert!(
        run.out
            .contains("/metadata: metadata is required (missing)"),
        "{run:?}"
    );
    let run = project.expect(2, &["show", "a.json", "--format", "tsak"]);
    assert!(
        run.error().contains("\"tsak\" is not a known format"),
        "{run:?}"
    );
}

#[test]
fn a_slot_that_is_not_there_is_told_with_its_option() {
    let project = Project::with("b.json", EXAMPLE);
    let run = project.expect(2, &["show", "b.json", "--slot", "adhoc:zz"]);
    let error = run.error();
    assert!(
        error.ends_with("it has active; name another with --slot"),
        "{run:?}"
    );
}

#[test]
fn a_state_before_the_only_one_is_no_entry_that_a_user_named() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(2, &["diff", "t.json"]);
    assert!(
        run.error()
            .starts_with("t.json: no state before current is known"),
        "{run:?}"
    );
}
