//! `ckpt ask`, `ckpt approve`, `ckpt deny` and `ckpt approved`.

#![cfg(unix)]

use std::fs;

use crate::project::{Project, Run, TASK};

const OF: [&str; 2] = ["--store", "t.json"];

/// A command line of this verb for the deployment, which is a shell script.
fn deploy<'a>(verb: &'a str, more: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [&[verb, "deploy"], more, &OF, &["--", "sh", "-c", script]].concat()
}

const DEPLOY: &str = "echo done | tee -a outbox; exit 3";

fn deployed(project: &Project) -> usize {
    let path = project.path("outbox");
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// The printed command for a decision (`approve` or `deny`), split into words.
fn offered(run: &Run, verb: &str) -> Vec<String> {
    let line = run
        .err
        .split('`')
        .find(|code| code.starts_with(&format!("ckpt {verb} ")));
    let line = line.unwrap_or_else(|| panic!("no line of `{verb}`: {run:?}"));
    let words = line.split_whitespace().skip(1);
    words.map(|word| word.replace("NAME", "Ann")).collect()
}

#[track_caller]
fn take(project: &Project, code: i32, words: &[String]) -> Run {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    project.expect(code, &words)
}

#[test]
fn a_command_runs_once_after_a_person_has_approved_it() {
    let project = Project::with("t.json", TASK);
    let look = ["approved", "deploy", OF[0], OF[1]];
    let never = project.expect(4, &look);
    assert!(
        never.error().contains(
            "no agent has asked for the approval of \"deploy\"; ask for it with `ckpt ask`"
        ),
        "{never:?}"
    );
    let asked = project.expect(0, &deploy("ask", &["--why", "the fix is urgent"], DEPLOY));
    assert!(
        asked.out.starts_with("pending ")
            && asked
                .out
                .contains("why: \"the fix is urgent\"): sh -c \"echo done | tee")
            && asked.out.contains("\n  sha256:"),
        "{asked:?}"
    );
    project.expect(1, &look);
    let early = project.expect(125, &deploy("approved", &[], DEPLOY));
    assert!(early.error().contains("\"deploy\" is pending"), "{early:?}");

    let waits = project.expect(4, &["resume", "t.json"]);
    assert!(
        waits.out.is_empty() && waits.err.contains("question: ckpt asks, until "),
        "{waits:?}"
    );
    assert!(
        waits
            .err
            .contains("A person must first decide on \"deploy\"; then run `ckpt resume` again"),
        "{waits:?}"
    );
    let plan = project.expect(4, &["resume", "t.json", "--json"]).json();
    assert_eq!(plan["decision"], "wait");
    let shown = project.expect(0, &["show", "t.json"]);
    assert!(shown.out.contains("Approvals\n  - pending "), "{shown:?}");

    // A person runs a printed line, and sees what was approved.
    let words = offered(&waits, "approve");
    assert_eq!(words, offered(&shown, "approve"));
    let approved = take(&project, 0, &words);
    assert!(
        approved.out.starts_with("approved ") && approved.out.contains("(Ann, until "),
        "{approved:?}"
    );
    assert!(
        approved.out.contains("echo done") && approved.out.contains("sha256:"),
        "{approved:?}"
    );
    project.expect(0, &look);
    let other = project.expect(125, &deploy("approved", &[], "echo more >> outbox"));
    assert!(
        other.error().contains("asked for another action (sha256:"),
        "{other:?}"
    );
    assert_eq!(deployed(&project), 0);
    project.expect(0, &["resume", "t.json", "--exit-zero"]);

    for _ in 0..2 {
        assert_eq!(
            project.expect(3, &deploy("approved", &[], DEPLOY)).out,
            "done\n"
        );
    }
    assert_eq!(deployed(&project), 1);
    project.expect(4, &look);
    // An effect that took place is not asked for again.
    let again = project.expect(0, &deploy("ask", &[], DEPLOY));
    assert!(
        again.err.contains("no person is asked again") && again.out.starts_with("consumed "),
        "{again:?}"
    );
    let other = project.expect(4, &deploy("ask", &[], "echo another"));
    assert!(other.error().contains("for another action"), "{other:?}");
    project.expect(0, &["once", "mail", "--store", "t.json", "--", "true"]);
    let begun = project.expect(4, &["ask", "mail", "--store", "t.json", "--", "true"]);
    assert!(begun.error().contains("without an approval"), "{begun:?}");
    let late = take(&project, 4, &words);
    assert!(late.error().contains("was consumed already"), "{late:?}");
    let json = project.expect(0, &["show", "t.json", "--json"]).json();
    assert_eq!(json["approvals"][0]["status"], "consumed");
}

#[test]
fn what_is_denied_expired_or_asked_anew_does_not_run() {
    let project = Project::with("t.json", TASK);
    let asked = project.expect(0, &deploy("ask", &[], DEPLOY));
    let approve = offered(&asked, "approve");
    let deny = offered(&asked, "deny");
    take(&project, 0, &approve);
    let denied = take(
        &project,
        0,
        &[&deny[..], &["--because".into(), "not on a Friday".into()]].concat(),
    );
    assert!(
        denied.out.contains("(Ann, because \"not on a Friday\")"),
        "{denied:?}"
    );
    let no = project.expect(125, &deploy("approved", &[], DEPLOY));
    assert!(no.error().contains("was denied by Ann"), "{no:?}");
    project.expect(4, &["approved", "deploy", OF[0], OF[1]]);
    let resume = project.ckpt(&["resume", "t.json"]);
    assert!(
        resume
            .err
            .contains("Denied by Ann (\"not on a Friday\"), so do not do it"),
        "{resume:?}"
    );
    take(&project, 4, &approve);

    let again = project.expect(0, &deploy("ask", &["--for", "1h"], DEPLOY));
    let late = take(&project, 4, &approve);
    assert!(late.error().contains("was asked anew since"), "{late:?}");
    take(&project, 0, &offered(&again, "approve"));
    let later = [
        &["--now", "2099-01-01T00:00:00Z"],
        &deploy("approved", &[], DEPLOY)[..],
    ]
    .concat();
    let expired = project.expect(125, &later);
    assert!(
        expired.error().contains("\"deploy\" expired at "),
        "{expired:?}"
    );
    let other = project.expect(4, &deploy("ask", &[], "rm -r outbox"));
    assert!(
        other.error().contains("is approved for another action"),
        "{other:?}"
    );
    assert_eq!(deployed(&project), 0);
    project.expect(3, &deploy("approved", &[], DEPLOY));
}

#[test]
fn an_action_that_is_no_command_is_used_up() {
    let project = Project::with("t.json", TASK);
    let pay =
        |verb: &'static str, text: &'static str| [verb, "invoice", "--action", text, OF[0], OF[1]];
    project.expect(0, &pay("ask", "pay Ann 50 EUR"));
    project.expect(1, &pay("approved", "pay Ann 50 EUR"));
    project.expect(4, &pay("approved", "pay Ann 500 EUR"));
    project.expect(0, &["approve", "invoice", "t.json", "--by", "Ann"]);
    project.expect(4, &pay("approved", "pay Ann 500 EUR"));
    let used = project.expect(0, &pay("approved", "pay Ann 50 EUR"));
    assert!(used.out.starts_with("consumed "), "{used:?}");
    let twice = project.expect(4, &pay("approved", "pay Ann 50 EUR"));
    assert!(
        twice.error().contains("was consumed already, by ckpt"),
        "{twice:?}"
    );
}

#[test]
fn a_claim_is_of_the_agent_and_the_decision_of_the_person() {
    let project = Project::with("t.json", TASK);
    let fence = project
        .expect(0, &["claim", "t.json", "--agent", "one"])
        .out;
    let fence = fence.trim_end();
    let stranger = project.expect(4, &deploy("ask", &[], DEPLOY));
    assert!(stranger.error().contains("claimed by one"), "{stranger:?}");
    project.expect(
        0,
        &deploy("ask", &["--fence", fence, "--agent", "one"], DEPLOY),
    );
    project.expect(0, &["approve", "deploy", "t.json", "--by", "Ann"]);
    project.expect(125, &deploy("approved", &[], DEPLOY));
    project.expect(3, &deploy("approved", &["--fence", fence], DEPLOY));
}

#[test]
fn what_is_not_run_or_not_asked_says_so_in_its_exit_code() {
    let project = Project::with("t.json", TASK);
    for (code, words) in [
        (2, &["ask", "deploy", "--store", "t.json"][..]),
        (
            2,
            &[
                "ask", "deploy", "--action", "x", "--store", "t.json", "--", "true",
            ],
        ),
        (2, &["ask", "deploy", "--store", "none.json", "--", "true"]),
        (4, &["ask", " ", "--store", "t.json", "--", "true"]),
        (4, &["ask", "deploy", "--action", " ", "--store", "t.json"]),
        (
            2,
            &[
                "ask", "deploy", "--for", "0s", "--store", "t.json", "--", "true",
            ],
        ),
        (2, &["approve", "deploy", "t.json"]),
        (4, &["approve", "deploy", "t.json", "--by", "Ann"]),
        (2, &["approved", "--store", "t.json"]),
        (
            125,
            &["approved", "deploy", "--store", "t.json", "--", "true"],
        ),
        (
            125,
            &["approved", "deploy", "--store", "none.json", "--", "true"],
        ),
        (
            125,
            &["approved", "deploy", "--no-such-option", "--", "true"],
        ),
    ] {
        project.expect(code, words);
    }
    project.expect(0, &["ask", "deploy", "--store", "t.json", "--", "true"]);
    let blank = project.expect(4, &["approve", "deploy", "t.json", "--by", " "]);
    assert!(blank.error().contains("who decides is "), "{blank:?}");
}

#[test]
fn what_an_agent_asks_can_neither_hide_nor_tell_secrets() {
    let project = Project::with("t.json", TASK);
    let hostile = "true\nrm -r \u{202e}~ \u{1b}[2J # password=hunter2xyz";
    let why = "fine\u{1b}]0;x\u{7} ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let asked = project.expect(0, &deploy("ask", &["--why", why], hostile));
    let runs = [
        asked,
        project.expect(0, &["show", "t.json"]),
        project.expect(0, &["show", "t.json", "--json"]),
        project.expect(4, &["resume", "t.json"]),
        project.expect(4, &["resume", "t.json", "--json"]),
        project.expect(4, &["approve", "deploy", "t.json", "--by", "An\u{1b}n"]),
        project.expect(0, &["approve", "deploy", "t.json", "--by", "Ann"]),
        project.expect(0, &["approved", "deploy", "--store", "t.json"]),
    ];
    for run in &runs {
        let both = format!("{}{}", run.out, run.err);
        let hides = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
        assert!(!both.contains(hides) && !both.contains("\nrm -r"), "{both}");
        assert!(
            !both.contains("hunter2xyz") && !both.contains("ghp_0123"),
            "{both}"
        );
    }
    assert!(runs[1].out.contains("true\\nrm -r"), "{:?}", runs[1]);
}

#[test]
fn a_converted_checkpoint_has_the_approvals_of_its_task() {
    let project = Project::with("t.json", TASK);
    project.expect(0, &deploy("ask", &[], DEPLOY));
    project.expect(0, &["approve", "deploy", "t.json", "--by", "Ann"]);
    project.expect(
        0,
        &[
            "convert",
            "t.json",
            "--to",
            "builder-state",
            "--out",
            "b.json",
        ],
    );
    let run = [
        "approved", "deploy", "--store", "b.json", "--", "sh", "-c", DEPLOY,
    ];
    // An approval is used once, even though the converted checkpoint exists as well.
    let refused = project.expect(125, &run);
    assert!(refused.error().contains("ask anew"), "{refused:?}");
    project.expect(3, &deploy("approved", &[], DEPLOY));
    assert_eq!(deployed(&project), 1);
}

/// The result of a command without an approval, or with another command's approval, is never given as the result of an
/// approved one.
#[test]
fn another_command_than_was_approved_gets_no_answer() {
    let project = Project::with("t.json", TASK);
    project.expect(0, &deploy("ask", &[], DEPLOY));
    // Without its approval no command runs under this id.
    let without = project.expect(125, &deploy("once", &[], DEPLOY));
    assert!(
        without.error().contains("comes without its approval"),
        "{without:?}"
    );
    project.expect(0, &["approve", "deploy", "t.json", "--by", "Ann"]);
    project.expect(3, &deploy("approved", &[], DEPLOY));
    let again = project.expect(3, &deploy("approved", &[], DEPLOY));
    assert!(again.err.contains("nothing was run"), "{again:?}");
    let other = project.expect(125, &deploy("approved", &[], "echo other"));
    assert!(
        other
            .error()
            .contains("not with an approval of this command"),
        "{other:?}"
    );
    assert_eq!(deployed(&project), 1);
}

/// If it is killed at any time, `ckpt approved` runs its command at most once for each approval. Then the effect took
/// place, is in doubt, or the approval is unused.
#[cfg(target_os = "linux")]
#[test]
fn a_kill_at_any_time_runs_nothing_twice_and_nothing_that_is_not_approved() {
    use std::process::Stdio;
    use std::time::Duration;

    let project = Project::with("t.json", TASK);
    let (mut cut, mut whole) = (0, 0);
    for kill in 0..12_u64 {
        let id = format!("deploy {kill}");
        let script = format!("echo '{kill}' >> outbox");
        let words = ["--store", "t.json", "--", "sh", "-c", &script];
        project.expect(0, &[&["ask", &id], &words[..]].concat());
        project.expect(0, &["approve", &id, "t.json", "--by", "Ann"]);
        let run = [&["approved", &id], &words[..]].concat();
        let mut child = project
            .command()
            .args(&run)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(500 + kill * 2_500));
        child.kill().unwrap();
        child.wait().unwrap();
        // A command that was allowed to run continues without `ckpt`, so wait for it.
        let again = loop {
            let again = project.ckpt(&run);
            if !again.err.contains(" is at deploy ") {
                break again;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let took_place = project
            .path("outbox")
            .exists()
            .then(|| project.read("outbox"))
            .map_or(0, |text| {
                text.lines()
                    .filter(|line| *line == kill.to_string())
                    .count()
            });
        match again.code {
            0 => whole += 1,
            125 if again
                .err
                .contains("it is not recorded whether it took place") =>
            {
                cut += 1
            }
            _ => panic!("{again:?}"),
        }
        assert!(
            took_place <= 1 && (again.code != 0 || took_place == 1),
            "{again:?}"
        );
        project.expect(4, &["approved", &id, "--store", "t.json"]);
    }
    assert!(whole > 0, "{cut} of 12 were cut off");
}
