//! Faulty writers, made from the calls of a correct one.
//!
//! Each omits or moves a call as some real program does. If the explorer found nothing bad in their states, it would
//! prove nothing about the correct writer.

use std::path::{Path, PathBuf};

use super::step::Step;

fn is_temp(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.ends_with(".tmp")
}

/// No file is synced.
pub(crate) fn without_file_sync(steps: &[Step]) -> Vec<Step> {
    without(steps, |step| matches!(step, Step::Sync(_)))
}

/// No folder is synced.
pub(crate) fn without_folder_sync(steps: &[Step]) -> Vec<Step> {
    without(steps, |step| matches!(step, Step::SyncFolder(_)))
}

/// Folders are created, but their parents are not synced.
pub(crate) fn without_sync_of_parents(steps: &[Step]) -> Vec<Step> {
    let mut kept = Vec::new();
    let mut after_making = false;
    for step in steps {
        let left_out = after_making && matches!(step, Step::SyncFolder(_));
        after_making = matches!(step, Step::CreateFolder(_));
        if !left_out {
            kept.push(step.clone());
        }
    }
    kept
}

fn without(steps: &[Step], left_out: impl Fn(&Step) -> bool) -> Vec<Step> {
    let kept = steps.iter().filter(|step| !left_out(step));
    kept.cloned().collect()
}

/// The file is truncated and rewritten in place; it is synced, and there is no rename.
pub(crate) fn in_place(steps: &[Step]) -> Vec<Step> {
    let target = |temp: &PathBuf| {
        steps.iter().find_map(|step| match step {
            Step::Rename { from, to } if from == temp => Some(to.clone()),
            _ => None,
        })
    };
    let mut changed = Vec::new();
    for step in steps {
        match step {
            Step::Create(temp) if is_temp(temp) => {
                let target = target(temp).unwrap();
                changed.push(Step::Create(target.clone()));
                changed.push(Step::Cut(target, 0));
            }
            Step::Write(temp, at, bytes) if is_temp(temp) => {
                changed.push(Step::Write(target(temp).unwrap(), *at, bytes.clone()));
            }
            Step::SetTime { of, to: temp } if is_temp(temp) => changed.push(Step::SetTime {
                of: of.clone(),
                to: target(temp).unwrap(),
            }),
            Step::Sync(temp) if is_temp(temp) => changed.push(Step::Sync(target(temp).unwrap())),
            // The present file is not linked into the history, because it would change there, too.
            Step::Link { .. } => {}
            Step::Rename { from, .. } if is_temp(from) => {}
            other => changed.push(other.clone()),
        }
    }
    changed
}

/// The file is renamed first and synced afterwards.
pub(crate) fn rename_before_sync(steps: &[Step]) -> Vec<Step> {
    let mut changed = Vec::new();
    let mut late = None;
    for step in steps {
        match step {
            Step::Sync(temp) if is_temp(temp) => late = Some(temp.clone()),
            Step::Rename { from, to } if late.as_ref() == Some(from) => {
                changed.push(step.clone());
                changed.push(Step::Sync(to.clone()));
            }
            other => changed.push(other.clone()),
        }
    }
    changed
}

/// Moves the calls that `moved` picks to just before the first that `before` picks.
pub(crate) fn earlier(
    steps: &[Step],
    moved: impl Fn(&Step) -> bool,
    before: impl Fn(&Step) -> bool,
) -> Vec<Step> {
    let mut changed = without(steps, &moved);
    let at = changed.iter().position(before).unwrap();
    let early: Vec<Step> = steps.iter().filter(|step| moved(step)).cloned().collect();
    assert!(!early.is_empty());
    changed.splice(at..at, early);
    changed
}
