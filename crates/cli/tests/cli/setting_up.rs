//! `ckpt init`.

use serde_json::{Value, json};

use crate::project::{EXAMPLE, Project, TASK};

/// All files of a project with their contents.
fn all(project: &Project) -> Vec<(String, String)> {
    let names = project.names().into_iter();
    let files = names.filter(|name| project.path(name).is_file());
    files
        .map(|name| (name.clone(), project.read(&name)))
        .collect()
}

#[test]
fn a_new_project_is_set_up_once_and_only_on_request() {
    let project = Project::new();
    let said = project.expect(0, &["init", "--hooks", "claude"]);
    assert!(said.out.contains("ckpt.toml: would be made:\n"), "{said:?}");
    assert!(
        said.out
            .contains("  store = \"checkpoints\"\n  root = \".\"\n"),
        "{said:?}"
    );
    assert!(said.err.contains("nothing was written"), "{said:?}");
    assert_eq!(project.names(), Vec::<String>::new());

    let agents = ["--hooks", "claude", "codex", "gemini", "claude"];
    let words = [&["init", "--write"], &agents[..]].concat();
    let made = project.expect(0, &words);
    assert_eq!(made.err, "");
    let names = [
        ".claude",
        ".codex",
        ".gemini",
        ".gitignore",
        "AGENTS.md",
        "CLAUDE.md",
        "ckpt.toml",
    ];
    assert_eq!(project.names(), names);
    assert_eq!(project.read(".gitignore"), ".agent-checkpoint-*.tmp\n");
    let block = project.read("AGENTS.md");
    assert_eq!(project.read("CLAUDE.md"), block);
    let (first, last) = (block.lines().next(), block.lines().last());
    assert_eq!(
        (first, last),
        (Some("<!-- ckpt: begin -->"), Some("<!-- ckpt: end -->"))
    );

    let before = all(&project);
    let again = project.expect(0, &words);
    assert_eq!(
        again.out.matches(": has what it needs\n").count(),
        7,
        "{again:?}"
    );
    assert_eq!(all(&project), before);
}

#[test]
fn what_the_block_says_works_as_it_stands() {
    let project = Project::new();
    project.expect(0, &["init", "--write"]);
    let block = project.read("AGENTS.md");
    let commands = block.split('`').skip(1).step_by(2);
    let commands: Vec<&str> = commands.filter(|code| code.starts_with("ckpt ")).collect();
    assert!(commands.len() > 6, "{block}");
    let start = commands
        .iter()
        .find(|command| command.starts_with("ckpt start"))
        .unwrap();
    let rest = commands
        .iter()
        .filter(|command| !command.contains("resume") && command != &start);
    for command in [start].into_iter().chain(rest) {
        let quoted = command.split('\'').enumerate();
        let words: Vec<&str> = quoted
            .flat_map(|(at, text)| match at % 2 {
                0 => text.split_whitespace().collect(),
                _ => vec![text],
            })
            .collect();
        project.expect(0, &words[1..]);
    }
    let resume = project.ckpt(&["resume", "--key", "TASK"]);
    assert!(resume.out.contains("# Resuming Task: TASK"), "{resume:?}");
}

#[test]
fn the_settings_name_what_is_there() {
    let agents = Project::new();
    let start = [
        "start",
        "--store",
        "docs/agents",
        "--key",
        "Secondary-A",
        "--plan",
        "a",
    ];
    let format = [
        "--format",
        "agent-session",
        "--task",
        "t",
        "--session",
        "s1",
    ];
    agents.expect(0, &[&start[..], &format].concat());
    agents.expect(0, &["init", "--write"]);
    let toml = agents.read("ckpt.toml");
    assert!(
        toml.ends_with("store = \"docs/agents\"\nformat = \"agent-session\"\nroot = \".\"\n"),
        "{toml}"
    );
    agents.expect(0, &["step", "start", "a", "--key", "Secondary-A"]);

    let host = Project::with("docs/builder-state.json", EXAMPLE);
    host.ckpt(&["init", "--write"]);
    let toml = host.read("ckpt.toml");
    assert!(
        toml.ends_with("store = \"docs/builder-state.json\"\nroot = \".\"\n"),
        "{toml}"
    );
    assert!(!host.read("AGENTS.md").contains("--key"));

    let database = Project::new();
    database.expect(0, &["init", "--write", "--store", "sqlite:t.db"]);
    let toml = database.read("ckpt.toml");
    assert!(
        toml.ends_with("\nstore = \"sqlite:t.db\"\nroot = \".\"\n"),
        "{toml}"
    );
    database.expect(0, &["start", "--key", "a", "--agent", "x"]);
    // Values that a file in a repository must not contain.
    let server = Project::new();
    server.expect(0, &["init", "--write", "--store", "postgres://u:pw@h/d"]);
    let (toml, block) = (server.read("ckpt.toml"), server.read("AGENTS.md"));
    assert!(!toml.contains("store ="), "{toml}");
    assert!(
        !block.contains("pw") && block.contains("--key TASK"),
        "{block}"
    );
    server.expect(0, &["config"]);

    let several = Project::with("a/t.json", TASK);
    several.write("b/t.json", TASK);
    let refused = several.expect(2, &["init", "--write"]);
    let says = "checkpoints are in several places: a (1 checkpoint), b (1 checkpoint); name the store of the project with --store";
    assert_eq!(refused.error(), says);
    assert_eq!(several.names(), ["a", "b"]);
    several.expect(0, &["init", "--write", "--store", "b"]);
    assert!(several.read("ckpt.toml").contains("store = \"b\"\n"));
}

#[test]
fn problems_of_what_is_there_are_named() {
    let project = Project::with(
        "checkpoints/bad.json",
        TASK.replace("\"implementation\"", "\"x\""),
    );
    let said = project.expect(1, &["init"]);
    assert!(
        said.out
            .starts_with("found: checkpoints/bad.json (task): 1 violation\n"),
        "{said:?}"
    );
    project.write("checkpoints/cut.json", &TASK[..200]);
    let said = project.expect(3, &["init", "--json"]);
    let found = &said.json()["found"];
    assert_eq!(
        found[0],
        json!({"place": "checkpoints/bad.json", "format": "task", "problem": "1 violation"})
    );
    assert_eq!(found[1]["place"], "checkpoints/cut.json");
    assert!(
        found[1]["problem"]
            .as_str()
            .unwrap()
            .starts_with("corrupt: "),
        "{found}"
    );
}

#[test]
fn what_is_in_a_file_stays_to_the_byte() {
    let project = Project::with("ckpt.toml", "store = \"here\"\n");
    project.write(".gitignore", "/target");
    project.write("AGENTS.md", "# Ours\n");
    project.write("CLAUDE.md", "See @AGENTS.md\n");
    let own = "{\n\t\"model\" : 1.50,\n\t\"hooks\": {\n\t\t\"Stop\": [ {\"hooks\": [{\"type\":\"command\",\"command\":\"own\"}]} ]\n\t}\n}\n";
    project.write(".claude/settings.json", own);
    project.expect(0, &["init", "--write", "--hooks", "claude"]);
    assert_eq!(project.read("ckpt.toml"), "store = \"here\"\n");
    assert_eq!(
        project.read(".gitignore"),
        "/target\n.agent-checkpoint-*.tmp\n"
    );
    assert!(
        project
            .read("AGENTS.md")
            .starts_with("# Ours\n\n<!-- ckpt: begin -->\n")
    );
    assert!(
        project
            .read("AGENTS.md")
            .contains("The checkpoints are in `here`")
    );
    assert_eq!(project.read("CLAUDE.md"), "See @AGENTS.md\n");
    let text = project.read(".claude/settings.json");
    let begin = own.split("\"command\":\"own\"}]}").next().unwrap();
    assert!(text.starts_with(begin), "{text}");
    let settings: Value = serde_json::from_str(&text).unwrap();
    let stop = settings["hooks"]["Stop"].as_array().unwrap();
    assert_eq!(
        (stop.len(), &stop[0]["hooks"][0]["command"]),
        (2, &json!("own"))
    );
    assert_eq!(stop[1]["hooks"][0]["command"], "ckpt hook Stop");
    assert_eq!(settings["hooks"].as_object().unwrap().len(), 5);
    assert_eq!(
        settings["hooks"]["PostToolUse"][0]["matcher"],
        "Write|Edit|MultiEdit|NotebookEdit"
    );
}

#[test]
fn settings_that_cannot_be_read_stay() {
    let project = Project::new();
    for wrong in [
        "// mine\n{}\n",
        "{\"hooks\": []}",
        "{\"hooks\": {\"Stop\": 7}}",
    ] {
        project.write(".codex/hooks.json", wrong);
        let refused = project.expect(2, &["init", "--write", "--hooks", "codex"]);
        assert!(
            refused.error().starts_with(".codex/hooks.json: "),
            "{refused:?}"
        );
        assert_eq!(project.read(".codex/hooks.json"), wrong);
        assert_eq!(project.names(), [".codex"]);
    }
}

#[cfg(unix)]
#[test]
fn a_link_and_the_rights_of_a_file_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let project = Project::with("AGENTS.md", "# Ours\n");
    symlink("AGENTS.md", project.path("CLAUDE.md")).unwrap();
    project.write("real.json", "{}\n");
    let rights = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(project.path("real.json"), rights).unwrap();
    std::fs::create_dir(project.path(".claude")).unwrap();
    symlink("../real.json", project.path(".claude/settings.json")).unwrap();
    project.expect(0, &["init", "--write", "--hooks", "claude"]);
    assert_eq!(project.read("AGENTS.md").matches("ckpt: begin").count(), 1);
    let found = std::fs::metadata(project.path("real.json")).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o640);
    assert!(project.read("real.json").contains("ckpt hook Stop"));
    assert!(project.path(".claude/settings.json").is_symlink());
}

#[cfg(unix)]
#[test]
fn a_file_under_two_names_gets_one_block() {
    let project = Project::with("CLAUDE.md", "# Ours\n");
    std::os::unix::fs::symlink("CLAUDE.md", project.path("AGENTS.md")).unwrap();
    project.expect(0, &["init", "--write"]);
    assert_eq!(project.read("CLAUDE.md").matches("ckpt: begin").count(), 1);

    let project = Project::new();
    std::os::unix::fs::symlink("AGENTS.md", project.path("CLAUDE.md")).unwrap();
    project.expect(0, &["init", "--write"]);
    assert_eq!(project.read("CLAUDE.md").matches("ckpt: begin").count(), 1);
    assert!(project.path("CLAUDE.md").is_symlink());
}

#[test]
fn a_block_that_lost_its_end_is_none() {
    let project = Project::with("AGENTS.md", "<!-- ckpt: begin -->\n");
    project.expect(0, &["init", "--write"]);
    let text = project.read("AGENTS.md");
    assert!(text.ends_with("<!-- ckpt: end -->\n"), "{text}");
    project.expect(0, &["init", "--write"]);
    assert_eq!(project.read("AGENTS.md"), text);
}

#[cfg(unix)]
#[test]
fn what_was_written_before_a_failure_is_reported() {
    let project = Project::new();
    std::os::unix::fs::symlink("nowhere", project.path(".claude")).unwrap();
    let run = project.expect(2, &["init", "--write", "--hooks", "claude"]);
    assert!(run.out.contains("ckpt.toml: was made"), "{run:?}");
    assert!(!run.out.contains("settings.json"), "{run:?}");
    assert!(run.err.contains("ckpt: .claude/settings.json: "), "{run:?}");
}

#[test]
fn the_settings_name_nothing_of_this_machine() {
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("checkpoints");
    let outside = outside.to_str().unwrap();
    let project = Project::new();
    project.expect(0, &["init", "--write", "--store", outside]);
    let (toml, block) = (project.read("ckpt.toml"), project.read("AGENTS.md"));
    assert!(
        !toml.contains("store =") && toml.contains("CKPT_STORE"),
        "{toml}"
    );
    assert!(
        block.contains("`$CKPT_STORE`") && !block.contains(outside),
        "{block}"
    );
    project.expect(0, &["config"]);

    let project = Project::new();
    let inside = project.path("checkpoints");
    let words = ["init", "--write", "--store", inside.to_str().unwrap()];
    project.expect(0, &words);
    let (toml, block) = (project.read("ckpt.toml"), project.read("AGENTS.md"));
    assert!(toml.contains("store = \"checkpoints\"\n"), "{toml}");
    assert!(block.contains("`checkpoints`"), "{block}");
    project.expect(0, &["config"]);
}

#[cfg(unix)]
#[test]
fn the_settings_of_a_folder_above_stay_those_that_count() {
    let project = Project::with("ckpt.toml", "store = \"checkpoints\"\n");
    project.write(".git/HEAD", "x");
    project.write("web/app.ts", "x");
    for verb in [&["init", "--write"][..], &["config"]] {
        let mut command = project.command();
        command.args(verb).current_dir(project.path("web"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(!project.path("web/ckpt.toml").exists());
    let block = project.read("web/AGENTS.md");
    assert!(block.contains("`../checkpoints`"), "{block}");
}

/// The written hooks work.
#[cfg(unix)]
#[test]
fn the_hooks_run_as_they_are_written() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    for (agent, file, begin) in [
        ("claude", ".claude/settings.json", "SessionStart"),
        ("codex", ".codex/hooks.json", "SessionStart"),
        ("gemini", ".gemini/settings.json", "SessionStart"),
    ] {
        let project = Project::with("checkpoints/US-003.json", TASK);
        project.expect(0, &["init", "--write", "--hooks", agent]);
        let settings: Value = serde_json::from_str(&project.read(file)).unwrap();
        for (event, groups) in settings["hooks"].as_object().unwrap() {
            let command = groups[0]["hooks"][0]["command"].as_str().unwrap();
            let mut child = Command::new("sh")
                .args(["-c", command])
                .current_dir(project.path(""))
                .env("PATH", crate::project::path_with_ckpt())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let sent =
                json!({"session_id": "s1", "cwd": project.path(""), "hook_event_name": event});
            let mut input = child.stdin.take().unwrap();
            input.write_all(sent.to_string().as_bytes()).unwrap();
            drop(input);
            let output = child.wait_with_output().unwrap();
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{output:?}"
            );
            let out = String::from_utf8(output.stdout).unwrap();
            assert_eq!(
                out.contains("# Resuming Task: US-003"),
                event == begin,
                "{event}: {out}"
            );
        }
    }
}

#[test]
fn a_store_that_is_only_configured_has_no_checkpoints_yet() {
    let project = Project::new();
    project.expect(0, &["init", "--write"]);
    for words in [
        &["status"][..],
        &["list"],
        &["doctor"],
        &["report", "--html", "page.html"],
    ] {
        let run = project.expect(0, words);
        assert!(
            run.err
                .contains("checkpoints does not exist yet; `ckpt start` creates it"),
            "{run:?}"
        );
    }
    // A folder that is named may be misspelled.
    project.expect(2, &["status", "chekpoints"]);
    project.expect(2, &["list", "--store", "checkpoints"]);
}
