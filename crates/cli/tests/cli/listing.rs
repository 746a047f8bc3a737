//! `ckpt list`.

use crate::project::{EXAMPLE, Project, TASK};

/// The printed lines, each as its columns.
fn listed(project: &Project, words: &[&str]) -> Vec<Vec<String>> {
    rows_of(&project.expect(0, &[&["list"], words].concat()).out)
}

fn rows_of(out: &str) -> Vec<Vec<String>> {
    let columns = |line: &str| line.split('\t').map(str::to_owned).collect();
    out.lines().map(columns).collect()
}

fn row(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn a_folder_of_several_formats_is_listed_by_key() {
    let project = Project::with("c/US-1.json", TASK);
    project.write("c/a b%2Fc.json", TASK);
    let start = |format: &str, key: &str, more: &[&str]| {
        let words = ["start", "--store", "c", "--format", format, "--key", key];
        project.expect(0, &[&words[..], more].concat());
    };
    start(
        "agent-session",
        "Secondary-A",
        &["--session", "s", "--task", "f"],
    );
    start(
        "sitebuilder",
        "media-T1",
        &["--agent", "media", "--task", "T1"],
    );
    start("story-pipeline", "SHOP-12", &["--agent", "w"]);
    project.write("c/deeper/US-2.json", TASK);
    project.write("c/package.json", "{\"name\": \"x\"}");
    project.write(
        "c/cut.json",
        "{\"schemaVersion\": 1, \"phase\": \"planning\", \"completedSteps\": [",
    );
    // A damaged checkpoint is listed, and the exit code reports it.
    let rows = rows_of(&project.expect(3, &["list", "c"]).out);
    assert_eq!(
        rows,
        [
            row(&["SHOP-12", "story-pipeline", "c/checkpoint-SHOP-12.json"]),
            row(&["Secondary-A", "agent-session", "c/secondary_a.json"]),
            row(&["US-1", "task", "c/US-1.json"]),
            row(&["a b/c", "task", "c/a b%2Fc.json"]),
            row(&["cut", "-", "c/cut.json"]),
            row(&["media-T1", "sitebuilder", "c/media-T1.json"]),
        ]
    );
    // Each key leads to the file in the same row.
    for row in rows.iter().filter(|row| row[0] != "cut") {
        let shown = ["show", "--json", "--store", "c", "--key", &row[0]];
        let shown = project.ckpt(&shown).json();
        assert_eq!(
            (&shown["format"], &shown["file"]),
            (&row[1].as_str().into(), &row[2].as_str().into())
        );
    }
    let json = project
        .expect(3, &["list", "--store", "c", "--json"])
        .json();
    let first = serde_json::json!({
        "key": "SHOP-12", "slot": null, "format": "story-pipeline", "file": "c/checkpoint-SHOP-12.json"
    });
    assert_eq!(json[0], first);
}

#[test]
fn one_file_and_a_host_file_are_listed() {
    let project = Project::with("docs/builder-state.json", EXAMPLE);
    project.write("t.json", TASK);
    let host = "docs/builder-state.json";
    assert_eq!(
        listed(&project, &[host]),
        [row(&["active", "builder-state", host])]
    );
    let json = project.expect(0, &["list", host, "--json"]).json();
    assert_eq!(
        (&json[0]["slot"], &json[0]["key"]),
        (&"active".into(), &serde_json::Value::Null)
    );
    assert_eq!(
        listed(&project, &["--store", "t.json"]),
        [row(&["t", "task", "t.json"])]
    );
}

#[test]
fn what_cannot_be_listed_says_why() {
    let project = Project::with("c/US-1.json", TASK);
    for (words, says) in [
        (&["list"][..], "which store?"),
        (&["list", "missing"], "missing: "),
        (&["list", "c", "--store", "c"], "omit one"),
        (&["list", "c", "--key", "US-1"], "omit --key"),
        (&["list", "-"], "standard input"),
    ] {
        let run = project.expect(2, words);
        assert!(run.error().contains(says), "{words:?}: {run:?}");
    }
    // A claim alone is no checkpoint.
    project.expect(
        0,
        &["claim", "--store", "c", "--key", "US-2", "--agent", "dev"],
    );
    assert_eq!(listed(&project, &["c"]).len(), 1);
}
