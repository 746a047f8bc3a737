//! A checkpoint as text for a person.

use agent_checkpoint::formats::Inspected;
use agent_checkpoint::json::Violation;
use agent_checkpoint::ledger::{ApprovalRecord, LedgerState, Proofs};
use agent_checkpoint::resume::ForeignMember;
use agent_checkpoint::store::Stored;
use agent_checkpoint::{Handoff, Revision};
use serde::Serialize;

use super::{Style, age, count, ledger, violation};
use crate::address::Target;
use crate::global::Global;
use crate::output::{Outcome, one_line};

/// A checkpoint as `show --json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    file: String,
    format: &'static str,
    slot: Option<String>,
    key: Option<String>,
    revision: Revision,
    status: String,
    phase: Option<String>,
    agent: Option<String>,
    updated_at: Option<String>,
    handoff: Handoff,
    /// Members that the format does not declare.
    foreign: Vec<ForeignMember>,
    effects: Vec<serde_json::Value>,
    /// The state of each proof of finished work.
    proofs: Vec<serde_json::Value>,
    approvals: Vec<ApprovalRecord>,
    violations: Vec<Violation>,
}

/// Everything that `show` prints of a checkpoint.
pub(crate) struct View<'t> {
    target: &'t Target,
    stored: Stored,
    inspected: Inspected,
    foreign: Vec<ForeignMember>,
    ledger: LedgerState,
    proofs: Proofs,
}

impl<'t> View<'t> {
    /// The view of a checkpoint.
    pub(crate) fn new(
        target: &'t Target,
        stored: Stored,
        inspected: Inspected,
        foreign: Vec<ForeignMember>,
        ledger: LedgerState,
        proofs: Proofs,
    ) -> Self {
        View {
            target,
            stored,
            inspected,
            foreign,
            ledger,
            proofs,
        }
    }

    /// Whether it has violations.
    pub(crate) fn has_violations(&self) -> bool {
        !self.inspected.violations.is_empty()
    }

    /// The form for a program.
    pub(crate) fn shown(&self) -> Shown {
        let handoff = self.inspected.handoff.clone();
        Shown {
            file: self.target.path.display().to_string(),
            format: self.target.format.name(),
            slot: self.target.slot.as_ref().map(ToString::to_string),
            key: self.target.shown_key().map(ToString::to_string),
            revision: self.stored.revision.clone(),
            status: handoff.status.to_string(),
            phase: handoff.phase.clone(),
            agent: handoff.agent.clone(),
            updated_at: handoff.updated_at.as_ref().map(ToString::to_string),
            handoff,
            foreign: self.foreign.clone(),
            proofs: ledger::proofs_json(&self.proofs),
            effects: self
                .ledger
                .effects
                .iter()
                .map(ledger::effect_json)
                .collect(),
            approvals: self.ledger.approvals.clone(),
            violations: self.inspected.violations.clone(),
        }
    }

    /// Prints the form for a person.
    pub(crate) fn print(&self, outcome: &mut Outcome, global: &Global) {
        let handoff = &self.inspected.handoff;
        let context = &self.stored.context;
        let task = handoff.task.clone().or_else(|| context.task.clone());
        let description = handoff
            .description
            .clone()
            .or_else(|| context.description.clone());
        let mut page = Page {
            outcome,
            style: Style::of_output(),
        };
        page.field("Task", &task.unwrap_or_else(|| self.target.key.to_string()));
        if let Some(description) = description {
            page.field("About", &description);
        }
        let place = if self.target.is_in_file() {
            "File"
        } else {
            "Store"
        };
        page.field(place, &self.place());
        page.field("Agent", &agents(handoff));
        page.field("Status", handoff.status.as_str());
        page.field("Phase", handoff.phase.as_deref().unwrap_or("(none)"));
        page.field("Progress", &progress(handoff));
        page.field("Updated", &updated(handoff, global));
        if let Some(reason) = &handoff.reason {
            page.field("Reason", &reason_in_words(reason));
        }
        page.steps(handoff);
        page.list(
            "Decisions",
            handoff
                .decisions
                .iter()
                .map(|decision| match &decision.rationale {
                    Some(why) => format!("{} — {why}", decision.text),
                    None => decision.text.clone(),
                }),
        );
        page.list("Blockers", handoff.blockers.iter().cloned());
        page.list("Files", handoff.files.iter().cloned());
        if let Some(shown) = &handoff.verification {
            let contract = shown.contract.iter().cloned();
            let results = shown.results.iter();
            let results = results.map(|(name, state)| format!("{name}: {state}"));
            page.list("Verification", contract.chain(results));
        }
        page.list("Instructions", handoff.instructions.iter().cloned());
        // Without any proof everything is only claimed.
        if self.proofs.with_proof().next().is_some() {
            page.list("Proofs", self.proofs.items().iter().map(ledger::proof));
        }
        page.list("Effects", self.ledger.effects.iter().map(ledger::effect));
        page.list(
            "Approvals",
            self.ledger.approvals.iter().map(ledger::approval),
        );
        page.list(
            match self.target.is_in_file() {
                true => "Also in the file, and not declared by its format",
                false => "Also in the document, and not declared by its format",
            },
            self.foreign.iter().map(|member| match &member.note {
                Some(note) => format!("{}: {note}", member.name),
                None => member.name.clone(),
            }),
        );
        let found = &self.inspected.violations;
        page.field("Violations", &found.len().to_string());
        for found in found {
            page.item("!", &violation(found));
        }
    }

    fn place(&self) -> String {
        let path = self.target.path.display();
        let format = self.target.format.name();
        match &self.target.slot {
            Some(slot) => format!("{path}, slot {slot} ({format})"),
            None if self.target.is_in_file() => format!("{path} ({format})"),
            None => format!("{path}, key {} ({format})", self.target.key),
        }
    }
}

fn progress(handoff: &Handoff) -> String {
    let (done, all) = (handoff.count_done(), handoff.count_all());
    format!("{done} of {}", count(all, "step"))
}

fn agents(handoff: &Handoff) -> String {
    let agent = handoff.agent.as_deref().unwrap_or("(unknown)");
    if handoff.previous_agents.is_empty() {
        agent.to_owned()
    } else {
        format!("{agent}, after {}", handoff.previous_agents.join(", "))
    }
}

/// Why the checkpoint was last saved, with the meaning of the reason in the file.
fn reason_in_words(reason: &str) -> String {
    let meaning = match reason {
        "periodic" => "saved as the work went on",
        "context_limit" => "the agent's context was nearly full",
        "failure" => "the task failed",
        "reassignment" => "another agent takes over",
        "rate_limit" => "the model's service asked to wait",
        "manual" => "saved on request",
        _ => return reason.to_owned(),
    };
    format!("{reason}: {meaning}")
}

fn updated(handoff: &Handoff, global: &Global) -> String {
    let stamp = handoff.updated_at.as_ref();
    let age = age(stamp, global.now());
    match stamp {
        Some(stamp) => format!("{age} ({stamp})"),
        None => age,
    }
}

/// The layout of the lines.
struct Page<'o> {
    outcome: &'o mut Outcome,
    style: Style,
}

impl Page<'_> {
    fn field(&mut self, name: &str, value: &str) {
        let name = self.style.strong(&format!("{name:<11}"));
        self.outcome.styled(&format!("{name} {}", one_line(value)));
    }

    fn item(&mut self, mark: &str, text: &str) {
        // The plan may have an empty step.
        let text = if text.trim().is_empty() {
            "(empty)"
        } else {
            text
        };
        self.outcome.line(format!("  {mark} {}", one_line(text)));
    }

    fn list(&mut self, name: &str, items: impl Iterator<Item = String>) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        let name = self.style.strong(name);
        self.outcome.styled(&name);
        for item in items {
            self.item("-", &item);
        }
    }

    fn steps(&mut self, handoff: &Handoff) {
        let is_empty = handoff.done.is_empty()
            && handoff.in_progress.is_empty()
            && handoff.pending.is_empty()
            && handoff.unreadable.is_empty();
        if is_empty && handoff.done_elsewhere == 0 {
            return self.field("Steps", "none");
        }
        let heading = self.style.strong("Steps");
        self.outcome.styled(&heading);
        let earlier = handoff.done_elsewhere;
        if earlier > 0 {
            let text = format!(
                "{} no longer in the checkpoint, {}",
                count(earlier, "earlier step"),
                handoff.moved_to()
            );
            self.item("✓", &text);
        }
        for step in &handoff.done {
            self.item("✓", &step.text);
        }
        for step in &handoff.in_progress {
            let text = match &step.note {
                Some(note) => format!("{} (in progress: {note})", step.text),
                None => format!("{} (in progress)", step.text),
            };
            self.item("▸", &text);
        }
        let begun = |step: &&String| handoff.in_progress.iter().any(|item| item.text == **step);
        for step in handoff.pending.iter().filter(|step| !begun(step)) {
            self.item("·", step);
        }
        for item in &handoff.unreadable {
            self.item("?", &item.to_string());
        }
    }
}
