//! `examples/shell-agent.sh`: two shell agents, the first of which is killed.
#![cfg(unix)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::project::{Project, path_with_ckpt};

/// The page that the finished task has written.
const PAGE: &str = "<html><head><title>Page</title></head>\n<body>\n<p>one</p>\n<p>two</p>\n<p>three</p>\n\
                    </body>\n</html>\n";

fn shell_agent(project: &Project, name: &str) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shell-agent.sh");
    let mut command = Command::new("sh");
    command
        .arg(script)
        .args([name, "check points", "PAGE-1"])
        .env("PATH", path_with_ckpt())
        .current_dir(project.path("."))
        .stdin(Stdio::null());
    command
}

fn checkpoint(project: &Project) -> PathBuf {
    project.path("check points/PAGE-1.json")
}

#[test]
fn a_killed_shell_agents_task_is_finished_by_another() {
    let project = Project::new();
    let mut first = shell_agent(&project, "agent-one")
        .env("PACE", "0.2")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let is_half_done = || {
        let text = fs::read_to_string(checkpoint(&project)).unwrap_or_default();
        let page = fs::read_to_string(project.path("page.html")).unwrap_or_default();
        text.contains("\"Write the body\",\n    \"startedAt\"") && page.contains("<p>two</p>")
    };
    while !is_half_done() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it does not get on"
        );
        assert!(first.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Kill only the agent itself. No process that it started may continue writing.
    first.kill().unwrap();
    assert_eq!(first.wait().unwrap().signal(), Some(9));
    assert_ne!(project.read("page.html"), PAGE);

    // Its claim is still valid and keeps out an agent that does not know that the owner is dead.
    let refused = shell_agent(&project, "agent-two").output().unwrap();
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("claimed by agent-one"), "{words}");
    assert!(words.contains("TAKE_OVER=1"), "{words}");

    let asked = project.expect(4, &["resume", "check points/PAGE-1.json"]);
    assert!(
        asked.err.contains("agent-one") && asked.err.contains("has claimed the task"),
        "{asked:?}"
    );
    let second = shell_agent(&project, "agent-two")
        .env("TAKE_OVER", "1")
        .output()
        .unwrap();
    assert!(second.status.success(), "{second:?}");
    let said = String::from_utf8(second.stdout).unwrap();
    let expected = "agent-two: goes on with what is there\n\
                    agent-two: begins: Write the body\n\
                    agent-two: removed what was half done in page.html\n\
                    agent-two: done: Write the body\n\
                    agent-two: begins: Close the page\n\
                    agent-two: done: Close the page\n\
                    agent-two: nothing is left\n";
    assert_eq!(said, expected);
    assert_eq!(project.read("page.html"), PAGE);

    let shown = project.expect(0, &["show", "--json", "check points/PAGE-1.json"]);
    let handoff = &shown.json()["handoff"];
    assert_eq!(handoff["status"], "complete");
    assert_eq!(handoff["agent"], "agent-two");
    assert_eq!(handoff["previous_agents"][0], "agent-one");
    assert_eq!(handoff["done"].as_array().unwrap().len(), 3);
    // A third agent finds nothing to do, and the claim is released.
    let third = shell_agent(&project, "agent-three").output().unwrap();
    assert!(third.status.success(), "{third:?}");
}

#[test]
fn messages_stand_in_for_tokens_and_a_claim_ends_with_a_reassignment() {
    let project = Project::new();
    let at = ["--store", "cp", "--key", "T", "--agent", "one"];
    let with = |words: &[&'static str]| [words, &at[..]].concat();
    let fence = project.expect(0, &with(&["claim"])).out.trim().to_owned();
    let reports = |code: i32, words: &[&'static str]| {
        let words = [&with(words)[..], &["--fence", &fence]].concat();
        project.expect(code, &words)
    };
    reports(0, &["start", "--plan", "a", "b"]);
    reports(0, &["context", "--messages", "149"]);
    let warned = reports(1, &["context", "--messages", "150"]);
    assert!(
        warned
            .err
            .contains("Context limit approaching, creating checkpoint")
    );
    reports(4, &["context", "--messages", "36", "--of", "40"]);
    for wrong in [
        vec!["context"],
        vec!["context", "--of", "40"],
        vec!["context", "--messages", "3", "--of", "0"],
        vec!["context", "--messages", "3", "--used", "0.5"],
    ] {
        reports(2, &wrong);
    }
    let given = reports(0, &["reassign", "--to", "two"]);
    assert!(
        given.err.contains("the claim of one was released"),
        "{given:?}"
    );
    reports(4, &["decide", "late"]);
    project.expect(
        0,
        &[
            "step", "start", "a", "--store", "cp", "--key", "T", "--agent", "two",
        ],
    );
}

#[test]
fn the_heartbeat_of_a_builder_is_that_of_its_host_file() {
    let project = Project::with("docs/builder-state.json", crate::project::EXAMPLE);
    let now = ["--now", "2026-03-02T09:00:00Z"];
    let beat = [
        &["heartbeat", "--store", "docs/builder-state.json"][..],
        &now,
    ]
    .concat();
    let before = project
        .expect(0, &["revision", "docs/builder-state.json"])
        .out;
    assert_eq!(project.expect(0, &beat).out, "heartbeat\n");
    let text = project.read("docs/builder-state.json");
    assert!(
        text.contains("\"lastHeartbeat\": \"2026-03-02T09:00:00Z\""),
        "{text}"
    );
    assert_eq!(
        project
            .expect(0, &["revision", "docs/builder-state.json"])
            .out,
        before
    );
    let history = project.expect(0, &["history", "docs/builder-state.json", "--json"]);
    assert_eq!(
        history.json().as_array().unwrap().len(),
        1,
        "only the present state"
    );
    project.expect(
        2,
        &[
            "heartbeat",
            "--store",
            "none/builder-state.json",
            "--format",
            "builder-state",
        ],
    );
}
