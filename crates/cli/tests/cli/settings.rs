//! Settings outside of the command line: variables and `ckpt.toml`.

use std::fs;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::project::{Project, TASK};

/// A run in a folder of the project, with these variables.
fn run_in(project: &Project, folder: &str, variables: &[(&str, &str)], words: &[&str]) -> Run {
    let mut command = project.command();
    command.current_dir(project.path(folder)).args(words);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    Run::of(output)
}

#[derive(Debug)]
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    fn of(output: Output) -> Run {
        Run {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Value, kind and place of a setting in what `ckpt config --json` prints.
    fn setting(&self, name: &str) -> (Value, String, Value) {
        let all: Vec<Value> = serde_json::from_str(&self.out).unwrap();
        let found = all.iter().find(|it| it["setting"] == name);
        let found = found.unwrap_or_else(|| panic!("{name}: {self:?}"));
        let from = found["from"].as_str().unwrap().to_owned();
        (found["value"].clone(), from, found["place"].clone())
    }
}

#[test]
fn an_option_wins_over_a_variable_and_a_variable_over_the_file() {
    let project = Project::with("ckpt.toml", "# ours\nstore = \"of-file\"\nredact = true\n");
    let config = |variables: &[(&str, &str)], words: &[&str]| {
        let run = run_in(
            &project,
            "",
            variables,
            &[&["config", "--json"], words].concat(),
        );
        assert_eq!(run.code, 0, "{run:?}");
        run
    };
    let setting = |value: &str, from: &str, place: &str| {
        (Value::from(value), from.to_owned(), Value::from(place))
    };
    let variable = [("CKPT_STORE", "of-variable"), ("CKPT_FENCE", "7")];
    let run = config(&[], &[]);
    assert_eq!(
        run.setting("store"),
        setting("of-file", "file", "ckpt.toml:2")
    );
    assert_eq!(
        run.setting("redact"),
        setting("true", "file", "ckpt.toml:3")
    );
    let root = (Value::from("."), "default".to_owned(), Value::Null);
    assert_eq!(run.setting("root"), root);
    assert_eq!(run.setting("agent").0, Value::Null);
    // An empty variable counts as unset.
    assert_eq!(
        config(&[("CKPT_STORE", "")], &[]).setting("store").1,
        "file"
    );
    let run = config(&variable, &[]);
    assert_eq!(
        run.setting("store"),
        setting("of-variable", "variable", "CKPT_STORE")
    );
    assert_eq!(run.setting("fence"), setting("7", "variable", "CKPT_FENCE"));
    let run = config(&variable, &["--store", "of-flag"]);
    assert_eq!(run.setting("store"), setting("of-flag", "flag", "--store"));
    // For people.
    let run = run_in(&project, "", &[], &["config"]);
    let line = run
        .out
        .lines()
        .find(|line| line.trim_start().starts_with("store"));
    assert!(line.unwrap().contains("ckpt.toml:2"), "{run:?}");
}

#[test]
fn a_password_of_an_address_is_not_printed() {
    let project = Project::new();
    let address = [(
        "CKPT_STORE",
        "postgres://u:hunter2@host/db?password=hunter2",
    )];
    for words in [&["config"][..], &["config", "--json"]] {
        let run = run_in(&project, "", &address, words);
        assert!(run.out.contains("postgres://u@host/db"), "{run:?}");
        assert!(!run.out.contains("hunter2"), "{run:?}");
    }
}

#[test]
fn a_day_of_work_names_its_checkpoint_once() {
    let project = Project::with("ckpt.toml", "store = \"checkpoints\"\nroot = \".\"\n");
    fs::create_dir_all(project.path("src/deep")).unwrap();
    fs::create_dir(project.path(".git")).unwrap();
    let dev = [
        ("CKPT_KEY", "US-1"),
        ("CKPT_AGENT", "dev"),
        ("CKPT_SESSION", "s1"),
    ];
    let run = |folder: &str, words: &[&str]| run_in(&project, folder, &dev, words);
    assert_eq!(run("", &["start", "--plan", "Wire it", "Test it"]).code, 0);
    // From a sub-folder, the paths of the file are still relative to the file.
    project.write("src/a.rs", "x");
    assert_eq!(run("src/deep", &["step", "start", "Wire it"]).code, 0);
    let done = run(
        "src",
        &["step", "done", "Wired it", "--modified", "src/a.rs"],
    );
    assert_eq!(done.code, 0, "{done:?}");
    let shown = project
        .expect(0, &["show", "checkpoints/US-1.json", "--json"])
        .json();
    assert_eq!(shown["agent"], "dev");
    assert_eq!(shown["handoff"]["done"][0]["files_modified"][0], "src/a.rs");
    let stale = run("src/deep", &["stale"]);
    assert!(stale.out.contains("unchanged"), "{stale:?}");
    // A file outside of the repository is not used.
    let outer = Project::with("ckpt.toml", "store = \"checkpoints\"\n");
    outer.write("inner/.git", "gitdir: elsewhere\n");
    let run = run_in(&outer, "inner", &dev, &["show"]);
    assert!(run.err.contains("which checkpoint?"), "{run:?}");
    fs::remove_file(outer.path("inner/.git")).unwrap();
    let run = run_in(&outer, "inner", &dev, &["show"]);
    assert!(run.err.contains("checkpoints/US-1.json"), "{run:?}");
    // Nor is a file above the home folder.
    let inner = outer.path("inner").canonicalize().unwrap();
    let home = [("CKPT_KEY", "US-1"), ("HOME", inner.to_str().unwrap())];
    if cfg!(unix) {
        let run = run_in(&outer, "inner", &home, &["show"]);
        assert!(run.err.contains("which checkpoint?"), "{run:?}");
    }
}

#[test]
fn a_wrong_line_is_named() {
    for (text, line, says) in [
        (
            "format = \"task\"\nstroe = \"x\"\n",
            2,
            "\"stroe\" is not a setting of this file",
        ),
        (
            "key = \"US-1\"\n",
            1,
            "\"key\" is not a setting of this file",
        ),
        ("\n\nstore = 3\n", 3, "store is a text in quotes"),
        ("store = \"\"\n", 1, "store is a text in quotes"),
        ("redact = \"yes\"\n", 1, "redact is true or false"),
        ("max-bytes = \"1\"\n", 1, "max-bytes is a whole number"),
        ("max-bytes = -1\n", 1, "it is a whole number"),
        ("\nstore = checkpoints\n", 2, "correct this line"),
        ("store = \"a\"\nstore = \"b\"\n", 2, "duplicate"),
        ("late = \"soon\"\n", 1, "late: "),
        ("[agent]\nlate = \"1h\"\n", 1, "\"agent\" is not a setting"),
    ] {
        let project = Project::with("ckpt.toml", text);
        let run = project.expect(2, &["config"]);
        let place = format!("ckpt.toml:{line}: ");
        assert!(run.error().starts_with(&place), "{text:?}: {run:?}");
        assert!(run.error().contains(says), "{text:?}: {run:?}");
        let error = &project.expect(2, &["config", "--json"]).json()["error"];
        assert_eq!(
            (&error["code"], &error["file"]),
            (&"usage".into(), &"ckpt.toml".into())
        );
        // A verb that needs no settings works.
        project.expect(0, &["guide", "task"]);
    }
    let project = Project::with("ckpt.toml", "max-bytes = 1_000\n");
    assert!(project.expect(0, &["config"]).out.contains("1000"));
    let project = Project::new();
    let run = run_in(&project, "", &[("CKPT_FENCE", "x")], &["config"]);
    assert!(run.err.starts_with("ckpt: CKPT_FENCE: "), "{run:?}");
    assert_eq!(run.code, 2);
}

#[test]
fn a_file_names_nothing_outside_of_its_repository() {
    let outer = Project::new();
    outer.write("repository/.git/HEAD", "");
    outer.write("repository/inner/ckpt.toml", "");
    outer.write("elsewhere/US-1.json", TASK);
    outer.write("elsewhere/prompt.md", "{{ nothing }}");
    let set = |text: &str| outer.write("repository/inner/ckpt.toml", text);
    let run = |variables: &[(&str, &str)], words: &[&str]| {
        run_in(&outer, "repository/inner", variables, words)
    };
    let elsewhere = outer.path("elsewhere").display().to_string();
    let mut outside = vec![
        "store = \"../../elsewhere\"".to_owned(),
        format!("store = '{elsewhere}'"),
        "store = \"missing/../../../elsewhere\"".to_owned(),
        "store = \"sqlite:../../tasks.db\"".to_owned(),
        "store = \"postgres://host/db\"".to_owned(),
        "store = \"other://host/db\"".to_owned(),
        "root = \"../..\"".to_owned(),
        "template = \"../../elsewhere/prompt.md\"".to_owned(),
        "templates = \"../../elsewhere\"".to_owned(),
    ];
    #[cfg(unix)]
    {
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, outer.path("repository/inner").join(name)).unwrap();
        };
        link("../../elsewhere", "link");
        link("../../not-there", "dangling");
        outside.push("store = \"link\"".to_owned());
        outside.push("store = \"link/US-1.json\"".to_owned());
        outside.push("store = \"dangling\"".to_owned());
        outer.write("repository/inner/prompts/own/own.md", "mine");
        link("../../../../elsewhere/US-1.json", "prompts/own/resume.md");
        outside.push("templates = \"prompts\"".to_owned());
    }
    for text in &outside {
        set(&format!("\n{text}\n"));
        let run = run(&[], &["config"]);
        assert_eq!(run.code, 2, "{text}: {run:?}");
        assert!(
            run.err.starts_with("ckpt: ckpt.toml:2: "),
            "{text}: {run:?}"
        );
        assert!(
            run.err.contains("is outside of the repository"),
            "{text}: {run:?}"
        );
    }
    // An option or a variable comes from the user and may name anything.
    set("store = \"../../elsewhere\"\n");
    let us_1 = [("CKPT_KEY", "US-1")];
    assert_eq!(run(&us_1, &["show"]).code, 2);
    assert_eq!(run(&us_1, &["show", "--store", "../../elsewhere"]).code, 0);
    let both = [("CKPT_KEY", "US-1"), ("CKPT_STORE", "../../elsewhere")];
    assert_eq!(run(&both, &["show"]).code, 0);
    assert_eq!(run(&[], &["show", "../../elsewhere/US-1.json"]).code, 0);
    // Any place in the repository is allowed.
    for text in [
        "store = \"../checkpoints\"",
        "store = \"sqlite:../tasks.db\"",
        "store = \"./postgres:\"",
        "root = \"..\"",
        "template = \"a/b.md\"",
    ] {
        set(text);
        assert_eq!(run(&[], &["config"]).code, 0, "{text}");
    }
    // Without a repository the limit is the folder.
    let plain = Project::new();
    plain.write("inner/ckpt.toml", "store = \"../checkpoints\"\n");
    assert_eq!(run_in(&plain, "inner", &[], &["config"]).code, 2);
}

#[cfg(unix)]
#[test]
fn a_folder_in_which_all_users_write_gives_no_settings_to_those_below() {
    use std::os::unix::fs::PermissionsExt;

    let project = Project::with("ckpt.toml", "format = \"task\"\n");
    fs::create_dir(project.path("mine")).unwrap();
    let format = || {
        run_in(&project, "mine", &[], &["config", "--json"])
            .setting("format")
            .1
    };
    assert_eq!(format(), "file");
    fs::set_permissions(project.path(""), PermissionsExt::from_mode(0o1777)).unwrap();
    assert_eq!(format(), "default");
    let own = run_in(&project, "", &[], &["config", "--json"]);
    assert_eq!(own.setting("format").1, "file");
}

#[test]
fn a_file_that_is_named_wins() {
    let project = Project::with("t.json", TASK);
    project.write(
        "ckpt.toml",
        "store = \"../outside\"\nformat = \"sitebuilder\"\n",
    );
    project.write("folder/US-1.json", TASK);
    let variables = [
        ("CKPT_STORE", "elsewhere"),
        ("CKPT_KEY", "US-9"),
        ("CKPT_FENCE", "9"),
    ];
    let run = |words: &[&str]| run_in(&project, "", &variables, words);
    for words in [
        &["show", "t.json"][..],
        &["detect", "t.json"],
        &["validate", "t.json"],
        &["revision", "t.json"],
        &["history", "t.json"],
        &["set", "t.json", "/phase=\"verification\""],
        &[
            "status",
            "folder",
            "--late",
            "999999h",
            "--stalled",
            "9999999h",
        ],
        &["copy", "folder", "copied"],
        &["forget", "folder", "--ended", "1day"],
        &["show", "--store", "t.json"],
        &["note", "half", "--store", "t.json"],
        &["claim", "t.json"],
    ] {
        let run = run(words);
        assert_eq!(run.code, 0, "{words:?}: {run:?}");
    }
    // Two places on the command line are still one too many.
    let two = run(&["show", "t.json", "--store", "folder"]);
    assert!(two.err.contains("omit one"), "{two:?}");
    // Without a FILE `set` changes the store.
    let variables = [("CKPT_STORE", "folder"), ("CKPT_KEY", "US-1")];
    let set = run_in(
        &project,
        "",
        &variables,
        &["set", "/phase=\"verification\""],
    );
    assert_eq!(set.code, 0, "{set:?}");
    assert!(
        project
            .read("folder/US-1.json")
            .contains("\"verification\"")
    );
    // The error names the variable of a key that does not fit a file.
    let variables = [("CKPT_STORE", "t.json"), ("CKPT_KEY", "US-9")];
    let set = run_in(&project, "", &variables, &["show"]);
    assert!(set.err.contains("omit CKPT_KEY"), "{set:?}");
}

#[test]
fn a_fence_of_the_environment_is_for_the_checkpoint_there() {
    let project = Project::new();
    for key in ["A", "B"] {
        project.expect(0, &["start", "--store", "c", "--key", key, "--plan", "one"]);
    }
    let claim = ["claim", "--store", "c", "--key", "A", "--agent", "dev"];
    let fence = project.expect(0, &claim).out;
    let fence = fence.trim();
    let hand = [("CKPT_FENCE", fence)];
    let at_a = ["--store", "c", "--key", "A"];
    let at_b = ["--store", "c", "--key", "B"];
    let note = |variables: &[(&str, &str)], at: &[&str]| {
        run_in(&project, "", variables, &[&["note", "n"], at].concat()).code
    };
    assert_eq!(note(&[], &at_a), 4);
    assert_eq!(note(&hand, &at_a), 0);
    let whole = [
        ("CKPT_FENCE", fence),
        ("CKPT_STORE", "c"),
        ("CKPT_KEY", "A"),
    ];
    assert_eq!(note(&whole, &[]), 0);
    assert_eq!(note(&whole, &at_a), 0);
    // Another key has no claim.
    assert_eq!(note(&whole, &at_b), 0);
    let renew = run_in(&project, "", &whole, &["claim", "--renew"]);
    assert_eq!(renew.code, 0, "{renew:?}");
    assert_eq!(run_in(&project, "", &whole, &["release"]).code, 0);
    let run = project.expect(2, &["claim", "--store", "c", "--key", "A", "--renew"]);
    assert!(run.error().contains("CKPT_FENCE"), "{run:?}");
}

#[test]
fn settings_of_a_verb_are_taken_by_it() {
    let project = Project::with("t.json", TASK);
    project.write("prompt.md", "mine");
    let at = "2026-03-02T08:35:00Z";
    let status = ["status", "t.json", "--now", at];
    project.write(
        "ckpt.toml",
        "late = \"2h\"\nstalled = \"3h\"\nstuck = \"9h\"\n",
    );
    assert!(project.expect(0, &status).out.contains("active"));
    let late = [&status[..], &["--late", "10m"]].concat();
    assert!(project.expect(1, &late).out.contains("late"));
    project.write("ckpt.toml", "late = \"10m\"\nstalled = \"3h\"\n");
    assert!(project.expect(1, &status).out.contains("late"));

    project.write("ckpt.toml", "template = \"prompt.md\"\n");
    let resume = |words: &[&str]| {
        project
            .ckpt(&[&["resume", "t.json", "--now", at], words].concat())
            .out
    };
    assert_eq!(resume(&[]).trim_end(), "mine");
    // The template is only for the prompt.
    assert_ne!(resume(&["--message", "header"]).trim_end(), "mine");
    project.write("ckpt.toml", "budget-tokens = 1\n");
    let run = project.expect(1, &["resume", "t.json", "--now", at]);
    assert!(run.err.contains("more than the budget"), "{run:?}");
    project.write("ckpt.toml", "max-bytes = 10\n");
    project.expect(3, &["show", "t.json"]);
    project.expect(0, &["show", "t.json", "--max-bytes", "100000"]);
}

#[test]
fn quiet_prints_errors_only() {
    let project = Project::with("t.json", TASK);
    for words in [
        &["show", "t.json"][..],
        &["note", "half", "--store", "t.json"],
        &["resume", "t.json"],
        &["show", "t.json", "--json"],
    ] {
        let quiet = project.ckpt(&[words, &["-q"]].concat());
        let loud = project.ckpt(words);
        assert_eq!(quiet.code, loud.code, "{words:?}");
        assert_eq!(
            (quiet.out.as_str(), quiet.err.as_str()),
            ("", ""),
            "{words:?}"
        );
        assert!(!loud.out.is_empty(), "{words:?}");
    }
    let run = project.expect(2, &["show", "missing.json", "--quiet"]);
    assert!(run.error().contains("missing.json"), "{run:?}");
    let run = project.expect(
        2,
        &["validate", "t.json", "missing.json", "--quiet", "--json"],
    );
    assert_eq!(run.json()["error"]["code"], "not-found");
    project.expect(2, &["status", ".", "--watch", "--quiet"]);
}

#[test]
fn exit_zero_makes_findings_no_failure() {
    let project = Project::with("t.json", TASK.replace("implementation", "x"));
    project.expect(1, &["validate", "t.json"]);
    let run = project.expect(0, &["validate", "t.json", "--exit-zero"]);
    assert!(run.out.contains("/phase"), "{run:?}");
    project.expect(2, &["validate", "missing.json", "--exit-zero"]);
    project.write("cut.json", "{\"schemaVersion\": 1,");
    project.expect(3, &["validate", "t.json", "cut.json", "--exit-zero"]);
    project.expect(
        4,
        &[
            "step",
            "done",
            "--pending",
            "x",
            "--store",
            "t.json",
            "--exit-zero",
        ],
    );
    let expect = [
        "--expect",
        "sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ];
    let set = ["set", "t.json", "/phase=\"y\"", "--exit-zero"];
    project.expect(5, &[&set[..], &expect].concat());
}

#[test]
fn standard_input_is_a_state_a_template_and_a_plan() {
    let project = Project::with("t.json", TASK);
    let was = TASK.replace("\"Make c\"", "\"Make d\"");
    for words in [
        &["diff", "t.json", "--from", "-"][..],
        &["diff", "t.json", "--to", "-"],
        &["diff", "t.json", "--from", "-", "--json"],
    ] {
        let run = project.ckpt_given(words, &was);
        assert_eq!(run.code, 1, "{words:?}: {run:?}");
        assert!(
            run.out.contains("Make c") && run.out.contains("Make d"),
            "{run:?}"
        );
    }
    assert_eq!(
        project
            .ckpt_given(&["diff", "t.json", "--from", "-"], TASK)
            .code,
        0
    );
    let run = project.ckpt_given(&["diff", "t.json", "--from", "-"], "{\"a\":");
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.error().contains("standard input is corrupt"), "{run:?}");
    let run = project.ckpt_given(&["diff", "t.json", "--from", "-", "--to", "-"], TASK);
    assert!(run.error().contains("read twice"), "{run:?}");

    let now = ["--now", "2026-03-02T08:06:00Z"];
    let resume = [&["resume", "t.json", "--template", "-"], &now[..]].concat();
    assert_eq!(project.ckpt_given(&resume, "mine").out.trim_end(), "mine");
    let run = project.ckpt_given(&["resume", "-", "--template", "-"], TASK);
    assert_eq!(run.code, 2, "{run:?}");
    let planned = [&["status", ".", "--planned", "-"], &now[..]].concat();
    let run = project.ckpt_given(&planned, "T-7@media\nT-8\n");
    for word in ["T-7", "media", "T-8", "not started"] {
        assert!(run.out.contains(word), "{word}: {run:?}");
    }
}

/// The lines that a claim prints for a shell name everything that later commands need.
#[cfg(unix)]
#[test]
fn an_exported_claim_is_that_of_the_commands_after_it() {
    let project = Project::new();
    fs::create_dir_all(project.path("it's/a $(folder)")).unwrap();
    let sh = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command
            .current_dir(project.path(""))
            .args(["-e", "-c", script]);
        command.env("PATH", crate::project::path_with_ckpt());
        Run::of(command.stdin(Stdio::null()).output().unwrap())
    };
    let run = sh(r#"
        ckpt start --store "it's/a \$(folder)" --key 'US "1"' --plan 'Do it'
        eval "$(ckpt claim --store "it's/a \$(folder)" --key 'US "1"' --agent 'd'\''ev' --session s1 --export)"
        cd "it's"
        ckpt step start 'Do it'
        CKPT_AGENT= CKPT_SESSION= ckpt claim
        ckpt step done 'Did it'
        ckpt show
        ckpt release
    "#);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains("claimed by d'ev, session s1"), "{run:?}");
    assert!(run.out.contains("Did it"), "{run:?}");
    // A file, after another checkpoint was used.
    project.write("t.json", TASK);
    let run = sh(r#"
        CKPT_KEY=US-1
        export CKPT_KEY
        eval "$(ckpt claim t.json --agent dev --export)"
        ckpt note half
        CKPT_AGENT= ckpt claim
    "#);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains("claimed by dev"), "{run:?}");
    // A refused claim ends the script.
    let run = sh(r#"
        eval "$(ckpt claim t.json --agent other --export)"
        echo went on
    "#);
    assert_eq!((run.code, run.out.as_str()), (4, ""), "{run:?}");
    project.expect(2, &["claim", "t.json", "--export"]);
    // So does a wrong command line, or an option for another output before the verb.
    let claim = "claim t.json --agent a --export";
    for words in [
        format!("{claim} --for soon"),
        format!("--json {claim}"),
        format!("-q {claim}"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(project.expect(2, &words).out, "(exit 2)\n", "{words:?}");
    }
    // A store in a variable from another folder is still the same store.
    let same = sh(r#"
        mkdir -p s && CKPT_AGENT= ckpt start --store s --key k --plan 'Do it'
        eval "$(ckpt claim --store s --key k --agent dev --export)"
        ckpt note hello --store s --key k
        CKPT_AGENT= CKPT_SESSION=s9 ckpt claim --store s --key k
    "#);
    assert_eq!(same.code, 0, "{same:?}");
    assert!(same.out.contains("claimed by dev until"), "{same:?}");
}

/// The command accepts everything in the example file of the reference.
#[test]
fn the_file_of_the_reference_is_taken() {
    let reference = include_str!("../../../../docs/cli.md");
    let (_, rest) = reference.split_once("```toml\n").unwrap();
    let (file, _) = rest.split_once("```").unwrap();
    let project = Project::with("ckpt.toml", file);
    let run = run_in(&project, "", &[], &["config", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.setting("late").0, "20m");
    let named = run.out.matches("\"from\": \"file\"").count();
    let lines = file.lines().filter(|line| line.contains(" = "));
    assert_eq!(named, lines.count());
}
