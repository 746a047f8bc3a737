//! What changed between two states of a checkpoint, in words.
//!
//! [`Difference`] compares the hand-offs of both states, where their format is known, and says what happened: a step
//! finished, a blocker raised, another agent. Whatever changed besides is listed by its JSON pointer, so that no change
//! is invisible, of whatever format and of none.

mod change;
mod common;
mod told;
mod values;
mod words;

use std::fmt;

use serde::Serialize;

pub use change::{Change, StepState};

use crate::checkpoint::{Checkpoint, Handoff, Result, RuleContext, Timestamp};
use crate::formats::{Examined, Format};
use crate::json::Document;

/// One state of a checkpoint: its document and, where its format is known, its hand-off.
#[derive(Clone, Debug)]
pub struct Side<'d> {
    document: &'d Document,
    handoff: Option<Handoff>,
    /// How its format is read, to find out which values the hand-off shows.
    open: Option<fn(&Document, &RuleContext<'_>) -> Result<Examined>>,
}

impl<'d> Side<'d> {
    /// A document of which no more is known: its changes are told by pointers alone.
    #[must_use]
    pub fn new(document: &'d Document) -> Side<'d> {
        Side {
            document,
            handoff: None,
            open: None,
        }
    }

    /// The same with a hand-off that was read from it.
    ///
    /// Which values it was read from is not known, so a change is told in words and by its pointer too. A side made by
    /// [`of`](Side::of) or [`in_format`](Side::in_format) says each but once.
    #[must_use]
    pub fn with_handoff(mut self, handoff: Handoff) -> Side<'d> {
        self.handoff = Some(handoff);
        self
    }

    /// A document that holds a checkpoint of this type.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unreadable`](crate::ErrorKind::Unreadable) when no value of the type can be made of it.
    pub fn of<C: Checkpoint>(document: &'d Document) -> Result<Side<'d>> {
        Side::in_format(&Format::of::<C>(), document)
    }

    /// A document that holds a checkpoint of this format; for a checkpoint inside a host file the part that was
    /// [extracted](Document::extract) from it.
    ///
    /// # Errors
    ///
    /// The same as [`Side::of`].
    pub fn in_format(format: &Format, document: &'d Document) -> Result<Side<'d>> {
        let examined = (format.open)(document, &RuleContext::none())?;
        Ok(Side {
            document,
            handoff: Some(examined.handoff),
            open: Some(format.open),
        })
    }
}

/// What changed from one state of a checkpoint to another.
///
/// Its text has one line for each change, in plain words; control characters are escaped and long texts shortened. As
/// data nothing is shortened.
///
/// ```
/// use agent_checkpoint::formats::task::{StepDone, TaskCheckpoint};
/// use agent_checkpoint::difference::Difference;
/// use agent_checkpoint::json::Document;
///
/// let begin = "2026-03-02T08:00:00Z".parse()?;
/// let mut task = TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], begin);
/// let before = Document::new(&task)?;
/// task.start_step("Wire toggle", "2026-03-02T08:05:00Z".parse()?)?;
/// task.block("No test account")?;
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
    /// Who made the later state, where it says so.
    pub by: Option<String>,
    /// When the later state was made, where it says so.
    pub at: Option<Timestamp>,
    /// The changes: first those that the common view of all formats tells, then the values besides. Empty if and only
    /// if both documents have the same value.
    pub changes: Vec<Change>,
    /// Whether the value is the same and the text is another: white space, the order of members, the spelling of strings, or
    /// members whose name is given again after them.
    pub respelled: bool,
}

impl Difference {
    /// What changed from one state to another.
    ///
    /// Where one of the sides has no hand-off, values alone are compared. Against a document `{}` all that the
    /// other has is new.
    pub fn between(before: &Side<'_>, after: &Side<'_>) -> Difference {
        let handoff = after.handoff.as_ref();
        let mut difference = Difference {
            by: handoff.and_then(|handoff| handoff.agent.clone()),
            at: handoff.and_then(|handoff| handoff.updated_at.clone()),
            ..Difference::default()
        };
        let mut deltas = values::deltas(before.document, after.document);
        if deltas.is_empty() {
            difference.respelled = before.document != after.document;
            return difference;
        }
        if let (Some(before), Some(after)) = (&before.handoff, &after.handoff) {
            difference.changes = common::changes(before, after);
        }
        told::tell_status(&mut deltas, before, after, &mut difference.changes);
        let besides = told::besides(&deltas, before, after, &difference.changes);
        difference.changes.extend(besides);
        difference
    }

    /// What changed between two checkpoints of this type.
    ///
    /// # Errors
    ///
    /// The same as [`Side::of`].
    pub fn of<C: Checkpoint>(before: &Document, after: &Document) -> Result<Difference> {
        let (before, after) = (Side::of::<C>(before)?, Side::of::<C>(after)?);
        Ok(Difference::between(&before, &after))
    }

    /// What changed between two checkpoints of this format; for those inside a host file see [`Side::in_format`].
    ///
    /// # Errors
    ///
    /// The same as [`Side::of`].
    pub fn in_format(format: &Format, before: &Document, after: &Document) -> Result<Difference> {
        let before = Side::in_format(format, before)?;
        let after = Side::in_format(format, after)?;
        Ok(Difference::between(&before, &after))
    }

    /// Whether both states have the same value; their texts may differ, see [`respelled`](Difference::respelled).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.respelled {
            f.write_str("only the spelling changed, no value\n")?;
        }
        for change in &self.changes {
            writeln!(f, "{change}")?;
        }
        Ok(())
    }
}
