//! Whether the present state is an older one that was put back without the store.

use crate::checkpoint::{Key, Result, Revision, Timestamp};
use crate::json::Document;
use crate::staleness::Reason;
use crate::store::CheckpointStore;

/// The reason why the state with the revision `present` counts as rolled back. `own` reads its stamp, and
/// `stamp_of` that of another state. Neither is called if the last save wrote the present state.
///
/// A rolled-back state that is no longer an entry is recognised by its stamp: an edit in place does not make a
/// checkpoint older than the state before its last save. A state that a restore wrote last is an entry itself
/// and may be older than the others, so it is the one to compare with.
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
