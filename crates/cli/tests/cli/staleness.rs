//! The effect of reports on the verdict on files.

use crate::project::Project;

/// A task with one file changed and one removed since they were reported.
fn stale_task() -> Project {
    let project = Project::new();
    project.write("h.rs", "1");
    project.write("k.rs", "1");
    for words in [
        &["start", "--agent", "a", "--plan", "p1", "p2"][..],
        &["step", "done", "p1", "--created", "h.rs", "k.rs"],
        &["step", "start", "p2"],
    ] {
        report(&project, words);
    }
    project.write("h.rs", "other");
    std::fs::remove_file(project.path("k.rs")).unwrap();
    project
}

fn report(project: &Project, words: &[&str]) -> String {
    let store = ["--store", "c", "--key", "T"];
    project.expect(0, &[words, &store].concat()).err
}

#[test]
fn a_report_that_is_no_work_does_not_hide_what_changed() {
    for words in [
        &["reassign", "--to", "b"][..],
        &["note", "half", "--agent", "b"],
        &["step", "start", "p3", "--agent", "b"],
        &["rate-limit"],
        &["block", "no key"],
        &["decide", "use c"],
    ] {
        let project = stale_task();
        report(&project, words);
        let judged = project.expect(1, &["stale", "c/T.json", "--json"]).json();
        assert_eq!(judged["verdict"], "stale", "{words:?}");
        assert_eq!(judged["files"][1]["state"], "missing", "{words:?}");
        project.expect(1, &["resume", "c/T.json"]);
    }
    let project = stale_task();
    let told = report(&project, &["step", "done", "p2", "--agent", "b"]);
    assert!(
        told.contains("recorded in its new state") && told.contains("h.rs, k.rs"),
        "{told}"
    );
    project.expect(0, &["stale", "c/T.json"]);
}

#[test]
fn a_name_that_leads_nowhere_is_told_when_it_is_reported() {
    let project = stale_task();
    let told = report(
        &project,
        &["step", "done", "p2", "--created", "tpyo.rs", "/etc/passwd"],
    );
    assert!(told.contains("not found in . (--root): tpyo.rs"), "{told}");
    assert!(told.contains("outside of the project . (--root)"), "{told}");
    report(&project, &["decide", "use c"]);
    let judged = project.expect(1, &["stale", "c/T.json", "--json"]).json();
    assert_eq!(judged["files"][2]["state"], "indeterminate", "{judged}");
}

#[test]
fn the_wrong_folder_is_told_where_no_file_is_there() {
    let project = Project::new();
    project.write("h.rs", "1");
    report(&project, &["start", "--plan", "p1", "p2"]);
    report(&project, &["step", "done", "p1", "--created", "h.rs"]);
    std::fs::create_dir(project.path("elsewhere")).unwrap();
    let wrong = ["--root", "elsewhere"];
    let judged = project.expect(1, &[&["stale", "c/T.json"][..], &wrong].concat());
    assert!(judged.err.contains("--root (now /"), "{judged:?}");
    let resumed = project.expect(1, &[&["resume", "c/T.json"][..], &wrong].concat());
    assert!(
        resumed
            .err
            .contains("the project's folder is named with --root"),
        "{resumed:?}"
    );
    let json = project.expect(1, &[&["stale", "c/T.json", "--json"][..], &wrong].concat());
    assert_eq!(json.json()["reasons"][0]["reason"], "nothing-there");
    let right = project.expect(0, &["stale", "c/T.json"]);
    assert!(!right.err.contains("--root"), "{right:?}");
}
