//! Changes to the tables by another program.

use std::time::Duration;

use agent_checkpoint::store::{CheckpointStore, EntryId};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest};
use agent_checkpoint_sqlite::SqliteStore;
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

use crate::{key, number_at, numbered};

fn opened() -> (TempDir, SqliteStore, Connection) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    (folder, store, other)
}

#[test]
fn a_document_whose_row_is_missing_is_an_error_and_not_a_key_without_one() {
    let (_folder, store, other) = opened();
    store.put(&key("a"), numbered(1)).unwrap();
    other.execute("DELETE FROM states", []).unwrap();
    let loaded = store.load(&key("a")).unwrap_err();
    assert_eq!(loaded.code(), "unreadable", "{loaded}");
    let saved = store.put(&key("a"), numbered(2)).unwrap_err();
    assert_eq!(saved.code(), "unreadable", "{saved}");
    // The remedy that the error names.
    other.execute("UPDATE keys SET present = NULL", []).unwrap();
    assert_eq!(number_at(&store, "a"), None);
    store.put(&key("a"), numbered(2)).unwrap();
}

#[test]
fn fingerprints_are_those_of_the_revision_that_they_were_saved_with() {
    let (_folder, store, other) = opened();
    let put = numbered(1).with_fingerprints(Some("prints".to_owned()));
    let saved = store.put(&key("a"), put).unwrap().revision;
    let of = |revision| store.beside().fingerprints(&key("a"), revision).unwrap();
    assert_eq!(of(&saved).as_deref(), Some("prints"));
    other
        .execute("UPDATE states SET text = '{\"n\":2}'", [])
        .unwrap();
    let edited = store.load(&key("a")).unwrap().unwrap().revision;
    assert_eq!(of(&edited), None);
}

#[test]
fn a_claim_that_cannot_be_read_is_taken_over_with_a_fence_that_is_higher_than_all_before() {
    let (_folder, store, other) = opened();
    let request = |owner: &str| ClaimRequest::new(owner, Duration::from_secs(60));
    let first = store.claim(&key("a"), &request("one")).unwrap();
    let take_over = request("two").taking_over();
    let second = store.claim(&key("a"), &take_over).unwrap();
    assert!(second.fence > first.fence);
    other.execute("UPDATE keys SET claim = '{'", []).unwrap();
    let refused = store.claim(&key("a"), &request("three")).unwrap_err();
    assert_eq!(refused.code(), "unreadable", "{refused}");
    let third = store
        .claim(&key("a"), &request("three").taking_over())
        .unwrap();
    assert!(third.fence > second.fence);
    let late = numbered(1).with_fence(second.fence);
    assert_eq!(store.put(&key("a"), late).unwrap_err().code(), "fenced");
    let mine = numbered(1).with_fence(third.fence);
    store.put(&key("a"), mine).unwrap();
}

#[test]
fn every_name_of_a_state_that_is_given_out_exists_and_is_its_only_one() {
    let (_folder, store, _) = opened();
    store.put(&key("a"), numbered(1)).unwrap();
    let history = store.history().unwrap();
    let current = EntryId::current();
    for pinned in [false, true, false] {
        let name = history.pin(&key("a"), &current, pinned).unwrap();
        history.load_revision(&key("a"), &name).unwrap();
    }
    store.put(&key("a"), numbered(2)).unwrap();
    history
        .load_revision(&key("a"), &"1".parse().unwrap())
        .unwrap();
    let alias = "+1".parse().unwrap();
    let error = history.load_revision(&key("a"), &alias).unwrap_err();
    assert_eq!(error.code(), "no-such-revision");
}

#[test]
fn a_ledger_of_which_a_row_is_missing_is_an_error() {
    let (_folder, store, other) = opened();
    for at in 0..3 {
        let line = format!("{{\"n\":{at}}}");
        let added = store.beside().append_to_ledger(&key("a"), &line, at, None);
        assert!(added.unwrap());
    }
    other
        .execute("DELETE FROM ledger WHERE position = 1", [])
        .unwrap();
    let error = store.beside().ledger(&key("a")).unwrap_err();
    assert_eq!(error.code(), "unreadable", "{error}");
    assert!(
        error
            .to_string()
            .contains("line 1 of its ledger is missing")
    );
}

#[test]
fn a_fleet_shows_what_waits() {
    let (_folder, store, _) = opened();
    crate::waiting::check_fleet(store);
}
