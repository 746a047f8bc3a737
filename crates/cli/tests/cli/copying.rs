//! Copies of all checkpoints of a store.

use crate::project::{EXAMPLE, Project};

fn begin(project: &Project, key: &str) {
    let store = ["--store", "from", "--key", key];
    let run = |verb: &[&str]| project.expect(0, &[verb, &store[..]].concat());
    run(&["start", "--agent", "dev", "--plan", "one", "two"]);
    run(&["step", "done", "one"]);
    run(&["history", "--pin", "1"]);
}

#[test]
fn a_folder_is_copied_with_its_history_and_a_second_copy_changes_nothing() {
    let project = Project::new();
    begin(&project, "A");
    begin(&project, "B");
    let claim = ["claim", "--agent", "dev", "--store", "from", "--key", "B"];
    project.expect(0, &claim);
    let refused = project.expect(4, &["copy", "from", "to", "--json"]);
    let told = refused.json();
    assert_eq!(
        (told["copied"].as_u64(), told["present"].as_u64()),
        (Some(1), Some(0))
    );
    assert_eq!(told["refused"][0]["key"], "B");
    assert_eq!(told["refused"][0]["code"], "claimed");
    let copied = project.expect(0, &["copy", "from", "to", "--include-claimed"]);
    assert_eq!(copied.out, "copied 1 checkpoint; 1 there already\n");
    assert_eq!(project.read("from/A.json"), project.read("to/A.json"));
    let history = |folder| {
        let history = ["history", "--store", folder, "--key", "A", "--json"];
        let mut rows = project.expect(0, &history).json();
        // The present state was written just now.
        rows[0]["saved"].take();
        rows
    };
    assert_eq!(history("from"), history("to"));

    let before = project.read("to/A.json");
    project.expect(0, &["step", "done", "two", "--store", "from", "--key", "A"]);
    let conflict = project.expect(5, &["copy", "from", "to", "--prefix", "A"]);
    let error = conflict.error();
    assert!(
        error.contains(
            "from/A.json: to/A.json has another checkpoint, or another state of this one, "
        )
    );
    assert!(
        error.contains("`ckpt forget --store to --key A --apply`"),
        "{error}"
    );
    assert_eq!(project.read("to/A.json"), before);
    project.expect(0, &["forget", "--apply", "--store", "to", "--key", "A"]);
    let again = project.expect(0, &["copy", "from", "to", "--prefix", "A"]);
    assert_eq!(again.out, "copied 1 checkpoint; 0 there already\n");
    assert_eq!(project.read("to/A.json"), project.read("from/A.json"));
}

#[test]
fn a_folder_goes_into_a_database_and_comes_back_to_the_byte() {
    let project = Project::new();
    begin(&project, "A");
    begin(&project, "B 2");
    let there = project.expect(0, &["copy", "from", "sqlite:a.db"]);
    assert_eq!(there.out, "copied 2 checkpoints; 0 there already\n");
    project.expect(0, &["resume", "--store", "sqlite:a.db", "--key", "A"]);
    let back = project.expect(0, &["copy", "sqlite:a.db", "back"]);
    assert_eq!(back.out, "copied 2 checkpoints; 0 there already\n");
    assert_eq!(project.read("back/B 2.json"), project.read("from/B 2.json"));
    let again = project.expect(0, &["copy", "from", "back"]);
    assert_eq!(again.out, "copied 0 checkpoints; 2 there already\n");
}

#[test]
fn what_is_no_store_for_many_takes_no_copy_and_a_host_file_gives_one() {
    let project = Project::new();
    project.expect(2, &["copy", "nowhere", "to"]);
    assert!(project.names().is_empty());
    project.write("docs/builder-state.json", EXAMPLE);
    project.expect(2, &["copy", "docs", "to.json"]);
    let copied = project.expect(0, &["copy", "docs/builder-state.json", "to"]);
    assert!(copied.out.starts_with("copied 1 "), "{copied:?}");
    assert_eq!(project.expect(0, &["validate", "to/active.json"]).code, 0);
}

#[test]
fn nothing_is_copied_where_there_is_nothing_or_only_the_store_itself() {
    let project = Project::new();
    project.expect(
        0,
        &[
            "start",
            "--agent",
            "a",
            "--plan",
            "x",
            "--store",
            "from/deep",
            "--key",
            "A",
        ],
    );
    for same in ["from", "./from/", "from/../from"] {
        let error = project.expect(2, &["copy", "from", same]);
        assert!(error.error().contains("the same store"), "{error:?}");
    }
    for nothing in [
        &["copy", "from", "to"][..],
        &["copy", "from/deep", "to", "--prefix", "Z"],
    ] {
        let copied = project.expect(1, nothing);
        assert!(copied.err.contains("no checkpoints to copy"), "{copied:?}");
    }
    assert!(!project.path("to").exists());
}

#[test]
fn what_is_no_checkpoint_stays_and_is_named_with_its_reason() {
    let project = Project::new();
    begin(&project, "A");
    project.write("from/package.json", "{\"name\": \"shop\"}\n");
    project.write("from/notes.json", "Remember the milk.\n");
    project.write("from/hosts.json", EXAMPLE);
    let status = project.expect(1, &["status", "from", "--json"]).json();
    let copied = project.expect(1, &["copy", "from", "to"]);
    assert_eq!(copied.out, "copied 1 checkpoint; 0 there already\n");
    for says in [
        "from/package.json: was not copied, not a checkpoint: its members match no known format",
        "from/notes.json: was not copied, not a checkpoint: text that is not JSON",
        "from/hosts.json: was not copied, not a checkpoint: it is a host file, whose checkpoints are copied by `ckpt \
         copy from/hosts.json TO`",
    ] {
        assert!(copied.err.contains(says), "{copied:?}");
    }
    assert_eq!(status["left_out"].as_array().unwrap().len(), 2, "{status}");
    let told = project.expect(1, &["copy", "from", "to", "--json"]).json();
    assert_eq!(told["skipped"].as_array().unwrap().len(), 3, "{told}");
    assert_eq!(project.expect(0, &["status", "to"]).code, 0);
    for stays in ["package", "notes", "hosts"] {
        assert!(!project.path(&format!("to/{stays}.json")).exists());
    }
}

#[test]
fn what_is_refused_names_its_file_and_what_helps() {
    let project = Project::new();
    begin(&project, "A");
    begin(&project, "B");
    project.expect(
        0,
        &["claim", "--agent", "dev", "--store", "from", "--key", "A"],
    );
    let text = project.read("from/B.json");
    project.write("from/B.json", &text[..text.len() / 2]);
    let copied = project.expect(3, &["copy", "from", "to"]);
    let claimed = "ckpt: from/A.json: claimed by dev until ";
    assert!(copied.err.contains(claimed), "{copied:?}");
    assert!(copied.err.contains("--include-claimed"), "{copied:?}");
    assert!(!copied.err.contains("--take-over"), "{copied:?}");
    let recover = "recover it with `ckpt recover --store from --key B`";
    assert!(
        copied.err.contains("ckpt: from/B.json: corrupt: "),
        "{copied:?}"
    );
    assert!(copied.err.contains(recover), "{copied:?}");
    project.expect(1, &["recover", "--store", "from", "--key", "B"]);
    project.expect(0, &["copy", "from", "to", "--include-claimed"]);
    // For a database the store and the key are printed instead of the file.
    project.expect(0, &["copy", "from", "sqlite:a.db", "--include-claimed"]);
    let note = ["note", "x", "--store", "sqlite:a.db", "--key", "B"];
    project.expect(0, &note);
    let differs = project.expect(5, &["copy", "sqlite:a.db", "to"]);
    let says = "sqlite:a.db (B): to/B.json has another checkpoint, or another state of this one";
    assert!(differs.error().contains(says), "{differs:?}");
}

#[test]
fn a_copy_converts_nothing_and_names_the_verb_that_does() {
    let project = Project::new();
    begin(&project, "A");
    let refused = project.expect(2, &["copy", "from", "to", "--format", "agent-session"]);
    let says = "from/A.json: has the format task, and a copy converts nothing; omit --format, and use `ckpt convert --to agent-session`";
    assert!(refused.error().contains(says), "{refused:?}");
    assert!(!project.path("to").exists());
    project.expect(0, &["copy", "from", "to", "--format", "task"]);
}
