//! Writes that the system refuses.

use std::process::Command;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put};
use agent_checkpoint::{CheckpointStoreExt, ErrorKind};
use agent_checkpoint_sqlite::SqliteStore;
use tempfile::tempdir;

use crate::children::{FOLDER, Given, say};
use crate::{key, number_at, number_of, numbered};

fn large(number: u64) -> Put {
    let filling = "x".repeat(200_000);
    Put::new(Document::from_text(format!("{{\"n\":{number},\"x\":\"{filling}\"}}")).unwrap())
}

#[test]
fn child_fills_its_share() {
    let Some(given) = Given::find() else { return };
    let store = SqliteStore::open(given.folder.join("a.db")).unwrap();
    store.put(&key("a"), numbered(0)).unwrap();
    let (mut last, mut refused) = (0, 0);
    // Small and large saves, until both kinds have been refused and accepted.
    for number in 1..60 {
        let put = match number % 3 {
            0 => numbered(number),
            _ => large(number),
        };
        match store.put(&key("a"), put) {
            Ok(_) => last = number,
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::Io | ErrorKind::Other { .. }),
                    "{error:?}"
                );
                refused += 1;
            }
        }
        assert_eq!(number_at(&store, "a"), Some(last), "after save {number}");
        for entry in store.states(&key("a")).unwrap() {
            let state = store.load_revision(&key("a"), &entry.id).unwrap();
            assert!(number_of(&state) <= last);
        }
    }
    assert!(
        refused > 0 && last > 3,
        "{refused} refused, the last is {last}"
    );
    println!("CHILD {refused}");
}

/// The shell ignores the signal, so that a write beyond the limit fails instead of ending the process.
#[cfg(unix)]
#[test]
fn a_save_for_which_there_is_no_room_changes_nothing_and_the_next_one_works() {
    let folder = tempdir().unwrap();
    let (program, folder) = (std::env::current_exe().unwrap(), folder.path());
    let script = "trap '' XFSZ; ulimit -f 1500; exec \"$0\" --exact faults::child_fills_its_share --nocapture";
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(program)
        .env(FOLDER, folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let store = SqliteStore::open(folder.join("a.db")).unwrap();
    assert!(number_at(&store, "a").is_some());
}

#[cfg(unix)]
#[test]
fn child_has_no_descriptors() {
    let Some(given) = Given::find() else { return };
    let at = |name: &str| given.folder.join(name);
    drop(SqliteStore::open(at("a.db")).unwrap());
    let open = |_| std::fs::File::open("/dev/null").ok();
    let mut held: Vec<_> = (0..).map_while(open).collect();
    for spare in 0..4 {
        for path in [at("a.db"), at("new.db")] {
            let error = SqliteStore::open(&path).unwrap_err();
            assert_eq!(error.code(), "io", "{error}, with {spare} to spare");
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert!(cause.contains("os error 24"), "{cause}");
        }
        held.pop();
    }
    drop(held);
    SqliteStore::open(at("a.db")).unwrap();
    say("done");
}

/// A folder that a group shares.
#[cfg(unix)]
#[test]
fn child_makes_a_database_for_its_group() {
    use std::os::unix::fs::PermissionsExt;
    let Some(given) = Given::find() else { return };
    let store = SqliteStore::open(given.folder.join("a.db")).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    for name in crate::files_in(&given.folder) {
        let found = given.folder.join(&name).metadata().unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o664, "{name}");
    }
    say("done");
}

#[cfg(unix)]
#[test]
fn what_the_shell_allows_counts() {
    for (script, test) in [
        ("ulimit -n 40", "faults::child_has_no_descriptors"),
        ("umask 002", "faults::child_makes_a_database_for_its_group"),
    ] {
        let folder = tempdir().unwrap();
        let script = format!("{script}; exec \"$0\" --exact {test} --nocapture");
        let output = Command::new("bash")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("CHILD done"), "{said}{errors}");
    }
}

#[test]
fn child_saves_until_one_is_refused() {
    let Some(given) = Given::find() else { return };
    let store = SqliteStore::open(given.folder.join("a.db")).unwrap();
    for number in 0..9 {
        if let Err(error) = store.put(&key("a"), numbered(number)) {
            assert_eq!(number_at(&store, "a"), number.checked_sub(1));
            say(&format!("{} {}", error.code(), number));
            // As if killed: the log stays as it is.
            std::process::abort();
        }
    }
}

/// The log may hold a complete save that was refused because it could not be synced.
#[test]
fn a_save_that_could_not_be_synced_does_not_come_back_after_a_restart() {
    for (which, code) in [("6", "io"), ("6+", "not-durable")] {
        let folder = tempdir().unwrap();
        let log = folder.path().join("a.db-wal");
        let output = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-P"])
            .arg(&log)
            .args([
                "-e",
                &format!("inject=fsync,fdatasync:error=EIO:when={which}"),
            ])
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "faults::child_saves_until_one_is_refused",
                "--nocapture",
            ])
            .env(FOLDER, folder.path())
            .output();
        let Ok(output) = output else {
            eprintln!("SKIPPED a_save_that_could_not_be_synced (strace not installed)");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let said = said.lines().find_map(|line| line.strip_prefix("CHILD "));
        let (found, number) = said.unwrap().split_once(' ').unwrap();
        assert_eq!(found, code);
        let number: u64 = number.parse().unwrap();
        assert!(number > 0);
        if code == "io" {
            let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
            assert_eq!(number_at(&store, "a"), Some(number - 1));
            store.put(&key("a"), numbered(100)).unwrap();
        }
    }
}
