//! Checkpoints in a database: every verb works on them, or says why not.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::project::{Project, Run};

const STORE: [&str; 4] = ["--store", "sqlite:c.db", "--key", "US-003"];
const NOW: [&str; 2] = ["--now", "2026-03-02T09:00:00Z"];

/// A project with the database, in which a task was begun.
fn begun() -> Project {
    let project = Project::with("src/a.rs", "a");
    let plan = ["Make a", "Make b", "Make c"];
    let start = on(&[&["start", "--agent", "dev", "--plan"], &plan[..]].concat());
    let started = project.expect(0, &start);
    assert_eq!(
        started.out,
        "started sqlite:c.db, key US-003 for dev: 3 steps, first: Make a\n"
    );
    project
}

fn on<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &STORE, &NOW].concat()
}

impl Project {
    /// A run on the checkpoint that must end so, and say this.
    #[track_caller]
    fn says(&self, code: i32, words: &[&str], says: &str) -> Run {
        let run = self.expect(code, &on(words));
        let both = format!("{}{}", run.out, run.err);
        assert!(both.contains(says), "{words:?}: {both}");
        for wrong in ["no such file", "sqlite:c.db/"] {
            assert!(!both.contains(wrong), "{words:?}: {both}");
        }
        run
    }
}

/// The verbs that are tried below, and `copy`, which has tests of its own.
const TRIED: &[&str] = &[
    "archive",
    "batch",
    "block",
    "claim",
    "complete",
    "context",
    "convert",
    "copy",
    "decide",
    "detail",
    "detect",
    "diff",
    "fail",
    "forget",
    "gate",
    "heartbeat",
    "history",
    "lead",
    "note",
    "pause",
    "phase",
    "prune",
    "rate-limit",
    "reassign",
    "recover",
    "release",
    "restart",
    "restore",
    "resume",
    "review",
    "revision",
    "set",
    "show",
    "stage",
    "stale",
    "start",
    "status",
    "step",
    "subtask",
    "sync",
    "task",
    "unblock",
    "validate",
    "verify",
    "waive",
    "workstream",
];

/// Those that are about no checkpoint.
const WITHOUT_STORE: &[&str] = &["guide", "schema", "help"];

#[test]
fn every_verb_is_tried() {
    let help = Project::new().expect(0, &["--help"]).out;
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty());
    let verbs = verbs.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let verbs: BTreeSet<&str> = verbs.filter(|verb| !verb.is_empty()).collect();
    let tried = TRIED.iter().chain(WITHOUT_STORE).copied();
    assert_eq!(verbs, tried.collect());
}

#[test]
fn what_an_agent_reports_is_kept() {
    let project = begun();
    project.says(0, &["step", "start", "Make a"], "started: Make a");
    let done = ["step", "done", "--current", "--modified", "src/a.rs"];
    project.says(0, &done, "done: Make a; 2 pending");
    project.says(0, &["step", "add", "Make d"], "added: Make d");
    project.says(0, &["step", "edit", "Make d", "--to", "Make e"], "Make e");
    project.says(
        0,
        &["step", "move", "Make e", "--before", "Make b"],
        "Make e",
    );
    project.says(0, &["step", "drop", "Make e", "--because", "no"], "dropped");
    project.says(0, &["decide", "Use x", "--why", "y"], "decided: Use x");
    project.says(0, &["note", "hi"], "noted: hi");
    project.says(0, &["block", "CI"], "blocked: CI");
    project.says(0, &["unblock"], "unblocked");
    project.says(0, &["heartbeat"], "heartbeat");
    project.says(0, &["context", "--used", "0.5"], "50 %");
    project.says(0, &["rate-limit", "slow"], "rate limit: slow");
    project.says(0, &["phase", "verification"], "verification");
    project.says(0, &["reassign", "--to", "two"], "reassigned to two");
    project.says(0, &["fail", "broke"], "broke");
    project.says(0, &["unblock"], "");
    project.says(0, &["verify", "cargo test", "passed"], "cargo test");
    project.says(0, &["detail", "--contract", "cargo test"], "");
    let batch = on(&["batch", "--agent", "two"]);
    let lines = "{\"op\": \"step done\", \"text\": \"Make b\", \"pending\": \"Make b\"}\n{\"op\": \"nope\"}\n";
    let refused = project.ckpt_given(&batch, lines);
    let wrong = "sqlite:c.db: line 2: \"nope\" is no operation";
    assert!(
        refused.code == 2 && refused.err.contains(wrong),
        "{refused:?}"
    );
    let two = lines.lines().next().unwrap();
    assert_eq!(project.ckpt_given(&batch, two).code, 0);
    // What this format lacks.
    for words in [
        &["pause"][..],
        &["stage", "1"],
        &["sync", "x"],
        &["restart", "--because", "x"],
        &["subtask", "start", "x"],
        &["workstream", "start", "x"],
        &["task", "start", "x"],
        &["gate", "pass", "x"],
        &["waive", "--issue", "x", "--because", "x"],
        &["review", "approved"],
    ] {
        project.says(
            2,
            words,
            "sqlite:c.db (US-003): this format has no operation",
        );
    }
    project.says(0, &["step", "done", "Make c"], "nothing is left");
    project.says(0, &["complete"], "complete");
    let shown = project.says(0, &["show", "--json"], "").json();
    assert_eq!(shown["file"], "sqlite:c.db");
    assert_eq!(
        (&shown["key"], &shown["format"]),
        (&"US-003".into(), &"task".into())
    );
    assert_eq!(shown["status"], "complete");
    let names = project.names();
    let is_ours = |name: &String| name == "src" || name.starts_with("c.db");
    assert!(names.iter().all(is_ours), "{names:?}");
}

#[test]
fn what_only_reads_reads_a_database() {
    let project = begun();
    let done = [
        "step",
        "done",
        "Make a",
        "--pending",
        "Make a",
        "--modified",
        "src/a.rs",
    ];
    project.says(0, &done, "done");
    project.says(0, &["show"], "Store       sqlite:c.db, key US-003 (task)");
    project.says(0, &["detect"], "sqlite:c.db: task");
    project.says(0, &["validate"], "sqlite:c.db: valid (task)");
    project.says(0, &["stale"], "src/a.rs  unchanged");
    let resumed = project.says(0, &["resume", "--agent", "dev"], "Make b");
    let line = "ckpt step start 'TEXT' --store sqlite:c.db --key US-003 --format task";
    assert!(resumed.out.contains(line), "{resumed:?}");
    project.says(
        1,
        &["convert", "--to", "agent-session"],
        "\"feature\": \"US-003\"",
    );
    project.says(1, &["diff"], "finished: Make a");
    let revision = project.says(0, &["revision"], "sha256:").out;
    let states = project.says(0, &["history", "--json"], "").json();
    assert_eq!(states[0]["revision"], revision.trim_end());
    let fleet = project.expect(
        0,
        &[&["status", "sqlite:c.db", "--json"], &NOW[..]].concat(),
    );
    let row = &fleet.json()["rows"][0];
    assert_eq!(
        (&row["store"], &row["key"]),
        (&"sqlite:c.db".into(), &"US-003".into())
    );
    assert_eq!(row["next"]["decision"], "continue");
    let by_option = ["status", "--store", "sqlite:c.db"];
    let table = project.expect(0, &[&by_option[..], &NOW].concat()).out;
    assert!(table.contains("33% (1/3)"), "{table}");
}

#[test]
fn what_changes_by_hand_changes_a_database() {
    let project = begun();
    let revision = project.says(0, &["revision"], "").out;
    let expect = [
        "set",
        "--expect",
        revision.trim_end(),
        "/phase=\"verification\"",
    ];
    project.says(0, &expect, "sqlite:c.db: changed");
    project.says(5, &expect, "expected revision");
    project.says(
        0,
        &["history", "--pin", "current"],
        "2 is kept whatever comes",
    );
    project.says(0, &["restore", "--entry", "1"], "restored 1");
    let phase = project.says(0, &["show", "--json"], "").json();
    assert_eq!(phase["phase"], "implementation");
    project.says(0, &["note", "one"], "");
    project.says(0, &["note", "two"], "");
    project.says(0, &["prune", "--keep", "1"], "removed 3, 1");
    project.says(0, &["recover"], "nothing is wrong with it");

    let fence = project.says(0, &["claim", "--agent", "dev"], "").out;
    project.says(0, &["claim"], "claimed by dev");
    project.says(4, &["claim", "--agent", "two"], "claimed by dev");
    project.says(4, &["note", "no fence"], "claimed by dev");
    project.says(4, &["archive", "--as", "crashed"], "claimed by dev");
    let fence = ["--fence", fence.trim_end()];
    project.says(0, &[&["release"], &fence[..]].concat(), "released");

    project.says(4, &["archive"], "not complete");
    project.says(0, &["archive", "--as", "crashed"], "archived as entry");
    // The history has it, for good, and no recovery goes back to it.
    let gone = "there is no checkpoint here now; the history has states of a task that ended";
    project.says(2, &["show"], gone);
    project.says(3, &["recover"], "are of tasks that ended before");
    let states = project.says(0, &["history", "--json"], "").json();
    assert_eq!(
        (&states[0]["pinned"], &states[0]["tasks_since"]),
        (&true.into(), &1.into())
    );
    project.says(0, &["start", "--plan", "Next"], "started");

    project.says(0, &["forget"], "would be removed");
    project.says(0, &["forget", "--apply"], "removed for good");
    project.says(0, &["history"], "no state is known");
    project.says(
        2,
        &["show"],
        "sqlite:c.db (US-003): there is no checkpoint here; start one first",
    );
}

#[test]
fn a_damaged_document_is_recovered() {
    let project = begun();
    project.says(0, &["note", "one"], "");
    let cut = || {
        let database = rusqlite::Connection::open(project.path("c.db")).unwrap();
        let sql = "UPDATE states SET text = substr(text, 1, length(text) - 20) WHERE id = (SELECT present FROM keys)";
        assert_eq!(database.execute(sql, []).unwrap(), 1);
    };
    cut();
    let advice = "`ckpt recover` goes on with its newest earlier state, 1";
    for verb in ["show", "stale", "revision", "validate", "resume", "detect"] {
        project.says(3, &[verb], advice);
    }
    project.says(3, &["note", "two"], advice);
    project.says(0, &["history"], "corrupt: truncated");
    let table = project.expect(3, &["status", "sqlite:c.db"]);
    assert!(table.err.contains("sqlite:c.db: US-003"), "{table:?}");
    project.says(1, &["recover"], "went on with 1");
    project.says(0, &["show"], "Make a");
    cut();
    project.says(1, &["recover", "--salvage"], "went on with the good part");
    cut();
    project.says(1, &["recover", "--fresh"], "the next save begins anew");
    project.says(2, &["show"], "of a task that ended");
}

#[test]
fn what_a_database_cannot_have_is_refused_in_a_sentence() {
    let project = Project::new();
    let missing =
        "sqlite:c.db: there is no such database; check the path, or begin in it with `ckpt start`";
    for verb in [
        &["show"][..],
        &["note", "x"],
        &["set", "/a=1"],
        &["claim"],
        &["recover"],
    ] {
        project.says(2, verb, missing);
    }
    let status = project.expect(2, &["status", "sqlite:c.db"]);
    assert_eq!(status.error(), missing);
    assert_eq!(project.names(), [""; 0], "what only looks makes nothing");
    for (words, says) in [
        (&["show", "sqlite:c.db"][..], missing),
        (&["show", "--store", "sqlite:c.db"], "Name it with --key"),
        (
            &["start", "--store", "sqlite:", "--key", "a"],
            "names no file",
        ),
        (
            &["show", "--store", "sqlite:c.db", "--slot", "top"],
            "use --key instead",
        ),
        (
            &["lead", "begin", "S-1", "--store", "sqlite:c.db"],
            "which is a file of the project",
        ),
    ] {
        let run = project.expect(2, words);
        assert!(run.error().contains(says), "{run:?}");
    }
    let host = ["start", "--format", "builder-state"];
    project.says(
        2,
        &host,
        "sqlite:c.db: builder-state keeps its checkpoints in one host file",
    );
    let agent = [
        "--store",
        "sqlite:c.db",
        "--key",
        "Secondary-A",
        "--session",
        "s1",
    ];
    let start = [
        "start",
        "--format",
        "agent-session",
        "--agent",
        "Secondary-A",
    ];
    let needs = project.expect(2, &[&start[..], &agent].concat());
    let says = "sqlite:c.db (Secondary-A): a checkpoint of agent-session needs a feature";
    assert!(needs.error().starts_with(says), "{needs:?}");
    let task = ["--task", "F", "--plan", "one"];
    project.expect(0, &[&start[..], &agent, &task].concat());
    let over = project.expect(
        2,
        &[&["reassign", "--to", "Secondary-B"][..], &agent].concat(),
    );
    assert!(over.error().contains("needs a store of files"), "{over:?}");
}

#[test]
fn no_password_is_printed() {
    let project = Project::new();
    // Of a kind that is not known, and of a server that is not there.
    for address in [
        "db://me:hunter2@host/x",
        "postgres://me:hunter2@127.0.0.1:1/x",
    ] {
        shows_no_password(&project, address);
    }
    assert_eq!(project.names(), [""; 0], "no folder of that name is made");
}

fn shows_no_password(project: &Project, address: &str) {
    for words in [
        &["show", "--key", "a"][..],
        &["note", "x", "--key", "a", "--json"],
        &["set", "/a=1", "--key", "a"],
        &["resume", "--key", "a"],
        &["show"],
        &["lead", "begin", "S-1"],
        &["status"],
    ] {
        let run = project.expect(2, &[words, &["--store", address]].concat());
        let both = format!("{}{}", run.out, run.err);
        assert!(!both.contains("hunter2"), "{both}");
        assert!(!both.contains('@') || both.contains("//me@"), "{both}");
    }
    let status = project.expect(2, &["status", address]);
    assert!(!status.err.contains("hunter2"), "{status:?}");
}

/// An agent is killed, and another goes on with its work: all of it in the database.
#[cfg(unix)]
#[test]
fn a_killed_agents_work_is_taken_over() {
    let project = Project::with("src/a.rs", "a");
    let store = ["--store", "sqlite:c.db", "--key", "T-1"];
    let run = |code: i32, words: &[&str]| project.expect(code, &[words, &store].concat());
    let mut agent = Command::new("sleep");
    let mut agent = agent.arg("600").stdin(Stdio::null()).spawn().unwrap();
    let pid = agent.id().to_string();
    let one = ["--agent", "one"];
    let claim = ["claim", "--for", "2h", "--pid", &pid];
    let fence = run(0, &[&claim[..], &one].concat()).out;
    let one = [&one[..], &["--fence", fence.trim_end()]].concat();
    run(
        0,
        &[&["start", "--plan", "Make a", "Make b"], &one[..]].concat(),
    );
    run(0, &[&["step", "start", "Make a"], &one[..]].concat());
    let done = ["step", "done", "--current", "--modified", "src/a.rs"];
    run(0, &[&done[..], &one].concat());
    run(0, &[&["step", "start", "Make b"], &one[..]].concat());
    agent.kill().unwrap();
    agent.wait().unwrap();

    let two = ["--agent", "two"];
    let refused = run(4, &[&["resume"], &two[..]].concat());
    assert!(refused.err.contains("one"), "{refused:?}");
    run(4, &[&["claim"], &two[..]].concat());
    let fence = run(0, &[&["claim", "--take-over"], &two[..]].concat()).out;
    let with = [&two[..], &["--fence", fence.trim_end()]].concat();
    let resumed = run(1, &[&["resume"], &with[..]].concat());
    assert!(
        resumed.out.contains("- Make a") && resumed.out.contains("Make b"),
        "{resumed:?}"
    );
    assert!(
        resumed.err.contains("Make b"),
        "begun, and how far is a question: {resumed:?}"
    );
    // What the first agent may still have in flight does not go through.
    let late = run(4, &[&["step", "done", "--current"], &one[..]].concat());
    assert!(late.error().contains("two"), "{late:?}");
    run(0, &[&["step", "done", "--current"], &with[..]].concat());
    run(0, &[&["complete"], &with[..]].concat());
    run(0, &[&["archive"], &with[..]].concat());
    let table = project.expect(0, &["status", "sqlite:c.db"]);
    assert_eq!(table.out, "no checkpoints\n");
    let states = run(0, &["history", "--json"]).json();
    let entry = states[0]["entry"].as_str().unwrap().to_owned();
    run(0, &[&["restore", "--entry", &entry], &with[..]].concat());
    let shown = run(0, &["show", "--json"]).json();
    assert_eq!(
        (&shown["status"], &shown["agent"]),
        (&"complete".into(), &"two".into())
    );
}
