//! Which paths a store opens, and which programs may open one at the same time.

use std::fs;
use std::path::Path;
use std::sync::Barrier;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    CheckpointStore, DeleteOptions, Put, Query, RecoverOptions, Recovery,
};
use agent_checkpoint::{CheckpointStoreExt, ErrorKind, Expect};
use agent_checkpoint_sqlite::SqliteStore;
use rusqlite::Connection;
use tempfile::tempdir;

use crate::{files_in, key, number_at, numbered};

#[test]
fn a_store_that_only_reads_makes_nothing_wherever_it_looks() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a #1?.db");
    let reader = SqliteStore::read_only(&path).unwrap();
    assert_eq!(number_at(&reader, "a"), None);
    assert!(reader.list(&Query::all()).unwrap().entries.is_empty());
    assert_eq!(
        files_in(folder.path()),
        [""; 0],
        "of a database that is not there"
    );
    let refused = reader.put(&key("a"), numbered(1)).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::ReadOnly);

    let writer = SqliteStore::open(&path).unwrap();
    writer.put(&key("a"), numbered(1)).unwrap();
    let there = files_in(folder.path());
    assert_eq!(number_at(&reader, "a"), Some(1), "beside a writer");
    drop(writer);
    assert_eq!(number_at(&reader, "a"), Some(1), "after the last writer");
    assert_eq!(files_in(folder.path()), there);

    // SQLite's own program removes the log when it is done.
    let other = Connection::open(&path).unwrap();
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    other.query_row(checkpoint, [], |_| Ok(())).unwrap();
    drop((other, reader));
    for ending in ["-wal", "-shm"] {
        let _gone = fs::remove_file(folder.path().join(format!("a #1?.db{ending}")));
    }
    let reader = SqliteStore::read_only(&path).unwrap();
    assert_eq!(number_at(&reader, "a"), Some(1), "of a file without a log");
    assert_eq!(files_in(folder.path()), ["a #1?.db"]);

    // A new writer is seen even by a store that read the file as immutable.
    let writer = SqliteStore::open(&path).unwrap();
    writer.put(&key("a"), numbered(2)).unwrap();
    assert_eq!(number_at(&reader, "a"), Some(2));
}

#[test]
fn a_log_without_its_index_is_an_error_for_one_that_only_reads() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let writer = SqliteStore::open(&path).unwrap();
    writer.put(&key("a"), numbered(1)).unwrap();
    drop(writer);
    fs::remove_file(folder.path().join("a.db-shm")).unwrap();
    let error = SqliteStore::read_only(&path)
        .unwrap()
        .load(&key("a"))
        .unwrap_err();
    assert_eq!(error.code(), "no-index", "{error}");
    assert_eq!(files_in(folder.path()), ["a.db", "a.db-wal"]);
    let writer = SqliteStore::open(&path).unwrap();
    assert_eq!(number_at(&writer, "a"), Some(1));
}

/// The error of an open, which must leave the file unchanged.
fn refused(path: &Path) -> String {
    let before = fs::read(path).ok();
    let read = SqliteStore::read_only(path).unwrap().load(&key("a"));
    let error = SqliteStore::open(path).unwrap_err();
    assert_eq!(fs::read(path).ok(), before);
    if let Err(read) = read {
        assert_eq!(read.code(), error.code(), "{read}");
    }
    let text = error.to_string();
    assert!(text.starts_with(&path.display().to_string()), "{text}");
    assert!(text.contains("; "), "without a next step: {text}");
    error.code().to_owned()
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert_eq!(refused(folder.path()), "not-a-file");
    assert_eq!(refused(&at("missing/a.db")), "not-a-folder");
    fs::write(
        at("text"),
        "no database, but a text that is long enough to be one".repeat(99),
    )
    .unwrap();
    assert_eq!(refused(&at("text")), "not-a-database");
    let other = Connection::open(at("other.db")).unwrap();
    other
        .execute_batch("CREATE TABLE keys (name TEXT)")
        .unwrap();
    drop(other);
    assert_eq!(refused(&at("other.db")), "not-a-store");
    fs::write(at("empty.db"), "").unwrap();
    let reader = SqliteStore::read_only(at("empty.db")).unwrap();
    assert_eq!(number_at(&reader, "a"), None, "of an empty file");
    let begun = Connection::open(at("empty.db")).unwrap();
    begun
        .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
        .unwrap();
    assert_eq!(
        number_at(&reader, "a"),
        None,
        "of one that is just being made"
    );
    let store = SqliteStore::open(at("empty.db")).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
}

/// The log lies beside the file, not beside a link to it.
#[cfg(unix)]
#[test]
fn a_link_leads_to_the_same_database_and_a_second_name_to_none() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("inner")).unwrap();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(at(to), at(name)).unwrap();
    let store = SqliteStore::open(at("inner/a.db")).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    link("inner/a.db", "link.db");
    link("inner", "linked");
    for name in ["link.db", "linked/a.db"] {
        let reader = SqliteStore::read_only(at(name)).unwrap();
        assert_eq!(number_at(&reader, "a"), Some(1), "{name}");
        let writer = SqliteStore::open(at(name)).unwrap();
        assert_eq!(number_at(&writer, "a"), Some(1), "{name}");
    }
    assert_eq!(files_in(folder.path()), ["inner", "link.db", "linked"]);
    fs::hard_link(at("inner/a.db"), at("second.db")).unwrap();
    assert_eq!(refused(&at("second.db")), "several-names");
    let read = SqliteStore::read_only(at("second.db"))
        .unwrap()
        .load(&key("a"));
    assert_eq!(read.unwrap_err().code(), "several-names");
    link("nowhere.db", "dangling.db");
    assert!(SqliteStore::open(at("dangling.db")).is_err());
}

/// Runs as a user other than root, because root may write everywhere.
#[cfg(unix)]
#[test]
fn a_place_that_may_not_be_written_is_named_with_the_reason() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    const CHILD: &str = "AGENT_CHECKPOINT_OPENING_CHILD";
    if let Some(folder) = std::env::var_os(CHILD) {
        let at = |name: &str| Path::new(&folder).join(name);
        if fs::write(at("probe"), "").is_ok() {
            println!("CHILD may write");
            return;
        }
        assert_eq!(refused(&at("new.db")), "write-protected");
        let error = SqliteStore::open(at("a.db")).unwrap_err();
        assert_eq!(error.code(), "write-protected", "{error:?}");
        println!("CHILD done");
        return;
    }
    let folder = tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    let mode = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
    mode(0o555).unwrap();
    let test = "opening::a_place_that_may_not_be_written_is_named_with_the_reason";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, folder.path());
    if fs::write(folder.path().join("probe"), "").is_ok() {
        fs::remove_file(folder.path().join("probe")).unwrap();
        child.uid(65_534).gid(65_534);
    }
    let output = child.output();
    mode(0o755).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let errors = output
        .as_ref()
        .map_or_else(|_| String::new(), |output| text(&output.stderr));
    let said = output.map(|output| text(&output.stdout));
    match said {
        Ok(said) if said.contains("CHILD may write") => {
            eprintln!("SKIPPED a_place_that_may_not_be_written (every user may write here)");
        }
        Ok(said) => assert!(said.contains("CHILD done"), "{said}{errors}"),
        // The test program lies where another user has no access.
        Err(error) => eprintln!("SKIPPED a_place_that_may_not_be_written ({error})"),
    }
}

#[test]
fn what_a_newer_program_laid_out_is_read_and_not_written() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 9).unwrap();
    // The store that was open already notices it, too.
    for store in [store, SqliteStore::open(&path).unwrap()] {
        assert_eq!(number_at(&store, "a"), Some(1));
        let newer = ErrorKind::NewerLayout { found: 9, known: 2 };
        let error = store.put(&key("a"), numbered(2)).unwrap_err();
        assert_eq!(*error.kind(), newer);
        let error = store.delete(&key("a"), &DeleteOptions::new()).unwrap_err();
        assert_eq!(*error.kind(), newer);
        assert_eq!(number_at(&store, "a"), Some(1));
    }
}

/// The first layout had no ledgers.
#[test]
fn the_tables_of_an_earlier_version_are_read_as_before_and_taken_over_by_a_writer() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch(include_str!("../../src/layout.sql"))
        .unwrap();
    other
        .execute_batch(
            "PRAGMA application_id = 0x41434b50; PRAGMA user_version = 1; \
             INSERT INTO keys (id, name, present, last) VALUES (1, 'a', 1048576, 1); \
             INSERT INTO states (id, number, task, modified, text) VALUES (1048576, 1, 0, 0, '{\"n\":1}')",
        )
        .unwrap();
    drop(other);
    let reader = SqliteStore::read_only(&path).unwrap();
    let ledger = |store: &SqliteStore| store.beside().ledger(&key("a")).unwrap();
    assert_eq!(number_at(&reader, "a"), Some(1));
    assert_eq!(ledger(&reader), [""; 0]);
    let number = || -> i64 {
        let other = Connection::open(&path).unwrap();
        let number = other.query_row("PRAGMA user_version", [], |row| row.get(0));
        number.unwrap()
    };
    assert_eq!(number(), 1, "a store that only reads changes nothing");
    let writer = SqliteStore::open(&path).unwrap();
    assert_eq!(number(), 2);
    assert!(
        writer
            .beside()
            .append_to_ledger(&key("a"), "{}", 0, None)
            .unwrap()
    );
    for store in [&writer, &reader] {
        assert_eq!(number_at(store, "a"), Some(1));
        assert_eq!(ledger(store), ["{}"]);
    }
}

#[test]
fn of_many_that_make_one_database_all_use_the_same() {
    for _ in 0..4 {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a.db");
        let start = Barrier::new(16);
        std::thread::scope(|scope| {
            for number in 0..16 {
                let (path, start) = (&path, &start);
                scope.spawn(move || {
                    start.wait();
                    let store = SqliteStore::open(path).unwrap();
                    let put = numbered(number).with_expect(Expect::Absent);
                    store.put(&key(&format!("k{number}")), put).unwrap();
                });
            }
        });
        let keys = SqliteStore::open(&path).unwrap().list(&Query::all());
        assert_eq!(keys.unwrap().entries.len(), 16);
    }
}

/// An open file stays alive without a name, and what is written to it is lost.
#[cfg(unix)]
#[test]
fn a_database_that_was_removed_is_made_anew_and_none_is_written_that_nobody_finds() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    for name in files_in(folder.path()) {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    assert_eq!(number_at(&store, "a"), None);
    store.put(&key("a"), numbered(2)).unwrap();
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(number_at(&store, "a"), Some(2));
}

#[cfg(unix)]
#[test]
fn what_sqlite_cannot_open_is_refused_with_the_reason() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert_eq!(refused(Path::new("/dev/null")), "not-a-file");
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.unwrap().success());
    let error = SqliteStore::open(at("pipe")).unwrap_err();
    assert_eq!(error.code(), "not-a-file", "{error}");
    SqliteStore::open(at(&"n".repeat(247))).unwrap();
    assert_eq!(refused(&at(&"n".repeat(248))), "path-too-long");
    let deep = at(&"d".repeat(200)).join("d".repeat(200));
    fs::create_dir_all(&deep).unwrap();
    let name = |bytes| "n".repeat(bytes - deep.as_os_str().len() - 1);
    let store = SqliteStore::open(deep.join(name(504))).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    assert_eq!(refused(&deep.join(name(505))), "path-too-long");
}

fn back_up(path: &Path, copy: &Path) {
    let other = Connection::open(path).unwrap();
    other
        .execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
        .unwrap();
}

#[test]
fn a_copy_that_is_put_in_the_place_of_the_database_is_read_as_it_was() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let store = SqliteStore::open(at("a.db")).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    back_up(&at("a.db"), &at("copy.db"));
    for number in 2..9 {
        store.put(&key("a"), numbered(number)).unwrap();
    }
    assert!(at("a.db-wal").metadata().unwrap().len() > 0);
    drop(store);
    assert_eq!(at("a.db-wal").metadata().unwrap().len(), 0);
    fs::rename(at("copy.db"), at("a.db")).unwrap();
    let store = SqliteStore::open(at("a.db")).unwrap();
    assert_eq!(number_at(&store, "a"), Some(1));
    store.put(&key("a"), numbered(2)).unwrap();
    assert_eq!(number_at(&store, "a"), Some(2));
}

#[cfg(unix)]
#[test]
fn a_database_that_was_replaced_while_it_was_open_is_not_mixed_with_the_log_of_the_one_before() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let store = SqliteStore::open(at("a.db")).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    back_up(&at("a.db"), &at("copy.db"));
    store.put(&key("a"), numbered(2)).unwrap();
    fs::rename(at("copy.db"), at("a.db")).unwrap();
    let copy = fs::read(at("a.db")).unwrap();
    for _ in 0..2 {
        assert_eq!(store.load(&key("a")).unwrap_err().code(), "replaced");
        let error = store.put(&key("a"), numbered(3)).unwrap_err();
        assert_eq!(error.code(), "replaced", "{error}");
    }
    assert_eq!(fs::read(at("a.db")).unwrap(), copy);
    for ending in ["-wal", "-shm"] {
        fs::remove_file(at(&format!("a.db{ending}"))).unwrap();
    }
    assert_eq!(number_at(&store, "a"), Some(1));
    store.put(&key("a"), numbered(4)).unwrap();
    drop(store);
    let store = SqliteStore::open(at("a.db")).unwrap();
    assert_eq!(number_at(&store, "a"), Some(4));
}

#[cfg(unix)]
#[test]
fn a_save_into_a_log_that_was_removed_is_refused_and_what_it_had_is_kept() {
    for gone in [&["-wal"][..], &["-shm"], &["-wal", "-shm"]] {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = SqliteStore::open(&path).unwrap();
        store.put(&key("a"), numbered(1)).unwrap();
        for ending in gone {
            fs::remove_file(folder.path().join(format!("a.db{ending}"))).unwrap();
        }
        let error = store.put(&key("a"), numbered(2)).unwrap_err();
        assert_eq!(error.code(), "log-removed", "{error}");
        assert!(error.to_string().contains(gone[0]), "{error}");
        assert_eq!(number_at(&store, "a"), Some(1), "without {gone:?}");
        store.put(&key("a"), numbered(3)).unwrap();
        drop(store);
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(number_at(&store, "a"), Some(3), "without {gone:?}");
    }
}

/// Another connection is opened while the first is in use.
#[cfg(unix)]
#[test]
fn a_database_that_was_replaced_in_the_middle_of_a_save_is_not_mixed_with_the_log_either() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let store = SqliteStore::open(at("a.db")).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    back_up(&at("a.db"), &at("copy.db"));
    store.put(&key("a"), numbered(2)).unwrap();
    let copy = fs::read(at("copy.db")).unwrap();
    let saved = store.transact(&key("a"), |_| {
        fs::rename(at("copy.db"), at("a.db")).unwrap();
        assert_eq!(store.load(&key("a")).unwrap_err().code(), "replaced");
        Ok(Some(numbered(3)))
    });
    assert_eq!(saved.unwrap_err().code(), "replaced");
    assert_eq!(fs::read(at("a.db")).unwrap(), copy);
}

/// What other programs wrote into a new log is newer.
#[cfg(unix)]
#[test]
fn a_log_that_was_removed_is_not_written_over_what_came_after_it() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    for ending in ["-wal", "-shm"] {
        fs::rename(
            folder.path().join(format!("a.db{ending}")),
            folder.path().join(format!("old{ending}")),
        )
        .unwrap();
        fs::write(folder.path().join(format!("a.db{ending}")), "").unwrap();
    }
    let before = fs::read(&path).unwrap();
    assert_eq!(store.load(&key("a")).unwrap_err().code(), "log-removed");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn a_database_that_is_moved_in_the_middle_of_a_save_is_not_written() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    let saved = store.transact(&key("a"), |_| {
        for name in files_in(folder.path()) {
            let moved = format!("moved{}", name.strip_prefix("a").unwrap());
            fs::rename(folder.path().join(name), folder.path().join(moved)).unwrap();
        }
        Ok(Some(numbered(2)))
    });
    assert_eq!(saved.unwrap_err().code(), "replaced");
    assert_eq!(number_at(&store, "a"), None);
    let moved = SqliteStore::open(folder.path().join("moved.db")).unwrap();
    assert_eq!(number_at(&moved, "a"), Some(1));
}

#[test]
fn a_text_is_kept_to_the_byte_also_a_damaged_one() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    for text in [
        "\u{feff}{\"n\":1}",
        "{\"n\":1,\"s\":\"\\u0000 \\ud800 \u{10ffff} \u{7f}\"}\n\n",
        "{\"n\":1e400,\"n\":1.50}\r\n",
    ] {
        let document = Document::from_text(text).unwrap();
        store.put(&key("a"), Put::new(document)).unwrap();
        let back = store.load(&key("a")).unwrap().unwrap();
        assert_eq!(back.document.text(), text);
    }
    // NUL bytes as a crash leaves them, and bytes that are no UTF-8.
    let other = Connection::open(&path).unwrap();
    let damage = "UPDATE states SET text = CAST(x'7b226e223a322c00ff00' AS TEXT) WHERE number = 3";
    assert_eq!(other.execute(damage, []).unwrap(), 1);
    let newest = RecoverOptions::new(Recovery::Newest);
    let recovered = store.recover(&key("a"), &newest).unwrap();
    assert!(
        recovered
            .put_aside
            .unwrap()
            .ends_with("row 1 of the table `quarantine`")
    );
    let kept: Vec<u8> = other
        .query_row("SELECT text FROM quarantine WHERE id = 1", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(kept, b"{\"n\":2,\0\xff\0");
    assert!(number_at(&store, "a").is_some());
}
