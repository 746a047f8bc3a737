//! `ckpt status`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;

#[cfg(unix)]
use crate::cluster;
use crate::project::Project;

const NOW: &str = "2026-03-02T08:10:00Z";

fn agent(id: &str, status: &str, last: &str) -> String {
    format!(
        r#"{{"agent_id":"{id}","status":"{status}","stage":"S2.P1","feature":"feature_1",
            "last_checkpoint":"2026-03-02T{last}Z","can_resume":true}}"#
    )
}

fn one(status: &str, last: &str) -> Project {
    Project::with(
        "agent_checkpoints/secondary_a.json",
        agent("Secondary-A", status, last),
    )
}

#[test]
fn the_exit_code_says_whether_somebody_has_to_look() {
    for (status, last, code) in [
        ("IN_PROGRESS", "08:00:00", 0),
        ("IN_PROGRESS", "07:40:00", 1),
        ("IN_PROGRESS", "07:10:00", 1),
        ("IN_PROGRESS", "09:00:00", 1),
        ("WAITING", "01:00:00", 0),
        ("COMPLETE", "01:00:00", 0),
        ("RESTING", "08:00:00", 1),
    ] {
        let project = one(status, last);
        project.expect(code, &["status", ".", "--now", NOW]);
    }
}

#[test]
fn the_gravest_of_all_files_wins() {
    let project = one("IN_PROGRESS", "07:10:00");
    project.write("agent_checkpoints/secondary_b.json", "{\"agent_id\":");
    let run = project.expect(3, &["status", ".", "--now", NOW]);
    assert!(run.out.contains("stalled") && run.out.contains("corrupt"));
    assert!(run.error().contains("secondary_b.json") && run.error().contains("truncated"));
    // A missing folder is graver; the others are shown anyway.
    let run = project.expect(2, &["status", ".", "nowhere", "--now", NOW]);
    assert!(run.out.contains("Secondary-A"));
    assert!(run.err.contains("ckpt: nowhere: "), "{}", run.err);
}

#[test]
fn a_plan_that_is_not_there_is_no_task() {
    let project = Project::with("folder/x", "");
    for missing in [
        "planned.txt",
        "plans/next.JSON",
        "./tasks",
        "/nowhere/tasks",
    ] {
        let run = project.expect(2, &["status", ".", "--planned", missing]);
        assert!(
            run.error().starts_with(&format!("{missing}: there is no ")),
            "{run:?}"
        );
    }
    // Task names that look a little like files.
    for task in ["T1.5", "a/b", "folder", "v2.media@painter"] {
        let run = project.expect(0, &["status", ".", "--planned", task]);
        let name = task.split('@').next().unwrap();
        assert!(run.out.contains(name), "{run:?}");
    }
    if cfg!(unix) {
        let run = project.expect(2, &["status", ".", "--planned", "/dev/null"]);
        assert!(run.error().contains("is not a regular file"), "{run:?}");
    }
}

#[test]
fn what_is_expected_and_planned_is_shown() {
    let project = one("IN_PROGRESS", "08:00:00");
    project.write("plan.txt", "T1\n\nT2@content\n");
    project.write(
        "plan.json",
        r#"["T3@media", {"task": "T4", "agent": "media"}]"#,
    );
    let run = project.expect(
        1,
        &[
            "status",
            "agent_checkpoints",
            "--now",
            NOW,
            "--expect",
            "Agent-Secondary-A",
            "secondary_a",
            "Secondary-B",
            "--planned",
            "plan.txt",
            "plan.json",
            "T5",
        ],
    );
    assert_eq!(run.out.matches("missing").count(), 2, "{}", run.out);
    assert!(run.out.contains("Secondary-B"));
    for (task, agent) in [
        ("T1", "—"),
        ("T2", "content"),
        ("T3", "media"),
        ("T4", "media"),
        ("T5", "—"),
    ] {
        let line = run.out.lines().find(|line| line.contains(task)).unwrap();
        assert!(
            line.starts_with(agent) && line.contains("not started"),
            "{line}"
        );
    }
    // A planned task alone needs no attention.
    project.expect(0, &["status", ".", "--now", NOW, "--planned", "T9"]);
    project.write("bad.json", "{}");
    let run = project.expect(2, &["status", ".", "--planned", "bad.json"]);
    assert!(
        run.error().contains("not a list of planned tasks"),
        "{}",
        run.err
    );
}

#[test]
fn the_ways_to_show_it() {
    let project = one("IN_PROGRESS", "07:35:00");
    let run = project.expect(1, &["status", ".", "--now", NOW, "--json"]);
    let fleet = run.json();
    let row = &fleet["rows"][0];
    assert_eq!(row["file"], "./agent_checkpoints/secondary_a.json");
    assert_eq!(row["kind"], "checkpoint");
    assert_eq!(row["liveness"]["verdict"], "late");
    assert_eq!(row["liveness"]["crossed"]["since"], "2026-03-02T08:05:00Z");
    assert_eq!(row["next"]["decision"], "continue");
    assert!(
        row["message"]
            .as_str()
            .unwrap()
            .contains("CHECKPOINT WARNING")
    );
    assert_eq!(fleet["totals"]["results"]["late"], 1);
    let run = project.expect(1, &["status", ".", "--now", NOW, "--markdown"]);
    assert!(
        run.out
            .starts_with("## Active Checkpoints\n\n| Agent | Task | Progress |")
    );
    assert!(
        run.out
            .contains("| Secondary-A | feature_1 | unknown | 35 min ago | in_progress (late) |")
    );
    let run = project.expect(1, &["status", ".", "--now", NOW, "--messages"]);
    assert!(
        run.out
            .contains("CHECKPOINT WARNING - No Update in 35 Minutes")
    );
    // Judged by the given thresholds.
    project.expect(0, &["status", ".", "--now", NOW, "--late", "36m"]);
    let run = project.expect(1, &["status", ".", "--now", NOW, "--stalled", "35m"]);
    assert!(run.out.contains("stalled"));
    project.expect(2, &["status"]);
    project.expect(2, &["status", ".", "--markdown", "--json"]);
    project.expect(2, &["status", ".", "--key", "x"]);
    project.expect(2, &["status", ".", "--format", "nonsense"]);
}

fn site(agent: &str, task: &str) -> String {
    format!(
        r#"{{"checkpoint_id":"x","agent":"{agent}","task_id":"{task}","status":"in_progress",
            "started_at":"2026-03-02T07:55:00Z","updated_at":"2026-03-02T08:03:00Z",
            "subtasks":{{"total":20,"completed":13}},"resumable":true}}"#
    )
}

#[test]
fn a_mixed_project_is_one_table() {
    let project = one("IN_PROGRESS", "08:00:00");
    project.write("progress/checkpoints/media-T1.json", site("media", "T1"));
    project.write("docs/builder-state.json", crate::project::EXAMPLE);
    project.write("package.json", "{\"name\": \"x\"}");
    let status = |way: &[&str]| {
        let expected = ["--expect", "Secondary-A", "agent-secondary_b"];
        let planned = ["--planned", "T1@media", "T2@content"];
        let first = ["status", ".", "--now", "2026-03-02T08:05:00Z"];
        let all = [&first[..], &expected, &planned, way].concat();
        project.expect(1, &all).out
    };
    assert_eq!(
        status(&[]),
        "\
AGENT              TASK       PROGRESS     PHASE           UPDATED    RESULT       OWNER  ELAPSED   LEFT   FILE
Secondary-A        feature_1  —            S2.P1           5 min ago  active       —      —         —      ./agent_checkpoints/secondary_a.json
react-dev          US-003     33% (2/6)    implementation  1 d ago    stalled      —      1 d 22 h  —      ./docs/builder-state.json (active)
media              T1         65% (13/20)  —               2 min ago  active       —      10 min    4 min  ./progress/checkpoints/media-T1.json
content            T2         —            —               —          not started  —      —         —      —
agent-secondary_b  —          —            —               —          missing      —      —         —      —
5 rows: 2 active, 1 missing, 1 not started, 1 stalled; 32% done, about 4 min left; 3 can be resumed; 1 other .json skipped
"
    );
    let markdown = status(&["--markdown"]);
    let heading = agent_checkpoint::formats::sitebuilder::STATUS_HEADING;
    assert_eq!(
        markdown.strip_prefix(heading).unwrap(),
        "\
| Secondary-A | feature_1 | unknown | 5 min ago | in_progress |
| react-dev | US-003 | 33% | 1 d ago | in_progress (stalled) |
| media | T1 | 65% | 2 min ago | in_progress |
| content | T2 | 0% | — | not started |
| agent-secondary_b | — | — | — | missing |
"
    );
}

#[test]
fn the_status_table_has_the_rows_of_the_protocol() {
    let text = site("media", "T1");
    let project = Project::with("progress/checkpoints/media-T1.json", &text);
    let now = "2026-03-02T08:05:00Z";
    let arguments = ["status", ".", "--markdown", "--now", now, "--planned"];
    let run = project.expect(0, &[&arguments[..], &["T9@content"]].concat());
    let document = agent_checkpoint::json::Document::from_text(text).unwrap();
    let checkpoint = document.read::<SitebuilderCheckpoint>().unwrap().value;
    assert!(run.out.ends_with(&format!(
        "{}\n{}\n",
        checkpoint.status_row(now.parse().unwrap()),
        SitebuilderCheckpoint::planned_row("content", "T9")
    )));
}

#[test]
fn texts_of_files_break_no_table_and_no_terminal() {
    let text = site("a|b\\nc \\u001b[31m", "T1\\u0007");
    let project = Project::with("progress/checkpoints/a.json", text);
    let status = ["status", ".", "--now", "2026-03-02T08:05:00Z"];
    let table = project.ckpt(&status).out;
    assert!(
        table.contains("\na|b c \\u{1b}[31m  T1\\u{7}  65%"),
        "{table}"
    );
    let markdown = project.ckpt(&[&status[..], &["--markdown"]].concat()).out;
    assert!(
        markdown.contains("\n| a\\|b c \\\\u{1b}[31m | T1\\\\u{7} | 65% |"),
        "{markdown}"
    );
    for text in [table, markdown] {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));
    }
}

#[test]
fn only_what_can_be_resumed() {
    let project = one("IN_PROGRESS", "07:10:00");
    project.write(
        "agent_checkpoints/secondary_b.json",
        agent("Secondary-B", "COMPLETE", "08:00:00"),
    );
    let run = project.expect(1, &["status", ".", "--now", NOW, "--resumable"]);
    assert!(run.out.contains("Secondary-A") && !run.out.contains("Secondary-B"));
    assert!(
        run.out
            .contains("continue: Checkpoint found: Secondary-A resumes from S2.P1")
    );
}

#[test]
fn an_empty_folder_is_no_failure_and_one_file_is_enough() {
    let project = Project::new();
    let run = project.expect(0, &["status", "."]);
    assert_eq!(run.out, "no checkpoints\n");
    assert_eq!(project.names(), [""; 0], "nothing is created");
    let project = Project::with("docs/builder-state.json", crate::project::EXAMPLE);
    let run = project.expect(
        0,
        &[
            "status",
            "docs/builder-state.json",
            "--now",
            "2026-02-28T10:20:00Z",
        ],
    );
    assert!(
        run.out.contains("US-003") && run.out.contains("active"),
        "{}",
        run.out
    );
}

#[test]
fn a_heartbeat_makes_an_agent_active_again() {
    let project = one("IN_PROGRESS", "07:10:00");
    let store = [
        "--store",
        "agent_checkpoints",
        "--key",
        "Secondary-A",
        "--now",
        NOW,
    ];
    project.expect(1, &["status", ".", "--now", NOW]);
    project.expect(0, &[&["heartbeat"], &store[..]].concat());
    project.expect(0, &["status", ".", "--now", NOW]);
    // A heartbeat is no progress in a format that has both.
    let site = r#"{"checkpoint_id":"x","agent":"media","task_id":"T1","status":"in_progress",
        "started_at":"2026-03-02T05:00:00Z","updated_at":"2026-03-02T06:10:00Z"}"#;
    let project = Project::with("progress/checkpoints/media-T1.json", site);
    let store = [
        "--store",
        "progress/checkpoints",
        "--key",
        "media-T1",
        "--now",
        NOW,
    ];
    project.expect(0, &[&["heartbeat"], &store[..]].concat());
    let run = project.expect(1, &["status", ".", "--now", NOW]);
    assert!(run.out.contains("stuck"), "{}", run.out);
}

/// A running `ckpt status --watch`.
struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Watch {
    fn begin(project: &Project, arguments: &[&str]) -> Watch {
        let mut command = project.command();
        command.args(["status", ".", "--watch"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Watch { child, lines }
    }

    /// Waits for a line with this text.
    #[track_caller]
    fn expect(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(20));
            let line = line.unwrap_or_else(|_| panic!("no line with {text:?} came"));
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_watch_tells_what_happens_by_looking_alone() {
    let project = one("IN_PROGRESS", "08:00:00");
    let watch = Watch::begin(&project, &["--now", NOW, "--every", "100ms"]);
    watch.expect("1 row: 1 active");
    project.write(
        "agent_checkpoints/secondary_a.json",
        agent("Secondary-A", "IN_PROGRESS", "07:40:00"),
    );
    watch.expect("changed");
    watch.expect("late       Secondary-A, feature_1: late: last progress 30 min ago, limit 30 min");
    project.write(
        "agent_checkpoints/secondary_a.json",
        agent("Secondary-A", "COMPLETE", "08:09:00"),
    );
    watch.expect("finished");
}

#[test]
fn a_watch_looks_into_a_database() {
    let project = Project::new();
    let store = ["--store", "sqlite:c.db", "--key", "T-1"];
    let run = |words: &[&str]| project.expect(0, &[words, &store].concat());
    run(&["start", "--plan", "one"]);
    let watch = Watch::begin(&project, &["sqlite:c.db", "--every", "100ms"]);
    watch.expect("1 row: 1 active");
    run(&["step", "done", "one"]);
    watch.expect("changed");
    run(&["complete"]);
    watch.expect("finished");
}

#[cfg(target_os = "linux")]
#[cfg(unix)]
#[test]
fn a_watch_is_told_of_changes_by_the_database() {
    if !cluster::is_installed() {
        return;
    }
    let project = Project::new();
    let cluster = cluster::shared();
    let (name, store) = cluster.fresh_database();
    let on = ["--store", &store, "--key", "T-1"];
    project.expect(0, &[&["start", "--plan", "Make a"][..], &on].concat());
    let watch = Watch::begin(&project, &[&store, "--every", "10m"]);
    watch.expect("1 row: 1 active");
    // Wait until it listens; before that it gets no notices.
    let sql = "SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND query LIKE 'LISTEN %'";
    let began = std::time::Instant::now();
    while cluster.client().query(sql, &[&name]).unwrap().is_empty() {
        assert!(began.elapsed().as_secs() < 20);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    project.expect(0, &[&["step", "done", "Make a"][..], &on].concat());
    watch.expect("changed");
    project.expect(0, &[&["complete"][..], &on].concat());
    watch.expect("finished");
}

#[test]
fn a_watch_is_told_of_changes_by_the_system() {
    let project = one("IN_PROGRESS", "08:00:00");
    // Periodic scans alone would take longer than the test waits.
    let watch = Watch::begin(&project, &["--now", NOW, "--every", "10m", "--json"]);
    let first = watch.expect("\"rows\"");
    assert!(first.contains("\"verdict\":\"active\""));
    // The folders are watched from now on, or a moment later.
    std::thread::sleep(Duration::from_millis(500));
    project.write(
        "agent_checkpoints/secondary_a.json",
        agent("Secondary-A", "IN_PROGRESS", "07:00:00"),
    );
    let line = watch.expect("\"event\":\"stalled\"");
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["was"], "active");
    assert!(event["message"].as_str().unwrap().contains("STALE AGENT"));
}

/// No more events come that it would print.
#[cfg(unix)]
#[test]
fn a_watch_ends_with_its_reader_and_when_it_is_interrupted() {
    use std::os::unix::process::ExitStatusExt;
    let project = one("IN_PROGRESS", "08:00:00");
    let begin = || {
        let mut command = project.command();
        command.args(["status", ".", "--watch", "--every", "10m", "--now", NOW]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        (child, output)
    };
    let end = |child: &mut Child| {
        let began = std::time::Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            if began.elapsed() > Duration::from_secs(20) {
                let _ = child.kill();
                panic!("it goes on");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let (mut child, output) = begin();
    drop(output);
    assert_eq!(end(&mut child).code(), Some(0));
    let (mut child, _output) = begin();
    let pid = child.id().to_string();
    let sent = std::process::Command::new("sh")
        .args(["-c", &format!("kill -INT {pid}")])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(end(&mut child).signal(), Some(2));
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_read_is_told_with_the_reason_and_one_advice() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::with("closed/t.json", "{}");
    let closed = project.path("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let is_closed = std::fs::read_dir(&closed).is_err();
    let run = project.ckpt(&["status", "closed"]);
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    if !is_closed {
        println!("running as a user that may read everything: not tried");
        return;
    }
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(
        run.error(),
        "closed: Permission denied (os error 13); check the path and its rights"
    );
}

/// Nothing of the text is left, and its name belongs to no protocol. Only the history shows its format.
#[test]
fn a_damaged_file_that_only_its_history_identifies_is_a_row() {
    let project = Project::new();
    let place = ["--store", "c/odd.json", "--format", "task"];
    project.expect(0, &[&["start", "--plan", "a", "b"], &place[..]].concat());
    project.expect(0, &[&["step", "start", "a"], &place[..]].concat());
    project.write("c/odd.json", "garbage{");
    let run = project.expect(3, &["status", "c", "--json"]);
    let row = &run.json()["rows"][0];
    assert_eq!(
        (&row["kind"], &row["format"]),
        (&"corrupt".into(), &"task".into()),
        "{run:?}"
    );
    // Without a history it is no checkpoint.
    project.write("d/odd.json", "garbage{");
    project.expect(0, &["status", "d"]);
}
