//! Unusable input is left unchanged and reported in one line.

use crate::project::{Project, TASK};

/// Every verb, on a file.
fn verbs(file: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["detect", file],
        vec!["validate", file],
        vec!["show", file],
        vec!["set", file, "/phase=\"planning\""],
        vec!["revision", file],
        vec!["stale", file],
        vec!["resume", file],
        vec!["start", "--store", file],
        vec!["step", "start", "x", "--store", file],
        vec!["step", "done", "x", "--store", file],
        vec!["decide", "x", "--store", file],
    ]
}

#[test]
fn a_corrupt_file_stays_as_it_is() {
    let half = &TASK[..TASK.len() / 2];
    for (text, code) in [
        (b"{hello".as_slice(), "syntax"),
        (b"", "empty"),
        (b"\n \n", "empty"),
        (half.as_bytes(), "truncated"),
        (b"{\"a\": \"\xff\"}", "not-utf8"),
        (b"\0\0\0\0", "nul-bytes"),
        (format!("{TASK} {{}}").as_bytes(), "trailing-bytes"),
    ] {
        let project = Project::with("t.json", text);
        for arguments in verbs("t.json") {
            let run = project.expect(3, &arguments);
            let error = run.error();
            assert!(
                error.starts_with(&format!("t.json: corrupt: {code} at line ")),
                "{run:?}"
            );
            assert!(error.contains("ckpt recover"), "{run:?}");
            assert_eq!(std::fs::read(project.path("t.json")).unwrap(), text);
        }
        assert_eq!(project.names(), ["t.json"], "{code}");
    }
}

#[test]
fn what_is_no_checkpoint_is_named_and_left_alone() {
    for (text, what) in [
        ("hello", "text that is not JSON"),
        ("[1, 2]", "a JSON list"),
        ("[{\"id\": 1", "a JSON list"),
        ("\"x\"", "a JSON value"),
        ("{} {}", "JSON Lines"),
        ("{\"id\": 1}\n{\"id\": 2}\n", "JSON Lines"),
        ("---\nstatus: done\n", "YAML"),
        ("status: done\n", "YAML"),
        ("# Plan\n", "Markdown"),
        ("\u{1}\u{2}", "binary"),
        ("{\"a\": 1}", "its members match no known format"),
    ] {
        let project = Project::with("t.json", text);
        for arguments in verbs("t.json") {
            if arguments[0] == "set" && text == "{\"a\": 1}" || arguments[0] == "revision" {
                continue;
            }
            let run = project.expect(2, &arguments);
            let error = run.error();
            assert!(
                error.starts_with("t.json: not recognized as a checkpoint: "),
                "{run:?}"
            );
            assert!(error.contains(what), "{run:?}");
            assert!(!error.contains("recover"), "{run:?}");
        }
        for how in [
            &["recover"][..],
            &["recover", "--fresh"],
            &["recover", "--salvage"],
        ] {
            project.expect(2, &[how, &["t.json"]].concat());
        }
        assert_eq!(project.read("t.json"), text);
        assert_eq!(project.names(), ["t.json"], "{what}");
        if text != "{\"a\": 1}" {
            project.expect(3, &["validate", "t.json", "--format", "task"]);
        }
    }
}

#[test]
fn a_file_over_the_limit_is_not_read() {
    let project = Project::with("t.json", TASK);
    for mut arguments in verbs("t.json") {
        arguments.extend(["--max-bytes", "100"]);
        let run = project.expect(3, &arguments);
        assert!(
            run.error().contains("t.json has ") && run.err.contains("limit"),
            "{run:?}"
        );
        assert!(run.error().contains("(--max-bytes N)"), "{run:?}");
    }
    assert_eq!(project.read("t.json"), TASK);
    let run = project.expect(3, &["validate", "t.json", "--json", "--max-bytes", "100"]);
    assert_eq!(run.json()[0]["outcome"], "corrupt");
    assert_eq!(run.json()[0]["error"]["code"], "too-large");
}

#[test]
fn a_change_never_makes_a_file_that_cannot_be_read_again() {
    let project = Project::with("t.json", TASK);
    let limit = TASK.len().to_string();
    let run = project.ckpt(&["set", "t.json", "/note=\"more\"", "--max-bytes", &limit]);
    assert!(
        run.code >= 2 && run.error().starts_with("t.json: "),
        "{run:?}"
    );
    assert_eq!(project.read("t.json"), TASK);
}

#[test]
fn a_missing_file_is_named() {
    let project = Project::new();
    for verb in ["detect", "validate", "show", "revision", "stale", "resume"] {
        let run = project.expect(2, &[verb, "gone/t.json"]);
        assert!(
            run.error().starts_with("gone/t.json: there is no "),
            "{run:?}"
        );
    }
    assert!(project.names().is_empty());
}

#[test]
fn a_folder_is_no_file() {
    let project = Project::with("d.json/x", "");
    for verb in ["detect", "validate", "show", "revision", "stale", "resume"] {
        let run = project.expect(2, &[verb, "d.json"]);
        assert!(
            run.error()
                .contains("d.json: is a folder; name one of its checkpoints"),
            "{run:?}"
        );
    }
    project.expect(2, &["set", "d.json", "/a=1"]);
    assert_eq!(project.names(), ["d.json"]);
}

#[cfg(unix)]
#[test]
fn a_dangling_link_is_not_filled() {
    let project = Project::new();
    std::os::unix::fs::symlink("nowhere.json", project.path("l.json")).unwrap();
    for arguments in verbs("l.json") {
        let run = project.expect(2, &arguments);
        assert!(
            run.error().contains("l.json is a symbolic link to "),
            "{run:?}"
        );
    }
    assert_eq!(project.names(), ["l.json"]);
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_and_stays_a_link() {
    let project = Project::with("real/t.json", TASK);
    std::os::unix::fs::symlink("real/t.json", project.path("l.json")).unwrap();
    project.expect(0, &["set", "l.json", "/phase=\"planning\""]);
    assert!(project.path("l.json").is_symlink());
    assert!(project.read("real/t.json").contains("planning"));
}

#[cfg(unix)]
#[test]
fn an_unreadable_path_is_told() {
    use std::os::unix::fs::PermissionsExt;
    // A file in the place of a folder is unreadable for every user, even root.
    let project = Project::with("f", "");
    for arguments in verbs("f/t.json") {
        let run = project.expect(2, &arguments);
        assert!(run.error().contains("f/t.json"), "{run:?}");
    }
    project.write("closed/t.json", TASK);
    let closed = project.path("closed/t.json");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&closed).is_ok() {
        println!("running as a user that may read everything: not tried with permissions");
        return;
    }
    for arguments in verbs("closed/t.json") {
        let run = project.expect(2, &arguments);
        assert!(run.error().contains("closed/t.json"), "{run:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let project = Project::new();
    let made = std::process::Command::new("mkfifo")
        .arg(project.path("p.json"))
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("no mkfifo here: not tried");
        return;
    }
    for arguments in verbs("p.json") {
        let run = project.expect(2, &arguments);
        assert!(run.error().contains("p.json"), "{run:?}");
    }
    let all = project.expect(0, &["status", "."]);
    assert!(all.err.contains("p.json is a pipe"), "{all:?}");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_of_ours_is_not_waited_for() {
    let project = Project::with("t.json", TASK);
    project.expect(0, &["step", "add", "Make d", "--store", "t.json"]);
    let note = project.path(".agent-checkpoint/locks/t.json.note");
    std::fs::remove_file(&note).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&note).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("no mkfifo here: not tried");
        return;
    }
    project.expect(0, &["step", "add", "Make e", "--store", "t.json"]);
    assert!(project.read("t.json").contains("Make e"));
}

/// The other program cuts the file, and writes it again a moment later.
#[test]
fn a_file_that_another_program_is_just_rewriting_is_not_called_corrupt() {
    let project = Project::new();
    let path = project.path("s/t.json");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    for arguments in [
        &["detect", "s/t.json"][..],
        &["validate", "s/t.json"],
        &["show", "s/t.json"],
        &["status", "s", "--now", "2026-03-02T08:06:00Z"],
    ] {
        // On a busy machine this may take longer than a file counts as just being written.
        let is_read = (0..5).any(|_| {
            std::fs::write(&path, &TASK[..TASK.len() / 2]).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_millis(120));
                    std::fs::write(&path, TASK).unwrap();
                });
                matches!(project.ckpt(arguments).code, 0 | 1)
            })
        });
        assert!(is_read, "{arguments:?}");
    }
}

#[test]
fn values_that_cannot_be_read_are_not_overwritten() {
    let odd = TASK.replace(
        "\"pendingSteps\": [\"Make b\", \"Make c\"]",
        "\"pendingSteps\": \"Make b\"",
    );
    let project = Project::with("t.json", &odd);
    let run = project.expect(1, &["validate", "t.json"]);
    assert!(run.out.contains("/pendingSteps"), "{run:?}");
    let run = project.expect(4, &["step", "start", "Make d", "--store", "t.json"]);
    assert!(run.error().contains("/pendingSteps"), "{run:?}");
    assert_eq!(project.read("t.json"), odd);
}

#[test]
fn an_error_as_json_names_the_file_that_it_is_about() {
    let project = Project::with("t.json", TASK);
    project.write("there.json", "{}");
    project.write("list.json", "[{}, 1]");
    for (arguments, file) in [
        (vec!["detect", "nope.json", "none.json"], "nope.json"),
        (vec!["resume", "t.json", "--template", "nope.md"], "nope.md"),
        (vec!["status", ".", "--planned", "list.json"], "list.json"),
        (
            vec!["convert", "t.json", "--to", "task", "--out", "there.json"],
            "there.json",
        ),
    ] {
        let run = project.expect(2, &[&arguments[..], &["--json"]].concat());
        assert_eq!(run.json()["error"]["file"], file, "{run:?}");
    }
}

#[test]
fn an_empty_text_is_no_step_and_no_decision() {
    let project = Project::with("t.json", TASK);
    for arguments in [
        vec!["step", "start", ""],
        vec!["step", "done", " "],
        vec!["decide", ""],
        vec!["start", "--plan", "a", ""],
        vec!["block", "\u{200b}"],
        vec!["fail", " \u{feff}\u{200d}"],
    ] {
        let run = project.expect(2, &[arguments, vec!["--store", "t.json"]].concat());
        assert!(run.error().contains("it is empty"), "{run:?}");
    }
    assert_eq!(project.read("t.json"), TASK);
}

#[cfg(target_os = "linux")]
#[test]
fn a_size_limit_of_files_is_an_error_and_leaves_the_file_as_it_was() {
    let project = Project::with("t.json", TASK);
    project.expect(0, &["decide", "first", "--store", "t.json"]);
    let before = project.read("t.json");
    let script = format!(
        "ulimit -f 0; exec {} decide x --store t.json",
        env!("CARGO_BIN_EXE_ckpt")
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(project.path(""))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("ckpt: ") && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!(project.read("t.json"), before);
    assert!(!project.names().iter().any(|name| name.ends_with(".tmp")));
}

#[test]
fn what_is_not_there_has_one_code() {
    let project = Project::with("t.json", TASK);
    let state = ["--store", "p/state.json"];
    let start = ["start", "--format", "story-pipeline-state", "--plan", "S-1"];
    project.expect(0, &[&start[..], &state].concat());
    for words in [
        &["show", "gone.json"][..],
        &["set", "gone.json", "/a=1"],
        &["note", "x", "--store", "gone.json"],
        &["lead", "record", "S-1", "--store", "p/state.json"],
    ] {
        let run = project.expect(2, &[words, &["--json"]].concat());
        assert_eq!(run.json()["error"]["code"], "not-found", "{run:?}");
    }
}
