//! `ckpt recover`: continue from a checkpoint that cannot be read.

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::quoted;
use std::fmt;
use std::path::Path;

use agent_checkpoint::difference::{Change, ChangeKind, Difference};
use agent_checkpoint::formats::builder_state::{Slot, SlotPlace};
use agent_checkpoint::json::{Corrupt, Document, LeftOut};
use agent_checkpoint::store::{EntryId, RecoverOptions, Recovered, Recovery};
use agent_checkpoint::{Error, ErrorKind, Revision, RuleContext};
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::diff;
use crate::address::{Target, kept_host};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::named::newest_good;
use crate::output::{Outcome, stamp};
use crate::read;

#[derive(Serialize)]
struct Report<'r> {
    file: String,
    damage: Option<&'r Corrupt>,
    with: Recovery,
    entry: Option<&'r EntryId>,
    /// When the recovered state was written.
    written: Option<String>,
    /// Whether it may lack later reports.
    may_lack: bool,
    passed_over: &'r [EntryId],
    revision: Option<&'r Revision>,
    put_aside: Option<&'r str>,
    /// Content of the damaged text that the result lacks.
    lost: Option<&'r Difference>,
    /// Parts of the damaged text that could not be read.
    left_out: Vec<Piece<'r>>,
    /// The newest state in the history, if it plans steps that the result lacks.
    planned: Option<Planned>,
    /// The newest host file in the history, if it has checkpoints in slots that are empty now.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_slots: Option<LostSlots>,
}

/// Slots of a host file that have a checkpoint only in an earlier state.
#[derive(Serialize)]
struct LostSlots {
    entry: EntryId,
    slots: Vec<String>,
}

/// Steps that an earlier state plans and that are in no list of the result.
#[derive(Serialize)]
struct Planned {
    entry: EntryId,
    steps: Vec<String>,
}

/// A piece of the damaged text.
#[derive(Serialize)]
struct Piece<'r> {
    #[serde(flatten)]
    place: &'r LeftOut,
    /// If the piece is a whole document: its own time of the last change.
    document: Option<Whole>,
}

#[derive(Serialize)]
struct Whole {
    updated_at: Option<String>,
}

impl<'r> Piece<'r> {
    fn of(place: &'r LeftOut, target: &Target) -> Piece<'r> {
        let document = place.document.as_ref().map(|document| {
            let examined = target.format.inspect(document, &RuleContext::none()).ok();
            let updated_at = examined.and_then(|examined| examined.updated_at);
            Whole {
                updated_at: updated_at.map(|stamp| stamp.text().to_owned()),
            }
        });
        Piece { place, document }
    }
}

impl fmt::Display for Piece<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut {
            line,
            offset,
            bytes,
            at,
            ..
        } = self.place;
        match bytes {
            0 => write!(
                f,
                "line {line}, byte {offset}: a comma or bracket is missing"
            )?,
            _ => write!(f, "line {line}, bytes {offset}-{}", offset + bytes - 1)?,
        }
        match &self.document {
            Some(Whole { updated_at }) => {
                f.write_str(": a whole document")?;
                updated_at
                    .iter()
                    .try_for_each(|stamp| write!(f, " of {stamp}"))
            }
            None if at.is_empty() => Ok(()),
            None => write!(f, ", in {at}"),
        }
    }
}

/// How many pieces are listed for a person at most.
const MOST_LISTED: usize = 20;

pub(super) fn run(
    file: Option<&Path>,
    with: Recovery,
    global: &Global,
) -> Result<Outcome, Failure> {
    let target = Target::to_change(file, global).or_else(|failure| match failure.code {
        // A host file is recovered as a whole, whichever slot is meant.
        "ambiguous" if global.slot.is_none() => {
            let slot = Some(Slot::Top);
            Target::to_change(
                file,
                &Global {
                    slot,
                    ..global.clone()
                },
            )
        }
        _ => Err(failure),
    })?;
    if with == Recovery::Salvage {
        refuse_without_format(&target, global)?;
    }
    let options = RecoverOptions::new(with).with_fence(global.fence);
    let recovered = target.store().recover(&target.key, &options);
    let recovered = recovered.map_err(|error| with_advice(error, &target))?;
    let lost_slots = (with == Recovery::Salvage && recovered.damage.is_some())
        .then(|| lost_slots(&target, global))
        .flatten();
    let lost = lost(&target, &recovered);
    let planned = (with == Recovery::Salvage)
        .then(|| planned(&target, &recovered))
        .flatten();
    let mut outcome = Outcome::new();
    let written = recovered.written.map(DateTime::<Utc>::from);
    let written = written.map(stamp);
    let has_lost = lost.as_ref().is_some_and(|lost| !lost.is_empty());
    let is_part_lost = !recovered.left_out.is_empty();
    let pieces = recovered.left_out.iter();
    let pieces: Vec<Piece<'_>> = pieces.map(|piece| Piece::of(piece, &target)).collect();
    let has_lost = has_lost || lost_slots.is_some();
    if has_lost || is_part_lost || recovered.may_lack || !recovered.passed_over.is_empty() {
        outcome.found();
    }
    if target.slot.is_some()
        && recovered.damage.is_none()
        && recovered.entry.is_none()
        && matches!(target.load(), Ok(None))
        && let Some(past) = target.of_the_past(false)
    {
        outcome.note(format!("that is so of the file as a whole; {past}"));
    }
    if global.json {
        outcome.json(&Report {
            file: target.path.display().to_string(),
            damage: recovered.damage.as_ref(),
            with,
            entry: recovered.entry.as_ref(),
            written,
            may_lack: recovered.may_lack,
            passed_over: &recovered.passed_over,
            revision: recovered.saved.as_ref().map(|saved| &saved.revision),
            put_aside: recovered.put_aside.as_deref(),
            lost: lost.as_ref(),
            left_out: pieces,
            planned,
            lost_slots,
        });
        return Ok(outcome);
    }
    outcome.line(outcome_of(&recovered, target.require_file().is_ok()));
    if let Some(LostSlots { entry, slots }) = lost_slots {
        outcome.warn(format!(
            "the newest earlier state, {entry}, has checkpoints that the file now lacks: {}; `ckpt history --slot SLOT` \
             lists the states of each, `ckpt restore --slot SLOT --entry ENTRY` brings one back once its task is in the \
             file again",
            slots.join(", ")
        ));
    }
    if let (Some(_), None, Some(slot)) = (&recovered.entry, &recovered.saved, &global.slot) {
        outcome.warn(format!("it has no checkpoint in the slot {slot}"));
    }
    if recovered.may_lack {
        let of = written.map_or_else(String::new, |time| format!(", of {time}"));
        outcome.warn(match recovered.damage {
            Some(_) => format!(
                "it is the newest state before the damage{of}; what was reported after it is not in it: compare the \
                 work with it before going on"
            ),
            None => format!(
                "it is the newest state of the history{of}; any later reports are not in it: compare the work with \
                 it before you continue"
            ),
        });
    }
    for entry in &recovered.passed_over {
        outcome.warn(format!("{entry} is newer and cannot be read either"));
    }
    if let Some(aside) = &recovered.put_aside {
        outcome.note(format!("the damaged text is in {aside}"));
    }
    if !pieces.is_empty() {
        let mut listed: Vec<String> = pieces
            .iter()
            .take(MOST_LISTED)
            .map(ToString::to_string)
            .collect();
        let more = pieces.len().saturating_sub(MOST_LISTED);
        listed.extend((more > 0).then(|| format!("and {more} more; --json lists all")));
        let text = format!(
            "these parts of the damaged text could not be read, and were skipped:\n{}",
            listed.join("\n")
        );
        outcome.warn(text);
    }
    if let Some(lost) = lost.filter(|lost| !lost.is_empty()) {
        outcome.warn(format!(
            "the damaged text has what is not there now:\n{lost}"
        ));
    }
    if let Some(Planned { entry, steps }) = planned {
        let steps: Vec<String> = steps.iter().map(|step| quoted(step)).collect();
        outcome.warn(format!(
            "the newest earlier state, {entry}, plans steps that the checkpoint now lacks: {}; `ckpt diff --from \
             {entry}` compares the two, `ckpt restore --entry {entry}` brings it back",
            steps.join(", ")
        ));
    }
    Ok(outcome)
}

/// An error with further advice: states that no recovery uses are still in the history, or there is nothing at all.
fn with_advice(error: Error, target: &Target) -> Failure {
    let is_hopeless = matches!(error.kind(), ErrorKind::NotRecoverable { .. });
    let mut failure = target.error(error);
    let entries = target.store().states(&target.key).unwrap_or_default();
    if is_hopeless && entries.is_empty() && matches!(target.store().load(&target.key), Ok(None)) {
        let advice = "; check the place and --key, or begin with `ckpt start`";
        failure.message.push_str(advice);
    }
    let has_states = entries.iter().any(|entry| !entry.is_current());
    if is_hopeless && has_states {
        failure
            .message
            .push_str("; `ckpt history` lists the states");
        if target.slot.is_none() {
            failure.message.push_str(
                ", and `ckpt restore --entry ENTRY` brings one back, of a damaged file after `ckpt recover --fresh`",
            );
        }
    }
    failure
}

fn outcome_of(recovered: &Recovered, was_there: bool) -> String {
    let is_healthy = recovered.damage.is_none() && was_there;
    match (&recovered.saved, &recovered.entry) {
        (_, Some(entry)) => format!("went on with {entry}"),
        (None, None) if is_healthy => "nothing is wrong with it; nothing was changed".to_owned(),
        (None, None) if recovered.with == Recovery::Fresh => {
            "nothing is there any more; the next save begins anew".to_owned()
        }
        _ => "went on with the good part of the damaged text".to_owned(),
    }
}

/// Refuses to write a text that no verb would accept without `--format`.
fn refuse_without_format(target: &Target, global: &Global) -> Result<(), Failure> {
    if global.format.is_some() || !target.is_in_file() {
        return Ok(());
    }
    let Some(good) = read::good_part(&target.path, global.max_bytes)? else {
        return Ok(());
    };
    let why = match global.formats.detect(&target.path, Some(&good)) {
        Err(_) => {
            "the part that can be read has no member that shows its format, so it would not be a checkpoint"
        }
        // For a host file only the other slots may be left.
        Ok(_) => {
            let slot = |place: &SlotPlace| global.slot.as_ref().is_none_or(|it| *it == place.slot);
            let is_occupied = |place: &SlotPlace| place.occupied && slot(place);
            if target.slot.is_none() || Slot::places(&good).iter().any(is_occupied) {
                return Ok(());
            }
            "no checkpoint can be read in it"
        }
    };
    Err(Failure::exiting(
        Exit::Refused,
        format!(
            "{}: {why}; nothing was changed; continue with an earlier state (`ckpt recover`), or name the format \
             with --format {}",
            target.path.display(),
            target.format.name()
        ),
    ))
}

/// The slots with a checkpoint in the newest kept host file that are missing from the present one. A slot that is
/// `null` there was archived or deleted, and is not lost.
fn lost_slots(target: &Target, global: &Global) -> Option<LostSlots> {
    target.slot.as_ref()?;
    let (entry, before) = kept_host(&target.path, global)?;
    let now = read::checkpoint(&target.path, global).ok().flatten()?;
    let told = Slot::places(&now).into_iter();
    let told = told.filter(|place| now.get(&place.pointer).is_some());
    let told: Vec<Slot> = told.map(|place| place.slot).collect();
    let places = Slot::places(&before).into_iter();
    let lost = places.filter(|place| place.occupied && !told.contains(&place.slot));
    let slots: Vec<String> = lost.map(|place| place.slot.to_string()).collect();
    (!slots.is_empty()).then_some(LostSlots { entry, slots })
}

/// The steps that the newest state in the history plans and the result lacks.
fn planned(target: &Target, recovered: &Recovered) -> Option<Planned> {
    let now = recovered.document.as_ref()?;
    let entry = newest_good(target.store(), &target.key)?;
    let before = target.store().load_revision(&target.key, &entry).ok()?;
    let difference = diff::between(target, &before.document, now).ok()?;
    let dropped = difference.changes.iter().filter(|change| {
        change.kind() == ChangeKind::StepDropped && change.get("was") != Some("finished")
    });
    let steps = dropped.filter_map(|change| Some(change.get("step")?.to_owned()));
    let steps: Vec<String> = steps.collect();
    (!steps.is_empty()).then_some(Planned { entry, steps })
}

/// Content of the damaged text that the result lacks. The opposite is not reported: content that the damaged text lacks
/// may have been in its lost part.
fn lost(target: &Target, recovered: &Recovered) -> Option<Difference> {
    let now = recovered.document.as_ref()?;
    let damaged = recovered.salvaged.as_ref()?;
    let mut lost = diff::between(target, now, damaged).ok()?;
    lost.changes.retain(|change| is_there(change, damaged));
    Some(lost)
}

/// Whether a change describes content that the damaged text has, rather than content that it lacks.
fn is_there(change: &Change, damaged: &Document) -> bool {
    match change.kind() {
        // A status is often only derived from the steps that are left.
        ChangeKind::Status => damaged.root().get("status").is_some(),
        _ => !change.is_loss(),
    }
}
