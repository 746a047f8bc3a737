//! The events of a task in the order of their times.
//!
//! The checkpoint lists finished steps and decisions, mostly with times. The history has the states between which its
//! agent and its plan changed. The ledger has effects, approvals, proofs and ended attempts. Between two of these
//! signals the agent was silent.

use std::collections::BTreeSet;

use agent_checkpoint::difference::{Change, ChangeKind, Difference};
use agent_checkpoint::fleet::Row;
use agent_checkpoint::json::Document;
use agent_checkpoint::ledger::{ApprovalStatus, EffectStatus};
use agent_checkpoint::liveness::{Liveness, Pulse, Thresholds};
use agent_checkpoint::resume::Resume;
use agent_checkpoint::{CheckpointStoreExt, Handoff, RuleContext, Timestamp};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::address::Target;
use crate::report::count;
use crate::verbs::status::tables::span;

/// The data of a task besides its row.
pub(super) struct Task {
    pub(super) resume: Resume,
    pub(super) timeline: Timeline,
}

/// The known past of a task.
pub(super) struct Timeline {
    /// The events, oldest first.
    pub(super) entries: Vec<Entry>,
    /// How many earlier events are omitted.
    pub(super) hidden: usize,
    /// Why the earlier states are unknown, if they are.
    pub(super) unknown: Option<String>,
}

/// An event.
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) time: Time,
    /// The raw text of the checkpoint; only shown texts are sanitized.
    pub(super) text: String,
    pub(super) details: Vec<String>,
    /// Its place in the order: its time, and then its rank at that time.
    place: (Option<DateTime<Utc>>, Turn),
}

/// The order of events with the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// The silence that ends at that time.
    Silence,
    Handover,
    Event,
}

/// The time of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Time {
    At(DateTime<Utc>),
    /// In the future.
    Ahead(DateTime<Utc>),
    Between(DateTime<Utc>, DateTime<Utc>),
    /// A text in the place of a time.
    Written(String),
    Unknown,
}

/// The kinds of entries, with the names that the page has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Begun,
    Done,
    Decided,
    Handover,
    Saved,
    Blocked,
    Unblocked,
    Effect,
    Approval,
    Proof,
    Attempt,
    Claim,
    Late,
    Gap,
    Damaged,
}

impl Kind {
    /// The kind of a change that becomes a separate entry.
    fn of_change(change: ChangeKind) -> Option<Kind> {
        match change {
            ChangeKind::StepBegun => Some(Kind::Begun),
            ChangeKind::StepFinished => Some(Kind::Done),
            ChangeKind::DecisionMade => Some(Kind::Decided),
            ChangeKind::BlockerRaised => Some(Kind::Blocked),
            ChangeKind::BlockerCleared => Some(Kind::Unblocked),
            _ => None,
        }
    }

    /// The word before the text.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Begun => "begun",
            Kind::Done => "done",
            Kind::Decided => "decided",
            Kind::Handover => "hand-over",
            Kind::Saved => "saved",
            Kind::Blocked => "blocked",
            Kind::Unblocked => "unblocked",
            Kind::Effect => "effect",
            Kind::Approval => "approval",
            Kind::Proof => "proof",
            Kind::Attempt => "attempt",
            Kind::Claim => "claim",
            Kind::Late => "late",
            Kind::Gap => "gap",
            Kind::Damaged => "damaged",
        }
    }
}

impl Timeline {
    /// The timeline of a task with at most this many entries.
    pub(super) fn of(
        target: &Target,
        resume: &Resume,
        row: &Row,
        thresholds: &Thresholds,
        most: usize,
    ) -> Timeline {
        let mut past = Past {
            entries: Vec::new(),
            signals: Vec::new(),
            now: resume.now,
            latest: resume.now + thresholds.tolerance,
        };
        past.add_steps(resume);
        let states = states(target, most);
        past.add_states(&states.known, &resume.handoff, resume);
        past.add_hand_overs(&resume.handoff);
        past.add_effects(resume);
        past.add_approvals(resume);
        past.add_proofs(resume);
        past.add_attempts(resume);
        past.add_claim(row);
        past.add_silences(&states.known, thresholds);
        past.add_present_silence(row);
        let mut entries = past.entries;
        entries.sort_by_key(|entry| entry.place);
        let hidden = entries.len().saturating_sub(most);
        entries.drain(..hidden);
        Timeline {
            entries,
            hidden: hidden + states.hidden,
            unknown: states.unknown,
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The history

/// The states of the present task in the history.
#[derive(Default)]
struct States {
    /// Oldest first.
    known: Vec<State>,
    /// How many older states were not read.
    hidden: usize,
    unknown: Option<String>,
}

/// A state of the task.
struct State {
    /// When it was saved: its own stamp, else the time in the store.
    at: Option<DateTime<Utc>>,
    found: Result<Read, String>,
}

/// The content of a readable state.
struct Read {
    document: Document,
    handoff: Handoff,
    pulse: Pulse,
}

/// The newest states of the task, at most `most`.
fn states(target: &Target, most: usize) -> States {
    let unknown = |reason: String| States {
        unknown: Some(reason),
        ..States::default()
    };
    if target.store().history().is_none() {
        return unknown("this store keeps no earlier states".to_owned());
    }
    let listed = match target.store().states(&target.key) {
        Ok(listed) => listed,
        Err(error) => return unknown(error.to_string()),
    };
    let of_task: Vec<_> = listed
        .iter()
        .filter(|entry| entry.tasks_since == 0)
        .collect();
    let mut known = Vec::new();
    for entry in of_task.iter().take(most) {
        let saved = entry.saved.map(DateTime::<Utc>::from);
        let read = target
            .store()
            .load_revision(&target.key, &entry.id)
            .and_then(|stored| {
                let inspected = target
                    .format
                    .inspect(&stored.document, &RuleContext::none())?;
                Ok((stored.document, inspected))
            });
        known.push(match read {
            Ok((document, inspected)) => {
                let stamp = inspected.updated_at.as_ref().and_then(time_of);
                State {
                    at: stamp.or(saved),
                    found: Ok(Read {
                        document,
                        handoff: inspected.handoff,
                        pulse: inspected.pulse,
                    }),
                }
            }
            Err(error) => State {
                at: saved,
                found: Err(error.to_string()),
            },
        });
    }
    known.reverse();
    States {
        known,
        hidden: of_task.len().saturating_sub(most),
        unknown: None,
    }
}

fn time_of(stamp: &Timestamp) -> Option<DateTime<Utc>> {
    stamp.time().map(|time| time.to_utc())
}

// ---------------------------------------------------------------------------------------------------------------------
// What happened

/// The entries so far, and the times at which the agent gave a signal.
struct Past {
    entries: Vec<Entry>,
    signals: Vec<DateTime<Utc>>,
    now: DateTime<Utc>,
    /// The latest time that counts as past by the present clock.
    latest: DateTime<Utc>,
}

impl Past {
    fn add(&mut self, kind: Kind, at: DateTime<Utc>, text: impl Into<String>) -> &mut Entry {
        let time = match at > self.latest {
            true => Time::Ahead(at),
            false => Time::At(at),
        };
        self.push(kind, time, (Some(at), Turn::Event), text)
    }

    fn push(
        &mut self,
        kind: Kind,
        time: Time,
        place: (Option<DateTime<Utc>>, Turn),
        text: impl Into<String>,
    ) -> &mut Entry {
        let at = self.entries.len();
        self.entries.push(Entry {
            kind,
            time,
            text: text.into(),
            details: Vec::new(),
            place,
        });
        &mut self.entries[at]
    }

    /// Adds an item of an ordered list. An item without a time comes after the one before it.
    fn add_listed(
        &mut self,
        kind: Kind,
        stamp: Option<&Timestamp>,
        before: &mut Option<DateTime<Utc>>,
        text: &str,
    ) -> &mut Entry {
        let Some(stamp) = stamp else {
            return self.push(kind, Time::Unknown, (*before, Turn::Event), text);
        };
        let Some(time) = time_of(stamp) else {
            let shown = Time::Written(stamp.text().to_owned());
            return self.push(kind, shown, (*before, Turn::Event), text);
        };
        *before = Some(time);
        self.heard_of(time);
        self.add(kind, time, text)
    }

    fn heard_of(&mut self, at: DateTime<Utc>) {
        if at <= self.latest {
            self.signals.push(at);
        }
    }

    /// Adds the steps and decisions of the checkpoint, and the steps in its dropped log.
    fn add_steps(&mut self, resume: &Resume) {
        let mut before = None;
        for step in resume.earlier.iter().chain(&resume.handoff.done) {
            let files: Vec<&str> = step
                .files_created
                .iter()
                .chain(&step.files_modified)
                .map(String::as_str)
                .collect();
            let entry = self.add_listed(Kind::Done, step.at.as_ref(), &mut before, &step.text);
            if !files.is_empty() {
                entry.details.push(some(&files));
            }
        }
        let mut before = None;
        for decision in &resume.handoff.decisions {
            let at = decision.at.as_ref();
            let entry = self.add_listed(Kind::Decided, at, &mut before, &decision.text);
            entry.details.extend(decision.rationale.clone());
        }
        for step in &resume.handoff.in_progress {
            // Only if its begin has a stamp.
            if step.started_at.is_some() {
                let at = step.started_at.as_ref();
                let entry = self.add_listed(Kind::Begun, at, &mut None, &step.text);
                entry.details.extend(step.note.clone());
            }
        }
    }

    /// Adds the changes from state to state, except items that the checkpoint itself still lists.
    fn add_states(&mut self, states: &[State], present: &Handoff, resume: &Resume) {
        let done = resume.earlier.iter().chain(&present.done);
        let listed = Listed {
            done: done.map(|step| step.text.as_str()).collect(),
            decided: present.decisions.iter().map(|it| &*it.text).collect(),
            begun: present.in_progress.iter().map(|it| &*it.text).collect(),
        };
        let mut before: Option<&Read> = None;
        let mut last = None;
        for state in states {
            let time = state.at.map_or(Time::Unknown, |at| match at > self.latest {
                true => Time::Ahead(at),
                false => Time::At(at),
            });
            last = state.at.or(last);
            let place = (last, Turn::Event);
            let read = match &state.found {
                Ok(read) => read,
                Err(reason) => {
                    let entry = self.push(Kind::Damaged, time, place, "one state cannot be read");
                    entry.details.push(reason.clone());
                    continue;
                }
            };
            if let Some(at) = state.at {
                self.heard_of(at);
            }
            if let Some(before) = before.replace(read) {
                let (old, new) = (&before.handoff, &read.handoff);
                let changes =
                    Difference::of_handoffs((&before.document, old), (&read.document, new)).changes;
                self.add_changes(&changes, &listed, time, place);
            } else if states.len() > 1 {
                let (done, all) = (read.handoff.count_done(), read.handoff.count_all());
                let agent = read.handoff.agent.as_deref().unwrap_or("an unknown agent");
                let text = format!(
                    "the first state that is known: {done} of {} done by {agent}",
                    count(all, "step")
                );
                self.push(Kind::Saved, time, place, text);
            }
        }
    }

    fn add_changes(
        &mut self,
        changes: &[Change],
        listed: &Listed<'_>,
        time: Time,
        place: (Option<DateTime<Utc>>, Turn),
    ) {
        let of_kind = |kind| {
            changes
                .iter()
                .filter(move |change| change.kind() == kind)
                .count()
        };
        // A step that was finished under other words than it was planned did not leave the plan undone.
        let is_reworded = of_kind(ChangeKind::StepDropped) <= of_kind(ChangeKind::StepFinished);
        let mut said = Vec::new();
        for change in changes {
            match change.kind() {
                ChangeKind::Agent => {
                    let text = from_to(change.get("from"), change.get("to"));
                    self.push(
                        Kind::Handover,
                        time.clone(),
                        (place.0, Turn::Handover),
                        text,
                    );
                }
                ChangeKind::StepDropped if is_reworded => {}
                _ if listed.has(change) => {}
                kind => match Kind::of_change(kind).zip(subject(change)) {
                    Some((kind, (text, at))) => {
                        match at.filter(|at| *at <= self.latest) {
                            Some(at) => self.add(kind, at, text),
                            None => self.push(kind, time.clone(), place, text),
                        };
                    }
                    None => said.push(in_words(change)),
                },
            }
        }
        if let Some((first, rest)) = said.split_first() {
            let entry = self.push(Kind::Saved, time, place, "");
            entry.text = first.clone();
            entry.details = rest.to_vec();
        }
    }

    /// Adds the hand-overs that the checkpoint lists and no two states show.
    fn add_hand_overs(&mut self, handoff: &Handoff) {
        let agents: Vec<&str> = handoff
            .previous_agents
            .iter()
            .map(String::as_str)
            .chain(handoff.agent.as_deref())
            .collect();
        // From last to first, so that each comes before the next one with a time.
        let mut next = None;
        for pair in agents.windows(2).rev() {
            let text = from_to(Some(pair[0]), Some(pair[1]));
            let known = self.entries.iter().find(|entry| {
                let is_earlier = next.is_none() || entry.place.0 <= next;
                entry.kind == Kind::Handover && entry.text == text && is_earlier
            });
            match known {
                Some(known) => next = known.place.0.or(next),
                None => {
                    let entry = self.push(Kind::Handover, Time::Unknown, (next, Turn::Silence), "");
                    entry.text = text;
                }
            }
        }
    }

    fn add_effects(&mut self, resume: &Resume) {
        for effect in &resume.ledger.effects {
            let status = match &effect.status {
                EffectStatus::Done { .. } => "took place",
                EffectStatus::NotDone => "did not take place",
                EffectStatus::InProgress => "is in progress",
                _ => "it is not recorded whether it took place",
            };
            let text = format!("{}: {status}", effect.id);
            let by = format!("by {}", effect.by);
            self.add(Kind::Effect, effect.since, text).details.push(by);
        }
    }

    /// Adds the last event of each approval: asked for, decided or used.
    fn add_approvals(&mut self, resume: &Resume) {
        for approval in &resume.ledger.approvals {
            let (status, at) = match approval.status {
                ApprovalStatus::Pending => ("asked for", approval.since),
                ApprovalStatus::Approved => ("approved", approval.since),
                ApprovalStatus::Denied => ("denied", approval.since),
                ApprovalStatus::Consumed => ("approved, and consumed", approval.since),
                _ => ("expired", approval.expires),
            };
            let entry = self.add(Kind::Approval, at, format!("{}: {status}", approval.id));
            entry.details.push(approval.action.clone());
            let why = [&approval.reason, &approval.because];
            entry.details.extend(why.into_iter().flatten().cloned());
            entry
                .details
                .push(format!("asked for by {}", approval.asked_by));
            let decided = approval.decided_by.as_ref();
            entry
                .details
                .extend(decided.map(|by| format!("decided by {by}")));
            if approval.status == ApprovalStatus::Consumed {
                entry.details.push(format!("consumed by {}", approval.by));
            }
        }
    }

    fn add_proofs(&mut self, resume: &Resume) {
        for proof in &resume.ledger.proofs {
            let of: Vec<&str> = proof.of.iter().map(String::as_str).collect();
            let end = match proof.passed() {
                true => "the proof passed",
                false => "the proof failed",
            };
            let entry = self.add(Kind::Proof, proof.at, format!("{}: {end}", some(&of)));
            entry.details.push(proof.command_line());
            entry.details.push(format!("by {}", proof.by));
        }
    }

    /// Adds the attempts that ended without success since the last progress.
    fn add_attempts(&mut self, resume: &Resume) {
        for attempt in &resume.ledger.attempts {
            let text = match &attempt.over {
                Some(owner) => format!("the attempt of {owner} ended without success"),
                None => format!("the attempt of {} failed", attempt.by),
            };
            let entry = self.add(Kind::Attempt, attempt.at, text);
            entry.details.push(attempt.error.clone());
            if attempt.over.is_some() {
                entry.details.push(format!("found by {}", attempt.by));
            }
        }
    }

    /// Adds an expired claim.
    fn add_claim(&mut self, row: &Row) {
        let Some(owner) = &row.owner else { return };
        if !owner.released && owner.until <= self.now {
            let text = format!("the claim of {} expired", owner.name);
            self.add(Kind::Claim, owner.until, text);
        }
    }

    /// Adds the times in which the agent was silent for longer than allowed. The state before the silence counts: it
    /// may declare that the agent is busy or waits.
    fn add_silences(&mut self, states: &[State], thresholds: &Thresholds) {
        for state in states {
            let Ok(read) = &state.found else { continue };
            // A heartbeat may be its only signal.
            if let Some(last) = Liveness::judge(&read.pulse, thresholds, self.now).signal() {
                self.heard_of(last.at);
            }
        }
        self.signals.sort_unstable();
        self.signals.dedup();
        let signals = std::mem::take(&mut self.signals);
        let dated = states
            .iter()
            .filter_map(|state| Some((state.at?, &state.found.as_ref().ok()?.pulse)));
        let dated: Vec<_> = dated.collect();
        for pair in signals.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let declared = dated.iter().rev().find(|(at, _)| *at <= from);
            let declared = declared.map_or_else(Pulse::default, |(_, pulse)| (*pulse).clone());
            let last = Timestamp::parse(from.to_rfc3339());
            let verdict = Liveness::judge(&declared.with_progress(Some(last)), thresholds, to);
            let Some(crossed) = verdict.crossed() else {
                continue;
            };
            let length = span(to - from);
            let place = (Some(to), Turn::Silence);
            let time = Time::Between(from, to);
            match verdict {
                Liveness::Stalled { .. } => {
                    let text = format!("{length} of silence, {crossed}");
                    self.push(Kind::Gap, time, place, text);
                }
                _ => {
                    let text = format!("{length} after the last signal, {crossed}");
                    self.push(Kind::Late, Time::At(to), place, text);
                }
            }
        }
    }

    /// Adds the silence that lasts until now.
    fn add_present_silence(&mut self, row: &Row) {
        let Some(liveness) = row.liveness() else {
            return;
        };
        let kind = match liveness {
            Liveness::Late { .. } => Kind::Late,
            Liveness::Stalled { .. } | Liveness::Stuck { .. } => Kind::Gap,
            _ => return,
        };
        let Some(last) = liveness.signal() else {
            return;
        };
        let place = (Some(self.now), Turn::Event);
        let text = format!("until now: {}", grounds(liveness));
        self.push(kind, Time::Between(last.at, self.now), place, text);
    }
}

/// The grounds of a verdict, without its word, which is shown beside them.
pub(super) fn grounds(liveness: &Liveness) -> String {
    let words = liveness.to_string();
    let grounds = words
        .split_once(": ")
        .map(|(_, grounds)| grounds.to_owned());
    grounds.unwrap_or(words)
}

/// The items that the checkpoint itself lists.
struct Listed<'l> {
    done: BTreeSet<&'l str>,
    decided: BTreeSet<&'l str>,
    begun: BTreeSet<&'l str>,
}

impl Listed<'_> {
    /// Whether a change is already a separate entry, or not worth one.
    fn has(&self, change: &Change) -> bool {
        let is_in =
            |list: &BTreeSet<&str>, name| change.get(name).is_some_and(|text| list.contains(text));
        match change.kind() {
            ChangeKind::Stamp
            | ChangeKind::AgentLeft
            | ChangeKind::Value
            | ChangeKind::FileCreated
            | ChangeKind::FileModified
            | ChangeKind::FileNamed => true,
            ChangeKind::StepFinished => is_in(&self.done, "step"),
            ChangeKind::StepBegun => is_in(&self.begun, "step"),
            ChangeKind::DecisionMade => is_in(&self.decided, "decision"),
            // The begun step already shows it.
            ChangeKind::Status => {
                change.get("from") == Some("not_started") && change.get("to") == Some("in_progress")
            }
            _ => false,
        }
    }
}

/// The subject of a change that becomes a separate entry, and its own time.
fn subject(change: &Change) -> Option<(&str, Option<DateTime<Utc>>)> {
    let names = ["step", "decision", "blocker"];
    let text = names.iter().find_map(|name| change.get(name))?;
    let at = change.get("at").map(Timestamp::parse);
    Some((text, at.as_ref().and_then(time_of)))
}

/// A change in a sentence. The library's sentences are shortened, and a secret that was cut is no longer recognized.
fn in_words(change: &Change) -> String {
    if change.kind() == ChangeKind::Status {
        let text = from_to(change.get("from"), change.get("to"));
        return format!("status: {}", text.replace('_', " "));
    }
    let mut details = match serde_json::to_value(change) {
        Ok(serde_json::Value::Object(details)) => details,
        _ => return change.to_string(),
    };
    let kind = details.remove("change");
    let has_secret = details.values().any(|value| {
        let text = value.as_str().unwrap_or_default();
        crate::output::redaction().is_some_and(|redaction| redaction.redact("", text).is_some())
    });
    if !has_secret {
        return change.to_string();
    }
    let kind = kind.as_ref().and_then(|kind| kind.as_str());
    let texts = details.values().filter_map(|value| value.as_str());
    let texts: Vec<String> = texts.map(crate::output::one_line).collect();
    let kind = kind.unwrap_or_default().replace('_', " ");
    format!("{kind}: {}", texts.join(" → "))
}

fn from_to(from: Option<&str>, to: Option<&str>) -> String {
    let name = |agent: Option<&str>| agent.unwrap_or("no agent").to_owned();
    format!("{} → {}", name(from), name(to))
}

/// The first items of a list, and how many more there are.
fn some(all: &[&str]) -> String {
    const MOST: usize = 3;
    match all.len().saturating_sub(MOST) {
        0 => all.join(", "),
        more => format!("{} and {more} more", all[..MOST].join(", ")),
    }
}
