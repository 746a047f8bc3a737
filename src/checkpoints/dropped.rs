//! The items that saves moved out of a checkpoint. They are still part of its task.

use serde_json::Value;

use super::Checkpoints;
use crate::checkpoint::{Checkpoint, DoneIndex, DoneItem, Dropped, Handoff, Key, Result};

/// Of how many of the newest dropped items a resume or a fingerprint record reads the files.
pub(crate) const NEWEST: usize = 1000;

impl<C: Checkpoint> Checkpoints<C> {
    /// The items that saves dropped from this checkpoint to stay within their limits, oldest first.
    ///
    /// # Errors
    ///
    /// Those of [`Beside::dropped`](crate::store::Beside::dropped).
    pub fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.store.beside().dropped(key)
    }

    /// The finished work that saves dropped from this checkpoint, oldest first, without items that it still contains.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Checkpoints::get) and of [`Beside::dropped`](crate::store::Beside::dropped).
    pub fn earlier(&self, key: &Key) -> Result<Vec<DoneItem>> {
        let loaded = self.get(key)?;
        let dropped = self.store.beside().dropped(key)?;
        let cut = cut_from(&dropped, &loaded.checkpoint);
        Ok(cut.iter().flat_map(|cut| cut.handoff().done).collect())
    }

    /// Completes a hand-off from the dropped log. It adds how much finished work is only in the log, and
    /// restores reasons of decisions that an earlier version shortened.
    ///
    /// # Errors
    ///
    /// Those of [`Beside::newest_dropped`](crate::store::Beside::newest_dropped).
    pub fn complete_handoff(&self, key: &Key, checkpoint: &C, handoff: Handoff) -> Result<Handoff> {
        let dropped = self.store.beside().newest_dropped(key, NEWEST)?;
        let cut = cut_from(&dropped, checkpoint);
        self.completed(key, handoff, &dropped, &cut)
    }

    pub(super) fn completed(
        &self,
        key: &Key,
        mut handoff: Handoff,
        dropped: &[Dropped],
        cut: &[C],
    ) -> Result<Handoff> {
        if dropped.is_empty() && handoff.done_elsewhere == 0 {
            return Ok(handoff);
        }
        let found = if dropped.len() < NEWEST {
            cut.iter().map(|cut| cut.handoff().done.len() as u64).sum()
        } else {
            let all = self.store.beside().dropped(key)?;
            count_cut(&all, &handoff, |value| {
                Some(C::deserialize(value).ok()?.handoff())
            })
        };
        let log = self.store.beside().dropped_log(key)?;
        if found > handoff.done_elsewhere {
            handoff.done_elsewhere = found;
            handoff.elsewhere.clone_from(&log);
        }
        // An archived or copied checkpoint names the log of its former place, so the number of missing items is unknown.
        let was_searched = handoff.elsewhere.is_none() || handoff.elsewhere == log;
        if was_searched {
            handoff.elsewhere_missing = handoff.done_elsewhere.saturating_sub(found);
        }
        let whole = dropped
            .iter()
            .filter(|piece| piece.pointer.ends_with("/rationale"));
        let whole: Vec<&str> = whole.filter_map(|piece| piece.value.as_str()).collect();
        for decision in &mut handoff.decisions {
            let stump = decision.rationale.as_deref();
            let stump = stump.and_then(|reason| reason.strip_suffix(&*self.limits.mark));
            let Some(stump) = stump.filter(|stump| !stump.is_empty()) else {
                continue;
            };
            let mut newest = whole.iter().rev();
            if let Some(whole) = newest.find(|whole| whole.starts_with(stump)) {
                decision.rationale = Some((*whole).to_owned());
            }
        }
        Ok(handoff)
    }
}

/// The dropped list elements, each as a checkpoint of its own, without those that the checkpoint still
/// contains: after a crash the log may list items that were not dropped after all.
pub(super) fn cut_from<C: Checkpoint>(dropped: &[Dropped], checkpoint: &C) -> Vec<C> {
    if dropped.is_empty() {
        return Vec::new();
    }
    let here = checkpoint.handoff().done;
    let here = DoneIndex::of(&here);
    dropped
        .iter()
        .filter_map(as_checkpoint::<C>)
        .filter(|cut| !cut.handoff().done.iter().any(|done| here.has(done)))
        .collect()
}

/// A dropped list element as a checkpoint with only this element, so that its format can name its files.
pub(super) fn as_checkpoint<C: Checkpoint>(dropped: &Dropped) -> Option<C> {
    serde_json::from_value(alone(dropped)?).ok()
}

/// How many of these finished steps are missing from a checkpoint with this hand-off. `handoff_of` reads one
/// checkpoint made of all dropped items at once, because a supervisor asks this of many checkpoints.
pub(crate) fn count_cut(
    dropped: &[Dropped],
    here: &Handoff,
    handoff_of: impl FnOnce(&Value) -> Option<Handoff>,
) -> u64 {
    let mut lists = serde_json::Map::new();
    for piece in dropped.iter().filter_map(alone) {
        let Value::Object(piece) = piece else {
            continue;
        };
        for (list, items) in piece {
            match (lists.get_mut(&list), items) {
                (Some(Value::Array(all)), Value::Array(items)) => all.extend(items),
                (_, items) => {
                    lists.insert(list, items);
                }
            }
        }
    }
    let here = DoneIndex::of(&here.done);
    let cut = handoff_of(&Value::Object(lists)).unwrap_or_default().done;
    cut.iter().filter(|done| !here.has(done)).count() as u64
}

fn alone(dropped: &Dropped) -> Option<Value> {
    let mut tokens = crate::json::pointer::split(&dropped.pointer);
    let list = tokens.next()?.into_owned();
    let _index = tokens.next()?;
    if tokens.next().is_some() || !dropped.value.is_object() {
        return None;
    }
    Some(serde_json::json!({ list: [dropped.value] }))
}
