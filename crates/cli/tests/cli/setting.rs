//! `ckpt set`.

use serde_json::json;

use crate::project::{EXAMPLE, Project, TASK, line_diff};

#[test]
fn only_the_value_changes() {
    let project = Project::with("t.json", TASK);
    project.expect(0, &["set", "t.json", "/phase=\"verification\""]);
    assert_eq!(
        project.read("t.json"),
        TASK.replace("implementation", "verification")
    );
    project.expect(0, &["set", "t.json", "/x-mine/weight=2.250"]);
    let expected = TASK
        .replace("implementation", "verification")
        .replace("1.50", "2.250");
    assert_eq!(project.read("t.json"), expected);
}

#[test]
fn members_are_made_and_lists_appended_to_in_one_change() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(
        0,
        &[
            "set",
            "t.json",
            "/blockers/-=\"CI\"",
            "/x-mine/tags=[\"a\", 1e3]",
            "/x-mine/tags/-=null",
            "--json",
        ],
    );
    let expected = TASK
        .replace("\"blockers\": []", "\"blockers\": [\"CI\"]")
        .replace(
            "{\"weight\": 1.50}",
            "{\"weight\": 1.50, \"tags\": [\"a\", 1e3, null]}",
        );
    assert_eq!(project.read("t.json"), expected);
    let report = run.json();
    assert_eq!(report["outcome"], "replaced");
    let now = project.expect(0, &["revision", "t.json"]).out;
    assert_eq!(report["revision"], *now.trim_end());
    assert_ne!(report["previous"], report["revision"]);
    assert_eq!(report["violations"], json!([]));
}

#[test]
fn one_assignment_that_cannot_be_made_undoes_all() {
    let project = Project::with("t.json", TASK);
    for (bad, says) in [
        ("/nobody/x=1", "/nobody"),
        ("/phase/x=1", "a string"),
        ("/pendingSteps/9=\"x\"", "has 2 elements"),
        ("phase=1", "is not a JSON pointer"),
        ("/=1=1", "not JSON"),
        ("=[]", "must be an object"),
        ("/phase=verification", "'/phase=\"verification\"'"),
        ("/phase=", "not JSON"),
        ("/phase=1 2", "not JSON"),
    ] {
        let run = project.expect(2, &["set", "t.json", "/blockers/-=\"CI\"", bad]);
        assert!(run.error().contains(says), "{bad}: {run:?}");
        assert_eq!(project.read("t.json"), TASK, "{bad}");
    }
}

#[test]
fn what_is_there_already_is_not_written() {
    let project = Project::with("t.json", TASK);
    let before = std::fs::metadata(project.path("t.json")).unwrap();
    let run = project.expect(
        0,
        &[
            "set",
            "t.json",
            "/phase=\"implementation\"",
            "/x-mine={\"weight\":1.50}",
        ],
    );
    assert_eq!(run.out, "t.json: unchanged\n");
    let after = std::fs::metadata(project.path("t.json")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    assert_eq!(project.read("t.json"), TASK);
}

#[test]
fn an_expected_revision_that_is_gone_is_a_conflict() {
    let project = Project::with("t.json", TASK);
    let revision = project.expect(0, &["revision", "t.json"]).out;
    let revision = revision.trim_end();
    project.expect(
        0,
        &["set", "t.json", "/phase=\"planning\"", "--expect", revision],
    );
    let now = project.read("t.json");
    let run = project.expect(
        5,
        &[
            "set",
            "t.json",
            "/phase=\"verification\"",
            "--expect",
            revision,
        ],
    );
    assert!(
        run.error().starts_with("t.json: changed in the meantime"),
        "{run:?}"
    );
    assert_eq!(project.read("t.json"), now);
}

#[test]
fn in_a_host_the_revision_is_that_of_the_checkpoint() {
    let file = "builder-state.json";
    let project = Project::with(file, EXAMPLE);
    let revision = project.expect(0, &["revision", file]).out;
    let revision = revision.trim_end();
    // The builder changes its own members meanwhile.
    project.write(file, EXAMPLE.replace("10:15:00Z", "10:20:00Z"));
    let pointer = "/activePrd/checkpoint/blockers/-=\"CI\"";
    let run = project.expect(0, &["set", file, pointer, "--expect", revision]);
    let (went, came) = line_diff(
        &EXAMPLE.replace("10:15:00Z", "10:20:00Z"),
        &project.read(file),
    );
    assert_eq!(went, ["      \"blockers\": [],"]);
    assert_eq!(
        came,
        ["      \"blockers\": [", "        \"CI\"", "      ],"]
    );
    let now = project.expect(0, &["revision", file]).out;
    assert!(run.out.contains(now.trim_end()), "{run:?}");
    project.expect(5, &["set", file, pointer, "--expect", revision]);
}

#[test]
fn a_set_that_breaks_a_rule_is_saved_and_found() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(1, &["set", "t.json", "/phase=\"dreaming\"", "--json"]);
    assert!(run.err.starts_with("new violation: /phase: "), "{run:?}");
    assert_eq!(run.json()["violations"][0]["code"], "unknown-value");
    assert!(project.read("t.json").contains("dreaming"));
    // Earlier violations are reported, but are no findings of this change.
    let run = project.expect(0, &["set", "t.json", "/x-mine/weight=2", "--json"]);
    assert!(run.err.starts_with("violation: /phase: "), "{run:?}");
    assert_eq!(run.json()["violations"], json!([]));
    assert_eq!(run.json()["standing_violations"][0]["pointer"], "/phase");
}

#[test]
fn a_set_never_shrinks() {
    let project = Project::with("t.json", TASK);
    let long = "x".repeat(5000);
    let assignment = format!("/currentStep/partialWork=\"{long}\"");
    let run = project.expect(1, &["set", "t.json", &assignment]);
    assert!(run.err.contains("(too-long)"), "{run:?}");
    assert!(project.read("t.json").contains(&long));
}

#[test]
fn a_newer_checkpoint_is_not_changed() {
    let newer = TASK.replace("\"schemaVersion\": 1", "\"schemaVersion\": 9");
    let project = Project::with("t.json", &newer);
    let run = project.expect(4, &["set", "t.json", "/phase=\"planning\""]);
    assert!(run.error().contains("version 9"), "{run:?}");
    for arguments in [
        vec!["step", "start", "x"],
        vec!["step", "done"],
        vec!["decide", "x"],
    ] {
        let arguments = [arguments, vec!["--store", "t.json"]].concat();
        project.expect(4, &arguments);
    }
    assert_eq!(project.read("t.json"), newer);
    project.expect(1, &["show", "t.json"]);
}

#[test]
fn any_json_object_can_be_set() {
    let project = Project::with("any.json", "{\"a\": 1, \"b\":[ ]}");
    project.expect(0, &["set", "any.json", "/a=2"]);
    assert_eq!(project.read("any.json"), "{\"a\": 2, \"b\":[ ]}");
    let run = project.expect(0, &["set", "any.json", "/a=3", "--format", "one-of-my-own"]);
    assert!(run.err.contains("no rules are known"), "{run:?}");
    let run = project.expect(0, &["set", "--store", "any.json", "/a=4"]);
    assert!(
        run.out.starts_with("any.json: changed; now sha256:"),
        "{run:?}"
    );
    assert_eq!(project.read("any.json"), "{\"a\": 4, \"b\":[ ]}");
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let project = Project::with("t.json", TASK);
    let children: Vec<_> = (0..8)
        .map(|n| {
            let mut command = project.command();
            command.args(["set", "t.json", &format!("/blockers/-=\"b{n}\"")]);
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let document: serde_json::Value = serde_json::from_str(&project.read("t.json")).unwrap();
    assert_eq!(document["blockers"].as_array().unwrap().len(), 8);
}

#[test]
fn a_version_that_cannot_be_read_is_mended_first() {
    let project = Project::with(
        "t.json",
        TASK.replace("\"schemaVersion\": 1", "\"schemaVersion\": \"1\""),
    );
    project.expect(4, &["set", "t.json", "/phase=\"planning\""]);
    project.expect(0, &["set", "t.json", "/schemaVersion=1"]);
    project.expect(0, &["set", "t.json", "/phase=\"planning\""]);
}

#[test]
fn a_missing_parent_is_made_as_what_the_pointer_takes_it_for() {
    let project = Project::with("t.json", TASK);
    for (pointer, made) in [
        ("/extra/0", ["/extra=[]", "/extra/-="]),
        ("/extra/-", ["/extra=[]", "/extra/-="]),
        ("/extra/name", ["/extra={}", "/extra/name="]),
    ] {
        let run = project.expect(2, &["set", "t.json", &format!("{pointer}=1")]);
        let [parent, child] = made;
        let advice = format!("`ckpt set FILE '{parent}' '{child}…'`");
        assert!(run.error().ends_with(&advice), "{run:?}");
        project.expect(0, &["set", "t.json", parent, &format!("{child}1")]);
        project.write("t.json", TASK);
    }
}
