//! The [`Checkpoint`] trait and the vocabulary all formats share.

#[cfg(feature = "proptest")]
pub(crate) mod arbitrary;
mod claim;
mod context_use;
mod error;
mod file_name;
mod given;
mod handoff;
mod inputs;
mod inspection;
mod judged;
mod key;
mod layout;
mod limits;
mod open_enum;
mod operation;
mod plan;
mod process;
mod progress;
mod pulse;
mod report;
mod revision;
mod rule_context;
#[cfg(feature = "schema")]
mod shape;
mod source_files;
mod status;
mod timestamp;
mod unreadable;
mod versions;

use std::path::Path;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[cfg(feature = "proptest")]
pub(crate) use arbitrary::arbitrary;
pub(crate) use claim::stamp;
pub use claim::{Claim, ClaimRequest, Fence, Fenced};
pub use context_use::{ContextLevel, ContextUse};
pub use error::{Error, ErrorKind, Result};
pub use given::{CheckpointFile, Given, GivenValue, Input, InputKind, Start};
pub use handoff::{DecisionItem, DoneItem, Handoff, OpenItem, VerificationItem};
pub(crate) use handoff::{DoneIndex, moved_to};
pub use inputs::Inputs;
pub use inspection::{FUTURE_TOLERANCE, Inspection};
pub(crate) use judged::{Judged, judge};
pub use key::Key;
pub(crate) use layout::UNIQUE_SEPARATOR;
pub(crate) use layout::is_unique_number;
pub use layout::{Archive, Backups, Evidence, FileRole, Layout};
pub use limits::{DropReason, Dropped, Limits, OverBudget, Truncation};
pub use open_enum::OpenEnum;
pub(crate) use open_enum::open_enum;
pub(crate) use open_enum::sealed as sealed_enum;
pub use operation::{Detail, Operation, StepDone};
pub(crate) use operation::{operation_name, operations};
pub use plan::{NewWorker, ResumeDecision, ResumePlan, ResumeReason};
pub use process::ProcessId;
pub(crate) use process::random_name;
pub use progress::Progress;
pub use pulse::{Activity, Notice, Pulse, Thresholds};
pub(crate) use pulse::{seconds, whole_seconds};
pub use report::{OperationContext, Report};
pub(crate) use revision::hex;
pub use revision::{Expect, Revision};
pub use rule_context::RuleContext;
#[cfg(feature = "schema")]
pub use shape::Shape;
#[cfg(feature = "schema")]
pub(crate) use shape::{all_present, any_present, entries, is, or_null, present};
pub(crate) use source_files::sort_by;
pub use source_files::{SavedFiles, SourceFiles};
pub use status::{Interruption, Status};
pub use timestamp::{Clock, FixedClock, Precision, SystemClock, Timestamp};
pub(crate) use unreadable::unreadable_items;
pub use unreadable::{ItemState, UnreadableItem};
pub use versions::{Current, Migration, SchemaVersion, read};
pub(crate) use versions::{any_migration, version_is_unreadable};

use crate::json::{Code, Document, Identity, Reading, Violation};

/// A format: what its struct states about itself, and all that the rest of the library needs.
///
/// Implement it for a struct of your own and get the lossless store, the limits, the staleness verdict and the
/// resume prompt.
/// verdict and the resume prompt.
///
/// # Rules for the struct
///
/// Every struct has `#[serde(default)]`, so that `{}` deserializes and a missing field never costs its object.
/// A scalar whose default could be mistaken for data is an `Option`. There is no `flatten`, `untagged`, `tag`
/// or `deny_unknown_fields`, and `skip_serializing_if` only with `Option::is_none`. A text from a fixed set
/// keeps an unknown spelling. [`inspect`](Checkpoint::inspect), not the type, reports missing required members.
pub trait Checkpoint:
    Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync + 'static
{
    /// The name of the format, such as `task`.
    const FORMAT: &'static str;

    /// The released versions of the format, oldest first, each with its changes.
    ///
    /// Documents of older versions stay readable: see [`read`].
    const SCHEMA_VERSIONS: &'static [SchemaVersion] = &[];

    /// The JSON pointer of a document's version, such as `/schemaVersion`; `None` if it has none.
    /// [`schema_version`](Checkpoint::schema_version) returns the value there.
    const VERSION_POINTER: Option<&'static str> = None;

    /// The members by which elements of its lists are recognised when they move.
    const IDENTITIES: &'static [Identity] = &[];

    /// Where the items of its work are, and what an unreadable one counts as: `/steps/*` for each element of a
    /// list or member of an object, `/current` for a single item. Items at other places do not count.
    const ITEMS: &'static [(&'static str, ItemState)] = &[];

    /// Whether the status is derived from what is done and left, rather than stated by the checkpoint. A
    /// derived status is never *complete* while a part of the checkpoint is unreadable.
    const STATUS_IS_DERIVED: bool = false;

    /// Whether the checkpoint has a heartbeat apart from its progress: see
    /// [`is_heartbeat`](Checkpoint::is_heartbeat).
    const HAS_HEARTBEAT: bool = false;
    /// Whether the texts of finished and pending work are ids that each stand for one item. An id in both lists
    /// is then done, and no prompt or plan repeats it; a step with a free text may well occur twice.
    const WORK_HAS_IDS: bool = false;

    /// Violations of transient states of the protocol, such as a field that is written at the end of a stage:
    /// each a code and the JSON pointer at which it occurs. A save reports them separately: see
    /// [`Saved::transient`](crate::store::Saved::transient).
    const TRANSIENT: &'static [(Code, &'static str)] = &[];

    /// Whether every change writes all members, including those that the document lacks and the change did not touch.
    const WRITES_ALL: bool = false;

    /// The names of the operations that [`apply`](Checkpoint::apply) takes, such as `step done`.
    const OPERATIONS: &'static [&'static str] = &[];

    /// Whether the files of a finished step are limited to source files, as [`SourceFiles`] defines them.
    const NAMES_SOURCES_ONLY: bool = false;

    /// The options that the command has for this format.
    const INPUTS: &'static [Input] = &[];

    /// Whether each checkpoint is a task; false if it supervises the tasks of others.
    const IS_TASK: bool = true;

    /// Whether agents are named by role, so that each task has another agent of the same name.
    const AGENTS_ARE_ROLES: bool = false;

    /// The guide for an agent that keeps checkpoints of this format, in Markdown: when to write what, with
    /// examples, how to resume, and what to do if a checkpoint is stale.
    const GUIDE: Option<&'static str> = None;

    /// The version that the checkpoint states.
    fn schema_version(&self) -> Option<u64> {
        None
    }

    /// Sets the version. It is called for a new checkpoint that is the root of its document, and on every save
    /// of a format with migrations.
    fn set_schema_version(&mut self, _version: u64) {}

    /// The latest version, which this type writes; `None` if documents do not state their version.
    #[must_use]
    fn latest_version() -> Option<u64> {
        let last = Self::SCHEMA_VERSIONS.last().map(|last| last.number);
        Self::VERSION_POINTER.and(last)
    }

    /// When the checkpoint was last changed.
    fn updated_at(&self) -> Option<&Timestamp>;

    /// Sets the stamps that the protocol writes on every save.
    fn stamp(&mut self, now: DateTime<Utc>);

    /// Sets the stamps for a change from `before`. It is the same as [`stamp`](Checkpoint::stamp) unless the
    /// format has changes, such as a heartbeat, that do not update its stamp.
    fn stamp_change(&mut self, _before: Option<&Self>, now: DateTime<Utc>) {
        self.stamp(now);
    }

    /// Whether a heartbeat is the only change since `before`.
    ///
    /// Such a save is no progress: the fingerprints of the files stay as they were, and it leaves no entry in
    /// the history, which heartbeats would otherwise fill.
    fn is_heartbeat(&self, _before: &Self) -> bool {
        false
    }

    /// The session that owns the task, if the checkpoint names one.
    fn session(&self) -> Option<&str> {
        None
    }

    /// The files that the checkpoint names as made or changed, each once.
    fn files(&self) -> Vec<&str>;

    /// The files that no other active checkpoint of the format should name. These are all of its files, unless
    /// the protocol lets checkpoints share some or counts fewer.
    fn exclusive_files(&self) -> Vec<&str> {
        self.files()
    }

    /// The state of the task, as in its hand-off.
    fn status(&self) -> Status {
        self.handoff().status
    }

    /// What the next agent needs.
    fn handoff(&self) -> Handoff;

    /// The hand-off with only the newest finished item and the number of the others. It is computed before and
    /// after every report. The default is the whole hand-off; a format whose checkpoints grow avoids copying
    /// all finished work.
    fn outline(&self) -> Handoff {
        self.handoff()
    }

    /// Whether a finished item has this text. The default searches the hand-off.
    fn has_finished(&self, text: &str) -> bool {
        self.handoff().done.iter().any(|item| item.text == text)
    }

    /// The signals of life by which the agent is judged alive or not. The default is the status of its
    /// hand-off, and its last change as progress.
    fn pulse(&self) -> Pulse {
        let updated_at = self.updated_at().cloned();
        Pulse::default()
            .with_activity((&self.status()).into())
            .with_progress(updated_at.or_else(|| self.handoff().updated_at))
    }

    /// The protocol's limits on how long an agent may be silent.
    fn thresholds() -> Thresholds {
        Thresholds::default()
    }

    /// How far the task is, in numbers, given its hand-off. The default counts the items of the hand-off.
    ///
    /// Of its values only [`elapsed`](Progress::elapsed) may depend on the present: it grows with the time
    /// until the task ends.
    fn progress(&self, handoff: &Handoff, now: DateTime<Utc>) -> Progress {
        Progress::of(handoff, now)
    }

    /// The protocol's own message about an agent that is late or stalled, if it has one.
    fn notice(&self, _notice: Notice, _now: DateTime<Utc>) -> Option<String> {
        None
    }

    /// Reports the violations of the format's rules.
    fn inspect(&self, inspection: &mut Inspection<'_>);

    /// Whether and how to carry on, by the protocol's own rules.
    ///
    /// [`Checkpoints::resume`](crate::Checkpoints::resume) adds what follows from the files and the violations.
    fn resume_plan(&self, _context: &RuleContext<'_>) -> ResumePlan {
        ResumePlan::of(&self.handoff())
    }

    /// The values that templates of the format's own messages see as `own`, in addition to those that all
    /// formats have.
    fn message_values(&self, _context: &RuleContext<'_>) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Applies what an agent or a supervisor reports, by the protocol's rules. The same report with the same
    /// context has the same effect on the same checkpoint.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] when the format has no such operation, [`ErrorKind::Transition`] when the
    /// protocol has no such transition and it was not forced, [`ErrorKind::Refused`] when the operation does
    /// not fit the state of the checkpoint. The checkpoint is then unchanged.
    fn apply(&mut self, operation: &Operation, _context: &OperationContext<'_>) -> Result<()> {
        Err(Error::unsupported(operation, Self::OPERATIONS))
    }

    /// Makes the reporting agent and session the owner of the task.
    ///
    /// The default changes nothing, for a format whose checkpoints belong to no agent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] when the protocol does not let this agent carry on.
    fn take_up(&mut self, _context: &OperationContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Records that the agent stops although the task is not done. It is a full checkpoint with a new stamp,
    /// even if nothing else changed.
    ///
    /// Unless the format overrides this, a failure is reported as the first of these that the protocol has and
    /// accepts now: a failure, a blocker, or a note.
    ///
    /// # Errors
    ///
    /// The default returns none.
    fn interrupt(
        &mut self,
        interruption: &Interruption,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        if let Interruption::Failed(because) = interruption {
            let text = because.clone();
            let ways = [
                Operation::Fail { text: text.clone() },
                Operation::Block {
                    text: text.clone(),
                    kind: None,
                },
                Operation::Note { text },
            ];
            // A refused operation, as on a complete task, leaves the checkpoint as it was.
            let _taken = ways.iter().any(|way| self.apply(way, context).is_ok());
        }
        self.stamp(context.now);
        Ok(())
    }

    /// The message that the protocol sends to the supervisor after a checkpoint, if it has one.
    fn progress_report(&self) -> Option<String> {
        None
    }

    /// The first checkpoint that `ckpt start` saves. The default makes it from a hand-off with the plan.
    ///
    /// # Errors
    ///
    /// Those of [`Start::needs`] and [`Error::wrong_input`].
    fn start(start: &Start<'_>) -> Result<Self> {
        let handoff = Handoff {
            agent: start.agent.map(str::to_owned),
            task: Some(start.key.to_string()),
            pending: start.plan.to_vec(),
            ..Handoff::default()
        };
        Self::from_handoff(&handoff, start.now).ok_or_else(|| {
            let message = format!(
                "a first checkpoint of {} is not begun like this",
                Self::FORMAT
            );
            Error::wrong_input(message).with_path(start.file.path)
        })
    }

    /// The inputs of the rules, made from the values of the [inputs](Checkpoint::INPUTS).
    ///
    /// # Errors
    ///
    /// Those of reading the values.
    fn take_inputs(_given: &Given, _file: &CheckpointFile<'_>) -> Result<Inputs> {
        Ok(Inputs::default())
    }

    /// The inputs that the rules take from files that the protocol keeps beside the checkpoint's file. With a
    /// `report`, only the inputs that are needed to judge it, which may be none.
    ///
    /// # Errors
    ///
    /// Those of reading the files.
    fn inputs_beside(_file: &CheckpointFile<'_>, _report: Option<&Report>) -> Result<Inputs> {
        Ok(Inputs::default())
    }

    /// Adds what the inputs state about the task and the checkpoint itself lacks. Returns the phase that the
    /// inputs state if it differs from the checkpoint's.
    fn supervised(&self, _context: &RuleContext<'_>, _judged: &mut Supervised) -> Option<String> {
        None
    }

    /// Refuses to change a file at a path where no reader of the protocol looks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] in that case.
    fn check_place(_file: &CheckpointFile<'_>) -> Result<()> {
        Ok(())
    }

    /// The evidence that a file is of this format, from its path and its document. The document is `None` if
    /// the file is corrupt.
    fn recognise(_path: &Path, _document: Option<&Document>) -> Option<Evidence> {
        None
    }

    /// How the protocol names its files.
    fn layout() -> Layout {
        Layout::default()
    }

    /// A checkpoint of this format made from a hand-off, as far as the format can represent it; `None` if the
    /// format cannot be made from one.
    fn from_handoff(_handoff: &Handoff, _now: DateTime<Utc>) -> Option<Self> {
        None
    }

    /// Completes a change from `before` right before it is saved, or refuses it.
    ///
    /// `kept` returns the items that earlier saves dropped, oldest first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] for a change that the protocol forbids, and the errors of `kept`.
    fn complete_change(
        &mut self,
        _before: &Self,
        _kept: &mut dyn FnMut() -> Result<Vec<Dropped>>,
    ) -> Result<()> {
        Ok(())
    }

    /// Shortens what a save adds to fit `limits`; `before` is the checkpoint before the change.
    ///
    /// Everything that is removed is in the [`Truncation`], whole.
    fn shrink(&mut self, _limits: &Limits, _before: Option<&Self>) -> Truncation {
        Truncation::default()
    }
}

/// The judgment of a task that has a supervisor: see [`Checkpoint::supervised`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Supervised {
    /// What the next agent needs.
    pub handoff: Handoff,
    /// The signals of life of its agent.
    pub pulse: Pulse,
    /// How far it is.
    pub progress: Progress,
}

/// All violations of a checkpoint: those of shape, from the reading, and those of its format's rules.
pub fn violations<C: Checkpoint>(
    document: &Document,
    reading: &Reading<C>,
    context: &RuleContext<'_>,
) -> Vec<Violation> {
    let mut inspection = Inspection::new(document, reading, context);
    inspection.version(&reading.value);
    reading.value.inspect(&mut inspection);
    let mut all = reading.violations.clone();
    all.extend(inspection.finish());
    all
}
