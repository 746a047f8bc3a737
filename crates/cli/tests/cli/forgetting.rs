//! Forgetting for good: one task, and all tasks that are old enough.

use crate::project::{EXAMPLE, Project};

/// Begins a task at this time, and completes it if `is_complete`.
fn begun(project: &Project, store: &str, key: &str, at: &str, is_complete: bool) {
    let on = ["--store", store, "--key", key, "--now", at];
    let start = ["start", "--agent", "dev", "--plan", "one"];
    project.expect(0, &[&start[..], &on].concat());
    if is_complete {
        project.expect(0, &[&["step", "done", "one"][..], &on].concat());
        project.expect(0, &[&["complete"][..], &on].concat());
    }
}

#[test]
fn a_database_without_a_key_is_answered_with_commands_that_work() {
    let project = Project::new();
    let missing = project.expect(2, &["forget", "sqlite:a b.db"]);
    let says = "sqlite:a b.db: there is no such database";
    assert!(missing.error().starts_with(says), "{missing:?}");
    begun(
        &project,
        "sqlite:a b.db",
        "A",
        "2026-01-01T00:00:00Z",
        false,
    );
    let run = project.expect(2, &["forget", "sqlite:a b.db"]);
    let status = "`ckpt status 'sqlite:a b.db'`";
    assert!(run.error().contains(status), "{run:?}");
    assert!(
        run.error().contains("--store 'sqlite:a b.db' --key KEY"),
        "{run:?}"
    );
}

#[test]
fn a_damaged_record_of_claims_stops_no_dry_run_and_the_way_on_is_told_in_whole() {
    let project = Project::new();
    begun(&project, "c", "A", "2026-01-01T00:00:00Z", false);
    let on = ["--store", "c", "--key", "A"];
    project.expect(0, &[&["claim", "--agent", "dev"][..], &on].concat());
    project.write("c/.agent-checkpoint/claims/A.json.json", "{");
    let dry = project.expect(0, &[&["forget"][..], &on].concat());
    assert!(dry.out.contains("the checkpoint"), "{dry:?}");
    let way = "`ckpt claim c/A.json --agent A --take-over`";
    let then = "`ckpt forget c/A.json --apply --fence N`";
    assert!(dry.err.contains(way) && dry.err.contains(then), "{dry:?}");
    let refused = project.expect(2, &[&["forget", "--apply"][..], &on].concat());
    let error = refused.error();
    assert!(error.contains(way) && error.contains(then), "{refused:?}");
    let claim = ["claim", "c/A.json", "--agent", "A", "--take-over"];
    let fence = project.expect(0, &claim).out;
    let forget = ["forget", "c/A.json", "--apply", "--fence", fence.trim_end()];
    project.expect(0, &forget);
    assert!(!project.path("c/A.json").exists());
}

#[test]
fn a_damaged_checkpoint_without_a_history_is_forgotten_by_its_key() {
    let project = Project::new();
    let nothing = "\u{0}".repeat(64);
    for place in ["c/A.json", "c/B.json"] {
        project.write(place, &nothing);
    }
    let on = ["--store", "c", "--key", "A"];
    project.expect(0, &[&["forget"][..], &on].concat());
    project.expect(0, &[&["forget", "--apply"][..], &on].concat());
    assert!(!project.path("c/A.json").exists() && project.path("c/B.json").exists());
    // Given only the file, it may be a host file.
    let file = project.expect(3, &["forget", "--apply", "c/B.json"]);
    assert!(file.error().contains("--format"), "{file:?}");

    let store = ["--store", "sqlite:c.db", "--key", "A"];
    begun(&project, "sqlite:c.db", "A", "2026-01-01T00:00:00Z", false);
    let database = rusqlite::Connection::open(project.path("c.db")).unwrap();
    database.execute("UPDATE states SET text = ''", []).unwrap();
    drop(database);
    project.expect(0, &[&["forget", "--apply"][..], &store].concat());
    let history = project.expect(0, &[&["history"][..], &store].concat());
    assert!(history.err.contains("no state is known"), "{history:?}");
}

#[test]
fn what_was_kept_for_long_enough_is_forgotten_and_nothing_else() {
    let project = Project::new();
    let now = ["--now", "2026-03-01T00:00:00Z"];
    for store in ["c", "sqlite:c.db"] {
        begun(&project, store, "old", "2026-01-01T00:00:00Z", true);
        begun(&project, store, "older", "2025-12-01T00:00:00Z", true);
        begun(&project, store, "new", "2026-02-20T00:00:00Z", true);
        begun(&project, store, "open", "2025-01-01T00:00:00Z", false);
        begun(&project, store, "held", "2026-01-01T00:00:00Z", true);
        let on = ["--store", store, "--key", "held"];
        project.expect(
            0,
            &[&["claim", "--agent", "dev", "--for", "365days"][..], &on].concat(),
        );
        if store == "c" {
            begun(&project, "c/deep", "deep", "2026-01-01T00:00:00Z", true);
            project.write("c/host.json", EXAMPLE);
            project.write("c/torn.json", "{\"task\": ");
        }
        let forget = |exit: i32, words: &[&str]| {
            let line = ["forget", "--store", store];
            project.expect(exit, &[&line[..], words, &now].concat())
        };
        let dry = forget(0, &["--ended", "30days"]);
        let many = if store == "c" { "3 tasks" } else { "2 tasks" };
        assert!(
            dry.out.ends_with(&format!(
                "{many} would be removed for good, with --apply; nothing was changed\n"
            )),
            "{dry:?}"
        );
        assert!(
            dry.out
                .contains("complete, last changed 2026-01-01T00:00:00Z"),
            "{dry:?}"
        );
        // The one that was changed last is spared.
        let told = forget(
            0,
            &["--ended", "30days", "--keep", "1", "--apply", "--json"],
        )
        .json();
        assert!(
            told["tasks"]
                .as_array()
                .unwrap()
                .iter()
                .all(|task| task["forgotten"] == true),
            "{told}"
        );
        assert_eq!(told["tasks"][0]["task"], "older", "{told}");
        let gone = forget(0, &["--ended", "30days", "--apply"]);
        assert!(gone.out.ends_with("removed for good: 1 task\n"), "{gone:?}");
        let left = |key: &str| {
            let show = ["show", "--store", store, "--key", key];
            project.ckpt(&show).code == 0
        };
        assert_eq!(
            ["old", "older", "new", "open", "held"].map(left),
            [false, false, true, true, true]
        );
        forget(0, &["--older-than", "300days", "--apply"]);
        assert!(!left("open") && left("held"));
        let none = forget(0, &["--taken-over", "1day"]);
        assert_eq!(none.out, "no task is that old\n");
        if store == "c" {
            assert!(!project.path("c/deep/deep.json").exists());
            assert!(none.err.contains("c/torn.json: cannot be read"), "{none:?}");
            let slot = forget(0, &["--older-than", "1h", "--apply"]);
            assert!(
                slot.err
                    .contains("a slot of a host file cannot be forgotten"),
                "{slot:?}"
            );
            assert!(project.path("c/host.json").exists());
        }
    }
    for words in [
        &["forget", "c", "--keep", "2"][..],
        &["forget", "--ended", "1day"],
        &["forget", "--store", "c", "--key", "new", "--ended", "1day"],
    ] {
        project.expect(2, words);
    }
    project.expect(2, &["forget", "nowhere", "--ended", "1day"]);
}
