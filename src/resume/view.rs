//! The data that a template sees.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{ForeignMember, PromptOptions, Resume, ResumePlan};
use crate::checkpoint::{DoneItem, FUTURE_TOLERANCE, Handoff, ItemState};
use crate::json::Violation;
use crate::ledger::ProofStatus;
use crate::staleness::TrackedFile;

/// How much is omitted, the least important first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// How many finished steps, the oldest first.
    pub(super) steps: usize,
    /// How many reasons of decisions, the oldest first.
    pub(super) reasons: usize,
    /// Whether the notes in undeclared members are omitted.
    pub(super) notes: bool,
}

#[derive(Serialize)]
pub(super) struct View<'r> {
    format: &'r str,
    task: &'r str,
    description: Option<&'r str>,
    plan: &'r ResumePlan,
    staleness: Files<'r>,
    handoff: Handoff,
    earlier: &'r [DoneItem],
    criteria: &'r [String],
    violations: &'r [Violation],
    worked_on_by: String,
    omitted: usize,
    omitted_reasons: usize,
    omitted_notes: bool,
    foreign: Vec<ForeignMember>,
    file: Option<&'r str>,
    recording: &'r [String],
    /// Files that no warning names.
    review: Vec<&'r TrackedFile>,
    /// The status of the proofs of finished work, by its text.
    proofs: BTreeMap<&'r str, &'static str>,
    changed: String,
    now: String,
    last_update: String,
    minutes: i64,
    own: Plain<'r>,
    given: BTreeMap<&'r str, Plain<'r>>,
}

#[derive(Serialize)]
struct Files<'r> {
    verdict: &'r str,
    files: &'r [TrackedFile],
}

impl<'r> View<'r> {
    pub(super) fn new(resume: &'r Resume, options: &'r PromptOptions, left_out: LeftOut) -> Self {
        let mut handoff = resume.handoff.clone();
        handoff.only_what_is_left(resume.work_has_ids);
        let unreadable = std::mem::take(&mut handoff.unreadable);
        for item in unreadable.iter().filter(|item| item.state.is_work()) {
            let text = format!("({}, which could not be read)", item.name());
            match item.state {
                ItemState::Finished => handoff.done.push(DoneItem::new(text)),
                _ => handoff.pending.push(text),
            }
        }
        handoff.unreadable = unreadable;
        handoff.done.drain(..left_out.steps);
        let reasons = handoff.decisions.iter_mut();
        reasons
            .filter(|decision| decision.rationale.is_some())
            .take(left_out.reasons)
            .for_each(|decision| decision.rationale = None);
        let (minutes, last_update) = age(resume);
        let named = super::plan::named_in_warnings(&resume.staleness);
        let files = resume.staleness.files().iter();
        let mut foreign = resume.foreign.clone();
        if left_out.notes {
            foreign.iter_mut().for_each(|member| member.note = None);
        }
        View {
            format: resume.format,
            task: &resume.task,
            description: resume.description.as_deref(),
            plan: &resume.plan,
            staleness: Files {
                verdict: resume.staleness.as_str(),
                files: resume.staleness.files(),
            },
            handoff,
            earlier: &resume.earlier,
            criteria: &resume.criteria,
            violations: &resume.violations,
            worked_on_by: resume.worked_on_by(),
            omitted: resume.done_elsewhere() + left_out.steps,
            omitted_reasons: left_out.reasons,
            omitted_notes: left_out.notes,
            foreign,
            file: resume.file.as_deref(),
            recording: &resume.recording,
            review: files
                .filter(|file| !named.contains(file.path.as_str()))
                .collect(),
            proofs: resume
                .proofs
                .with_proof()
                .filter(|item| item.is_finished)
                .map(|item| (item.item.as_str(), worth(&item.status)))
                .collect(),
            changed: changed(resume),
            now: minute(resume.now),
            last_update,
            minutes,
            own: Plain(&resume.own),
            given: options
                .values
                .iter()
                .map(|(name, value)| (name.as_str(), Plain(value)))
                .collect(),
        }
    }
}

fn worth(status: &ProofStatus) -> &'static str {
    match status {
        ProofStatus::Reported => "reported",
        ProofStatus::Proven => "proven",
        ProofStatus::Failed { .. } => "its proof failed",
        ProofStatus::Outdated { .. } => "its proof is outdated",
    }
}

/// The whole minutes since the last update, and a text for its time.
fn age(resume: &Resume) -> (i64, String) {
    let stamp = resume.handoff.updated_at.as_ref();
    let Some(time) = stamp.and_then(|stamp| stamp.time()) else {
        return (0, "at an unknown time".to_owned());
    };
    let age = resume.now.signed_duration_since(time);
    let minutes = age.num_minutes().max(0);
    let at = minute(time.to_utc());
    if age < -FUTURE_TOLERANCE {
        (0, format!("at {at} (ahead of the clock here)"))
    } else {
        (minutes, format!("at {at} ({minutes} minutes ago)"))
    }
}

/// A text for the time of the last change, also for one long ago.
fn changed(resume: &Resume) -> String {
    let stamp = resume.handoff.updated_at.as_ref();
    let Some(time) = stamp.and_then(|stamp| stamp.time()) else {
        return "at an unknown time".to_owned();
    };
    let age = resume.now.signed_duration_since(time);
    let minutes = age.num_minutes();
    let ago = match (minutes, minutes / 60) {
        _ if age < -FUTURE_TOLERANCE => "ahead of the clock here".to_owned(),
        (..=0, _) => "just now".to_owned(),
        (1, _) => "1 minute ago".to_owned(),
        (minutes @ ..120, _) => format!("{minutes} minutes ago"),
        (_, hours @ ..48) => format!("{hours} hours ago"),
        (_, hours) => format!("{} days ago", hours / 24),
    };
    format!("at {} ({ago})", minute(time.to_utc()))
}

fn minute(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M").to_string()
}

/// A value whose numbers serialize as numbers. If another crate of the program enables serde_json's feature
/// `arbitrary_precision`, a number would serialize as a map with a private name.
pub(super) struct Plain<'v>(pub(super) &'v Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_none(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::String(text) => serializer.serialize_str(text),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(whole), ..) => serializer.serialize_i64(whole),
                (None, Some(whole), _) => serializer.serialize_u64(whole),
                (None, None, Some(number)) => serializer.serialize_f64(number),
                (None, None, None) => serializer.serialize_str(&number.to_string()),
            },
            Value::Array(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&Plain(value))?;
                }
                list.end()
            }
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, &Plain(value))?;
                }
                map.end()
            }
        }
    }
}
