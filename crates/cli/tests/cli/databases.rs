//! Checkpoints in a database: every verb works on them, or reports why not.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

#[cfg(unix)]
use crate::cluster;
use crate::project::{Project, Run};
use crate::server;

const NOW: [&str; 2] = ["--now", "2026-03-02T09:00:00Z"];

/// A project whose task is in one kind of store.
struct Task {
    project: Project,
    /// The address of the store.
    store: String,
}

impl Task {
    fn in_sqlite(project: Project) -> Task {
        let store = "sqlite:c.db".to_owned();
        Task { project, store }
    }

    /// A task in each kind of store that is available here. None of the stores exists yet.
    fn in_all() -> Vec<Task> {
        let project = || Project::with("src/a.rs", "a");
        let mut all = vec![Task::in_sqlite(project())];
        #[cfg(unix)]
        if cluster::is_installed() {
            let (_, store) = cluster::shared().fresh_database();
            all.push(Task {
                project: project(),
                store,
            });
        }
        if server::is_installed() {
            let mut project = project();
            project.set(&server::shared().environment());
            let store = format!("s3://{}/{}", server::BUCKET, server::fresh_root());
            all.push(Task { project, store });
        }
        all
    }

    /// The same stores, in each of which the task was begun.
    fn begun() -> Vec<Task> {
        let all = Task::in_all();
        for task in &all {
            let started = task.run(
                0,
                &[
                    "start", "--agent", "dev", "--plan", "Make a", "Make b", "Make c",
                ],
            );
            let expected = format!(
                "started {}, key US-003 for dev: 3 steps, first: Make a\n",
                task.store
            );
            assert_eq!(started.out, expected);
        }
        all
    }

    fn on<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        [words, &["--store", &self.store, "--key", "US-003"], &NOW].concat()
    }

    #[track_caller]
    fn run(&self, code: i32, words: &[&str]) -> Run {
        self.project.expect(code, &self.on(words))
    }

    /// A run on the checkpoint that must end with this code and print this text.
    #[track_caller]
    fn says(&self, code: i32, words: &[&str], says: &str) -> Run {
        let run = self.run(code, words);
        let both = format!("{}{}", run.out, run.err);
        assert!(both.contains(says), "{words:?}: {both}");
        for wrong in ["no such file", &format!("{}/", self.store), server::SECRET] {
            assert!(!both.contains(wrong), "{words:?}: {both}");
        }
        run
    }
}

/// The verbs that are tried below, and `copy`, which has separate tests.
const TRIED: &[&str] = &[
    "approve",
    "approved",
    "archive",
    "ask",
    "batch",
    "block",
    "check",
    "claim",
    "complete",
    "context",
    "convert",
    "copy",
    "decide",
    "deny",
    "detail",
    "detect",
    "diff",
    "doctor",
    "effects",
    "fail",
    "forget",
    "gate",
    "heartbeat",
    "history",
    "hook",
    "lead",
    "list",
    "note",
    "once",
    "pause",
    "phase",
    "prove",
    "prune",
    "rate-limit",
    "reassign",
    "recover",
    "release",
    "report",
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

/// Verbs that work without a checkpoint.
const WITHOUT_STORE: &[&str] = &["completions", "config", "guide", "init", "man", "schema"];

#[test]
fn every_verb_is_tried() {
    let help = Project::new().expect(0, &["--help"]).out;
    let verbs = help.lines().skip_while(|line| *line != "Daily work:");
    let verbs = verbs.take_while(|line| *line != "Options:");
    let verbs = verbs.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let verbs: BTreeSet<&str> = verbs.filter(|verb| !verb.is_empty()).collect();
    let tried = TRIED.iter().chain(WITHOUT_STORE).copied();
    assert_eq!(verbs, tried.collect());
}

#[test]
fn a_hook_of_a_coding_agent_finds_the_only_open_checkpoint() {
    for task in Task::begun() {
        let hook = |event: &str| {
            let now = "2026-03-02T09:00:04Z";
            let words = ["hook", event, "--store", &task.store, "--now", now];
            let run = task.project.ckpt_given(&words, r#"{"session_id": "s1"}"#);
            assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
            run.out
        };
        let out = hook("SessionStart");
        assert!(out.contains("# Resuming Task: US-003"), "{out}");
        assert!(out.contains("--key US-003"), "{out}");
        assert_eq!(hook("Stop"), "");
        let shown = task.run(0, &["show", "--json"]).json();
        assert_eq!(shown["updated_at"], "2026-03-02T09:00:04Z");
    }
}

#[cfg(unix)]
#[test]
fn an_effect_happens_once_until_its_complete_task_is_archived() {
    for task in Task::begun() {
        let once = [
            &task.on(&["once", "mail"])[..],
            &["--", "sh", "-c", "echo sent; exit 3"],
        ]
        .concat();
        let again = [
            &task.on(&["once", "mail"])[..],
            &["--", "sh", "-c", "echo sent twice"],
        ]
        .concat();
        for words in [&once, &again] {
            assert_eq!(task.project.expect(3, words).out, "sent\n");
        }
        task.says(0, &["effects"], "done, exit 3 ");
        task.run(0, &["archive", "--as", "complete"]);
        task.run(0, &["start", "--plan", "More"]);
        assert_eq!(task.project.expect(0, &again).out, "sent twice\n");
    }
}

#[cfg(unix)]
#[test]
fn what_is_approved_runs_once() {
    for task in Task::begun() {
        let of = |verb: &'static str| {
            let words = &task.on(&[verb, "mail"])[..];
            [words, &["--", "sh", "-c", "echo sent; exit 3"]].concat()
        };
        task.project.expect(125, &of("approved"));
        task.project.expect(0, &of("ask"));
        task.says(0, &["deny", "mail", "--by", "Ann"], "denied ");
        task.project.expect(125, &of("approved"));
        task.project.expect(0, &of("ask"));
        task.says(0, &["approve", "mail", "--by", "Ann"], "approved ");
        for _ in 0..2 {
            assert_eq!(task.project.expect(3, &of("approved")).out, "sent\n");
        }
    }
}

#[test]
fn a_proof_is_judged_and_run_again() {
    for task in Task::begun() {
        let prove = task.on(&["prove", "Make a", "--inputs", "src"]);
        let prove = [&prove[..], &["--", "sh", "-c", "echo x >> runs"]].concat();
        task.project.expect(0, &prove);
        task.says(0, &["check"], "Make a: proven by sh -c");
        task.project.write("src/a.rs", "changed");
        task.says(1, &["check"], "Make a: outdated: src/a.rs changed since;");
        task.says(0, &["check", "--rerun"], "Make a: proven by sh -c");
        assert_eq!(task.project.read("runs"), "x\nx\n");
    }
}

#[test]
fn doctor_judges_what_is_there() {
    for task in Task::begun() {
        let words = [&["doctor", &task.store][..], &NOW].concat();
        let run = task.project.expect(0, &words);
        assert_eq!(run.out, "1 checkpoint; nothing is wrong\n");
        task.run(1, &["set", "/phase=\"x\""]);
        let run = task.project.expect(1, &words);
        let says = format!("violation: {}: /phase: ", task.store);
        assert!(run.out.starts_with(&says), "{run:?}");
        let next = run.out.lines().nth(1).unwrap_or_default();
        assert!(next.starts_with("  ckpt validate --store "), "{run:?}");
        assert!(next.ends_with(" --key US-003"), "{run:?}");
        task.run(1, &["validate"]);
    }
}

#[test]
fn its_keys_are_listed_without_files() {
    let project = Project::new();
    let at = "sqlite:c.db";
    for key in ["US-2", "US-10"] {
        project.expect(0, &["start", "--store", at, "--key", key]);
    }
    // A claim is no checkpoint.
    project.expect(
        0,
        &["claim", "--store", at, "--key", "US-3", "--agent", "dev"],
    );
    let listed = project.expect(0, &["list", at]);
    assert_eq!(listed.out, "US-10\ttask\nUS-2\ttask\n");
    project.expect(2, &["list", "sqlite:missing.db"]);
}

#[test]
fn what_an_agent_reports_is_kept() {
    for task in Task::begun() {
        reports_are_kept_in(&task);
    }
}

fn reports_are_kept_in(task: &Task) {
    let (project, store) = (&task.project, task.store.as_str());
    task.says(0, &["step", "start", "Make a"], "started: Make a");
    let done = ["step", "done", "--current", "--modified", "src/a.rs"];
    task.says(0, &done, "done: Make a; 2 pending");
    task.says(0, &["step", "add", "Make d"], "added: Make d");
    task.says(0, &["step", "edit", "Make d", "--to", "Make e"], "Make e");
    task.says(
        0,
        &["step", "move", "Make e", "--before", "Make b"],
        "Make e",
    );
    task.says(0, &["step", "drop", "Make e", "--because", "no"], "dropped");
    task.says(0, &["decide", "Use x", "--why", "y"], "decided: Use x");
    task.says(0, &["note", "hi"], "noted: hi");
    task.says(0, &["block", "CI"], "blocked: CI");
    task.says(0, &["unblock"], "unblocked");
    task.says(0, &["heartbeat"], "heartbeat");
    task.says(0, &["context", "--used", "0.5"], "50 %");
    task.says(0, &["rate-limit", "slow"], "rate limit: slow");
    task.says(0, &["phase", "verification"], "verification");
    task.says(0, &["reassign", "--to", "two"], "reassigned to two");
    task.says(0, &["fail", "broke"], "broke");
    task.says(0, &["unblock"], "");
    task.says(0, &["verify", "cargo test", "passed"], "cargo test");
    task.says(0, &["detail", "--contract", "cargo test"], "");
    let batch = task.on(&["batch", "--agent", "two"]);
    let lines = "{\"op\": \"step done\", \"text\": \"Make b\", \"pending\": \"Make b\"}\n{\"op\": \"nope\"}\n";
    let refused = project.ckpt_given(&batch, lines);
    let wrong = format!("{store}: line 2: \"nope\" is not an operation");
    assert!(
        refused.code == 2 && refused.err.contains(&wrong),
        "{refused:?}"
    );
    let two = lines.lines().next().unwrap();
    assert_eq!(project.ckpt_given(&batch, two).code, 0);
    // Operations that this format lacks.
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
        let lacks = format!("{store} (US-003): this format has no operation");
        task.says(2, words, &lacks);
    }
    task.says(0, &["step", "done", "Make c"], "nothing is left");
    task.says(0, &["complete"], "complete");
    let shown = task.says(0, &["show", "--json"], "").json();
    assert_eq!(shown["file"], store);
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
    for task in Task::begun() {
        reading_works_in(&task);
    }
}

fn reading_works_in(task: &Task) {
    let (project, store) = (&task.project, task.store.as_str());
    let done = [
        "step",
        "done",
        "Make a",
        "--pending",
        "Make a",
        "--modified",
        "src/a.rs",
    ];
    task.says(0, &done, "done");
    let has = |what: &str| what.replace("STORE", store);
    task.says(0, &["show"], "US-003 (task)");
    task.says(0, &["detect"], &has("STORE: task"));
    task.says(0, &["validate"], &has("STORE: valid (task)"));
    task.says(0, &["stale"], "src/a.rs  unchanged");
    let resumed = task.says(0, &["resume", "--agent", "dev"], "Make b");
    let word = if store.contains('?') {
        format!("'{store}'")
    } else {
        store.to_owned()
    };
    let line = format!("ckpt step start 'TEXT' --store {word} --key US-003 --format task");
    assert!(resumed.out.contains(&line), "{resumed:?}");
    task.says(
        1,
        &["convert", "--to", "agent-session"],
        "\"feature\": \"US-003\"",
    );
    task.says(1, &["diff"], "finished: Make a");
    let revision = task.says(0, &["revision"], "sha256:").out;
    let states = task.says(0, &["history", "--json"], "").json();
    assert_eq!(states[0]["revision"], revision.trim_end());
    let fleet = project.expect(0, &[&["status", store, "--json"], &NOW[..]].concat());
    let row = &fleet.json()["rows"][0];
    assert_eq!(
        (&row["store"], &row["key"]),
        (&store.into(), &"US-003".into())
    );
    assert_eq!(row["next"]["decision"], "continue");
    let by_option = ["status", "--store", store];
    let table = project.expect(0, &[&by_option[..], &NOW].concat()).out;
    assert!(table.contains("33% (1/3)"), "{table}");
}

#[test]
fn what_changes_by_hand_changes_a_database() {
    for task in Task::begun() {
        changes_work_in(&task);
    }
}

fn changes_work_in(task: &Task) {
    let store = task.store.as_str();
    let revision = task.says(0, &["revision"], "").out;
    let expect = [
        "set",
        "--expect",
        revision.trim_end(),
        "/phase=\"verification\"",
    ];
    task.says(0, &expect, &format!("{store}: changed"));
    task.says(5, &expect, "expected revision");
    task.says(
        0,
        &["history", "--pin", "current"],
        "2 is pinned, so it is never removed",
    );
    task.says(0, &["restore", "--entry", "1"], "restored 1");
    let phase = task.says(0, &["show", "--json"], "").json();
    assert_eq!(phase["phase"], "implementation");
    task.says(0, &["note", "one"], "");
    task.says(0, &["note", "two"], "");
    task.says(0, &["prune", "--keep", "1"], "removed 3, 1");
    task.says(0, &["recover"], "nothing is wrong with it");

    let fence = task.says(0, &["claim", "--agent", "dev"], "").out;
    task.says(0, &["claim"], "claimed by dev");
    task.says(4, &["claim", "--agent", "two"], "claimed by dev");
    task.says(4, &["note", "no fence"], "claimed by dev");
    task.says(4, &["archive", "--as", "crashed"], "claimed by dev");
    let fence = ["--fence", fence.trim_end()];
    task.says(0, &[&["release"], &fence[..]].concat(), "released");

    task.says(4, &["archive"], "not complete");
    task.says(0, &["archive", "--as", "crashed"], "archived as entry");
    // It stays in the history forever, and no recovery uses it.
    let gone = "there is no checkpoint here now; the history has states of a task that ended";
    task.says(2, &["show"], gone);
    task.says(3, &["recover"], "are of earlier tasks");
    let states = task.says(0, &["history", "--json"], "").json();
    assert_eq!(
        (&states[0]["pinned"], &states[0]["tasks_since"]),
        (&true.into(), &1.into())
    );
    task.says(0, &["start", "--plan", "Next"], "started");

    task.says(0, &["forget"], "would be removed");
    task.says(0, &["forget", "--apply"], "removed for good");
    task.says(0, &["history"], "no state is known");
    let none = format!("{store} (US-003): there is no checkpoint here; start one first");
    task.says(2, &["show"], &none);
}

#[test]
fn a_damaged_document_is_recovered() {
    let task = Task::in_sqlite(Project::with("src/a.rs", "a"));
    task.run(
        0,
        &[
            "start", "--agent", "dev", "--plan", "Make a", "Make b", "Make c",
        ],
    );
    let project = &task.project;
    task.says(0, &["note", "one"], "");
    let cut = || {
        let database = rusqlite::Connection::open(project.path("c.db")).unwrap();
        let sql = "UPDATE states SET text = substr(text, 1, length(text) - 20) WHERE id = (SELECT present FROM keys)";
        assert_eq!(database.execute(sql, []).unwrap(), 1);
    };
    cut();
    let advice = "`ckpt recover` continues with its newest earlier state, 1";
    for verb in ["show", "stale", "revision", "validate", "resume", "detect"] {
        task.says(3, &[verb], advice);
    }
    task.says(3, &["note", "two"], advice);
    task.says(0, &["history"], "corrupt: truncated");
    let table = project.expect(3, &["status", "sqlite:c.db"]);
    assert!(table.err.contains("sqlite:c.db: US-003"), "{table:?}");
    task.says(1, &["recover"], "went on with 1");
    task.says(0, &["show"], "Make a");
    cut();
    task.says(1, &["recover", "--salvage"], "went on with the good part");
    cut();
    task.says(1, &["recover", "--fresh"], "the next save begins anew");
    task.says(2, &["show"], "of a task that ended");
}

#[test]
fn what_a_database_cannot_have_is_refused_in_a_sentence() {
    let task = Task::in_sqlite(Project::new());
    let project = &task.project;
    let missing =
        "sqlite:c.db: there is no such database; check the path, or begin in it with `ckpt start`";
    for verb in [
        &["show"][..],
        &["note", "x"],
        &["set", "/a=1"],
        &["claim"],
        &["recover"],
    ] {
        task.says(2, verb, missing);
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
    task.says(
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
fn a_change_of_nothing_makes_no_store() {
    for task in Task::in_all() {
        for words in [
            &["note", "x"][..],
            &["set", "/a=1"],
            &["recover"],
            &["release", "--fence", "1"],
            &["archive"],
            &["forget", "--apply"],
        ] {
            let run = task.says(2, words, "begin in it with `ckpt start`");
            assert_eq!(run.error().split(": ").next(), Some(task.store.as_str()));
        }
        // That did not create a checkpoint either.
        task.says(2, &["note", "x"], "begin in it with `ckpt start`");
        task.run(0, &["claim", "--agent", "dev"]);
        task.says(2, &["note", "x"], "there is no checkpoint here");
    }
}

#[test]
fn an_address_without_slashes_becomes_no_folder() {
    let project = Project::new();
    for (address, says) in [
        (
            "postgres:",
            "write postgres://HOST/DATABASE, or ./postgres: ",
        ),
        (
            "postgres:u:hunter2@h/d",
            "write postgres://HOST/DATABASE, or ./postgres:u@h/d ",
        ),
        (
            "postgresql:/x",
            "write postgresql://HOST/DATABASE, or ./postgresql:/x ",
        ),
        ("s3:/x", "write s3://BUCKET/PREFIX, or ./s3:/x "),
        ("gs:x", "write gs://BUCKET/PREFIX, or ./gs:x "),
        (
            "ftp://x",
            "sqlite:PATH, postgres://HOST/DATABASE or s3://BUCKET/PREFIX",
        ),
    ] {
        for words in [&["start"][..], &["note", "x"], &["show"]] {
            let store = ["--store", address, "--key", "a"];
            let run = project.expect(2, &[words, &store].concat());
            assert!(run.error().contains(says), "{run:?}");
            assert!(!run.err.contains("hunter2"), "{run:?}");
        }
    }
    assert_eq!(project.names(), [""; 0]);
    project.expect(0, &["start", "--store", "./s3:x", "--key", "a"]);
    assert_eq!(project.names(), ["s3:x"]);
}

#[test]
fn what_s3_refuses_is_said_without_the_secret() {
    if !server::is_installed() {
        return;
    }
    let mut project = Project::new();
    project.set(&server::shared().environment());
    let on = |store: &'static str| ["--store", store, "--key", "a"];
    for store in ["s3://no-such-bucket/x", "s3://AKIA:hunter2@bucket/x"] {
        for words in [&["show"][..], &["start"], &["note", "x"], &["status"]] {
            let place = if words == ["status"] {
                vec!["--store", store]
            } else {
                on(store).to_vec()
            };
            let run = project.expect(2, &[words, &place].concat());
            let both = format!("{}{}", run.out, run.err);
            assert!(
                !both.contains("hunter2") && !both.contains(server::SECRET),
                "{both}"
            );
            assert!(run.error().contains("; "), "it says what to do: {both}");
        }
    }
    let run = project.expect(2, &[&["show"][..], &on("gs://bucket/x")].concat());
    assert!(run.error().contains("--features gs"), "{run:?}");
}

#[test]
fn no_password_is_printed() {
    let project = Project::new();
    // An unknown kind of address, and a server that does not exist.
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

/// An agent is killed, and another continues its work, all in the database.
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
    // While it runs, another session of the same agent may not resume the task; afterwards it may, as it may claim it.
    let session = ["resume", "--agent", "one", "--session", "s2", "--json"];
    let plan = |code: i32| run(code, &session).json()["decision"].clone();
    assert_eq!(plan(4), "refuse");
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(plan(1), "ask");
    assert_eq!(
        run(4, &["resume", "--agent", "two", "--json"]).json()["decision"],
        "refuse"
    );

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
    // A late report of the first agent is refused.
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
