//! `ckpt hook` with the agents' input: `tests/hooks` has payloads as they document them, each with its source and the
//! date at which it was read.

use std::any::Any;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use agent_checkpoint::store::FileStore;
use agent_checkpoint::{CheckpointStoreExt, Key};
use serde_json::{Value, json};

#[cfg(unix)]
use crate::cluster;
use crate::project::{Project, Run, TASK};

const AT: &str = "2026-03-02T09:00:00Z";

/// The input of an agent in a project, which the files call `/project`.
fn payload(project: &Project, name: &str) -> Value {
    let path = format!("{}/tests/hooks/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    assert!(file["source"].as_str().unwrap().starts_with("https://"));
    assert_eq!(file["date"].as_str().unwrap().len(), 10);
    let folder = project.path("").canonicalize().unwrap();
    let folder = folder
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .replace('\\', "/");
    let text = file["payload"].to_string().replace("/project", &folder);
    serde_json::from_str(&text).unwrap()
}

/// Runs the hook of an event outside of any project.
fn send(project: &Project, payload: &Value) -> Run {
    let event = payload["hook_event_name"].as_str().unwrap();
    let run = project.ckpt_given(&["hook", event, "--now", AT], payload.to_string());
    assert_eq!(run.code, 0, "{run:?}");
    run
}

fn hook(project: &Project, name: &str) -> Run {
    send(project, &payload(project, name))
}

/// Checks that a run printed nothing.
#[track_caller]
fn silent(run: &Run) {
    assert_eq!(
        (run.code, run.out.as_str(), run.err.as_str()),
        (0, "", ""),
        "{run:?}"
    );
}

#[track_caller]
fn message(run: &Run) -> String {
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let answer = run.json();
    assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
    let text = answer["systemMessage"].as_str().unwrap().to_owned();
    assert!(text.starts_with("ckpt: ") && !text.contains('\n'), "{text}");
    text
}

/// A project whose `ckpt.toml` names the store of its task.
fn project() -> Project {
    let project = Project::with("ckpt.toml", "store = \"checkpoints\"\nroot = \".\"\n");
    project.write("checkpoints/US-003.json", TASK);
    project.write_at("src/a.rs", "2026-03-02T07:00:00Z");
    project
}

/// A task with no step left.
fn complete_task() -> String {
    let current = r#"{ "description": "Make b", "startedAt": "2026-03-02T08:05:00Z" }"#;
    let task = TASK.replace(current, "null");
    task.replace(r#"["Make b", "Make c"]"#, "[]")
}

fn shown(project: &Project, file: &str) -> Value {
    project.ckpt(&["show", "--json", file]).json()
}

const FILE: &str = "checkpoints/US-003.json";

#[test]
fn a_session_begins_with_the_prompt_in_the_form_of_each_agent() {
    for (name, session) in [
        ("claude-session-start", "abc123"),
        ("codex-session-start", "019a-codex"),
        ("gemini-session-start", "gemini-1"),
    ] {
        let project = project();
        let before = project.read(FILE);
        let run = hook(&project, name);
        assert_eq!(run.err, "");
        let answer = run.json();
        let context = answer["hookSpecificOutput"]["additionalContext"]
            .as_str()
            .unwrap();
        assert_eq!(
            answer,
            json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": context}})
        );
        assert!(
            context.starts_with("# Resuming Task: US-003\n"),
            "{context}"
        );
        assert!(
            context.contains(&format!("--session {session}")),
            "{context}"
        );
        assert_eq!(project.read(FILE), before);
    }
}

#[test]
fn the_folder_is_that_of_the_agent() {
    let project = project();
    project.write("web/app.ts", "x");
    let mut payload = payload(&project, "claude-session-start");
    let web = project.path("web");
    payload["cwd"] = web.to_str().into();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = project.command();
    command
        .current_dir(elsewhere.path())
        .args(["hook", "SessionStart"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    serde_json::to_writer(input, &payload).unwrap();
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("# Resuming Task: US-003"), "{out}");
}

#[test]
fn where_no_checkpoint_is_to_go_on_with_nothing_is_said() {
    let all = [
        "claude-session-start",
        "claude-post-tool-use",
        "claude-pre-compact",
        "claude-stop",
        "claude-session-end",
        "codex-session-start",
        "codex-post-tool-use",
        "codex-pre-compact",
        "codex-stop",
        "gemini-session-start",
        "gemini-after-tool",
        "gemini-pre-compress",
        "gemini-after-agent",
        "gemini-session-end",
    ];
    let files = fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hooks"));
    assert_eq!(files.unwrap().count(), all.len());
    let none = Project::new();
    let empty = Project::with("ckpt.toml", "store = \"checkpoints\"\n");
    let complete = project();
    complete.write(FILE, complete_task());
    let mut named = Project::with("ckpt.toml", "store = \"checkpoints\"\n");
    named.write("checkpoints/other.json", TASK);
    named.set(&[("CKPT_KEY", "US-004".to_owned())]);
    for project in [&none, &empty, &complete, &named] {
        for name in all {
            silent(&hook(project, name));
        }
    }
    // Even if it is named.
    for name in ["claude-session-start", "claude-stop"] {
        let payload = payload(&complete, name);
        let event = payload["hook_event_name"].as_str().unwrap();
        let words = ["hook", event, "--store", "checkpoints", "--key", "US-003"];
        silent(&complete.ckpt_given(&words, payload.to_string()));
    }
    // An unknown event does nothing.
    let project = project();
    let before = project.read(FILE);
    let words = ["hook", "PermissionRequest"];
    silent(&project.ckpt_given(&words, payload(&project, "claude-stop").to_string()));
    assert_eq!(project.read(FILE), before);
}

#[test]
fn edited_files_join_the_note_of_the_current_step() {
    let project = project();
    let note =
        |project: &Project| shown(project, FILE)["handoff"]["in_progress"][0]["note"].clone();
    let mut edit = payload(&project, "claude-post-tool-use");
    silent(&send(&project, &edit));
    assert_eq!(note(&project), "[edited: src/toggle.tsx]");
    // The same event again writes nothing.
    let before = project.read(FILE);
    silent(&send(&project, &edit));
    silent(&hook(&project, "gemini-after-tool"));
    assert_eq!(project.read(FILE), before);

    project.expect(
        0,
        &[
            "note",
            "half done",
            "--store",
            "checkpoints",
            "--key",
            "US-003",
        ],
    );
    silent(&hook(&project, "codex-post-tool-use"));
    let edited = "half done [edited: src/new.rs, src/b.rs, src/a.rs, src/gone.rs]";
    assert_eq!(note(&project), edited);

    // Files that are no sources of the project, or were not changed.
    let before = project.read(FILE);
    let own = project.path(FILE);
    for path in ["/etc/passwd", "node_modules/x.js", own.to_str().unwrap()] {
        edit["tool_input"]["file_path"] = path.into();
        silent(&send(&project, &edit));
    }
    edit["tool_input"]["file_path"] = "src/other.rs".into();
    edit["tool_response"] = json!({"error": {"message": "no such text"}});
    silent(&send(&project, &edit));
    edit["tool_response"] = Value::Null;
    edit["tool_name"] = "Read".into();
    silent(&send(&project, &edit));
    assert_eq!(project.read(FILE), before);
    edit["tool_name"] = "Edit".into();
    silent(&send(&project, &edit));
    assert!(note(&project).as_str().unwrap().contains("src/other.rs"));
}

#[test]
fn a_format_with_files_of_its_own_gets_the_edited_ones_there() {
    let mut project = Project::with("ckpt.toml", "store = \"agents\"\n");
    let start = [
        "start",
        "--store",
        "agents",
        "--key",
        "Secondary-A",
        "--plan",
        "Wire toggle",
    ];
    let session = [
        "--format",
        "agent-session",
        "--task",
        "toggle",
        "--session",
        "s1",
    ];
    project.expect(0, &[&start[..], &session].concat());
    project.expect(
        0,
        &[
            "step",
            "start",
            "Wire toggle",
            "--store",
            "agents",
            "--key",
            "Secondary-A",
        ],
    );
    // It is the only checkpoint, but belongs to another session.
    let before = project.read("agents/secondary_a.json");
    for name in ["codex-post-tool-use", "codex-pre-compact", "codex-stop"] {
        silent(&hook(&project, name));
    }
    assert_eq!(project.read("agents/secondary_a.json"), before);
    project.set(&[("CKPT_KEY", "Secondary-A".to_owned())]);
    silent(&hook(&project, "codex-post-tool-use"));
    let text: Value = serde_json::from_str(&project.read("agents/secondary_a.json")).unwrap();
    let files = json!(["src/new.rs", "src/b.rs", "src/a.rs", "src/gone.rs"]);
    assert_eq!(text["files_modified"], files);
    // The session is the agent's.
    assert_eq!(text["session_id"], "019a-codex");
}

#[test]
fn before_its_context_shrinks_the_state_is_stamped_and_says_why() {
    for (name, reason) in [
        ("claude-pre-compact", "context_limit"),
        ("codex-pre-compact", "periodic"),
        ("gemini-pre-compress", "context_limit"),
    ] {
        let project = project();
        silent(&hook(&project, name));
        let saved = shown(&project, FILE);
        assert_eq!(saved["handoff"]["reason"], reason, "{name}");
        assert_eq!(saved["updated_at"], AT, "{name}");
    }
}

#[test]
fn the_end_of_a_turn_is_stamped_and_tells_what_no_step_was_reported_of() {
    for name in [
        "claude-stop",
        "codex-stop",
        "gemini-after-agent",
        "claude-session-end",
        "gemini-session-end",
    ] {
        let project = project();
        silent(&hook(&project, name));
        let saved = shown(&project, FILE);
        assert_eq!(saved["updated_at"], AT, "{name}");
        // One file that the agent edited, and one that changed otherwise.
        silent(&hook(&project, "claude-post-tool-use"));
        project.write("src/a.rs", "other");
        let said = message(&hook(&project, name));
        let files = "2 files changed and no step was reported since: src/toggle.tsx, src/a.rs;";
        assert!(said.contains(files), "{said}");
        let done = [
            "step",
            "done",
            "Made b",
            "--modified",
            "src/a.rs",
            "--store",
            "checkpoints",
            "--key",
            "US-003",
        ];
        project.expect(0, &done);
        silent(&hook(&project, name));
    }
}

#[test]
fn a_host_file_gets_the_heartbeat_of_its_session() {
    let project = Project::with("ckpt.toml", "store = \"docs/builder-state.json\"\n");
    project.write("docs/builder-state.json", crate::project::EXAMPLE);
    let run = hook(&project, "claude-stop");
    assert_eq!(run.err, "");
    let host: Value = serde_json::from_str(&project.read("docs/builder-state.json")).unwrap();
    assert_eq!(host["lastHeartbeat"], AT);
}

#[test]
fn of_several_open_checkpoints_the_key_says_which() {
    let mut project = project();
    project.write("checkpoints/US-005.json", complete_task());
    let run = hook(&project, "claude-session-start");
    assert!(run.out.contains("# Resuming Task: US-003"), "{run:?}");
    project.write("checkpoints/US-004.json", TASK);
    let said = message(&hook(&project, "claude-session-start"));
    assert!(
        said.contains("2 checkpoints that are not complete"),
        "{said}"
    );
    let before = project.read(FILE);
    for name in ["claude-post-tool-use", "claude-pre-compact", "claude-stop"] {
        silent(&hook(&project, name));
    }
    assert_eq!(project.read(FILE), before);
    project.set(&[("CKPT_KEY", "US-004".to_owned())]);
    let run = hook(&project, "claude-session-start");
    assert!(run.out.contains("# Resuming Task: US-004"), "{run:?}");
}

#[test]
fn a_failure_is_a_message_and_never_an_exit_code() {
    let broken = Project::with("ckpt.toml", "store = 7\n");
    let said = message(&hook(&broken, "claude-stop"));
    assert!(said.contains("ckpt.toml:1"), "{said}");

    let corrupt = project();
    corrupt.write(FILE, &TASK[..200]);
    let before = corrupt.read(FILE);
    for name in [
        "claude-session-start",
        "codex-pre-compact",
        "gemini-after-agent",
    ] {
        let said = message(&hook(&corrupt, name));
        assert!(
            said.contains(FILE) && said.contains("ckpt recover"),
            "{said}"
        );
    }
    // One message per edit would be too many.
    let run = hook(&corrupt, "claude-post-tool-use");
    assert_eq!((run.code, run.out.as_str()), (0, ""));
    assert!(run.error().contains(FILE), "{run:?}");
    assert_eq!(corrupt.read(FILE), before);

    let good = project();
    let stop = payload(&good, "claude-stop").to_string();
    for (words, input, expected) in [
        (vec!["hook", "Stop"], "", "is not the JSON of a hook"),
        (vec!["hook", "Stop"], "no JSON", "is not the JSON of a hook"),
        (
            vec!["hook", "Stop", "--max-bytes", "10"],
            &stop,
            "more than 10 bytes",
        ),
        (vec!["hook"], &stop, "<EVENT>"),
        (vec!["hook", "Stop", "--nonsense"], &stop, "--nonsense"),
        (
            vec![
                "--store",
                "checkpoints",
                "hook",
                "Stop",
                "--json",
                "--fence",
                "x",
            ],
            &stop,
            "--fence",
        ),
        (
            vec!["hook", "Stop", "--store", "s4://x"],
            &stop,
            "s4://x: no store of this kind",
        ),
    ] {
        let run = good.ckpt_given(&words, input);
        let said = message(&run);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    // JSON without an object names no folder.
    for input in ["7", "null", "[]", "{}", r#"{"cwd": 7, "session_id": []}"#] {
        let run = good.ckpt_given(&["hook", "Stop"], input);
        assert_eq!(run.code, 0, "{run:?}");
    }
    // The word `hook` as an argument of another verb does not count.
    good.expect(2, &["step", "add", "hook", "--nonsense"]);
    good.expect(2, &["hooks", "Stop"]);
}

#[test]
fn a_lock_is_waited_for_less_than_two_seconds() {
    let project = project();
    let store = FileStore::open(project.path("checkpoints"));
    let key = Key::new("US-003").unwrap();
    let (mut took, mut said) = (Duration::ZERO, String::new());
    store
        .transact(&key, |_| {
            let began = Instant::now();
            said = message(&hook(&project, "claude-stop"));
            took = began.elapsed();
            Ok::<_, agent_checkpoint::Error>(None)
        })
        .unwrap();
    assert!(said.contains("lock"), "{said}");
    let expected = Duration::from_millis(900)..Duration::from_secs(5);
    assert!(expected.contains(&took), "{took:?}");
}

/// Keeps writers out of a database for as long as what it gives is held.
type Keep = Box<dyn Fn() -> Box<dyn Any>>;

/// A project for each kind of database that can be had here, in which a task was begun.
fn in_databases() -> Vec<(Project, Keep)> {
    let mut all: Vec<(Project, String, Keep)> = Vec::new();
    let sqlite = Project::new();
    let file = sqlite.path("c.db");
    let keep: Keep = Box::new(move || {
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Box::new(connection)
    });
    all.push((sqlite, "sqlite:c.db".to_owned(), keep));
    #[cfg(unix)]
    if cluster::is_installed() {
        let (_, store) = cluster::shared().fresh_database();
        let at = store.clone();
        let keep: Keep = Box::new(move || {
            let mut client = postgres::Client::connect(&at, postgres::NoTls).unwrap();
            let lock = "BEGIN; SELECT 1 FROM agent_checkpoint.checkpoints FOR UPDATE";
            client.batch_execute(lock).unwrap();
            Box::new(client)
        });
        all.push((Project::new(), store, keep));
    }
    let begun = all.into_iter().map(|(mut project, store, keep)| {
        project.set(&[("CKPT_STORE", store)]);
        let start = ["start", "--key", "US-003", "--plan", "Make a", "--now", AT];
        project.expect(0, &start);
        (project, keep)
    });
    begun.collect()
}

/// The wait of a hook is 2 s at most; the rest is for a busy machine.
const MOST: Duration = Duration::from_secs(6);

#[test]
fn the_lock_of_a_database_is_waited_for_less_than_two_seconds() {
    for (project, keep) in in_databases() {
        let kept = keep();
        // Who only reads does not wait.
        let run = hook(&project, "claude-session-start");
        assert!(run.out.contains("# Resuming Task: US-003"), "{run:?}");
        let began = Instant::now();
        let said = message(&hook(&project, "claude-stop"));
        assert!(said.contains("lock") && began.elapsed() < MOST, "{said}");
        // One for each edit would be too many.
        let edit = hook(&project, "claude-post-tool-use");
        assert!(edit.out.is_empty() && edit.err.contains("lock"), "{edit:?}");
        assert!(began.elapsed() < 2 * MOST);
        drop(kept);
        silent(&hook(&project, "claude-stop"));
    }
}

#[test]
fn a_server_that_does_not_answer_is_left_after_two_seconds() {
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = deaf.local_addr().unwrap();
    for store in [
        format!("postgres://u@{at}/db"),
        "s3://bucket/tasks".to_owned(),
    ] {
        let mut project = Project::new();
        project.set(&[
            ("CKPT_STORE", store),
            ("AWS_ENDPOINT_URL", format!("http://{at}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", "id".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ]);
        for name in ["claude-session-start", "claude-stop"] {
            let began = Instant::now();
            let said = message(&hook(&project, name));
            let expected = ["longer than 2 s", "does not answer"];
            assert!(expected.iter().any(|words| said.contains(words)), "{said}");
            assert!(began.elapsed() < MOST, "{name}");
        }
        let edit = hook(&project, "claude-post-tool-use");
        assert!(edit.out.is_empty() && !edit.err.is_empty(), "{edit:?}");
    }
}

/// The prompt with which a session of the project begins.
#[track_caller]
fn prompt(project: &Project) -> String {
    let answer = hook(project, "claude-session-start").json();
    let context = &answer["hookSpecificOutput"]["additionalContext"];
    context.as_str().unwrap().to_owned()
}

/// Claims the task of a project for a session, and returns the fence.
#[track_caller]
fn claim(project: &Project, session: &str) -> String {
    let words = ["claim", "--store", "checkpoints", "--key", "US-003"];
    let owner = ["--agent", "dev", "--session", session, "--now", AT];
    let run = project.expect(0, &[&words[..], &owner].concat());
    run.out.trim_end().to_owned()
}

#[test]
fn the_session_that_claimed_the_task_needs_no_fence() {
    let project = project();
    let fence = claim(&project, "abc123");
    let prompt = prompt(&project);
    assert!(
        prompt.contains(&format!("--agent dev --session abc123 --fence {fence}")),
        "{prompt}"
    );
    silent(&hook(&project, "claude-post-tool-use"));
    let saved = shown(&project, FILE);
    assert_eq!(
        saved["handoff"]["in_progress"][0]["note"],
        "[edited: src/toggle.tsx]"
    );
    silent(&hook(&project, "claude-pre-compact"));
    let saved = shown(&project, FILE);
    assert_eq!(saved["handoff"]["reason"], "context_limit");
}

#[test]
fn the_task_of_another_session_is_left_alone() {
    let project = project();
    claim(&project, "other-abc123");
    let before = project.read(FILE);
    for name in [
        "claude-post-tool-use",
        "claude-pre-compact",
        "claude-stop",
        "claude-session-end",
    ] {
        silent(&hook(&project, name));
    }
    assert_eq!(project.read(FILE), before);
    let said = message(&hook(&project, "claude-session-start"));
    assert!(
        said.contains("dev, session other-abc123 has claimed the task"),
        "{said}"
    );
}

#[test]
fn a_prompt_says_that_another_may_be_at_work() {
    let project = project();
    let at = "\"lastUpdatedAt\": \"2026-03-02T0";
    let task = TASK.replace(&format!("{at}8:05:00Z"), &format!("{at}8:59:40Z"));
    assert_ne!(task, TASK);
    project.write(FILE, task);
    let prompt = prompt(&project);
    assert!(prompt.contains("dev reported 20 s ago"), "{prompt}");
}

#[test]
fn a_standard_input_that_stays_open_is_not_waited_for() {
    let project = project();
    let mut command = project.command();
    command.args(["hook", "Stop"]).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("took longer than 2 s"), "{said}");
}

#[test]
fn a_prompt_has_at_most_what_the_agents_pass_on() {
    let project = project();
    let decisions: Vec<Value> = (0..100)
        .map(|number| {
            let text = format!("Decision {number}: {}", "word ".repeat(40));
            json!({"decision": text, "timestamp": "2026-03-02T08:00:00Z"})
        })
        .collect();
    let mut task: Value = serde_json::from_str(TASK).unwrap();
    task["decisions"] = decisions.into();
    project.write(FILE, task.to_string());
    let run = hook(&project, "claude-session-start");
    let answer = run.json();
    let context = answer["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    assert!(context.len() <= 8_000, "{}", context.len());
    assert!(context.contains("`ckpt resume` prints it"), "{context}");
}
