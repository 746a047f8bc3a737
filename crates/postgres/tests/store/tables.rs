//! Changes to the tables by another program.

use agent_checkpoint::store::{CheckpointStore, DeleteOptions, EntryId, RecoverOptions, Recovery};
use agent_checkpoint::{CheckpointStoreExt, DropReason, Dropped};
use agent_checkpoint_postgres::PostgresStore;

use crate::cluster::{fresh_schema, need_server, shared};
use crate::{hour, key, number_at, numbered};

/// A store, and a closure with which another program changes its tables.
fn opened() -> (PostgresStore, impl FnMut(&str)) {
    let schema = fresh_schema();
    let store = PostgresStore::open_in(&shared().address(), &schema).unwrap();
    let mut other = shared().client();
    let set = format!("SET search_path TO {schema}");
    other.batch_execute(&set).unwrap();
    (store, move |sql: &str| other.batch_execute(sql).unwrap())
}

#[test]
fn a_document_whose_row_is_missing_is_an_error_and_not_a_key_without_one() {
    need_server!();
    let (store, mut other) = opened();
    store.put(&key("a"), numbered(1)).unwrap();
    other("DELETE FROM states");
    let loaded = store.load(&key("a")).unwrap_err();
    assert_eq!(loaded.code(), "unreadable", "{loaded}");
    let saved = store.put(&key("a"), numbered(2)).unwrap_err();
    assert_eq!(saved.code(), "unreadable", "{saved}");
    // The remedy that the error names.
    other("UPDATE checkpoints SET present = NULL");
    assert_eq!(number_at(&store, "a"), None);
    store.put(&key("a"), numbered(2)).unwrap();
}

#[test]
fn fingerprints_are_those_of_the_revision_that_they_were_saved_with() {
    need_server!();
    let (store, mut other) = opened();
    // Even one that a PostgreSQL text cannot hold.
    let prints = Some("prints\0".to_owned());
    let put = numbered(1).with_fingerprints(prints.clone());
    let saved = store.put(&key("a"), put).unwrap().revision;
    let of = |revision| store.beside().fingerprints(&key("a"), revision).unwrap();
    assert_eq!(of(&saved), prints);
    store.claim(&key("a"), &hour("one")).unwrap();
    assert_eq!(of(&saved), prints);
    other("UPDATE states SET text = '{\"n\":2}'");
    let edited = store.load(&key("a")).unwrap().unwrap().revision;
    assert_eq!(of(&edited), None);
}

#[test]
fn a_claim_that_cannot_be_read_is_taken_over_with_a_fence_that_is_higher_than_all_before() {
    need_server!();
    let (store, mut other) = opened();
    let first = store.claim(&key("a"), &hour("one")).unwrap();
    let take_over = hour("two").taking_over();
    let second = store.claim(&key("a"), &take_over).unwrap();
    assert!(second.fence > first.fence);
    other("UPDATE checkpoints SET claim = '{'");
    let refused = store.claim(&key("a"), &hour("three")).unwrap_err();
    assert_eq!(refused.code(), "unreadable", "{refused}");
    let third = store.claim(&key("a"), &hour("three").taking_over());
    let third = third.unwrap();
    assert!(third.fence > second.fence);
    let late = numbered(1).with_fence(second.fence);
    assert_eq!(store.put(&key("a"), late).unwrap_err().code(), "fenced");
    let mine = numbered(1).with_fence(third.fence);
    store.put(&key("a"), mine).unwrap();
}

#[test]
fn every_name_of_a_state_that_is_given_out_exists_and_is_its_only_one() {
    need_server!();
    let (store, _) = opened();
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

/// One statement removes the items of the ended task and inserts the same ones for the new task.
#[test]
fn an_item_that_the_task_before_dropped_too_is_kept_of_the_new_one() {
    need_server!();
    let (store, _) = opened();
    let item = |number: usize| Dropped::new("/x", DropReason::Elements(number), 7.into());
    for count in 1..4 {
        let items: Vec<Dropped> = (0..count).map(item).collect();
        let put = numbered(count as u64).with_dropped(items.clone());
        store.put(&key("a"), put).unwrap();
        assert_eq!(store.beside().dropped(&key("a")).unwrap(), items);
        store.delete(&key("a"), &DeleteOptions::new()).unwrap();
    }
}

#[test]
fn a_name_that_is_no_key_is_listed_as_foreign() {
    need_server!();
    let (store, mut other) = opened();
    store.put(&key("a"), numbered(1)).unwrap();
    other("UPDATE checkpoints SET name = ' a'");
    let page = store.list(&agent_checkpoint::store::Query::all()).unwrap();
    assert!(page.entries.is_empty());
    assert_eq!(page.foreign, [" a"]);
}

#[test]
fn a_damaged_text_of_which_nothing_can_be_read_is_not_to_be_salvaged() {
    need_server!();
    let (store, mut other) = opened();
    store.put(&key("a"), numbered(1)).unwrap();
    store.delete(&key("a"), &DeleteOptions::new()).unwrap();
    store.put(&key("a"), numbered(2)).unwrap();
    other("UPDATE states SET text = 'x' WHERE number = 2");
    let refused = store.recover(&key("a"), &RecoverOptions::new(Recovery::Newest));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("of earlier tasks"), "{refused}");
    assert!(refused.contains("start fresh"), "{refused}");
    assert!(!refused.contains("salvage"), "{refused}");
}

#[test]
fn a_ledger_of_which_a_row_is_missing_is_an_error() {
    need_server!();
    let (store, mut other) = opened();
    for at in 0..3 {
        let line = format!("{{\"n\":{at}}}");
        let added = store.beside().append_to_ledger(&key("a"), &line, at, None);
        assert!(added.unwrap());
    }
    other("DELETE FROM ledger WHERE position = 1");
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
    need_server!();
    let (store, _) = opened();
    crate::waiting::check_fleet(store);
}
