//! Whether what is there is an older state that came back without the store.

use crate::checkpoint::{Key, Result, Revision, Timestamp};
use crate::json::Document;
use crate::staleness::Reason;
use crate::store::CheckpointStore;

/// What speaks against the state of the revision `present` as one that came back; `own` reads its stamp, `stamp_of`
/// that of another state. Where the last save wrote this state, neither is called.
///
/// One that is in no entry any more is known by its stamp: who edits a checkpoint in place does not make it older
/// than the state before its last save. What a restore wrote last is an entry itself, and may be older than the others:
/// then it is the state to compare with.
pub(crate) fn came_back(
    store: &dyn CheckpointStore,
    key: &Key,
    present: &Revision,
    own: impl FnOnce() -> Option<Timestamp>,
    stamp_of: &dyn Fn(&Document) -> Option<Timestamp>,
) -> Result<Option<Reason>> {
    let Some(history) = store.history() else {
        return Ok(None);
    };
    let Some(saved) = history.changed_without(key, present)? else {
        return Ok(None);
    };
    if let Some(back) = history.rolled_back(key, present)? {
        return Ok(Some(back.into()));
    }
    let Some(own) = own().and_then(|own| own.time()) else {
        return Ok(None);
    };
    let states = history.states(key)?;
    let mut of_this_task = states
        .iter()
        .filter(|entry| !entry.is_current() && entry.tasks_since == 0);
    let Some(newest) = of_this_task.next() else {
        return Ok(None);
    };
    let mut restored = states.iter().filter(|entry| !entry.is_current());
    let restored = restored.find(|entry| {
        let written = entry.revision.as_ref();
        written.is_ok_and(|it| matches!(history.changed_without(key, it), Ok(None)))
    });
    let before = restored.unwrap_or(newest);
    let kept = history.load_revision(key, &before.id).ok();
    let kept = kept.and_then(|kept| stamp_of(&kept.document)?.time());
    Ok(kept.filter(|kept| own < *kept).map(|_| Reason::RolledBack {
        later: Some(newest.id.clone()),
        saved: saved.into(),
        last_is_kept: false,
    }))
}
