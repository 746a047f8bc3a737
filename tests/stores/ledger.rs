//! The ledgers of a file store: how a file is read after a crash, another program or git changed it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{EXAMPLE, key, tree};
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, FileOptions, FileStore, MemoryStore, Put,
};
use agent_checkpoint::{Error, ErrorKind};

fn lines(store: &dyn CheckpointStore, name: &str) -> Result<Vec<String>, Error> {
    store.beside().ledger(&key(name))
}

fn add(store: &dyn CheckpointStore, name: &str, line: &str, at: usize) -> Result<bool, Error> {
    store.beside().append_to_ledger(&key(name), line, at, None)
}

/// A store with two lines in the ledger of `a`, and the file with them.
fn two_lines(folder: &Path) -> (FileStore, PathBuf) {
    let store = FileStore::open(folder);
    for at in 0..2 {
        assert!(add(&store, "a", &format!("{{\"n\":{at}}}"), at).unwrap());
    }
    (store, folder.join(".agent-checkpoint/ledger/a.json.jsonl"))
}

fn unreadable(answer: Result<impl std::fmt::Debug, Error>) -> String {
    let error = answer.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Unreadable { .. }),
        "{error:?}"
    );
    error.to_string()
}

#[test]
fn a_line_that_was_never_acknowledged_is_not_read_and_makes_room_for_the_next() {
    for torn in [
        "{\"n\":2",
        "{\"n\":2}",
        "\0\0\0\0",
        "\0\0\0\0\n",
        "\0\0\0:2}\n",
        "{\"n\":\0\0\0\n",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (store, log) = two_lines(folder.path());
        let whole = fs::read_to_string(&log).unwrap();
        fs::write(&log, format!("{whole}{torn}")).unwrap();
        let expected = ["{\"n\":0}", "{\"n\":1}", "{\"next\":2}"];
        assert_eq!(lines(&store, "a").unwrap(), expected[..2], "{torn:?}");
        assert!(!add(&store, "a", "{}", 3).unwrap(), "{torn:?}");
        assert!(add(&store, "a", expected[2], 2).unwrap(), "{torn:?}");
        assert_eq!(lines(&store, "a").unwrap(), expected, "{torn:?}");
        let now = fs::read_to_string(&log).unwrap();
        assert_eq!(now, format!("{whole}{{\"next\":2}}\n"), "{torn:?}");
    }
}

#[test]
fn a_damaged_line_that_was_acknowledged_is_an_error_and_nothing_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let (store, log) = two_lines(folder.path());
    for (line, damaged) in [
        (1, "{\"n\":\n{\"n\":1}\n"),
        (1, "\0\0\0\0\0\0\0\n{\"n\":1}\n{\"n\":2}\n"),
        // A line with its line end was written whole.
        (2, "{\"n\":0}\n{\"n\":\n"),
        (2, "{\"n\":0}\n[1]\n"),
        (2, "{\"n\":0}\n\n"),
        (2, "{\"n\":0}\n{\"n\":\n{\"n\":2"),
    ] {
        fs::write(&log, damaged).unwrap();
        let told = unreadable(lines(&store, "a"));
        let expected = format!("line {line} of the ledger is damaged");
        assert!(told.contains(&expected), "{told}");
        assert!(told.contains("with a line end"), "{told}");
        assert!(told.contains(&*log.to_string_lossy()), "{told}");
        for at in 0..3 {
            unreadable(add(&store, "a", "{}", at));
        }
        assert_eq!(fs::read_to_string(&log).unwrap(), damaged);
    }
}

/// Git copies the placeholder, but not the ledger.
#[test]
fn in_a_clone_it_is_an_error_that_the_ledger_is_elsewhere_until_a_person_decides() {
    let folder = tempfile::tempdir().unwrap();
    let (store, log) = two_lines(folder.path());
    let own = folder.path().join(".agent-checkpoint");
    let placeholder = own.join("overflow/a.json.ledger");
    assert_eq!(fs::read(&placeholder).unwrap(), b"");
    let ignored = fs::read_to_string(own.join(".gitignore")).unwrap();
    assert!(
        ignored.starts_with("*\n!/overflow/\n!/overflow/**\n"),
        "{ignored}"
    );
    fs::remove_dir_all(own.join("ledger")).unwrap();
    let before = tree(folder.path());
    for answer in [
        lines(&store, "a").map(drop),
        add(&store, "a", "{}", 0).map(drop),
    ] {
        let told = unreadable(answer);
        for part in [&log, &placeholder].map(|path| path.to_string_lossy().into_owned()) {
            assert!(told.contains(&part), "{told}");
        }
    }
    assert_eq!(tree(folder.path()), before);
    assert_eq!(
        lines(&store, "b").unwrap(),
        [""; 0],
        "of another checkpoint"
    );
    // The remedy that the error names.
    fs::remove_file(&placeholder).unwrap();
    assert_eq!(lines(&store, "a").unwrap(), [""; 0]);
    assert!(add(&store, "a", "{}", 0).unwrap());
    assert!(placeholder.exists());
}

#[test]
fn what_is_elsewhere_is_not_copied_as_if_there_were_none() {
    let folder = tempfile::tempdir().unwrap();
    let (store, log) = two_lines(folder.path());
    let document = Document::from_text("{}").unwrap();
    store.put(&key("a"), Put::new(document)).unwrap();
    fs::remove_file(log).unwrap();
    let options = agent_checkpoint::store::CopyOptions::new();
    let target = MemoryStore::new();
    let report = agent_checkpoint::store::copy(&store, &target, &options, &mut |_| {}).unwrap();
    let [refused] = &*report.refused else {
        panic!("{report:?}");
    };
    assert!(matches!(refused.kind(), ErrorKind::Unreadable { .. }));
    assert!(target.load(&key("a")).unwrap().is_none());
}

#[test]
fn a_store_that_only_reads_makes_nothing_and_adds_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new");
    let reader = |folder: &Path| FileStore::with_options(folder, FileOptions::read_only());
    assert_eq!(lines(&reader(&new), "a").unwrap(), [""; 0]);
    let refused = add(&reader(&new), "a", "{}", 0).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::ReadOnly);
    assert!(!new.exists());
    two_lines(&new);
    let before = tree(folder.path());
    assert_eq!(lines(&reader(&new), "a").unwrap().len(), 2);
    add(&reader(&new), "a", "{}", 2).unwrap_err();
    assert_eq!(tree(folder.path()), before);
}

#[test]
fn each_slot_of_a_host_file_has_its_own_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("builder-state.json");
    fs::write(&path, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&path);
    for slot in ["active", "top"] {
        assert!(add(&store, slot, &format!("{{\"of\":\"{slot}\"}}"), 0).unwrap());
    }
    for slot in ["active", "top"] {
        assert_eq!(
            lines(&store, slot).unwrap(),
            [format!("{{\"of\":\"{slot}\"}}")]
        );
        let own = folder.path().join(".agent-checkpoint");
        for file in [
            format!("ledger/builder-state.json@{slot}.jsonl"),
            format!("overflow/builder-state.json@{slot}.ledger"),
        ] {
            assert!(own.join(&file).is_file(), "{file}");
        }
    }
    assert_eq!(fs::read_to_string(path).unwrap(), EXAMPLE);
}

#[cfg(unix)]
#[test]
fn a_ledger_is_no_wider_open_than_its_checkpoint() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (store, log) = two_lines(folder.path());
    let document = Document::from_text("{}").unwrap();
    store.put(&key("a"), Put::new(document)).unwrap();
    let closed = fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.path().join("a.json"), closed).unwrap();
    assert!(add(&store, "a", "{}", 2).unwrap());
    let mode = fs::metadata(log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Our own files are never links: a link in a cloned repository would make us write into a user's file.
#[cfg(unix)]
#[test]
fn a_ledger_that_is_a_link_is_neither_read_nor_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (store, log) = two_lines(folder.path());
    let victim = folder.path().join("victim");
    fs::write(&victim, "{}\n").unwrap();
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink("../../victim", &log).unwrap();
    lines(&store, "a").unwrap_err();
    for at in 0..2 {
        add(&store, "a", "{}", at).unwrap_err();
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "{}\n");
}
