//! `ckpt once` and `ckpt effects`.

#![cfg(unix)]

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::project::{Project, TASK, path_with_ckpt};

const OF: [&str; 2] = ["--store", "t.json"];

/// The command line that runs a shell script once.
fn once<'a>(more: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [&["once", "mail"], more, &OF, &["--", "sh", "-c", script]].concat()
}

/// How often the mail was sent.
fn sent(project: &Project) -> usize {
    let path = project.path("outbox");
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

const SEND: &str = "echo sent | tee -a outbox; echo with care >&2; exit 3";

#[test]
fn a_command_runs_once_and_its_output_and_code_come_again() {
    let project = Project::with("t.json", TASK);
    let again = "note: nothing was run: mail took place at ";
    for told in ["note: mail took place with exit code 3", again, again] {
        let run = project.expect(3, &once(&[], SEND));
        let more = run.err.strip_prefix("with care\n").unwrap();
        assert!(run.out == "sent\n" && more.starts_with(told), "{run:?}");
    }
    assert_eq!(sent(&project), 1);
    // The checkpoint is unchanged: no format has a member for this.
    assert_eq!(project.read("t.json"), TASK);
    let list = project.expect(0, &["effects", "t.json"]).out;
    assert!(
        list.starts_with("done, exit 3 ") && list.contains("  mail  (ckpt)"),
        "{list}"
    );
    let other = ["once", "another", OF[0], OF[1], "--", "sh", "-c", SEND];
    project.expect(3, &other);
    assert_eq!(sent(&project), 2);
    let shown = project.expect(0, &["show", "t.json"]).out;
    assert!(
        shown.contains("Effects\n") && shown.contains("mail"),
        "{shown}"
    );
    let json = project.expect(0, &["effects", "t.json", "--json"]).json();
    assert_eq!(json[0]["status"], "done");
}

#[test]
fn a_command_that_is_killed_is_in_doubt_until_that_is_settled() {
    let project = Project::with("t.json", TASK);
    let killed = "echo sent >> outbox; kill -9 $$";
    let how = ["--how", "count the lines of outbox"];
    let run = project.expect(137, &once(&how, killed));
    assert!(
        run.err.contains("in doubt whether mail took place"),
        "{run:?}"
    );
    let refused = project.expect(125, &once(&how, killed));
    let line = refused.error();
    assert!(
        line.contains("find out (count the lines of outbox)")
            && line.contains("ckpt effects t.json --done=mail --round ")
            && line.ends_with("nothing was run"),
        "{line}"
    );
    assert_eq!(sent(&project), 1);
    for verb in ["effects", "show", "resume"] {
        let run = project.expect(1, &[verb, "t.json"]);
        assert!(run.err.contains("count the lines of outbox"), "{run:?}");
    }
    let doctor = project.expect(1, &["doctor", "t.json"]);
    assert!(
        doctor
            .out
            .contains("in-doubt: t.json: mail may have taken place\n  ckpt effects t.json"),
        "{doctor:?}"
    );
    let other = project.expect(
        4,
        &["effects", "t.json", "--not-done", "mail", "--round", "7"],
    );
    assert!(other.error().contains("was begun again since"), "{other:?}");
    project.expect(0, &["effects", "t.json", "--not-done", "mail"]);
    project.expect(137, &once(&[], killed));
    assert_eq!(sent(&project), 2);
    project.expect(
        0,
        &[
            "effects",
            "t.json",
            "--done",
            "mail",
            "--receipt",
            "message 7",
        ],
    );
    let again = project.expect(0, &once(&[], killed));
    assert!(again.err.contains("took place already"), "{again:?}");
    assert_eq!(sent(&project), 2);
    let no = project.expect(4, &["effects", "t.json", "--not-done", "mail"]);
    assert!(no.error().contains("took place"), "{no:?}");
    let no = project.expect(4, &["effects", "t.json", "--done", "fax"]);
    assert!(no.error().contains("no effect \"fax\""), "{no:?}");
}

#[test]
fn a_check_finds_out_and_one_that_cannot_leaves_the_doubt() {
    let project = Project::with("t.json", TASK);
    let check = ["--check", "echo looking; test -s outbox"];
    project.expect(137, &once(&check, "kill -9 $$"));
    // It did not take place, so it runs again. It is killed again, now after it took place.
    let run = project.expect(137, &once(&check, "echo sent >> outbox; kill -9 $$"));
    assert!(run.out.is_empty() && run.err.contains("looking"), "{run:?}");
    let unclear = project.expect(125, &once(&["--check", "exit 2"], SEND));
    assert!(unclear.err.contains("nothing was run"), "{unclear:?}");
    assert_eq!(project.expect(0, &once(&check, SEND)).out, "");
    project.expect(0, &once(&check, SEND));
    assert_eq!(sent(&project), 1);
}

#[test]
fn codes_that_are_named_had_no_effect_and_what_cannot_run_has_none() {
    let project = Project::with("t.json", TASK);
    let flaky = "test -e up || { echo down >&2; exit 75; }; echo sent >> outbox";
    for _ in 0..2 {
        project.expect(75, &once(&["--retry-on", "75"], flaky));
    }
    project.write("up", "");
    for _ in 0..2 {
        project.expect(0, &once(&["--retry-on", "75"], flaky));
    }
    assert_eq!(sent(&project), 1);
    let missing = ["once", "deploy", OF[0], OF[1], "--", "./no-such-program"];
    for _ in 0..2 {
        let run = project.expect(125, &missing);
        assert!(
            run.error()
                .contains("cannot run ./no-such-program: No such file"),
            "{run:?}"
        );
    }
}

#[test]
fn what_is_not_run_ends_with_125() {
    let project = Project::with("t.json", TASK);
    let fence = project
        .expect(0, &["claim", "t.json", "--agent", "one"])
        .out;
    let claimed = project.expect(125, &once(&[], SEND));
    assert!(claimed.error().contains("claimed by one"), "{claimed:?}");
    let with_fence = [&["--fence", fence.trim_end()], &once(&[], SEND)[..]].concat();
    project.expect(3, &with_fence);
    for words in [
        &["once", "x", "--store", "none.json", "--", "true"][..],
        &["once", "x", "--store", "t.json"],
        &["once", " ", "--store", "t.json", "--", "true"],
        &[
            "once",
            "--no-such-option",
            "x",
            "--store",
            "t.json",
            "--",
            "true",
        ],
        &["once", "x", "--", "true"],
    ] {
        project.expect(125, words);
    }
    assert_eq!(sent(&project), 1);
}

#[test]
fn a_ledger_ends_when_the_task_is_archived_as_complete() {
    let project = Project::with("t.json", TASK);
    project.expect(3, &once(&[], SEND));
    project.expect(0, &["archive", "t.json", "--as", "aborted"]);
    project.write("t.json", TASK);
    project.expect(3, &once(&[], SEND));
    assert_eq!(sent(&project), 1, "an aborted task keeps its effects");
    project.expect(0, &["archive", "t.json", "--as", "complete"]);
    project.write("t.json", TASK.replace("Make b", "Make more"));
    project.expect(3, &once(&[], SEND));
    assert_eq!(sent(&project), 2);
}

/// The names of the archives of t.json.
fn archives(project: &Project) -> Vec<String> {
    let names = fs::read_dir(project.path(".")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("t%")).collect()
}

#[test]
fn an_archive_has_the_effects_of_its_task_and_begins_none() {
    let project = Project::with("t.json", TASK);
    project.expect(3, &once(&[], SEND));
    project.expect(0, &["archive", "t.json", "--as", "crashed"]);
    let archive = archives(&project).remove(0);
    let effects = project.expect(0, &["effects", &archive]).out;
    assert!(effects.starts_with("done, exit 3 "), "{effects}");
    let plan = project.ckpt(&["resume", &archive]);
    assert!(plan.out.contains("mail"), "{plan:?}");
    let command = ["--", "sh", "-c", SEND];
    project.expect(
        3,
        &[&["once", "mail", "--store", &archive], &command[..]].concat(),
    );
    let link = project.path("latest.json");
    std::os::unix::fs::symlink(project.path(&archive), link).unwrap();
    for name in [&archive, "latest.json"] {
        let run = [&["once", "another", "--store", name], &command[..]].concat();
        let run = project.expect(125, &run);
        assert!(run.err.contains("this is an archive"), "{run:?}");
    }
    let convert = [
        "convert",
        &archive,
        "--to",
        "agent-session",
        "--out",
        "s.json",
    ];
    project.ckpt(&convert);
    let effects = project.expect(0, &["effects", "s.json"]).out;
    assert!(effects.contains("  mail  "), "{effects}");
    assert_eq!(sent(&project), 1);
}

#[test]
fn an_archive_of_a_complete_task_has_none_of_the_effects_of_the_next() {
    let project = Project::with("t.json", TASK);
    project.expect(3, &once(&[], SEND));
    project.expect(0, &["archive", "t.json", "--as", "complete"]);
    project.write("t.json", TASK.replace("Make b", "Make more"));
    project.expect(3, &once(&[], SEND));
    let complete = archives(&project).remove(0);
    let effects = project.expect(0, &["effects", &complete]);
    assert_eq!(effects.out, "", "{effects:?}");
    let run = [&["once", "mail", "--store", &complete], &["--", "true"][..]].concat();
    project.expect(125, &run);
}

#[test]
fn a_state_of_a_complete_task_is_restored_with_a_warning_that_its_effects_count_no_more() {
    let project = Project::with("t.json", TASK);
    project.expect(0, &["note", "half way", "--store", "t.json"]);
    project.expect(3, &once(&[], SEND));
    for (archived_as, warns) in [("aborted", false), ("complete", true)] {
        project.expect(0, &["archive", "t.json", "--as", archived_as]);
        let restored = project.expect(0, &["restore", "t.json", "--entry", "1"]);
        let warning = "its ledger ended with it";
        assert_eq!(restored.err.contains(warning), warns, "{restored:?}");
    }
}

#[test]
fn what_took_place_stays_done_if_the_line_of_its_beginning_was_removed() {
    let project = Project::with("t.json", TASK);
    project.expect(3, &once(&[], SEND));
    let ledger = ".agent-checkpoint/ledger/t.json.jsonl";
    let lines = project.read(ledger);
    let (begun, done) = lines.split_once('\n').unwrap();
    assert!(
        begun.contains("\"begun\"") && done.contains("\"done\""),
        "{lines}"
    );
    // Also if an earlier time had no effect.
    let earlier = begun.replace("\"attempt\":\"", "\"attempt\":\"0");
    assert_ne!(earlier, begun, "{begun}");
    for left in [done.to_owned(), format!("{earlier}\n{done}")] {
        project.write(ledger, left);
        let again = project.expect(3, &once(&[], SEND));
        assert!(again.err.contains("nothing was run"), "{again:?}");
    }
    assert_eq!(sent(&project), 1);
}

#[test]
fn a_converted_checkpoint_has_the_effects_of_its_task() {
    let project = Project::with("t.json", TASK);
    project.expect(3, &once(&[], SEND));
    for (code, to, out) in [
        (1, "agent-session", "s.json"),
        (0, "builder-state", "b.json"),
    ] {
        project.expect(code, &["convert", "t.json", "--to", to, "--out", out]);
        let again = ["once", "mail", "--store", out, "--", "sh", "-c", SEND];
        assert_eq!(project.expect(3, &again).out, "sent\n");
    }
    // A conversion that was killed before it wrote the file can be repeated.
    std::fs::remove_file(project.path("s.json")).unwrap();
    let convert = [
        "convert",
        "t.json",
        "--to",
        "agent-session",
        "--out",
        "s.json",
    ];
    project.expect(1, &convert);
    let again = ["once", "mail", "--store", "s.json", "--", "sh", "-c", SEND];
    assert_eq!(project.expect(3, &again).out, "sent\n");
    assert_eq!(sent(&project), 1);
}

#[test]
fn long_output_and_what_stays_in_the_background_keep_no_end_from_being_recorded() {
    let project = Project::with("t.json", TASK);
    let long = "i=0; while [ $i -lt 3000 ]; do echo 'ü \"quoted\" ü'; i=$((i+1)); done; exit 3";
    project.expect(3, &once(&[], long));
    let again = project.expect(3, &once(&[], long));
    assert!(
        again.out.starts_with("ü \"quoted\" ü\n") && again.err.contains("were not kept"),
        "{again:?}"
    );
    let begun = std::time::Instant::now();
    let serve = [
        "once",
        "serve",
        OF[0],
        OF[1],
        "--",
        "sh",
        "-c",
        "sleep 20 & echo up",
    ];
    project.expect(0, &serve);
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "it waited for what goes on in the background"
    );
    assert_eq!(project.expect(0, &serve).out, "up\n");
}

/// A shell loop whose `ckpt` is killed at any time: by the count outside, the mail is never sent twice.
#[cfg(target_os = "linux")]
#[test]
fn in_a_loop_of_the_shell_a_kill_at_any_time_sends_nothing_twice() {
    let kills = std::env::var("AGENT_CHECKPOINT_EFFECT_KILLS").ok();
    let kills: u64 = kills.map_or(30, |kills| kills.parse().unwrap());
    let project = Project::with("t.json", TASK);
    let script = r#"
        n=0
        while :; do
            ckpt once "mail $n" --store t.json --check "grep -qx 'mail $n' outbox" -- \
                sh -c "sleep 0.01; echo 'mail $n' >> outbox; echo sent"
            # In progress: the command of a ckpt that was killed goes on.
            case $? in 0) n=$((n + 1)) ;; 125) sleep 0.01 ;; esac
        done"#;
    project.write("outbox", "");
    let mut killed = 0;
    let mut shell = Command::new("sh")
        .args(["-c", script])
        .current_dir(project.path("."))
        .env("PATH", path_with_ckpt())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for kill in 0..kills {
        std::thread::sleep(Duration::from_micros(5_000 + kill * 79_193 % 400_000));
        // Kill only `ckpt` itself, not the command that it runs.
        let found = children_of(shell.id());
        for id in found {
            let status = Command::new("kill").args(["-9", &id.to_string()]).status();
            killed += u64::from(status.unwrap().success());
        }
        assert_none_twice(&project);
    }
    shell.kill().unwrap();
    shell.wait().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_none_twice(&project);
    assert!(
        killed > kills / 4,
        "{killed} of {kills} kills met a process"
    );
    assert!(sent(&project) > 1, "and it went on");
}

#[cfg(target_os = "linux")]
fn children_of(id: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    text.split_whitespace()
        .map(|id| id.parse().unwrap())
        .collect()
}

#[cfg(target_os = "linux")]
fn assert_none_twice(project: &Project) {
    let mut lines: Vec<String> = project.read("outbox").lines().map(str::to_owned).collect();
    let all = lines.len();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), all, "sent twice: {}", project.read("outbox"));
}

#[test]
fn what_begins_with_a_dash_is_no_id_and_runs_nothing() {
    let project = Project::with("t.json", TASK);
    for id in ["-x", "--chek"] {
        for (verb, code) in [("once", 125), ("ask", 2)] {
            let line = [verb, id, OF[0], OF[1], "--", "sh", "-c", SEND];
            let error = project.expect(code, &line).err;
            assert!(error.contains("no ID begins with `-`"), "{error}");
        }
    }
    // Behind `--` is the command.
    let error = project.expect(125, &["once", OF[0], OF[1], "--", "-x"]).err;
    assert!(error.contains("<ID>"), "{error}");
    assert_eq!(sent(&project), 0);
}
