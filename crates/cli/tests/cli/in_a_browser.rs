//! The page of `ckpt report` in Chromium: the browser refuses nothing, the page requests nothing, and no text is cut
//! off or hard to read.
//!
//! `UPDATE_SCREENSHOTS=1` updates the pictures of docs/cli.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::html::parse;
use crate::project::Project;
use crate::reporting_html::{HOSTILE, fleet, hostile, report, whole};

/// The browser, which must be installed in CI.
fn browser() -> Option<&'static str> {
    let is_there = |name: &&&str| {
        let mut command = Command::new(name);
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // Only this browser can have a window as narrow as a phone's.
    let names = ["chromium-headless-shell", "chrome-headless-shell"];
    let found = names.iter().find(is_there).copied();
    assert!(
        found.is_some() || std::env::var("CI").as_deref() != Ok("true"),
        "chromium-headless-shell is not installed, which CI needs"
    );
    if found.is_none() {
        // Written directly, because the test harness hides the output of passing tests.
        let line = "SKIPPED tests of the page of `ckpt report` in a browser (chromium-headless-shell is not installed)\n";
        let _seen = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }
    found
}

/// The result of a run of the browser.
struct Visit {
    /// The document after loading.
    dom: String,
    /// The log of the browser.
    log: String,
}

impl Visit {
    /// Log lines that the page caused.
    fn complaints(&self) -> Vec<&str> {
        let is_of_page = |line: &&str| {
            ["CONSOLE", "Refused to", "net::", "net_error"]
                .iter()
                .any(|word| line.contains(word))
        };
        self.log.lines().filter(is_of_page).collect()
    }
}

/// A colour scheme and a size.
const DESKTOP: [&str; 2] = [
    "--blink-settings=preferredColorScheme=1",
    "--window-size=1000,1000",
];
const PHONE: [&str; 2] = [
    "--blink-settings=preferredColorScheme=0",
    "--window-size=390,844",
];

/// Opens a page with a new browser profile. All network requests go to a closed port.
fn visit(browser: &str, page: &Path, fragment: &str, more: &[&str]) -> Visit {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path());
    command.args([
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
    ]);
    command.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]);
    command.args([
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--virtual-time-budget=2000",
    ]);
    command.args([
        "--proxy-server=127.0.0.1:9",
        "--proxy-bypass-list=<-loopback>",
    ]);
    command.args(["--enable-logging=stderr", "--v=0"]);
    command.arg(format!(
        "--user-data-dir={}",
        home.path().join("profile").display()
    ));
    command
        .args(more)
        .arg(format!("file://{}{fragment}", page.display()));
    let (out, log) = (home.path().join("out"), home.path().join("log"));
    command.stdin(Stdio::null());
    command
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(30) {
            let _ = child.kill();
            panic!(
                "the browser does not end: {}",
                fs::read_to_string(&log).unwrap()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = |path: &PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    Visit {
        dom: text(&out),
        log: text(&log),
    }
}

/// Measurements of the page, taken by a script in a copy of the page without its policy.
fn measure(browser: &str, project: &Project, page: &str, how: &[&str]) -> Value {
    let policy = page
        .lines()
        .find(|line| line.contains("Content-Security-Policy"))
        .unwrap();
    let script = format!("<script>{}</script></body>", include_str!("probe.js"));
    let copy = page.replace(policy, "").replace("</body>", &script);
    project.write("measured.html", copy);
    let visit = visit(
        browser,
        &project.path("measured.html"),
        "",
        &[how, &["--dump-dom"]].concat(),
    );
    let title = visit
        .dom
        .split_once("<title>")
        .unwrap()
        .1
        .split_once("</title>")
        .unwrap()
        .0;
    serde_json::from_str(
        &title
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
    .unwrap_or_else(|error| panic!("{error}: {title}\n{}", visit.log))
}

#[test]
fn the_page_is_shown_as_it_is_written_and_asks_for_nothing() {
    let Some(browser) = browser() else { return };
    let project = fleet("checkpoints");
    for (page, link) in [
        (whole(&project), "#t2"),
        (report(&hostile(HOSTILE), 0, &["checkpoints"]), ""),
    ] {
        project.write("report.html", &page);
        let visit = visit(browser, &project.path("report.html"), link, &["--dump-dom"]);
        assert_eq!(visit.complaints(), Vec::<&str>::new());
        let (_, dom) = visit.dom.split_once("<html").unwrap();
        let dom =
            parse(&format!("<!doctype html>\n<html{}", dom.trim_end()).replace("&nbsp;", " "));
        let written = parse(&page);
        let squeezed = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(dom.text()), squeezed(written.text()));
        let mut names = [Vec::new(), Vec::new()];
        dom.each(&mut |node| names[0].push(node.name().to_owned()));
        written.each(&mut |node| names[1].push(node.name().to_owned()));
        names
            .iter_mut()
            .for_each(|names| names.retain(|name| !name.is_empty()));
        assert_eq!(names[0], names[1]);
        if !link.is_empty() {
            // The second task is collapsed until it is opened.
            let is_open =
                |page: &crate::html::Node| page.all("details")[1].attribute("open").is_some();
            assert!(!is_open(&written) && is_open(&dom), "a link opens its task");
        }
    }
}

#[test]
fn a_page_that_asks_for_something_is_told_apart() {
    let Some(browser) = browser() else { return };
    let project = fleet("checkpoints");
    let more = "<script>1</script><img src=\"http://127.0.0.1:9/x.png\"></body>";
    project.write("bad.html", whole(&project).replace("</body>", more));
    let complaints = visit(browser, &project.path("bad.html"), "", &["--dump-dom"]);
    assert!(complaints.complaints().len() >= 2, "{}", complaints.log);
}

#[test]
fn the_page_fits_a_phone_and_is_read_in_the_dark() {
    let Some(browser) = browser() else { return };
    let project = fleet("checkpoints");
    let page = whole(&project);
    let hostile = report(&hostile(HOSTILE), 0, &["checkpoints"]);
    for (page, how, width, is_dark) in [
        (&page, DESKTOP, 1000, false),
        (&page, PHONE, 390, true),
        (&hostile, PHONE, 390, true),
    ] {
        let found = measure(browser, &project, page, &how);
        assert_eq!(found["width"], width, "{found}");
        assert!(
            found["needs"].as_f64() <= Some(f64::from(width)),
            "is cut off: {found}"
        );
        assert!(
            found["widest"][0].as_f64() <= Some(f64::from(width)),
            "is cut off: {found}"
        );
        assert!(
            found["contrast"][0].as_f64() >= Some(4.5),
            "is hard to read: {found}"
        );
        assert_eq!(found["page"][0].as_f64() < Some(128.0), is_dark, "{found}");
    }
    if std::env::var_os("UPDATE_SCREENSHOTS").is_some() {
        let task = report(&project, 0, &["checkpoints/dark-mode.json"]);
        let tall = [PHONE[0], "--window-size=390,1330"];
        for (name, page, how) in [("light", &page, DESKTOP), ("phone", &task, tall)] {
            project.write("report.html", page);
            let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
            let file = docs.join(format!("report-{name}.png"));
            let picture = format!("--screenshot={}", file.display());
            visit(
                browser,
                &project.path("report.html"),
                "",
                &[&how[..], &[&picture]].concat(),
            );
        }
    }
}
