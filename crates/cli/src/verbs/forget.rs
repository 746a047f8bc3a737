//! `ckpt forget`: remove everything that is kept of a task.

use std::path::Path;

use agent_checkpoint::store::DeleteOptions;
use agent_checkpoint::{Error, ErrorKind, Expect, Revision};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::address::Target;
use crate::failure::Failure;
use crate::global::Global;
use crate::named::shell_word;
use crate::output::Outcome;
use crate::report::count;

/// Everything that a store has of a task.
#[derive(Serialize)]
struct Report {
    file: String,
    applied: bool,
    /// Whether there is a checkpoint, intact or damaged.
    checkpoint: bool,
    /// Earlier states.
    states: usize,
    /// How many of these are pinned.
    pinned: usize,
    dropped: usize,
    /// The owner of the last claim.
    owner: Option<String>,
    /// Whether that claim is valid, so that its fence is required.
    #[serde(skip)]
    needs_fence: bool,
    /// Why the record of its claims is unreadable.
    #[serde(skip)]
    unreadable_claim: Option<String>,
}

pub(super) fn run(
    file: Option<&Path>,
    expect: Option<&str>,
    apply: bool,
    global: &Global,
) -> Result<Outcome, Failure> {
    let expect: Option<Revision> = expect.map(str::parse).transpose()?;
    let target = Target::to_forget(file, apply, global)?;
    if let Some(slot) = &target.slot {
        return Err(Failure::new(format!(
            "{}: the slot {slot} of a host file cannot be forgotten, since its history has whole copies of the file; \
             `ckpt archive` ends its task",
            target.path.display()
        )));
    }
    let now = global.now.unwrap_or_else(Utc::now);
    let mut report = found(&target, now).map_err(|error| target.error(error))?;
    if apply {
        let options = DeleteOptions::new()
            .with_expect(expect.map_or(Expect::Any, Expect::Revision))
            .with_fence(global.fence);
        let forgotten = target.store().forget(&target.key, &options);
        report.applied = forgotten.map_err(|error| match error.kind() {
            ErrorKind::Unreadable { .. } if report.unreadable_claim.is_some() => {
                Failure::new(format!("{error}; {}", take_over(&target)))
            }
            _ => target.error(error),
        })?;
    }
    let mut outcome = Outcome::new();
    if let Some(why) = &report.unreadable_claim {
        outcome.warn(format!("{why}; {}", take_over(&target)));
    }
    if global.json {
        outcome.json(&report);
        return Ok(outcome);
    }
    let checkpoint = report.checkpoint.then(|| "the checkpoint".to_owned());
    let states = match report.pinned {
        0 => count(report.states, "earlier state"),
        pinned => format!(
            "{}, {pinned} of them pinned",
            count(report.states, "earlier state")
        ),
    };
    let parts = [
        checkpoint,
        (report.states > 0).then_some(states),
        (report.dropped > 0).then(|| count(report.dropped, "dropped item")),
        report
            .owner
            .as_ref()
            .map(|owner| match report.needs_fence && !apply {
                true => format!("the claim of {owner}, whose --fence is required"),
                false => format!("the claim of {owner}"),
            }),
        // They are listed only when they are removed.
        Some("what is archived, backed up or quarantined of it".to_owned()).filter(|_| !apply),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let what = match parts.is_empty() {
        true => "what was archived, backed up or quarantined of it".to_owned(),
        false => parts.join("; "),
    };
    outcome.line(match (apply, report.applied) {
        (false, _) => {
            format!("would be removed for good, with --apply: {what}; nothing was changed")
        }
        (true, true) => format!("removed for good: {what}"),
        (true, false) => "nothing is kept of it".to_owned(),
    });
    Ok(outcome)
}

/// The advice for a task whose claims are unreadable: a new claim has a fence.
fn take_over(target: &Target) -> String {
    let words = match target.is_in_file() {
        true => shell_word(&target.path.display().to_string()),
        false => target.words(),
    };
    format!(
        "`ckpt claim {words} --agent A --take-over` does that and prints its fence, with which \
         `ckpt forget {words} --apply --fence N` removes the task"
    )
}

fn found(target: &Target, now: DateTime<Utc>) -> Result<Report, Error> {
    let (store, key) = (target.store(), &target.key);
    let checkpoint = match store.load(key) {
        Ok(stored) => stored.is_some(),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt(_)) => true,
        Err(error) => return Err(error),
    };
    let mut states = match store.history() {
        Some(history) => history.states(key)?,
        None => Vec::new(),
    };
    states.retain(|entry| !entry.is_current());
    let (claim, unreadable_claim) = match store.claims().map(|claims| claims.claimed(key)) {
        None => (None, None),
        Some(Err(error)) if matches!(error.kind(), ErrorKind::Unreadable { .. }) => {
            (None, Some(error.to_string()))
        }
        Some(claim) => (claim?, None),
    };
    let owner = claim.filter(|claim| !claim.is_only_fence());
    Ok(Report {
        file: target.path.display().to_string(),
        applied: false,
        checkpoint,
        pinned: states.iter().filter(|entry| entry.pinned).count(),
        states: states.len(),
        dropped: store.beside().dropped(key)?.len(),
        needs_fence: owner.as_ref().is_some_and(|claim| claim.stands(now)),
        unreadable_claim,
        owner: owner.map(|claim| claim.owner),
    })
}
