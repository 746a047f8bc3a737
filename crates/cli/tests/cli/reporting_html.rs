//! `ckpt report`: the HTML page.

use std::fs;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::html::{Node, parse};
use crate::project::{EXAMPLE, Project, TASK};

/// The present time of the fleet below.
pub(crate) const NOW: &str = "2026-03-02T11:00:00Z";

/// A fleet like a team's: tasks that are running, waiting, ended or handed over, one of them in another format.
pub(crate) fn fleet(store: &str) -> Project {
    let project = Project::new();
    let line = |time: &str, words: &[&str], key: &str, agent: &str, more: &[&str]| {
        let now = format!("2026-03-02T{time}:00Z");
        let common = [
            "--now", &now, "--store", store, "--key", key, "--agent", agent,
        ];
        let run = project.ckpt(&[words, &common, more].concat());
        assert!(run.code < 2, "{words:?}: {run:?}");
        run.out
    };
    let key = "dark-mode";
    let plan = [
        "start",
        "--plan",
        "Wire the toggle",
        "Write tests",
        "Document the setting",
    ];
    line("07:30", &plan, key, "ui-dev", &[]);
    line(
        "07:32",
        &["step", "start", "Wire the toggle"],
        key,
        "ui-dev",
        &[],
    );
    let decide = [
        "decide",
        "Use CSS custom properties",
        "--why",
        "no cost at run time",
    ];
    line("07:48", &decide, key, "ui-dev", &[]);
    let done = [
        "step",
        "done",
        "Wired the toggle to the theme",
        "--modified",
        "src/theme.tsx",
    ];
    line(
        "08:05",
        &done,
        key,
        "ui-dev",
        &["--created", "src/toggle.tsx"],
    );
    let claim = ["claim", "--for", "3h"];
    let claimed = line("09:40", &claim, key, "test-writer", &[]);
    let fence = ["--fence", claimed.trim()];
    line(
        "09:41",
        &["step", "start", "Write tests"],
        key,
        "test-writer",
        &fence,
    );
    let done = ["step", "done", "--created", "src/toggle.test.tsx"];
    line("10:29", &done, key, "test-writer", &fence);
    line(
        "10:31",
        &["step", "start", "Document the setting"],
        key,
        "test-writer",
        &fence,
    );
    line(
        "10:52",
        &["note", "the page is written, pictures are missing"],
        key,
        "test-writer",
        &fence,
    );

    let key = "checkout-rounding";
    let plan = [
        "start",
        "--plan",
        "Reproduce the wrong total",
        "Round once, at the end",
        "Write tests",
    ];
    line("08:10", &plan, key, "api-dev", &[]);
    line(
        "08:12",
        &["step", "start", "Reproduce the wrong total"],
        key,
        "api-dev",
        &[],
    );
    line(
        "08:40",
        &["step", "done", "--created", "tests/totals.rs"],
        key,
        "api-dev",
        &[],
    );
    line(
        "08:41",
        &["step", "start", "Round once, at the end"],
        key,
        "api-dev",
        &[],
    );

    let key = "search-index";
    line(
        "09:00",
        &[
            "start",
            "--plan",
            "Choose the fields",
            "Build the index",
            "Measure",
        ],
        key,
        "data-dev",
        &[],
    );
    line(
        "09:04",
        &["step", "start", "Choose the fields"],
        key,
        "data-dev",
        &[],
    );
    line("09:30", &["step", "done"], key, "data-dev", &[]);
    line(
        "09:31",
        &["step", "start", "Build the index"],
        key,
        "data-dev",
        &[],
    );
    let blocker = "The staging database has no copy of the orders";
    line("09:55", &["block", blocker], key, "data-dev", &[]);

    let key = "login-errors";
    line(
        "08:00",
        &[
            "start",
            "--plan",
            "List all messages",
            "Say what to do next",
        ],
        key,
        "ui-dev",
        &[],
    );
    line(
        "08:02",
        &["step", "start", "List all messages"],
        key,
        "ui-dev",
        &[],
    );
    line("08:20", &["step", "done"], key, "ui-dev", &[]);
    line(
        "08:21",
        &["step", "start", "Say what to do next"],
        key,
        "ui-dev",
        &[],
    );
    line(
        "08:44",
        &["step", "done", "--modified", "src/login.tsx"],
        key,
        "ui-dev",
        &[],
    );
    line("08:45", &["complete"], key, "ui-dev", &[]);

    let key = "media-T210";
    let site = ["--format", "sitebuilder", "--task", "T210"];
    line(
        "10:00",
        &["start", "--plan", "logo", "photos", "captions"],
        key,
        "media",
        &site,
    );
    let site = ["--format", "sitebuilder"];
    line(
        "10:40",
        &["subtask", "done", "logo", "--file", "img/logo.svg"],
        key,
        "media",
        &site,
    );
    project
}

/// The report of a fleet, from a folder or a database.
pub(crate) fn report(project: &Project, code: i32, more: &[&str]) -> String {
    let words = ["report", "--html", "-", "--now", NOW];
    project.expect(code, &[&words, more].concat()).out
}

/// The report of the fleet above.
pub(crate) fn whole(project: &Project) -> String {
    report(
        project,
        1,
        &[
            "checkpoints",
            "--planned",
            "onboarding",
            "--expect",
            "reviewer",
        ],
    )
}

/// The timeline of a task: time, kind and text of each entry.
fn timeline(page: &Node, task: &str) -> Vec<(String, String, String)> {
    let sections = page.all("details");
    let of_task = sections.iter().find(|it| it.all("h3")[0].text() == task);
    let items = of_task
        .unwrap_or_else(|| panic!("no section {task}"))
        .all("li");
    let entries = items
        .iter()
        .filter(|item| item.attribute("class") != Some("day"));
    let text = |item: &Node, at: usize| item.children()[at].text();
    entries
        .map(|item| (text(item, 0), text(item, 1), text(item, 2)))
        .collect()
}

fn has(entries: &[(String, String, String)], time: &str, kind: &str, text: &str) {
    let is_it = |entry: &&(String, String, String)| {
        entry.0 == time && entry.1 == kind && entry.2.contains(text)
    };
    assert!(
        entries.iter().any(|entry| is_it(&entry)),
        "{time} {kind} {text}: {entries:#?}"
    );
}

#[test]
fn a_manager_finds_who_needs_help_and_what_happened() {
    for (store, place) in [
        ("checkpoints", "checkpoints"),
        ("sqlite:tasks.db", "sqlite:tasks.db"),
    ] {
        let project = fleet(store);
        let text = report(
            &project,
            1,
            &[place, "--planned", "onboarding", "--expect", "reviewer"],
        );
        let page = parse(&text);
        let list = page.all("section")[0].text();
        for text in [
            "checkout-rounding",
            "stalled",
            "blocked",
            "no copy of the orders",
            "missing",
            "late",
        ] {
            assert!(list.contains(text), "{text}: {list}");
        }
        assert!(
            !list.contains("dark-mode") && !list.contains("login-errors"),
            "{list}"
        );
        let rows = page.all("tr");
        assert_eq!(rows.len(), 8);
        let row = rows
            .iter()
            .find(|row| row.text().contains("dark-mode"))
            .unwrap();
        assert_eq!(row.all("progress")[0].attribute("value"), Some("66"));
        assert!(
            row.text().contains("active") && row.text().contains("66% (2/3)"),
            "{}",
            row.text()
        );

        let entries = timeline(&page, "dark-mode");
        has(&entries, "07:32", "begun", "Wire the toggle");
        has(&entries, "07:48", "decided", "no cost at run time");
        has(&entries, "08:05", "done", "src/toggle.tsx, src/theme.tsx");
        has(
            &entries,
            "08:05",
            "gap",
            "1 h 36 min of silence, limit 1 h (08:05 to 09:41)",
        );
        has(&entries, "09:41", "hand-over", "ui-dev → test-writer");
        has(
            &entries,
            "10:29",
            "late",
            "48 min after the last signal, limit 30 min",
        );
        has(&entries, "10:31", "begun", "Document the setting");
        let times: Vec<&String> = entries.iter().map(|entry| &entry.0).collect();
        assert_eq!(times.first().unwrap().as_str(), "07:30");
        let steps = entries.iter().filter(|entry| entry.1 == "done").count();
        assert_eq!(steps, 2, "each step once: {entries:#?}");
        let stalled = timeline(&page, "checkout-rounding");
        has(&stalled, "08:41", "gap", "until now");
    }
}

#[test]
fn nothing_on_the_page_asks_for_anything() {
    let text = whole(&fleet("checkpoints"));
    let page = parse(&text);
    for name in [
        "script", "img", "link", "iframe", "object", "form", "base", "svg",
    ] {
        assert!(page.all(name).is_empty(), "{name}");
    }
    page.each(&mut |node| {
        for (name, value) in node.attributes() {
            let is_ours = match name.as_str() {
                "href" => value.starts_with("#t"),
                name => !name.starts_with("on") && name != "style" && name != "src",
            };
            assert!(is_ours, "{name}={value}");
        }
    });
    let metas = page.all("meta");
    let find = |key: &str, name: &str| {
        let meta = metas.iter().find(|meta| meta.attribute(key) == Some(name));
        meta.and_then(|meta| meta.attribute("content"))
            .unwrap_or_default()
    };
    assert_eq!(find("name", "color-scheme"), "light dark");
    assert_eq!(
        find("name", "viewport"),
        "width=device-width, initial-scale=1"
    );
    let style = text
        .split_once("<style>")
        .unwrap()
        .1
        .split_once("</style>")
        .unwrap()
        .0;
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        base64(style)
    );
    assert_eq!(find("http-equiv", "Content-Security-Policy"), policy);
    // Every link has a target, and every id is unique.
    let mut ids = Vec::new();
    page.each(&mut |node| ids.extend(node.attribute("id").map(str::to_owned)));
    let known = ids.len();
    for link in page.all("a") {
        let id = &link.attribute("href").unwrap()[1..];
        assert!(ids.iter().any(|known| known == id), "{id}");
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), known);
}

fn base64(text: &str) -> String {
    let bits: Vec<u8> = Sha256::digest(text)
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
        .collect();
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut base: String = bits
        .chunks(6)
        .map(|six| {
            (0..6).fold(0, |sum, at| {
                sum << 1 | usize::from(six.get(at).copied().unwrap_or(0))
            })
        })
        .map(|at| char::from(letters.as_bytes()[at]))
        .collect();
    while !base.len().is_multiple_of(4) {
        base.push('=');
    }
    base
}

/// A hostile text that an agent may write into a checkpoint.
pub(crate) const HOSTILE: &str = r#"</style><script>alert(1)</script>\" onload=x \u202egnp\u0007\u0000\u2028{{ 7*7 }}<!-- ' \ud83d\ude00"#;

/// A task with this text in each of its members.
pub(crate) fn hostile(text: &str) -> Project {
    let json = TASK
        .replace("Made a", text)
        .replace("src/a.rs", text)
        .replace("Make b", text)
        .replace("Make c", &format!("{text}{}", "long".repeat(5000)))
        .replace("\"dev\"", &format!("\"{text}\""))
        .replace("\"implementation\"", &format!("\"{text}\""))
        .replace("\"2026-03-02T08:00:00Z\"", &format!("\"{text}\""))
        .replace(
            "\"decisions\": []",
            &format!(r#""decisions": [{{"decision": "{text}", "rationale": "{text}"}}]"#),
        )
        .replace("\"blockers\": []", &format!(r#""blockers": ["{text}"]"#));
    Project::with("checkpoints/t.json", json)
}

#[test]
fn texts_of_others_are_texts_and_hide_nothing() {
    let project = hostile(HOSTILE);
    let text = report(&project, 0, &["checkpoints"]);
    assert!(
        !text.contains("<script")
            && !text.contains("<!--")
            && text.matches("</style>").count() == 1
    );
    assert!(text.matches("&lt;script&gt;").count() >= 8, "{text}");
    for hidden in ['\u{202e}', '\u{7}', '\0', '\u{2028}'] {
        assert!(!text.contains(hidden), "{hidden:?}");
    }
    let page = parse(&text);
    let shown = page.text();
    assert!(
        shown.contains(r"\u{202e}gnp\u{7}") && shown.contains("{{ 7*7 }}") && shown.contains('😀'),
        "{shown}"
    );
    assert!(shown.contains("its time is written “</style>"), "{shown}");
    page.each(&mut |node| {
        assert!(node.attributes().iter().all(|(name, _)| name != "onload"));
    });
    // No single text fills the page.
    assert!(text.len() < 60_000, "{}", text.len());
    // Half of a surrogate pair is no text.
    let broken = hostile(r"half \ud83d");
    assert!(
        parse(&report(&broken, 1, &["checkpoints"]))
            .text()
            .contains("checkpoints")
    );
}

#[test]
fn secrets_are_shown_only_when_asked_for() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    // After the point at which the shown text of a change is cut.
    let padding = "x ".repeat(50);
    let project = hostile(&format!("{padding}{secret}"));
    let at = [
        "--store",
        "checkpoints/t.json",
        "--now",
        "2026-03-02T08:30:00Z",
    ];
    let step = format!("{padding}{secret} again");
    project.expect(0, &[&["step", "start", &step], &at[..]].concat());
    project.expect(0, &[&["step", "done", "other"], &at[..]].concat());
    let text = report(&project, 1, &["checkpoints"]);
    assert!(
        !text.contains("ghp_") && text.contains("[redacted: github-token]"),
        "{text}"
    );
    let text = report(&project, 1, &["checkpoints", "--show-secrets"]);
    assert!(text.contains(&secret));
}

#[test]
fn only_a_page_of_its_own_is_replaced() {
    let project = fleet("checkpoints");
    let words = [
        "report",
        "checkpoints",
        "--html",
        "report.html",
        "--now",
        NOW,
    ];
    let run = project.expect(1, &words);
    assert_eq!(run.out, "made report.html: 5 rows\n");
    let first = project.read("report.html");
    project.expect(
        0,
        &[
            "unblock",
            "--store",
            "checkpoints",
            "--key",
            "search-index",
            "--agent",
            "data-dev",
            "--now",
            NOW,
        ],
    );
    project.expect(1, &words);
    assert_ne!(project.read("report.html"), first);
    let names = project.names();
    assert_eq!(names.len(), 2, "{names:?}");

    for other in ["", "notes", "<!doctype html>\n<p>my page"] {
        project.write("other.html", other);
        let run = project.expect(4, &["report", "checkpoints", "--html", "other.html"]);
        assert!(
            run.error()
                .contains("other.html: exists and is not a page of `ckpt report`"),
            "{run:?}"
        );
        assert_eq!(project.read("other.html"), other);
    }
    fs::create_dir(project.path("folder")).unwrap();
    project.expect(4, &["report", "checkpoints", "--html", "folder"]);
    // If the page cannot be written, nothing is read.
    let run = project.expect(4, &["report", "nowhere", "--html", "other.html"]);
    assert!(run.error().starts_with("other.html"), "{run:?}");
    let run = project.expect(2, &["report", "checkpoints", "--html", "no/folder.html"]);
    assert!(run.error().contains("cannot open no;"), "{run:?}");
}

#[test]
fn the_exit_code_is_that_of_status() {
    let project = Project::with("a/t.json", TASK);
    let now = |time| ["--now", time];
    for (code, time) in [(0, "2026-03-02T08:06:00Z"), (1, "2026-03-02T11:00:00Z")] {
        for verb in [&["status", "a"][..], &["report", "a", "--html", "-"]] {
            project.expect(code, &[verb, &now(time)].concat());
        }
    }
    project.write("a/u.json", r#"{"schemaVersion": 1, "phase": "#);
    project.write("agent_checkpoints/secondary_b.json", "{\"agent_id\":");
    let run = project.expect(3, &["report", ".", "--html", "-"]);
    assert!(run.out.contains("corrupt"), "{}", run.out);
    let run = project.expect(2, &["report", ".", "nowhere", "--html", "-"]);
    assert!(parse(&run.out).all("section")[0].text().contains("nowhere"));
    assert!(run.err.contains("ckpt: nowhere: "), "{}", run.err);
    project.expect(2, &["report", "--html", "-"]);
    project.expect(2, &["report", "a"]);
    project.expect(2, &["report", "a", "--html", "-", "--json"]);
    let run = project.expect(3, &["report", ".", "--html", "all.html", "--json"]);
    assert_eq!(run.json()["html"], "all.html");
    assert_eq!(
        project.expect(3, &["report", ".", "--html", "-", "-q"]).out,
        ""
    );
    // A fleet without tasks still gets a page.
    fs::create_dir(project.path("empty")).unwrap();
    let run = project.expect(0, &["report", "empty", "--html", "-"]);
    assert!(parse(&run.out).text().contains("no checkpoints"));
}

#[test]
fn every_slot_of_a_host_file_is_a_task() {
    let project = Project::with("builder-state.json", EXAMPLE);
    let page = parse(
        &project
            .ckpt(&["report", "builder-state.json", "--html", "-"])
            .out,
    );
    let status = project
        .ckpt(&["status", "builder-state.json", "--json"])
        .json();
    let rows = status["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    assert_eq!(page.all("details").len(), rows.len());
}

#[test]
fn what_has_no_time_says_so() {
    let json = TASK
        .replace(r#", "timestamp": "2026-03-02T08:00:00Z""#, "")
        .replace(
            r#""decisions": []"#,
            r#""decisions": [{"decision": "Keep it", "timestamp": "N/A"}]"#,
        );
    let project = Project::with("checkpoints/t.json", json);
    let page = parse(&report(&project, 1, &["checkpoints"]));
    let entries = timeline(&page, "t");
    has(&entries, "no time", "done", "Made a");
    has(
        &entries,
        "no time",
        "decided",
        "Keep it (its time is written “N/A”)",
    );
    // A time about which nothing is known is no silence.
    assert!(
        entries
            .iter()
            .all(|entry| entry.1 != "gap" || entry.2.contains("until now")),
        "{entries:?}"
    );
}

#[test]
fn a_time_that_is_ahead_of_the_clock_is_marked_and_ends_no_silence() {
    let json = TASK.replace("08:00:00Z", "23:00:00Z");
    let project = Project::with("checkpoints/t.json", json);
    let words = [
        "report",
        "checkpoints",
        "--html",
        "-",
        "--now",
        "2026-03-02T08:10:00Z",
    ];
    let page = parse(&project.expect(0, &words).out);
    let entries = timeline(&page, "t");
    has(&entries, "23:00", "done", "(ahead of the clock)");
    assert!(entries.iter().all(|entry| entry.1 != "gap"), "{entries:?}");
}

#[test]
fn what_was_declared_before_a_silence_counts() {
    let project = Project::new();
    let at = |time: &str, words: &[&str]| {
        let now = format!("2026-03-02T{time}:00Z");
        let common = [
            "--store",
            "checkpoints",
            "--key",
            "t",
            "--agent",
            "dev",
            "--now",
            &now,
        ];
        project.expect(0, &[words, &common].concat());
    };
    at("08:00", &["start", "--plan", "a", "b"]);
    at("08:01", &["step", "start", "a"]);
    at("08:02", &["block", "No account"]);
    at("10:00", &["unblock"]);
    at("10:01", &["step", "done"]);
    let page = parse(&report(&project, 1, &["checkpoints"]));
    let entries = timeline(&page, "t");
    has(&entries, "08:02", "blocked", "No account");
    has(&entries, "10:00", "unblocked", "No account");
    assert!(
        entries
            .iter()
            .all(|entry| entry.1 != "gap" && entry.0 != "10:00"
                || entry.1 == "unblocked"
                || entry.1 == "saved"),
        "{entries:?}"
    );
}

#[cfg(unix)]
#[test]
fn an_effect_in_doubt_is_to_be_looked_at() {
    let project = Project::with("t.json", TASK);
    let once = ["once", "deploy", "--store", "t.json", "--", "sh", "-c"];
    project.expect(0, &[&once[..], &["true"]].concat());
    let once = ["once", "mail", "--store", "t.json", "--", "sh", "-c"];
    project.ckpt(&[&once[..], &["kill -9 $$"]].concat());
    let page = parse(&project.expect(1, &["report", "t.json", "--html", "-"]).out);
    let entries = timeline(&page, "t");
    assert!(
        entries
            .iter()
            .any(|it| it.1 == "effect" && it.2.contains("deploy: took place")),
        "{entries:?}"
    );
    assert!(
        entries
            .iter()
            .any(|it| it.1 == "effect" && it.2.contains("mail: it is not recorded")),
        "{entries:?}"
    );
    assert!(
        page.all("section")[0]
            .text()
            .contains("it is not recorded whether these effects took place: mail")
    );
}

/// Asserts that the timeline of the task `t` has such an entry, at any time.
#[cfg(unix)]
#[track_caller]
fn tells(page: &Node, kind: &str, text: &str) {
    let entries = timeline(page, "t");
    let mut of_kind = entries.iter().filter(|entry| entry.1 == kind);
    assert!(
        of_kind.any(|entry| entry.2.contains(text)),
        "{kind} {text}: {entries:#?}"
    );
}

#[cfg(unix)]
#[test]
fn what_waits_for_a_person_is_to_be_looked_at() {
    let project = Project::with("t.json", TASK);
    project.write("src/a.rs", "a");
    let page = |project: &Project| parse(&project.ckpt(&["report", "t.json", "--html", "-"]).out);
    let ask = ["ask", "deploy", "--store", "t.json", "--", "make", "deploy"];
    project.expect(0, &ask);
    let asked = page(&project);
    let list = asked.all("section")[0].text();
    for text in [
        "a person must decide first",
        "may this be done, once",
        "make deploy",
    ] {
        assert!(list.contains(text), "{text}: {list}");
    }
    assert!(
        asked.text().contains("wait: A person must first decide"),
        "{}",
        asked.text()
    );
    tells(&asked, "approval", "deploy: asked for");

    project.expect(0, &["approve", "deploy", "t.json", "--by", "Ann"]);
    project.ckpt(&["prove", "Made a", "--store", "t.json", "--", "false"]);
    let approved = page(&project);
    let list = approved.all("section")[0].text();
    assert!(!list.contains("may this be done"), "{list}");
    tells(&approved, "approval", "decided by Ann");
    tells(&approved, "proof", "Made a: the proof failed");
}

#[cfg(unix)]
#[test]
fn a_poisoned_task_is_to_be_looked_at() {
    let project = Project::with("t.json", TASK);
    for agent in ["ann", "bob", "cyd", "dan", "eve"] {
        project.expect(0, &["claim", "t.json", "--agent", agent, "--take-over"]);
    }
    let now = ["--now", "2026-03-02T08:06:00Z"];
    let words = [&["report", "t.json", "--html", "-"][..], &now].concat();
    let page = parse(&project.ckpt(&words).out);
    let list = page.all("section")[0].text();
    assert!(
        list.contains("poisoned") && list.contains("Poisoned: 3 attempts in a row"),
        "{list}"
    );
    assert!(page.text().contains("refuse: Poisoned"), "{}", page.text());
    tells(&page, "attempt", "the attempt of ann ended without success");
}

/// The time limit is for a test build, which is several times slower than a release build.
#[test]
fn a_page_of_a_thousand_tasks_stays_small() {
    let project = Project::new();
    let step = |at: usize| {
        format!(
            r#"{{ "step": "{}", "timestamp": "2026-03-02T{:02}:{:02}:00Z" }}"#,
            format!("Step {at} of many, with some words & a <tag> ").repeat(10),
            at / 60,
            at % 60
        )
    };
    let steps: Vec<String> = (0..30).map(step).collect();
    let (_, rest) = TASK.split_once(r#"    { "step": "Made a", "#).unwrap();
    let (_, rest) = rest.split_once("\n").unwrap();
    let start =
        "{\n  \"schemaVersion\": 1,\n  \"phase\": \"implementation\",\n  \"completedSteps\": [\n";
    let task = format!("{start}{}\n{rest}", steps.join(",\n"));
    for number in 0..1000 {
        project.write(&format!("checkpoints/task-{number}.json"), &task);
    }
    let began = Instant::now();
    let text = report(&project, 1, &["checkpoints"]);
    assert!(text.len() < 10_000_000, "{}", text.len());
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(text.matches(" earlier ones are not shown.").count(), 1000);
    // A single task gets more entries, but not all.
    let task = format!("{start}{}\n{rest}", vec![steps.join(",\n"); 10].join(",\n"));
    project.write("one/t.json", &task);
    let page = parse(&report(&project, 1, &["one"]));
    let entries = timeline(&page, "t");
    assert_eq!(entries.len(), 200);
}
