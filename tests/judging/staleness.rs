//! The verdict by modification times.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use agent_checkpoint::Timestamp;
use agent_checkpoint::staleness::{FileState, Staleness};

fn write_at(root: &Path, name: &str, time: SystemTime) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "x").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(time).unwrap();
}

fn stamp(text: &str) -> Timestamp {
    Timestamp::parse(text)
}

fn after(stamp: &Timestamp, offset: f64) -> SystemTime {
    let time = stamp.system_time().unwrap();
    if offset < 0.0 {
        time - Duration::from_secs_f64(-offset)
    } else {
        time + Duration::from_secs_f64(offset)
    }
}

/// The state of one file, modified `offset` seconds after the stamp.
fn state(stamp_text: &str, offset: f64) -> String {
    let folder = tempfile::tempdir().unwrap();
    let stamp = stamp(stamp_text);
    write_at(folder.path(), "a", after(&stamp, offset));
    let staleness = Staleness::of(["a"], Some(&stamp), folder.path(), None);
    staleness.files()[0].state.as_str().to_owned()
}

#[test]
fn a_newer_file_makes_the_checkpoint_stale() {
    let folder = tempfile::tempdir().unwrap();
    let stamp = stamp("2026-02-28T10:00:00Z");
    write_at(folder.path(), "src/old.rs", after(&stamp, -60.0));
    write_at(folder.path(), "src/new.rs", after(&stamp, 1800.0));
    let verdict =
        |files: &[&str]| Staleness::of(files.iter().copied(), Some(&stamp), folder.path(), None);
    assert!(matches!(verdict(&["src/old.rs"]), Staleness::Fresh(_)));
    let stale = verdict(&["src/old.rs", "src/new.rs", "src/old.rs"]);
    assert!(matches!(stale, Staleness::Stale(_)));
    assert_eq!(stale.files().len(), 2);
    let changed: Vec<_> = stale.changed().map(|file| file.path.as_str()).collect();
    assert_eq!(changed, ["src/new.rs"]);
    assert!(matches!(verdict(&[]), Staleness::Fresh(_)));
}

#[test]
fn a_missing_file_makes_the_checkpoint_stale() {
    let folder = tempfile::tempdir().unwrap();
    write_at(folder.path(), "file", SystemTime::UNIX_EPOCH);
    let stamp = stamp("2026-02-28T10:00:00Z");
    for path in ["gone", "no/folder", "file/below"] {
        let stale = Staleness::of([path], Some(&stamp), folder.path(), None);
        assert!(matches!(stale, Staleness::Stale(_)), "{path}");
        assert_eq!(stale.files()[0].state, FileState::Missing, "{path}");
    }
}

#[test]
fn times_are_compared_at_the_precision_of_the_stamp() {
    // In whole seconds the checkpoint may have been saved at any instant of that second.
    let seconds = "2026-02-28T10:00:00Z";
    assert_eq!(state(seconds, -0.5), "unchanged");
    assert_eq!(state(seconds, 0.0), "indeterminate");
    assert_eq!(state(seconds, 0.999), "indeterminate");
    assert_eq!(state(seconds, 1.0), "modified");
    let millis = "2026-02-28T10:00:00.500Z";
    assert_eq!(state(millis, 0.0005), "indeterminate");
    assert_eq!(state(millis, 0.001), "modified");
    // The kernel may stamp a file some milliseconds early.
    assert_eq!(state(millis, -0.005), "indeterminate");
    assert_eq!(state(millis, -0.011), "unchanged");
}

#[test]
fn offsets_are_honoured() {
    // A shell version of this check had a bug: local time printed with a `Z`.
    assert_eq!(state("2026-02-28T12:00:00+02:00", -1.0), "unchanged");
    let folder = tempfile::tempdir().unwrap();
    let utc = stamp("2026-02-28T10:30:00Z");
    write_at(folder.path(), "a", after(&utc, 0.0));
    let east = stamp("2026-02-28T12:00:00+02:00");
    let stale = Staleness::of(["a"], Some(&east), folder.path(), None);
    assert!(matches!(stale, Staleness::Stale(_)));
}

#[test]
fn without_a_usable_stamp_nothing_can_be_told() {
    let folder = tempfile::tempdir().unwrap();
    write_at(folder.path(), "a", SystemTime::now());
    for stamp in [None, Some(stamp("yesterday"))] {
        let verdict = Staleness::of(["a"], stamp.as_ref(), folder.path(), None);
        assert!(matches!(verdict, Staleness::Indeterminate(_)));
    }
}

#[cfg(unix)]
#[test]
fn what_cannot_be_looked_at_is_unreadable_not_fresh() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    let long = "x".repeat(300);
    let stamp = stamp("2026-02-28T10:00:00Z");
    for path in ["loop", long.as_str(), "nul\0byte"] {
        let verdict = Staleness::of([path], Some(&stamp), folder.path(), None);
        assert!(matches!(verdict, Staleness::Indeterminate(_)), "{path}");
        assert!(matches!(
            verdict.files()[0].state,
            FileState::Unreadable { .. }
        ));
    }
}

#[test]
fn far_times_are_judged_without_panic() {
    let folder = tempfile::tempdir().unwrap();
    write_at(folder.path(), "a", SystemTime::UNIX_EPOCH);
    for (text, verdict) in [
        ("9999-12-31T23:59:60Z", "fresh"),
        ("0001-01-01T00:00:00Z", "stale"),
    ] {
        let staleness = Staleness::of(["a"], Some(&stamp(text)), folder.path(), None);
        assert_eq!(staleness.as_str(), verdict);
        serde_json::to_string(&staleness).unwrap();
    }
}

#[test]
fn the_json_shape_is_flat() {
    let folder = tempfile::tempdir().unwrap();
    let stamp = stamp("2026-02-28T10:00:00Z");
    write_at(folder.path(), "new", after(&stamp, 90.5));
    let staleness = Staleness::of(["new", "gone"], Some(&stamp), folder.path(), None);
    assert_eq!(
        serde_json::to_value(&staleness).unwrap(),
        serde_json::json!({
            "verdict": "stale",
            "files": [
                {"path": "new", "state": "modified", "modified": "2026-02-28T10:01:30.500Z"},
                {"path": "gone", "state": "missing"},
            ],
            "untracked": [],
            "reasons": [],
        })
    );
}

#[test]
fn a_stamp_in_the_future_is_never_fresh() {
    let folder = tempfile::tempdir().unwrap();
    write_at(folder.path(), "a", SystemTime::UNIX_EPOCH);
    let now = stamp("2026-02-28T10:00:00Z").time().unwrap().to_utc();
    let judge = |text: &str| {
        let stamp = stamp(text);
        Staleness::of(["a"], Some(&stamp), folder.path(), Some(now))
    };
    assert_eq!(judge("2026-03-03T09:00:00Z").as_str(), "indeterminate");
    assert_eq!(judge("2026-02-28T10:00:04Z").as_str(), "fresh");
}
