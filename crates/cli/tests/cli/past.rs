//! Earlier states of a checkpoint, and recovery from a damaged one.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::project::{EXAMPLE, Project, TASK};

fn saved(project: &Project) {
    project.write("t.json", TASK);
    project.expect(0, &["step", "done", "Made b", "--store", "t.json"]);
    project.expect(0, &["decide", "Use c", "--store", "t.json"]);
}

#[test]
fn every_state_that_a_change_replaced_can_be_listed_compared_and_brought_back() {
    let project = Project::new();
    saved(&project);
    let rows = project.expect(0, &["history", "t.json", "--json"]).json();
    let names: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["entry"].clone())
        .collect();
    assert_eq!(names, ["current", "2", "1"]);
    let table = project.expect(0, &["history", "t.json"]).out;
    assert!(table.starts_with("entry"), "{table}");
    assert_eq!(table.lines().count(), 4, "{table}");

    let diff = project.expect(1, &["diff", "t.json"]).out;
    assert!(diff.contains("Use c") && !diff.contains("Made b"), "{diff}");
    let diff = project
        .expect(1, &["diff", "t.json", "--from", "1", "--to", "2"])
        .out;
    assert!(diff.contains("Made b") && !diff.contains("Use c"), "{diff}");
    project.expect(0, &["diff", "t.json", "--from", "2", "--to", "2"]);
    let none = project.expect(2, &["diff", "t.json", "--from", "17"]);
    assert!(none.error().contains("`history` lists"), "{none:?}");

    project.expect(
        5,
        &[
            "restore",
            "t.json",
            "--entry",
            "1",
            "--expect",
            rows[1]["revision"].as_str().unwrap(),
        ],
    );
    project.expect(0, &["restore", "t.json", "--entry", "1"]);
    assert_eq!(project.read("t.json"), TASK);
    // A revision is accepted, too, and the replaced state becomes an entry.
    let before = rows[0]["revision"].as_str().unwrap();
    project.expect(0, &["restore", "t.json", "--entry", &before[..19]]);
    assert!(project.read("t.json").contains("Use c"));
}

#[test]
fn a_damaged_file_is_put_aside_and_the_newest_good_state_goes_on() {
    let project = Project::new();
    saved(&project);
    let whole = project.read("t.json");
    let cut = &whole[..whole.find("Use c").unwrap() + 7];
    project.write("t.json", cut);
    let corrupt = project.expect(3, &["block", "x", "--store", "t.json"]);
    assert!(corrupt.error().contains("ckpt recover"), "{corrupt:?}");
    let table = project.expect(0, &["history", "t.json"]).out;
    assert!(table.contains("corrupt: truncated"), "{table}");

    let recovered = project.expect(1, &["recover", "t.json"]);
    assert_eq!(recovered.out, "went on with 2\n");
    assert!(recovered.err.contains("Use c"), "{recovered:?}");
    let aside = recovered
        .err
        .split("the damaged text is in ")
        .nth(1)
        .unwrap();
    let aside = aside.lines().next().unwrap();
    assert_eq!(project.read(aside), cut);
    project.expect(0, &["block", "x", "--store", "t.json"]);
    let healthy = project.expect(0, &["recover", "t.json"]).out;
    assert!(healthy.contains("nothing was changed"), "{healthy}");
}

#[test]
fn the_good_part_can_be_kept_or_everything_begun_anew() {
    let project = Project::new();
    saved(&project);
    let whole = project.read("t.json");
    project.write("t.json", format!("{whole}\n  \"tail\": 1}}"));
    let recovered = project
        .expect(1, &["recover", "t.json", "--salvage", "--json"])
        .json();
    assert_eq!(recovered["left_out"][0]["offset"], whole.len() + 3);
    assert_eq!(recovered["damage"]["code"], "trailing-bytes");
    assert_eq!(project.read("t.json").trim_end(), whole.trim_end());

    project.write("t.json", "\0\0\0\0");
    project.expect(3, &["recover", "t.json", "--salvage"]);
    assert_eq!(project.read("t.json"), "\0\0\0\0");
    project.expect(0, &["recover", "t.json", "--fresh"]);
    assert!(!project.names().contains(&"t.json".to_owned()));
    // After a fresh begin the old task does not come back unasked.
    project.expect(3, &["recover", "t.json"]);
    project.expect(0, &["restore", "t.json", "--entry", "2"]);
    assert!(project.read("t.json").contains("Made b"));

    let lone = Project::with("lone.json", "{\"phase\": ");
    let none = lone.expect(3, &["recover", "lone.json", "--format", "task"]);
    assert!(none.error().contains("no earlier state"), "{none:?}");
    assert_eq!(lone.read("lone.json"), "{\"phase\": ");
}

#[test]
fn what_is_only_too_large_is_not_put_aside() {
    let project = Project::with("t.json", TASK);
    let run = project.expect(
        3,
        &[
            "recover",
            "t.json",
            "--format",
            "task",
            "--max-bytes",
            "100",
        ],
    );
    assert!(run.error().contains("100"), "{run:?}");
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(200), "]".repeat(200));
    project.write("deep.json", &deep);
    project.expect(3, &["recover", "deep.json", "--format", "task"]);
    assert_eq!(project.read("deep.json"), deep);
}

#[test]
fn a_host_file_is_recovered_as_a_whole_and_never_begun_anew() {
    let project = Project::with("docs/builder-state.json", EXAMPLE);
    let file = "docs/builder-state.json";
    project.expect(0, &["block", "CI", "--store", file]);
    project.write(file, &EXAMPLE[..EXAMPLE.len() / 2]);
    project.expect(3, &["recover", file, "--slot", "active", "--fresh"]);
    project.expect(1, &["recover", file, "--slot", "active"]);
    assert_eq!(project.read(file), EXAMPLE);
}

/// A host file of two tasks. Each slot keeps one state; the one of `a1` also has the newest state of `active`.
const HOST: &str = "docs/host.json";

fn host_of_two() -> Project {
    let text = r#"{"activeWork": {"id": "W1"}, "adhocQueue": [{"id": "a1"}]}"#;
    let project = Project::with(HOST, text);
    for slot in ["active", "adhoc:a1"] {
        let at = ["--store", HOST, "--slot", slot, "--agent", "a"];
        project.expect(0, &[&["start", "--plan", "One"], &at[..]].concat());
    }
    for slot in ["active", "adhoc:a1"] {
        let at = ["--store", HOST, "--slot", slot, "--agent", "a"];
        project.expect(0, &[&["step", "start", "One"], &at[..]].concat());
    }
    project
}

#[test]
fn of_a_host_file_that_is_damaged_or_gone_the_newest_state_of_any_slot_is_told() {
    for is_gone in [false, true] {
        let project = host_of_two();
        let active = project.expect(0, &["revision", HOST, "--slot", "active"]);
        match is_gone {
            true => fs::remove_file(project.path(HOST)).unwrap(),
            false => project.write(HOST, "\0".repeat(300)),
        }
        let code = if is_gone { 2 } else { 3 };
        for slot in ["active", "adhoc:a1"] {
            let shown = project.expect(code, &["show", HOST, "--slot", slot]);
            assert!(shown.error().contains("4@adhoc%3Aa1"), "{shown:?}");
            assert!(!shown.error().contains("--fresh"), "{shown:?}");
        }
        let resumed = project.expect(code, &["resume", HOST, "--slot", "active", "--json"]);
        if !is_gone {
            assert_eq!(resumed.json()["recover_with"], "4@adhoc%3Aa1");
        }
        // It asks which slot is meant, as for an intact file.
        let asked = project.expect(2, &["history", HOST]);
        assert!(
            asked.error().contains("active, adhoc:a1 with --slot"),
            "{asked:?}"
        );
        let listed = project
            .expect(0, &["history", HOST, "--slot", "active"])
            .out;
        assert!(
            listed.contains("4@adhoc%3Aa1") && listed.contains("3@active"),
            "{listed}"
        );
        let recovered = project.expect(1, &["recover", HOST, "--json", "--slot", "active"]);
        let revision = recovered.json()["revision"].clone();
        assert_eq!(revision, active.out.trim_end());
        project.expect(0, &["show", HOST, "--slot", "adhoc:a1"]);
    }
    // To recover the whole host file no slot need be named.
    let project = host_of_two();
    fs::remove_file(project.path(HOST)).unwrap();
    let recovered = project.expect(1, &["recover", HOST]);
    assert_eq!(recovered.out, "went on with 4@adhoc%3Aa1\n");
}

#[test]
fn a_slot_that_was_emptied_is_brought_back_from_its_history() {
    let project = host_of_two();
    let active = ["--slot", "active", "--as", "aborted"];
    project.expect(0, &[&["archive", HOST], &active[..]].concat());
    let gone = project.expect(2, &["show", HOST, "--slot", "active"]);
    let advice = "`ckpt restore --slot active --entry 5@active` brings it back";
    assert!(gone.error().contains(advice), "{gone:?}");
    let recovered = project.expect(0, &["recover", HOST, "--slot", "active"]);
    assert!(recovered.err.contains(advice), "{recovered:?}");
    let recovered = project.expect(0, &["recover", HOST, "--slot", "active", "--json"]);
    assert!(recovered.err.contains(advice), "{recovered:?}");
    // Without --slot the slot with a checkpoint is used, and a note says so.
    let listed = project.expect(0, &["history", HOST]);
    assert!(listed.err.contains("of the slot adhoc:a1"), "{listed:?}");
    project.expect(
        0,
        &["restore", HOST, "--slot", "active", "--entry", "5@active"],
    );
    project.expect(0, &["show", HOST, "--slot", "active"]);
}

#[test]
fn a_host_that_is_gone_is_recovered_and_not_restored_slot_by_slot() {
    let project = host_of_two();
    fs::remove_file(project.path(HOST)).unwrap();
    let restored = project.expect(
        2,
        &["restore", HOST, "--slot", "active", "--entry", "3@active"],
    );
    assert!(
        restored.error().contains("`ckpt recover` brings it back"),
        "{restored:?}"
    );
}

#[test]
fn the_slots_that_a_salvage_loses_are_told_and_keep_their_history() {
    let project = host_of_two();
    let text = project.read(HOST);
    project.write(HOST, &text[..text.find(r#""adhocQueue""#).unwrap()]);
    let recovered = project.expect(1, &["recover", HOST, "--salvage"]);
    let lost = "has checkpoints that the file now lacks: adhoc:a1;";
    assert!(recovered.err.contains(lost), "{recovered:?}");
    let of_lost = ["--slot", "adhoc:a1"];
    let listed = project.expect(0, &[&["history", HOST], &of_lost[..]].concat());
    assert!(listed.out.contains("4@adhoc%3Aa1"), "{listed:?}");
    let gone = project.expect(2, &[&["show", HOST], &of_lost[..]].concat());
    let advice = "brings it back once its task is in the file again";
    assert!(gone.error().contains(advice), "{gone:?}");
    let restore = [&["restore", HOST, "--entry", "4@adhoc%3Aa1"], &of_lost[..]].concat();
    let refused = project.expect(2, &restore);
    assert!(
        refused
            .error()
            .contains("first put the task of this slot back into the file"),
        "{refused:?}"
    );
    let healed = project.read(HOST);
    let task = r#""adhocQueue": [{"id": "a1"}], "activeWork""#;
    project.write(HOST, healed.replacen(r#""activeWork""#, task, 1));
    project.expect(0, &restore);
    project.expect(0, &[&["show", HOST], &of_lost[..]].concat());
}

#[test]
fn a_slot_that_was_archived_is_not_lost_by_a_salvage() {
    let project = host_of_two();
    let active = ["--slot", "active", "--as", "aborted"];
    project.expect(0, &[&["archive", HOST], &active[..]].concat());
    let text = project.read(HOST);
    project.write(HOST, text.trim_end().strip_suffix('}').unwrap());
    let recovered = project.expect(1, &["recover", HOST, "--salvage", "--json"]);
    let report = recovered.json();
    assert_ne!(report["damage"], serde_json::Value::Null, "{recovered:?}");
    assert!(report.get("lost_slots").is_none(), "{recovered:?}");
}

#[test]
fn a_deleted_checkpoint_that_begins_fresh_is_told_so() {
    let project = Project::new();
    saved(&project);
    fs::remove_file(project.path("t.json")).unwrap();
    let fresh = project.expect(0, &["recover", "t.json", "--fresh"]);
    assert!(fresh.out.contains("the next save begins anew"), "{fresh:?}");
}

#[test]
fn a_checkpoint_that_is_archived_frees_its_key() {
    let project = Project::new();
    let store = ["--store", "checkpoints", "--key", "US-1"];
    project.expect(
        0,
        &[&["start", "--agent", "a", "--plan", "x"], &store[..]].concat(),
    );
    let archived = project
        .expect(0, &[&["archive", "--as", "aborted"], &store[..]].concat())
        .out;
    let archived = archived.trim_end().strip_prefix("archived as ").unwrap();
    assert!(project.read(archived).contains("\"x\""));
    project.expect(
        0,
        &[&["start", "--agent", "a", "--plan", "y"], &store[..]].concat(),
    );
}

#[test]
fn a_task_is_forgotten_only_when_that_is_applied() {
    let project = Project::new();
    let store = ["--store", "c", "--key", "T"];
    let run = |code, verb: &[&str]| project.expect(code, &[verb, &store[..]].concat());
    run(0, &["start", "--agent", "secretive", "--plan", "secret"]);
    run(0, &["block", "a secret"]);
    run(0, &["history", "--pin", "1"]);
    let claim = run(0, &["claim", "--agent", "secretive", "--json"]).json();
    let before = project.names();
    let would = run(0, &["forget"]).out;
    assert_eq!(
        would,
        "would be removed for good, with --apply: the checkpoint; 1 earlier state, 1 of them pinned; the claim of \
         secretive, whose --fence is required; what is archived, backed up or quarantined of it; nothing was \
         changed\n"
    );
    assert_eq!(project.names(), before);
    run(4, &["forget", "--apply"]);
    let fence = claim["claim"]["fence"].to_string();
    run(
        5,
        &[
            "forget",
            "--apply",
            "--fence",
            &fence,
            "--expect",
            &format!("sha256:{:064}", 0),
        ],
    );
    let gone = run(0, &["forget", "--apply", "--fence", &fence, "--json"]).json();
    assert_eq!(
        (&gone["checkpoint"], &gone["applied"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    assert_eq!(
        (gone["states"].as_u64(), gone["owner"].as_str()),
        (Some(1), Some("secretive"))
    );
    let again = run(0, &["forget", "--apply"]);
    assert_eq!(again.out, "nothing is kept of it\n");
    run(2, &["show"]);
    let next = run(0, &["claim", "--agent", "next", "--json"]).json();
    assert!(next["claim"]["fence"].as_u64() > claim["claim"]["fence"].as_u64());
}

#[test]
fn what_has_no_history_is_not_pruned() {
    let project = Project::new();
    let nothing = project.expect(2, &["prune", "nope.json"]);
    assert!(
        nothing.error().contains("there is no checkpoint here"),
        "{nothing:?}"
    );
    assert!(project.names().is_empty());
}

#[test]
fn history_is_pruned_but_for_what_is_pinned_and_the_newest() {
    let project = Project::new();
    saved(&project);
    project.expect(0, &["block", "x", "--store", "t.json"]);
    project.expect(0, &["history", "t.json", "--pin", "1"]);
    assert_eq!(
        project.expect(0, &["prune", "t.json", "--keep", "0"]).out,
        "removed 2\n"
    );
    let rows = project.expect(0, &["history", "t.json", "--json"]).json();
    let names: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["entry"].clone())
        .collect();
    assert_eq!(names, ["current", "3", "1"]);
    assert_eq!(rows[2]["pinned"], true);
    project.expect(0, &["history", "t.json", "--unpin", "1"]);
    let pruned = project
        .expect(0, &["prune", "t.json", "--older-than", "0s"])
        .out;
    assert_eq!(pruned, "removed 1\n");
}

#[test]
fn a_recovery_of_nothing_says_where_to_look() {
    let project = Project::with("c/other.json", TASK);
    for how in [&["recover"][..], &["recover", "--salvage"]] {
        let run = project.expect(3, &[how, &["--store", "c", "--key", "T"]].concat());
        assert!(
            run.error()
                .ends_with("check the place and --key, or begin with `ckpt start`"),
            "{run:?}"
        );
    }
    // The name of a damaged file is not that advice.
    let damaged = "there is nothing here/t.json";
    project.write(damaged, "{");
    let run = project.expect(3, &["recover", damaged, "--format", "task"]);
    assert!(!run.error().contains("check the place"), "{run:?}");
}

/// The broken rule: an ended task came back in place of the task after it, without a word.
#[test]
fn a_task_that_is_over_does_not_come_back_unasked() {
    for end in ["archive", "fresh", "rm"] {
        let project = Project::new();
        let store = ["--store", "c", "--key", "T"];
        let run = |words: &[&str]| project.expect(0, &[words, &store].concat());
        run(&["start", "--plan", "OLD"]);
        run(&["decide", "x"]);
        run(&["step", "done", "OLD"]);
        match end {
            "archive" => {
                run(&["archive"]);
                let none = project.expect(3, &["recover", "c/T.json"]);
                assert!(
                    none.error().contains("`ckpt restore --entry ENTRY`"),
                    "{none:?}"
                );
            }
            "fresh" => {
                project.write("c/T.json", "");
                run(&["recover", "--fresh"]);
            }
            _ => std::fs::remove_file(project.path("c/T.json")).unwrap(),
        }
        run(&["start", "--plan", "NEW"]);
        let table = run(&["history"]).out;
        assert!(table.contains("of the previous task"), "{table}");
        let first = project.expect(2, &["diff", "c/T.json"]);
        assert!(
            first.error().contains("first state of its task"),
            "{first:?}"
        );
        let crossing = project.expect(1, &["diff", "c/T.json", "--from", "2"]);
        assert!(crossing.err.contains("states of two tasks"), "{crossing:?}");
        project.write("c/T.json", "");
        let none = project.expect(3, &["recover", "c/T.json"]);
        assert!(none.error().contains("of earlier tasks"), "{end}: {none:?}");
        let resume = project.expect(3, &["resume", "c/T.json", "--json"]).json();
        assert!(resume["recover_with"].is_null(), "{resume}");
        project.expect(0, &["recover", "c/T.json", "--fresh"]);
        project.expect(0, &["restore", "c/T.json", "--entry", "1"]);
        assert!(project.read("c/T.json").contains("OLD"));
    }
}

#[test]
fn a_recovery_says_that_the_last_report_is_not_in_what_goes_on() {
    let project = Project::new();
    saved(&project);
    project.write("t.json", "");
    let recovered = project.expect(1, &["recover", "t.json", "--format", "task"]);
    assert!(
        recovered
            .err
            .contains("newest state before the damage, of 20"),
        "{recovered:?}"
    );
    assert!(!project.read("t.json").contains("Use c"));
    std::fs::remove_file(project.path("t.json")).unwrap();
    let recovered = project.expect(1, &["recover", "t.json", "--json"]);
    assert_eq!(recovered.json()["may_lack"], true);
    assert!(recovered.json()["written"].is_string());
}

#[test]
fn an_unfinished_task_is_not_put_aside_as_complete() {
    let project = Project::with("t.json", TASK);
    let refused = project.expect(4, &["archive", "t.json"]);
    for option in [
        "in_progress",
        "--as crashed",
        "--as aborted",
        "--as complete",
    ] {
        assert!(refused.error().contains(option), "{refused:?}");
    }
    project.write("torn.json", "{");
    project.expect(3, &["archive", "torn.json"]);
    assert_eq!(project.read("t.json"), TASK);
    let aside = project
        .expect(0, &["archive", "t.json", "--as", "crashed"])
        .out;
    assert!(aside.contains("crashed"), "{aside}");
}

#[test]
fn of_a_checkpoint_that_is_gone_its_history_is_told() {
    let project = Project::new();
    let store = ["--store", "c", "--key", "T"];
    project.expect(0, &[&["start", "--plan", "p1"][..], &store].concat());
    project.expect(0, &[&["decide", "x"][..], &store].concat());
    project.expect(0, &[&["decide", "y"][..], &store].concat());
    std::fs::remove_file(project.path("c/T.json")).unwrap();
    for words in [
        &["show"][..],
        &["resume"],
        &["stale"],
        &["archive"],
        &["step", "start", "p1"],
        &["decide", "z"],
        &["diff"],
    ] {
        let gone = project.expect(2, &[words, &store].concat());
        let error = gone.error();
        assert!(
            error.contains("`ckpt recover`") && error.contains("`ckpt history`"),
            "{gone:?}"
        );
        assert!(
            !error.contains("start one first") && !error.contains("current"),
            "{gone:?}"
        );
    }
    project.expect(
        1,
        &[&["diff", "--from", "1", "--to", "2"][..], &store].concat(),
    );
    let none = project.expect(2, &["show", "c/other.json"]);
    assert!(none.error().contains("start one first"), "{none:?}");
}

/// Texts of one line with one damage each: cut, a quote missing, or a quote, bracket or token too many.
fn damaged(text: &str) -> Vec<String> {
    let nth = |of: &[&str], more: usize| {
        let found: Vec<usize> = (0..text.len())
            .filter(|&at| of.iter().any(|of| text[at..].starts_with(of)))
            .collect();
        found[found.len() * more / 7]
    };
    let mut texts = Vec::new();
    for more in [2, 5] {
        let quote = nth(&["\""], more);
        let bracket = nth(&["{", "}", "[", "]"], more);
        texts.push(text[..quote].to_owned());
        texts.push(format!("{}{}", &text[..quote], &text[quote + 1..]));
        texts.push(format!("{}{}", &text[..=bracket], &text[bracket..]));
        texts.push(format!(
            "{} NaN {}",
            &text[..=bracket],
            &text[bracket + 1..]
        ));
    }
    texts
}

#[test]
fn what_is_salvaged_is_taken_by_every_verb() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    for (case, name) in [
        ("task/valid.json", "T-1.json"),
        (
            "sitebuilder/valid.json",
            "progress/checkpoints/media-T210.json",
        ),
        ("agent-session/valid.json", "primary.json"),
        ("build-pipeline/valid-in-progress.json", "PRD-001.json"),
        (
            "story-pipeline/valid-stage-2.json",
            "checkpoint-SHOP-12.json",
        ),
        ("story-pipeline-state/valid.json", ".pipeline/state.json"),
        (
            "builder-state/valid-active-prd.json",
            "docs/builder-state.json",
        ),
    ] {
        let whole: Value =
            serde_json::from_str(&fs::read_to_string(cases.join(case)).unwrap()).unwrap();
        let mut written = 0;
        for text in damaged(&whole.to_string()) {
            if serde_json::from_str::<Value>(&text).is_ok() {
                continue;
            }
            let project = Project::with(name, &text);
            let run = project.ckpt(&["recover", "--salvage", name]);
            if ![0, 1].contains(&run.code) {
                assert!([3, 4].contains(&run.code), "{text}\n{run:?}");
                assert_eq!(project.read(name), text);
                continue;
            }
            written += 1;
            assert_eq!(run.code, 1, "{text}\n{run:?}");
            let detected = project.expect(0, &["detect", "--json", name]).json();
            let format = case.split('/').next().unwrap();
            assert_eq!(detected[0]["format"], format, "{text}");
            for verb in ["show", "resume", "history"] {
                let run = project.ckpt(&[verb, name]);
                // A task whose state is lost is not resumed.
                let is_taken = [0, 1].contains(&run.code) || (verb == "resume" && run.code == 4);
                assert!(is_taken, "{verb}: {text}\n{run:?}");
            }
        }
        assert!(written > 3, "{case}: {written}");
    }
}

#[test]
fn an_archive_is_forgotten_also_where_only_the_files_were_copied() {
    let project = Project::new();
    let store = ["--store", "c", "--key", "T"];
    let run = |verb: &[&str]| project.expect(0, &[verb, &store[..]].concat());
    run(&["start", "--agent", "a", "--plan", "x"]);
    let archived = run(&["archive", "--as", "aborted"]).out;
    let archived = archived.trim_end().strip_prefix("archived as ").unwrap();
    // As in a git clone.
    std::fs::remove_dir_all(project.path("c/.agent-checkpoint")).unwrap();
    assert!(project.path(archived).exists());
    let forgotten = run(&["forget", "--apply"]).out;
    assert!(forgotten.starts_with("removed for good"), "{forgotten}");
    assert!(!project.path(archived).exists());
    // For a task that never existed no folder is created.
    let names = project.names();
    project.expect(0, &["forget", "--apply", "--store", "none", "--key", "T"]);
    assert_eq!(project.names(), names);
}
