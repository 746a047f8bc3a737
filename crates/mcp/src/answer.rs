//! The answers of the tools.

use agent_checkpoint::resume::{Rendered, Resume};
use chrono::{DateTime, SecondsFormat, Utc};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::bounds;
use crate::failed::Failed;
use crate::inputs;

/// An answer: a value for programs, and words for a model.
#[derive(Debug)]
pub(crate) struct Answer {
    value: Value,
    text: String,
}

impl Answer {
    pub(crate) fn new(value: &impl Serialize, text: &str) -> Result<Answer, Failed> {
        let value = serde_json::to_value(value);
        let value = value.map_err(|error| Failed::new("failed", error.to_string()))?;
        Ok(Answer {
            value: bounds::value(value),
            text: bounds::text(text.trim_end(), bounds::MOST_OF_ANSWER),
        })
    }
}

impl From<Answer> for CallToolResult {
    fn from(answer: Answer) -> CallToolResult {
        let mut result = CallToolResult::structured(answer.value);
        result.content = vec![ContentBlock::text(answer.text)];
        result
    }
}

/// A time in an answer.
pub(crate) fn stamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The answer of `begin`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BeginAnswer {
    /// `begun`: the task is new and yours. `found`: it has a checkpoint; nothing was touched or claimed.
    /// `carried_on`: it has a checkpoint, and is yours now.
    pub(crate) outcome: &'static str,
    /// The id of the task.
    pub(crate) key: String,
    /// The format of its checkpoint.
    pub(crate) format: &'static str,
    /// Show this with every report, decision and hand-over of this task. Absent where it is not yours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<u64>,
    /// Until when it is yours, unless a report renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_until: Option<String>,
    /// The first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    /// How to go on from the checkpoint that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<Judged>,
}

/// Whether and how to go on from a checkpoint: the answer of `resume`, and a part of that of `begin`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Judged {
    /// The id of the task.
    pub(crate) key: String,
    /// The format of its checkpoint.
    pub(crate) format: &'static str,
    /// `continue`: go on. `verify`: check the files first. `ask`: have the questions answered first. `wait`: not yet.
    /// `restart`: only anew. `refuse`: not at all.
    pub(crate) decision: &'static str,
    /// The decision in a sentence.
    pub(crate) message: String,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_at: Option<String>,
    /// To be answered before work goes on.
    pub(crate) questions: Vec<String>,
    /// To be heeded before work goes on.
    pub(crate) warnings: Vec<String>,
    /// Good to know.
    pub(crate) notes: Vec<String>,
    /// The files to look at first.
    pub(crate) files_to_review: Vec<String>,
    /// What was done, decided and is left; absent where no agent may go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<String>,
    /// How many finished steps the prompt leaves out, to keep within its size.
    pub(crate) omitted_steps: usize,
    /// How many reasons of decisions it leaves out.
    pub(crate) omitted_reasons: usize,
}

impl Judged {
    pub(crate) fn new(key: &str, resume: &Resume, rendered: Option<Rendered>) -> Judged {
        let plan = &resume.plan;
        let omitted = rendered.as_ref();
        Judged {
            key: key.to_owned(),
            format: resume.format,
            decision: plan.decision.as_str(),
            message: plan.message.clone(),
            start_at: plan.start_at.clone(),
            questions: plan.questions.clone(),
            warnings: plan.warnings.clone(),
            notes: plan.notes.clone(),
            files_to_review: plan.files_to_review.clone(),
            omitted_steps: omitted.map_or(0, |rendered| rendered.omitted_steps),
            omitted_reasons: omitted.map_or(0, |rendered| rendered.omitted_reasons),
            prompt: rendered.map(|rendered| rendered.text),
        }
    }

    /// The answer in words.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.decision, self.message);
        let lists = [
            ("Question, to be answered first", &self.questions),
            ("Warning", &self.warnings),
            ("Note", &self.notes),
        ];
        // A prompt already has the questions and the warnings.
        let is_in_prompt = |word: &str| self.prompt.is_some() && word != "Note";
        for (word, list) in lists.into_iter().filter(|(word, _)| !is_in_prompt(word)) {
            for said in list.iter().take(bounds::MOST_LISTED) {
                text.push_str(&format!("{word}: {said}\n"));
            }
            if let Some(more) = list.len().checked_sub(bounds::MOST_LISTED + 1) {
                text.push_str(&format!("{word}: … {} more are left out\n", more + 1));
            }
        }
        if let Some(prompt) = &self.prompt {
            text.push('\n');
            text.push_str(prompt);
        }
        text
    }
}

/// The answer of `report`, `decide` and `hand_over`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Saved {
    /// The id of the task.
    pub(crate) key: String,
    /// What each operation did.
    pub(crate) done: Vec<String>,
    /// What else is to be known.
    pub(crate) notes: Vec<String>,
    /// Until when the task is yours, unless a report renews it. Absent where it is yours no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_until: Option<String>,
}

impl Saved {
    pub(crate) fn text(&self) -> String {
        let lines = self.done.iter().chain(&self.notes);
        lines.map(|line| format!("{line}\n")).collect()
    }
}

/// The answer of `effect`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EffectState {
    /// The id of the task.
    pub(crate) key: String,
    /// The effect.
    pub(crate) id: String,
    /// Of `begin`: `do`: do it now. `already_done`: it took place. `in_progress`: another is at it, or you are. `in_doubt`: it
    /// was begun, and nothing says whether it took place. Else `done` or `not_done`: that is on record.
    pub(crate) outcome: &'static str,
    /// What you do now.
    pub(crate) next: String,
    /// What it gave back, where it took place before: a text, or JSON as a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<String>,
    /// Who began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    /// When it was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    /// How to find out whether it took place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) how_to_check: Option<String>,
    /// Until when the task is yours, unless a report renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_until: Option<String>,
}

impl EffectState {
    pub(crate) fn new(
        input: &inputs::Effect,
        outcome: &'static str,
        next: impl Into<String>,
    ) -> EffectState {
        EffectState {
            key: input.key.clone(),
            id: input.id.clone(),
            outcome,
            next: next.into(),
            receipt: None,
            by: None,
            since: None,
            how_to_check: None,
            claimed_until: None,
        }
    }

    pub(crate) fn text(&self) -> String {
        let parts = [
            ("Receipt", &self.receipt),
            ("Begun by", &self.by),
            ("Since", &self.since),
            ("To find out", &self.how_to_check),
        ];
        let mut text = format!("{}: {}\n{}\n", self.outcome, self.id, self.next);
        text.push_str(&lines(&parts));
        text
    }
}

/// The answer of `approval`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalState {
    /// The id of the task.
    pub(crate) key: String,
    /// What the action is for.
    pub(crate) id: String,
    /// `pending`, `approved`, `denied`, `expired`, or `consumed`: it was approved, and used up.
    pub(crate) status: &'static str,
    /// The action as the person reads it.
    pub(crate) action: String,
    /// What you do now.
    pub(crate) next: &'static str,
    /// From when on it is neither decided nor used.
    pub(crate) expires: String,
    /// Who approved or denied it. A name and no proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decided_by: Option<String>,
    /// Why it was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) because: Option<String>,
    /// With which line a person approves a pending one; `ckpt deny` takes the same words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decide_with: Option<String>,
    /// Until when the task is yours, unless a report renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_until: Option<String>,
}

impl ApprovalState {
    pub(crate) fn text(&self) -> String {
        let parts = [
            ("Action", &Some(self.action.clone())),
            ("Decided by", &self.decided_by),
            ("Because", &self.because),
            ("Decide with", &self.decide_with),
        ];
        let mut text = format!("{}: {}\n{}\n", self.status, self.id, self.next);
        text.push_str(&lines(&parts));
        text
    }
}

/// The parts that are present, each on a line.
fn lines(parts: &[(&str, &Option<String>)]) -> String {
    let said = parts.iter().filter_map(|(word, said)| {
        let said = said.as_deref()?;
        Some(format!("{word}: {}\n", bounds::line(said)))
    });
    said.collect()
}

/// The answer of `fleet`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tasks {
    /// How many tasks the store has.
    pub(crate) total: usize,
    /// How many of them an agent can go on with.
    pub(crate) resumable: usize,
    /// How many have each result, such as `alive`, `late`, `stalled`, `complete`.
    pub(crate) results: std::collections::BTreeMap<&'static str, usize>,
    /// The tasks, up to the limit.
    pub(crate) tasks: Vec<TaskRow>,
    /// How many more there are that fit and are not listed.
    pub(crate) left_out: usize,
    /// How many things do not go together; `ckpt status` names them.
    pub(crate) findings: usize,
}

/// One task of the store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskRow {
    /// Its id; absent where nothing tells it.
    pub(crate) key: Option<String>,
    /// Whether its agent is alive, or what else is the matter.
    pub(crate) result: &'static str,
    /// Its format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<&'static str>,
    /// The agent that works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// What it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// Its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// How much is done, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) percent: Option<u8>,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated_at: Option<String>,
    /// Who has claimed it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_by: Option<String>,
    /// `continue`, `verify` or `ask` where an agent can go on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<&'static str>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_at: Option<String>,
}

impl Tasks {
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{} tasks, {} can be resumed\n", self.total, self.resumable);
        for row in &self.tasks {
            let mut line = format!(
                "{}: {}",
                row.key.as_deref().unwrap_or("(no key)"),
                row.result
            );
            let parts = [
                ("agent", row.agent.as_deref()),
                ("status", row.status.as_deref()),
                ("claimed by", row.claimed_by.as_deref()),
                ("resume", row.decision),
                ("next", row.start_at.as_deref()),
            ];
            for (word, said) in parts {
                if let Some(said) = said {
                    line.push_str(&format!("; {word} {said}"));
                }
            }
            text.push_str(&bounds::line(&line));
            text.push('\n');
        }
        if self.left_out > 0 {
            text.push_str(&format!(
                "{} more are left out; raise limit, or list only the resumable ones\n",
                self.left_out
            ));
        }
        text
    }
}
