//! Every way in which a file may change or seem to change, each judged with and without the record of the save.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::{Reporting, key, task};
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::staleness::{Basis, Fingerprints, Reason, Staleness, Tracking};
use agent_checkpoint::store::FileStore;
use agent_checkpoint::{CheckpointStoreExt, Checkpoints, Timestamp};

/// The file that every row is about.
const NAME: &str = "src/a.rs";

/// The file at the save, what happened to it afterwards, and the expected verdict.
struct Row {
    name: &'static str,
    /// The action before the save.
    before: fn(&Path),
    /// The action after the save.
    after: fn(&Path),
    with: &'static str,
    without: &'static str,
}

/// The time of the save in all rows: long past, so that no file gets that time by accident.
fn saved() -> SystemTime {
    Timestamp::parse("2026-03-02T10:00:00Z")
        .system_time()
        .unwrap()
}

fn write(path: &Path, text: &str, seconds: i64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    set(path, seconds * 1000);
}

/// Sets the modification time to this many milliseconds after the save.
fn set(path: &Path, milliseconds: i64) {
    let span = Duration::from_millis(milliseconds.unsigned_abs());
    let time = if milliseconds < 0 {
        saved() - span
    } else {
        saved() + span
    };
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

fn old(path: &Path) {
    write(path, "one", -60);
}

fn nothing(_: &Path) {}

const ROWS: &[Row] = &[
    Row {
        name: "nothing happened",
        before: old,
        after: nothing,
        with: "unchanged",
        without: "unchanged",
    },
    Row {
        name: "written in the second of the save, before it",
        before: |path| {
            old(path);
            set(path, 400);
        },
        after: nothing,
        with: "unchanged",
        without: "indeterminate",
    },
    Row {
        name: "changed in the second of the save, after it",
        before: old,
        after: |path| {
            fs::write(path, "two").unwrap();
            set(path, 600);
        },
        with: "modified",
        without: "indeterminate",
    },
    Row {
        name: "changed later",
        before: old,
        after: |path| write(path, "two", 90),
        with: "modified",
        without: "modified",
    },
    Row {
        name: "an older time with new contents of the same size",
        before: old,
        after: |path| write(path, "two", -60),
        with: "modified",
        without: "unchanged",
    },
    Row {
        name: "an older time with new contents of another size",
        before: old,
        after: |path| write(path, "longer", -3600),
        with: "modified",
        without: "unchanged",
    },
    Row {
        name: "touched",
        before: old,
        after: |path| set(path, 90_000),
        with: "touched",
        without: "modified",
    },
    Row {
        name: "deleted",
        before: old,
        after: |path| fs::remove_file(path).unwrap(),
        with: "missing",
        without: "missing",
    },
    Row {
        // Named but never seen, like a mistyped name, so it is not known to be unchanged.
        name: "never there",
        before: nothing,
        after: nothing,
        with: "indeterminate",
        without: "missing",
    },
    Row {
        name: "appeared",
        before: nothing,
        after: |path| write(path, "one", 90),
        with: "appeared",
        without: "modified",
    },
    Row {
        name: "recreated as it was",
        before: old,
        after: |path| {
            fs::remove_file(path).unwrap();
            write(path, "one", 90);
        },
        with: "touched",
        without: "modified",
    },
    Row {
        name: "recreated with other contents",
        before: old,
        after: |path| {
            fs::remove_file(path).unwrap();
            write(path, "two", 90);
        },
        with: "modified",
        without: "modified",
    },
    Row {
        name: "renamed over by the same, as a checkout does",
        before: old,
        after: |path| {
            write(&path.with_extension("new"), "one", 90);
            fs::rename(path.with_extension("new"), path).unwrap();
        },
        with: "touched",
        without: "modified",
    },
    Row {
        name: "renamed over by an older file with other contents",
        before: old,
        after: |path| {
            write(&path.with_extension("new"), "two", -7200);
            fs::rename(path.with_extension("new"), path).unwrap();
        },
        with: "modified",
        without: "unchanged",
    },
    Row {
        name: "its time lies in the future all along",
        before: |path| write(path, "one", 10 * 365 * 86400),
        after: nothing,
        with: "unchanged",
        without: "modified",
    },
    Row {
        name: "changed while its time lies in the future all along",
        before: |path| write(path, "one", 10 * 365 * 86400),
        after: |path| write(path, "two", 10 * 365 * 86400),
        with: "modified",
        without: "modified",
    },
    Row {
        name: "changed after the clock was set back a day",
        before: old,
        after: |path| write(path, "two", -86400),
        with: "modified",
        without: "unchanged",
    },
    Row {
        name: "a folder in its place",
        before: old,
        after: |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        },
        with: "modified",
        without: "indeterminate",
    },
    Row {
        name: "its folder became a file",
        before: old,
        after: |path| {
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path.parent().unwrap(), "x").unwrap();
        },
        with: "missing",
        without: "missing",
    },
    Row {
        name: "a folder all along",
        before: |path| fs::create_dir_all(path).unwrap(),
        after: nothing,
        with: "indeterminate",
        without: "indeterminate",
    },
];

#[cfg(unix)]
const LINKS: &[Row] = &[
    Row {
        name: "a link to the same contents in the project",
        before: old,
        after: |path| {
            fs::rename(path, path.with_extension("real")).unwrap();
            std::os::unix::fs::symlink("a.real", path).unwrap();
        },
        // The time of the inode changes with its name.
        with: "touched",
        without: "unchanged",
    },
    Row {
        name: "a link out of the project",
        before: old,
        after: |path| {
            fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("/etc/hostname", path).unwrap();
        },
        with: "unreadable",
        without: "unreadable",
    },
    Row {
        name: "its folder became a link out of the project",
        before: old,
        after: |path| {
            let folder = path.parent().unwrap();
            let outside = folder.parent().unwrap().parent().unwrap().join("outside");
            fs::rename(folder, &outside).unwrap();
            std::os::unix::fs::symlink(outside, folder).unwrap();
        },
        with: "unreadable",
        without: "unreadable",
    },
    Row {
        name: "a link to nothing",
        before: old,
        after: |path| {
            fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("nowhere", path).unwrap();
        },
        with: "missing",
        without: "missing",
    },
    Row {
        // A path that even root cannot inspect.
        name: "a link that leads round in a circle",
        before: old,
        after: |path| {
            fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("a.rs", path).unwrap();
        },
        with: "unreadable",
        without: "unreadable",
    },
    Row {
        name: "a pipe, which must not be read",
        before: old,
        after: |path| {
            fs::remove_file(path).unwrap();
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        },
        with: "unreadable",
        without: "unreadable",
    },
];
#[cfg(not(unix))]
const LINKS: &[Row] = &[];

fn state(files: &Staleness) -> &str {
    files.files()[0].state.as_str()
}

/// The record of each file, in its stored form.
fn recorded(prints: &Fingerprints) -> serde_json::Map<String, serde_json::Value> {
    let kept = serde_json::to_value(prints).unwrap();
    kept["files"].as_object().unwrap().clone()
}

#[test]
fn every_row_has_its_result_with_a_fingerprint_and_without() {
    let mut wrong = Vec::new();
    // The same instant in another spelling.
    for stamp in [
        "2026-03-02T10:00:00Z",
        "2026-03-02T12:00:00+02:00",
        "2026-03-02T02:30:00-07:30",
    ] {
        let stamp = Timestamp::parse(stamp);
        for row in ROWS.iter().chain(LINKS) {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("project");
            fs::create_dir(&root).unwrap();
            (row.before)(&root.join(NAME));
            let tracking = Tracking::new(&root);
            write(&root.join("other"), "x", -60);
            let prints = Fingerprints::take([NAME, "other"], &tracking, None);
            (row.after)(&root.join(NAME));
            let basis = Basis::new(Some(&stamp), None);
            let without = Staleness::judge([NAME], &basis, &tracking);
            let basis = basis.with_fingerprints(Some(&prints));
            let with = Staleness::judge([NAME], &basis, &tracking);
            for (which, is, must) in [
                ("with", state(&with), row.with),
                ("without", state(&without), row.without),
            ] {
                if is != must {
                    wrong.push(format!("{} ({which}, {stamp}): {is}, not {must}", row.name));
                }
                let verdict = match must {
                    "unchanged" | "touched" => "fresh",
                    "modified" | "missing" | "appeared" => "stale",
                    _ => "indeterminate",
                };
                let judged = if which == "with" { &with } else { &without };
                if is == must && judged.as_str() != verdict {
                    wrong.push(format!("{} ({which}): {}", row.name, judged.as_str()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The kernel's clock may tick only every few milliseconds: a file that is changed twice within a tick, in place and to
/// the same size, keeps all its marks. Not every kernel can be made to do that, so the marks are forged here.
#[test]
fn a_file_changed_in_the_tick_of_its_fingerprint_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let tracking = Tracking::new(folder.path());
    let take = || serde_json::to_value(Fingerprints::take(["a"], &tracking, None)).unwrap();
    fs::write(&path, "one").unwrap();
    let one = take()["files"]["a"]["file"]["sha256"].clone();
    fs::write(&path, "two").unwrap();
    let judge = |seconds_later: i64| {
        let mut prints = take();
        let file = &mut prints["files"]["a"]["file"];
        file["sha256"] = one.clone();
        let changed = file.get("ctime").unwrap_or(&file["mtime"])[0]
            .as_i64()
            .unwrap();
        file["taken"][0] = (changed + seconds_later).into();
        let prints: Fingerprints = serde_json::from_value(prints).unwrap();
        let basis = Basis::new(None, None).with_fingerprints(Some(&prints));
        state(&Staleness::judge(["a"], &basis, &tracking)).to_owned()
    };
    assert_eq!(judge(0), "modified");
    assert_eq!(judge(-3600), "modified", "the clock was set back meanwhile");
    // If the file was inspected long after its last change, the marks are enough, and nothing is read.
    assert_eq!(judge(60), "unchanged");
}

/// The next save reuses a record only for files that surely did not change meanwhile.
#[test]
fn a_second_save_reads_what_changed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let tracking = Tracking::new(folder.path());
    for name in ["a", "b"] {
        write(&folder.path().join(name), "one", -60);
    }
    std::thread::sleep(Duration::from_millis(30));
    let first = Fingerprints::take(["a", "b"], &tracking, None);
    write(&folder.path().join("b"), "two", -60);
    let second = Fingerprints::take(["a", "b"], &tracking, Some(&first));
    assert_eq!(
        recorded(&first)["a"],
        recorded(&second)["a"],
        "not looked at anew"
    );
    assert_ne!(recorded(&first)["b"], recorded(&second)["b"]);
    let basis = Basis::new(None, None).with_fingerprints(Some(&second));
    assert_eq!(
        Staleness::judge(["a", "b"], &basis, &tracking).as_str(),
        "fresh"
    );
}

#[test]
fn nothing_outside_of_the_project_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    write(&root.join("src/a.rs"), "one", -60);
    write(&folder.path().join("secret"), "one", -60);
    let outside = folder.path().join("secret");
    let inside = root.canonicalize().unwrap().join("src/a.rs");
    let stamp = Timestamp::parse("2026-03-02T10:00:00Z");
    let state = |path: &str| {
        let judged = Staleness::of([path], Some(&stamp), &root, None);
        judged.files()[0].state.as_str().to_owned()
    };
    for path in [
        "../secret",
        "src/../../secret",
        outside.to_str().unwrap(),
        "../nothing",
    ] {
        assert_eq!(state(path), "unreadable", "{path}");
    }
    for path in ["src/../src/a.rs", "./src/a.rs", inside.to_str().unwrap()] {
        assert_eq!(state(path), "unchanged", "{path}");
    }
    assert_eq!(state("src/../nothing"), "missing");
    let prints = Fingerprints::take(["../secret"], &Tracking::new(&root), None);
    assert!(!serde_json::to_string(&prints).unwrap().contains("sha256"));
}

/// An orchestrator that saves from the wrong folder must not make all files look new in the right one.
#[test]
fn a_record_from_the_wrong_folder_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let [right, wrong] = ["right", "wrong"].map(|name| folder.path().join(name));
    old(&right.join(NAME));
    fs::create_dir(&wrong).unwrap();
    let prints = Fingerprints::take([NAME, "gone"], &Tracking::new(&wrong), None);
    assert!(recorded(&prints).is_empty());
    let stamp = Timestamp::parse("2026-03-02T10:00:00Z");
    let basis = Basis::new(Some(&stamp), None).with_fingerprints(Some(&prints));
    let judged = Staleness::judge([NAME], &basis, &Tracking::new(&right));
    assert_eq!(state(&judged), "unchanged");
}

#[test]
fn ten_thousand_files_are_judged_and_the_one_that_changed_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..10_000)
        .map(|n| format!("src/{}/{n}.rs", n % 50))
        .collect();
    for name in &names {
        write(&folder.path().join(name), name, -60);
    }
    let tracking = Tracking::new(folder.path());
    let all = || names.iter().map(String::as_str);
    let prints = Fingerprints::take(all(), &tracking, None);
    let stamp = Timestamp::parse("2026-03-02T10:00:00Z");
    let basis = Basis::new(Some(&stamp), None).with_fingerprints(Some(&prints));
    assert_eq!(Staleness::judge(all(), &basis, &tracking).as_str(), "fresh");
    write(&folder.path().join(&names[6789]), "other", -60);
    let judged = Staleness::judge(all(), &basis, &tracking);
    let changed: Vec<_> = judged.changed().map(|file| file.path.as_str()).collect();
    assert_eq!(changed, [names[6789].as_str()]);
    assert_eq!(judged.files().len(), names.len());
}

fn done(store: &FileStore, root: &Path, step: &str) {
    let tasks: Checkpoints<TaskCheckpoint> = store.checkpoints().tracking(Tracking::new(root));
    let now = chrono::Utc::now();
    tasks
        .try_update(&key("a"), |task| {
            task.report_at(StepDone::new(step).with_modified("src/a.rs"), now)
        })
        .unwrap();
}

#[test]
fn a_save_records_its_files_and_another_revision_does_not_use_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let store = FileStore::open(root.join("checkpoints"));
    let tasks: Checkpoints<TaskCheckpoint> = store.checkpoints();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("src/a.rs"), "one").unwrap();
    tasks.create(&key("a"), &task(&["one"])).unwrap();
    done(&store, root, "one");
    // A checkout changes the time, but no byte.
    let later = SystemTime::now() + Duration::from_secs(3600);
    File::options()
        .write(true)
        .open(root.join("src/a.rs"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    assert_eq!(tasks.stale(&key("a"), root).unwrap().as_str(), "fresh");

    // The checkpoint is edited by hand, so the record belongs to another revision.
    let file = root.join("checkpoints/a.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"one\"", "\"One\"")).unwrap();
    assert_eq!(tasks.stale(&key("a"), root).unwrap().as_str(), "stale");
    fs::write(&file, &text).unwrap();
    assert_eq!(tasks.stale(&key("a"), root).unwrap().as_str(), "fresh");
    // The record does not bloat the checkpoint.
    assert!(!text.contains("sha256"));
}

#[test]
fn a_checkpoint_from_another_branch_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let head = |name: &str, text: &str| {
        let path = root.join(".git").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let [one, two] = ["1", "2"].map(|digit| digit.repeat(40));
    head("HEAD", "ref: refs/heads/main\n");
    head("refs/heads/main", &one);
    head("refs/heads/side", &one);
    let store = FileStore::open(root.join("checkpoints"));
    let tasks: Checkpoints<TaskCheckpoint> = store.checkpoints();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("src/a.rs"), "one").unwrap();
    tasks.create(&key("a"), &task(&["one"])).unwrap();
    done(&store, root, "one");
    let judged = || tasks.stale(&key("a"), root).unwrap();
    assert_eq!(judged().as_str(), "fresh");

    head("HEAD", "ref: refs/heads/side\n");
    assert_eq!(judged().as_str(), "indeterminate");
    assert!(
        matches!(judged().reasons(), [Reason::OtherBranch { saved: Some(saved), now: Some(now) }]
        if saved == "main" && now == "side")
    );
    let options = agent_checkpoint::resume::ResumeOptions::new(root);
    let resume = tasks.resume(&key("a"), &options).unwrap();
    assert!(
        resume
            .plan
            .warnings
            .iter()
            .any(|warning| warning.contains("now on the branch side"))
    );

    head("HEAD", "ref: refs/heads/main\n");
    head("refs/heads/main", &two);
    assert!(matches!(judged().reasons(), [Reason::OtherCommit { .. }]));
    assert_eq!(
        judged().as_str(),
        "fresh",
        "no file changed by its contents"
    );
    let resume = tasks.resume(&key("a"), &options).unwrap();
    assert_eq!(resume.plan.warnings, [] as [String; 0]);
    assert!(
        resume
            .plan
            .notes
            .iter()
            .any(|note| { note.contains("saved at commit 111111111111, and now at 222222222222") })
    );
    fs::write(root.join("src/a.rs"), "two").unwrap();
    assert_eq!(judged().as_str(), "stale");
    fs::write(root.join("src/a.rs"), "one").unwrap();
    head("refs/heads/main", &one);
    assert_eq!(judged().reasons(), []);
}

#[test]
fn only_sources_are_recorded_and_judged() {
    let folder = tempfile::tempdir().unwrap();
    let tracking = Tracking::new(folder.path());
    let files = ["src/a.rs", "node_modules/x/a.js", "target/debug/a"];
    for name in files {
        write(&folder.path().join(name), "one", 90);
    }
    let prints = Fingerprints::take(files, &tracking, None);
    assert_eq!(recorded(&prints).keys().collect::<Vec<_>>(), ["src/a.rs"]);
    let stamp = Timestamp::parse("2026-03-02T10:00:00Z");
    let judged = Staleness::judge(files, &Basis::new(Some(&stamp), None), &tracking);
    assert_eq!(judged.files().len(), 1);
    assert_eq!(judged.judged().untracked, files[1..]);
}

#[cfg(feature = "ignore")]
#[test]
fn what_the_project_ignores_is_not_tracked() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let rules = [
        (".gitignore", "*.tmp\n/generated/\n!keep.tmp\n"),
        ("web/.gitignore", "local.*\n!debug.tmp\n"),
        (".git/info/exclude", "private.txt\n"),
    ];
    for (name, text) in rules {
        write(&root.join(name), text, -60);
    }
    let files = [
        "a.tmp",
        "keep.tmp",
        "generated/deep/a.rs",
        "web/generated/a.rs",
        "web/local.rs",
        "web/debug.tmp",
        "web/sub/x.tmp",
        "private.txt",
        "src/a.rs",
    ];
    write(&root.join("src/a.rs"), "one", -60);
    let tracked = |tracking: &Tracking| {
        let prints = Fingerprints::take(files, tracking, None);
        recorded(&prints)
            .into_iter()
            .map(|(path, _)| path)
            .collect::<Vec<_>>()
    };
    let tracking = Tracking::new(root);
    assert_eq!(
        tracked(&tracking),
        [
            "keep.tmp",
            "src/a.rs",
            "web/debug.tmp",
            "web/generated/a.rs"
        ]
    );
    assert_eq!(tracked(&tracking.without_gitignore()).len(), files.len());
}

#[test]
fn a_stamp_with_fractions_tells_more() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), "one", 0);
    set(&folder.path().join("a"), 700);
    let stamp = Timestamp::parse("2026-03-02T10:00:00.250Z");
    let judged = Staleness::of(["a"], Some(&stamp), folder.path(), None);
    assert_eq!(state(&judged), "modified");
}
