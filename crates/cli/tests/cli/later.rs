//! `--until`, `ckpt status --due`, and attempts without progress.

use crate::project::{EXAMPLE, Project, TASK};

const AT: &str = "2026-03-02T09:00:00Z";
const UNTIL: &str = "2026-03-02T10:00:00Z";
const AFTER: &str = "2026-03-02T10:30:00Z";

fn at<'a>(words: &[&'a str], now: &'a str) -> Vec<&'a str> {
    [words, &["--now", now]].concat()
}

#[test]
fn a_task_waits_until_its_time() {
    let project = Project::with("t.json", TASK);
    let limit = [
        "rate-limit",
        "half done",
        "--until",
        "2026-03-02T11:00:00+01:00",
        "--store",
        "t.json",
        "--agent",
        "dev",
    ];
    let told = project.expect(0, &at(&limit, AT));
    assert_eq!(
        told.out,
        "rate limit until 2026-03-02T10:00:00Z: half done\n"
    );
    // The format has no member for it.
    assert!(!project.read("t.json").contains("10:00:00"));

    let resume = project.expect(4, &at(&["resume", "t.json"], AT));
    assert!(
        resume.out.is_empty()
            && resume.err.contains(
                "Not before 2026-03-02T10:00:00Z (1 h from now): rate-limit by dev at 2026-03-02T09:00:00Z"
            ),
        "{resume:?}"
    );
    let json = project
        .expect(4, &at(&["resume", "t.json", "--json"], AT))
        .json();
    assert_eq!(json["decision"], "wait");
    let reasons = json["plan"]["reasons"].as_array().unwrap();
    let until = serde_json::json!({ "reason": "not-before", "until": UNTIL });
    assert!(reasons.contains(&until), "{reasons:?}");
    let shown = project.expect(0, &at(&["show", "t.json"], AT));
    assert!(shown.err.starts_with("note: wait: Not before"), "{shown:?}");
    project.expect(0, &at(&["doctor", "."], AT));

    project.expect(1, &at(&["resume", "t.json"], UNTIL));
    project.expect(0, &at(&["show", "t.json"], UNTIL));
}

#[test]
fn a_time_is_also_a_span_from_now() {
    let project = Project::with("t.json", TASK);
    for (span, time) in [
        ("35m", "2026-03-02T09:35:00Z"),
        ("1h30m", "2026-03-02T10:30:00Z"),
        ("1d", "2026-03-03T09:00:00Z"),
    ] {
        let limit = ["rate-limit", span, "--until", span, "--store", "t.json"];
        let told = project.expect(0, &at(&limit, AT));
        assert_eq!(told.out, format!("rate limit until {time}: {span}\n"));
    }
    // What is past by then is no time to wait for.
    let none = ["rate-limit", "--until", "0s", "--store", "t.json"];
    let told = project.expect(0, &at(&none, AT));
    assert!(told.err.contains("so the task does not wait"), "{told:?}");

    for wrong in ["soon", "90", "2026-03-02", "-2h"] {
        let until = format!("--until={wrong}");
        let told = project.expect(2, &["rate-limit", &until, "--store", "t.json"]);
        let expected = "a time is RFC 3339 with a zone, such as 2026-03-02T08:05:00Z; a span of time is \
                        numbers with their units, such as 90s, 15m, 2h, 30days or 1h30m";
        assert!(told.err.contains(expected), "{told:?}");
    }
    // A later year than 9999 is no RFC 3339.
    for far in [
        ["rate-limit", "--until", "1000000years", "--store", "t.json"].as_slice(),
        &["rate-limit", "--until", "8000years", "--store", "t.json"],
        &["claim", "t.json", "--agent", "a", "--for", "8000years"],
        &[
            "ask",
            "a",
            "--action",
            "b",
            "--for",
            "8000years",
            "--store",
            "t.json",
        ],
    ] {
        let told = project.expect(2, far);
        assert!(told.err.contains("give a shorter span"), "{told:?}");
    }
    // Every option that takes a span reads it by the same rule.
    for words in [
        ["claim", "--agent=a", "--for=90"].as_slice(),
        &["prune", "--older-than=90"],
        &["status", "--late=90"],
        &["status", "--watch", "--every=90"],
        &["forget", "--ended=90"],
    ] {
        let told = project.expect(2, &[words, &["t.json"]].concat());
        assert!(told.err.contains("a span of time is numbers"), "{told:?}");
    }
}

#[test]
fn the_fleet_shows_who_waits_and_who_is_due() {
    let project = Project::with("a.json", TASK);
    project.write("b.json", TASK);
    project.write("c.json", TASK);
    let of = |file: &'static str, more: &[&'static str]| {
        [&["rate-limit", "--store", file], more].concat()
    };
    project.expect(0, &at(&of("a.json", &["--until", UNTIL]), AT));
    project.expect(0, &at(&of("b.json", &[]), AT));
    project.expect(0, &["claim", "c.json", "--agent", "dev", "--for", "1h"]);

    let table = project.expect(1, &at(&["status", "."], AFTER)).out;
    assert!(
        table.contains("3 late") || table.contains("stalled"),
        "{table}"
    );
    // Before its time the waiting agent is not late, but the silent one is.
    let table = project
        .expect(1, &at(&["status", "."], "2026-03-02T09:45:00Z"))
        .out;
    let line = |name: &str| table.lines().find(|line| line.contains(name)).unwrap();
    assert!(
        line("a.json").contains("waits until 2026-03-02T10:00:00Z"),
        "{table}"
    );
    assert!(line("b.json").contains("late"), "{table}");
    let markdown = project
        .expect(1, &at(&["status", ".", "--markdown"], AT))
        .out;
    assert!(
        markdown.contains("(waits until 2026-03-02T10:00:00Z)"),
        "{markdown}"
    );

    let due = |code, now| {
        let json = project
            .expect(code, &at(&["status", ".", "--due", "--json"], now))
            .json();
        let rows = json["rows"].as_array().unwrap();
        let files = rows.iter().map(|row| row["file"].as_str().unwrap());
        files
            .map(|file| file.trim_start_matches("./").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(due(1, "2026-03-02T09:45:00Z"), ["b.json"]);
    assert_eq!(due(1, AFTER), ["a.json", "b.json"]);
    let text = project.expect(1, &at(&["status", ".", "--due"], AFTER)).out;
    assert!(
        !text.contains("c.json") && text.contains("a.json: verify:"),
        "{text}"
    );
    // Only a waiting task: it needs no attention.
    let alone = Project::with("a.json", TASK);
    alone.expect(0, &at(&of("a.json", &["--until", UNTIL]), AT));
    alone.expect(0, &at(&["status", "."], "2026-03-02T09:45:00Z"));
    let none = alone
        .expect(0, &at(&["status", ".", "--due"], "2026-03-02T09:45:00Z"))
        .out;
    assert!(!none.contains("a.json"), "{none}");
}

#[test]
fn a_slot_waits_and_so_does_a_line_of_a_batch() {
    let project = Project::with("b.json", EXAMPLE);
    let batch = at(&["batch", "--store", "b.json"], AT);
    let line = r#"{"op":"rate-limit","until":"2026-03-02T10:00:00Z"}"#;
    let run = project.ckpt_given(&batch, line);
    assert_eq!(run.code, 0, "{run:?}");
    project.expect(4, &at(&["resume", "b.json"], AT));
    let table = project.expect(0, &at(&["status", "b.json"], AT)).out;
    assert!(table.contains("waits until"), "{table}");
    let wrong = project.ckpt_given(&batch, r#"{"op":"rate-limit","until":"later"}"#);
    assert!(
        wrong.code == 2 && wrong.err.contains("\"until\" is a time such as"),
        "{wrong:?}"
    );
    project.expect(2, &["rate-limit", "--until", "later", "--store", "b.json"]);
}

#[test]
fn a_task_that_was_tried_in_vain_is_refused_until_its_cause_is_mended() {
    let project = Project::with("t.json", TASK);
    let claim = |agent: &'static str| {
        let words = ["claim", "t.json", "--agent", agent, "--take-over"];
        let run = project.expect(0, &words);
        let warns = run.err.contains("Poisoned: 3 attempts in a row");
        assert_eq!(warns, agent == "eve", "{run:?}");
        run.out.trim().to_owned()
    };
    claim("ann");
    // Ordinary claims do not count as attempts.
    let ledger = ".agent-checkpoint/ledger/t.json.jsonl";
    assert!(!project.path(ledger).exists());
    for agent in ["bob", "cyd"] {
        claim(agent);
    }
    let fence = claim("dan");
    assert_eq!(project.read(ledger).lines().count(), 3);
    // The third attempt is running.
    let own = ["resume", "t.json", "--agent", "dan", "--fence", &fence];
    let under_way = project.ckpt(&own);
    assert!(under_way.code < 4, "{under_way:?}");
    project.expect(0, &["claim", "t.json", "--agent", "dan"]);
    assert_eq!(project.read(ledger).lines().count(), 3);

    let fence = claim("eve");
    let own = ["resume", "t.json", "--agent", "eve", "--fence", &fence];
    let refused = project.expect(4, &own);
    assert!(
        refused.err.contains(
            "Poisoned: 3 attempts in a row ended without progress (ended without a word at: Make b)"
        ),
        "{refused:?}"
    );
    // The message names the next step.
    assert!(
        refused.err.contains("--reset-attempts") && !refused.err.contains("another task"),
        "{refused:?}"
    );
    project.expect(0, &["release", "t.json", "--fence", &fence]);
    let json = project.expect(4, &["resume", "t.json", "--json"]).json();
    let reasons = json["plan"]["reasons"].as_array().unwrap();
    let is_it = |reason: &serde_json::Value| reason["reason"] == "poisoned";
    assert_eq!(reasons.iter().find(|it| is_it(it)).unwrap()["attempts"], 4);
    let shown = project.expect(1, &["show", "t.json"]);
    assert!(shown.err.contains("refuse: Poisoned"), "{shown:?}");
    let status = project.ckpt(&["status", "t.json", "--json"]).json();
    assert_eq!(status["rows"][0]["next"]["decision"], "refuse");
    assert_eq!(status["totals"]["resumable"], 0);
    for words in [
        &["status", "t.json"][..],
        &["status", "t.json", "--markdown"],
    ] {
        let table = project.ckpt(words).out;
        assert!(table.contains("poisoned"), "{table}");
    }
    let doctor = project.expect(1, &["doctor", "."]).out;
    assert!(
        doctor.contains("ckpt claim ./t.json --reset-attempts"),
        "{doctor}"
    );

    let reset = project.expect(0, &["claim", "t.json", "--reset-attempts"]);
    assert!(
        reset.out.starts_with("free;") && reset.err.contains("the attempts so far no longer count"),
        "{reset:?}"
    );
    assert!(project.ckpt(&["resume", "t.json"]).code < 4);
    let again = project.expect(
        0,
        &["claim", "t.json", "--agent", "fay", "--reset-attempts"],
    );
    assert!(again.err.contains("no attempts were counted"), "{again:?}");
}

#[test]
fn a_task_that_its_owner_lets_wait_is_not_poisoned() {
    let project = Project::with("t.json", TASK);
    let claim = ["claim", "t.json", "--agent", "dev", "--for", "1h"];
    let fence = project.expect(0, &claim).out.trim().to_owned();
    let limit = [
        "rate-limit",
        "--until",
        "2099-01-01T00:00:00Z",
        "--store",
        "t.json",
        "--agent",
        "dev",
        "--fence",
        &fence,
    ];
    project.expect(0, &limit);
    let doctor = project.ckpt(&["doctor", "."]);
    assert!(
        !doctor.out.contains("poisoned") && !doctor.out.contains("claimed the task"),
        "{doctor:?}"
    );
    let shown = project.expect(0, &["show", "t.json"]);
    assert!(
        !shown.err.contains("refuse: ") && !shown.err.contains("claimed the task"),
        "{shown:?}"
    );

    project.expect(0, &["release", "t.json", "--fence", &fence]);
    let shown = project.expect(0, &["show", "t.json"]);
    assert!(
        shown.err.contains("note: wait: Not before 2099-01-01"),
        "{shown:?}"
    );
    let doctor = project.ckpt(&["doctor", "."]).out;
    assert!(!doctor.contains("poisoned"), "{doctor}");
}
