//! Differences between two states of a checkpoint.
//!
//! A [`Difference`] describes in words what changed between the hand-offs: a step finished, a blocker raised, another
//! agent. Every other changed value is listed by its JSON pointer, so no change is silent, for documents of any format
//! or of none.

mod change;
mod handoffs;
mod reported;
mod values;

use std::fmt;

use serde::Serialize;

pub use change::{Change, ChangeKind};

use crate::checkpoint::{Checkpoint, Handoff, Result, RuleContext, Timestamp, judge, read};
use crate::json::{Document, Node, pointer};
use values::Delta;

/// The changes from one state of a checkpoint to another.
///
/// Its text has one line for each change, with control characters escaped and long texts cut. As data nothing is cut.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::difference::Difference;
/// use agent_checkpoint::formats::task::TaskCheckpoint;
/// use agent_checkpoint::json::Document;
/// use agent_checkpoint::{Checkpoint, Operation, OperationContext};
///
/// let begin = "2026-03-02T08:00:00Z".parse()?;
/// let mut task = TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], begin);
/// let before = Document::new(&task)?;
/// let later = OperationContext::at("2026-03-02T08:05:00Z".parse()?);
/// task.apply(&Operation::StepStart { text: "Wire toggle".into() }, &later)?;
/// task.apply(&Operation::Block { text: "No test account".into(), kind: None }, &later)?;
/// let after = Document::new(&task)?;
///
/// let difference = Difference::of::<TaskCheckpoint>(&before, &after)?;
/// assert!(difference.to_string().contains("begun: Wire toggle (at 2026-03-02T08:05:00Z)\n"));
/// assert!(difference.to_string().contains("blocker: No test account\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Difference {
    /// The agent of the later state.
    pub by: Option<String>,
    /// When the later state was saved.
    pub at: Option<Timestamp>,
    /// The changes: first those between the hand-offs, then the values that these do not cover. Empty if and only if
    /// both documents have the same value.
    pub changes: Vec<Change>,
    /// Whether only the text changed: white space, the order of members, the spelling of strings, or duplicate members.
    pub respelled: bool,
}

impl Difference {
    /// Compares two documents by pointers alone.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::difference::Difference;
    /// use agent_checkpoint::json::Document;
    ///
    /// let before = Document::from_text(r#"{"a": 1}"#)?;
    /// let after = Document::from_text(r#"{"a": 2}"#)?;
    /// assert_eq!(Difference::between(&before, &after).to_string(), "/a: 1 → 2\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn between(before: &Document, after: &Document) -> Difference {
        Difference::new(values::deltas(before, after), before, after, Vec::new())
    }

    /// Compares two documents with these hand-offs.
    ///
    /// A changed value is listed by its pointer unless the changes of the hand-offs report its text as often as it
    /// changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::formats::task::TaskCheckpoint;
    /// use agent_checkpoint::Checkpoint;
    /// use agent_checkpoint::difference::Difference;
    /// use agent_checkpoint::json::Document;
    ///
    /// let mut task = TaskCheckpoint::begin("dev", ["a"], "2026-03-02T08:00:00Z".parse()?);
    /// let (before, handoff) = (Document::new(&task)?, task.handoff());
    /// task.blockers.push("No account".into());
    /// let after = Document::new(&task)?;
    /// let difference = Difference::of_handoffs((&before, &handoff), (&after, &task.handoff()));
    /// assert!(difference.to_string().contains("blocker: No account\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_handoffs(
        (before, old): (&Document, &Handoff),
        (after, new): (&Document, &Handoff),
    ) -> Difference {
        let mut deltas = values::deltas(before, after);
        let mut changes = if deltas.is_empty() {
            Vec::new()
        } else {
            handoffs::changes(old, new)
        };
        report_status(
            &mut deltas,
            &pointer::join(after.at(), "status"),
            &mut changes,
        );
        Difference {
            by: new.agent.clone(),
            at: new.updated_at.clone(),
            ..Difference::new(deltas, before, after, changes)
        }
    }

    /// Compares two checkpoints of this type.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unreadable`](crate::ErrorKind::Unreadable) when one of them cannot be read as this type.
    pub fn of<C: Checkpoint>(before: &Document, after: &Document) -> Result<Difference> {
        let handoff = |document| -> Result<Handoff> {
            let current = read::<C>(document)?;
            let judged = judge(&current.document, &current.reading, &RuleContext::none());
            Ok(judged.handoff)
        };
        let (old, new) = (handoff(before)?, handoff(after)?);
        Ok(Difference::of_handoffs((before, &old), (after, &new)))
    }

    fn new(
        deltas: Vec<Delta<'_, '_>>,
        before: &Document,
        after: &Document,
        mut changes: Vec<Change>,
    ) -> Difference {
        changes.extend(reported::rest(&deltas, &changes));
        Difference {
            respelled: changes.is_empty() && before != after,
            changes,
            ..Difference::default()
        }
    }

    /// Whether both states have the same value. Their texts may differ; see [`respelled`](Difference::respelled).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.respelled {
            f.write_str("no value changed, only the layout of the text\n")?;
        }
        for change in &self.changes {
            writeln!(f, "{change}")?;
        }
        Ok(())
    }
}

/// Adds the document's own words to a change of the status, from its member `status`.
fn report_status(deltas: &mut Vec<Delta<'_, '_>>, at: &str, changes: &mut [Change]) {
    let mut statuses = changes.iter_mut();
    let Some(status) = statuses.find(|change| change.kind() == ChangeKind::Status) else {
        return;
    };
    let text = |node: Option<Node<'_>>| Some(node?.as_str()?.into_owned());
    let words = |delta: &Delta<'_, '_>| Some((text(delta.before)?, text(delta.after)?));
    let found = deltas.iter().position(|delta| delta.pointer == at);
    if let Some(found) = found
        && let Some((old, new)) = words(&deltas[found])
    {
        status.set_written(old, new);
        deltas.remove(found);
    }
}
