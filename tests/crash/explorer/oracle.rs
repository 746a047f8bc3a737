//! What a store must do with any state that a crash left.

use std::path::Path;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put, Query, RecoverOptions, Recovery};
use agent_checkpoint::{Error, ErrorKind, Fence, Key};

use super::scenario::{Look, Recorded, Scenario};

/// The content of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    Text(String),
    Corrupt,
    /// It could not be determined, which is never allowed.
    Failed(String),
}

pub(crate) fn observe(store: &dyn CheckpointStore, key: &Key) -> Seen {
    match store.load(key) {
        Ok(None) => Seen::Nothing,
        Ok(Some(stored)) => Seen::Text(stored.document.text().to_owned()),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt(_)) => Seen::Corrupt,
        Err(error) => Seen::Failed(error.to_string()),
    }
}

/// Judges the state that a crash left in `folder`.
pub(crate) fn judge(
    scenario: &Scenario,
    recorded: &Recorded,
    acknowledged: usize,
    folder: &Path,
) -> Result<(), String> {
    if scenario.foreign && acknowledged == 0 {
        return Ok(());
    }
    let store = &*(scenario.open)(folder);
    let key = &scenario.key;
    let oldest = if scenario.may_be_older {
        0
    } else {
        acknowledged
    };
    let seen = &recorded.seen;
    let allowed = &seen[oldest..seen.len().min(acknowledged + 2)];
    let found = &observe(store, key);
    if !allowed.contains(found) {
        return Err(format!("found {found:?}, allowed are {allowed:?}"));
    }
    history_is_real(store, key, found, recorded)?;
    // Listing reports an unreadable host file.
    if *found != Seen::Corrupt {
        let listed = store.list(&Query::all()).map_err(told("list"))?;
        let is_there = *found != Seen::Nothing;
        if listed.keys().any(|it| it == key) != is_there || !listed.foreign.is_empty() {
            return Err(format!("{found:?} is listed as {listed:?}"));
        }
        store
            .beside()
            .dropped(key)
            .map_err(told("read what was cut"))?;
    }
    (scenario.also)(&Look {
        store,
        folder,
        acknowledged,
        found,
    })?;
    next_save_works(store, key)
}

pub(crate) fn told(what: &str) -> impl Fn(Error) -> String {
    move |error| format!("cannot {what}: {error} ({:?})", error.kind())
}

/// Every entry is readable, and is a state that existed.
fn history_is_real(
    store: &dyn CheckpointStore,
    key: &Key,
    found: &Seen,
    recorded: &Recorded,
) -> Result<(), String> {
    for entry in store.states(key).map_err(told("list the history"))? {
        if entry.is_current() && *found == Seen::Corrupt {
            continue;
        }
        let loaded = store.load_revision(key, &entry.id);
        let text = loaded.map_err(told("load an entry of the history"))?;
        let text = Seen::Text(text.document.text().to_owned());
        if !recorded.seen.contains(&text) && !recorded.past.contains(&text) {
            return Err(format!("{} in the history never was: {text:?}", entry.id));
        }
    }
    Ok(())
}

/// All states in the history of a key.
pub(crate) fn past(store: &dyn CheckpointStore, key: &Key) -> Vec<Seen> {
    let entries = store.states(key).unwrap_or_default();
    let texts = entries.iter().filter_map(|entry| {
        let stored = store.load_revision(key, &entry.id).ok()?;
        Some(Seen::Text(stored.document.text().to_owned()))
    });
    texts.collect()
}

/// The fence to write with now.
pub(crate) fn fence(store: &dyn CheckpointStore, key: &Key) -> Result<Option<Fence>, String> {
    if store.claims().is_none() {
        return Ok(None);
    }
    let claim = store.claimed(key).map_err(told("tell the claim"))?;
    Ok(claim
        .filter(|claim| !claim.released)
        .map(|claim| claim.fence))
}

/// In any state after a crash, the next save works and loses nothing that was there.
pub(crate) fn next_save_works(store: &dyn CheckpointStore, key: &Key) -> Result<(), String> {
    let fence = fence(store, key)?;
    let next = r#"{"next": "save", "completedSteps": []}"#;
    let document = Document::from_text(next).unwrap();
    if observe(store, key) == Seen::Corrupt {
        match store.put(key, Put::new(document.clone()).with_fence(fence)) {
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt(_)) => {}
            other => return Err(format!("a corrupt checkpoint was written over: {other:?}")),
        }
        let recover = RecoverOptions::new(Recovery::Newest).with_fence(fence);
        if store.recover(key, &recover).is_err() {
            let recover = RecoverOptions::new(Recovery::Fresh).with_fence(fence);
            store.recover(key, &recover).map_err(told("recover"))?;
        }
    }
    let before = observe(store, key);
    store
        .put(key, Put::new(document.clone()).with_fence(fence))
        .map_err(told("save next"))?;
    let loaded = store.load(key).map_err(told("load what was saved next"))?;
    let loaded = loaded.map(|stored| stored.document.text().to_owned());
    if loaded.as_deref().map(without_space) != Some(without_space(next)) {
        return Err(format!("the next save reads back as {loaded:?}"));
    }
    if let (Seen::Text(text), true) = (&before, store.history().is_some()) {
        let entries = store.states(key).map_err(told("list the history"))?;
        let newest = entries.get(1).ok_or("what was replaced is not kept")?;
        let kept = store.load_revision(key, &newest.id);
        let kept = kept.map_err(told("load what was replaced"))?;
        if kept.document.text() != text {
            return Err(format!("kept is {kept:?} in place of {text}"));
        }
    }
    Ok(())
}

/// A host file reformats a text that comes from elsewhere.
fn without_space(text: &str) -> String {
    text.split_whitespace().collect()
}
