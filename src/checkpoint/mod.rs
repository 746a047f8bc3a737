//! The [`Checkpoint`] trait and the vocabulary all formats share.

#[cfg(feature = "proptest")]
pub(crate) mod arbitrary;
mod claim;
mod clock;
mod codes;
mod context_use;
mod error;
mod evidence;
mod file_name;
mod given;
mod handoff;
mod inputs;
mod inspection;
mod interruption;
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
mod saved_files;
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
pub use clock::{Clock, FixedClock, SystemClock};
pub use context_use::{ContextLevel, ContextUse};
pub use error::{Error, ErrorKind, Result};
pub use evidence::Evidence;
pub use given::{CheckpointFile, Given, GivenValue, Input, InputKind, Start};
pub use handoff::{DecisionItem, DoneItem, Handoff, OpenItem, VerificationItem};
pub(crate) use handoff::{DoneIndex, moved_to};
pub use inputs::Inputs;
pub use inspection::{FUTURE_TOLERANCE, Inspection};
pub use interruption::Interruption;
pub(crate) use judged::{Judged, judge};
pub use key::Key;
pub(crate) use layout::UNIQUE_SEPARATOR;
pub(crate) use layout::is_unique_number;
pub use layout::{Archive, Backups, FileRole, Layout};
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
pub use saved_files::SavedFiles;
#[cfg(feature = "schema")]
pub use shape::Shape;
#[cfg(feature = "schema")]
pub(crate) use shape::{all_present, any_present, entries, is, or_null, present};
pub use source_files::SourceFiles;
pub(crate) use source_files::sort_by;
pub use status::Status;
pub use timestamp::{Precision, Timestamp};
pub(crate) use unreadable::unreadable_items;
pub use unreadable::{ItemState, UnreadableItem};
pub use versions::{Current, Migration, SchemaVersion, read};
pub(crate) use versions::{any_migration, version_is_unreadable};

use crate::json::{Code, Document, Identity, Reading, Violation};

/// What a format states about itself. The rest of the library works from this.
///
/// Implement it for a struct of your own and get the lossless store, the limits, the staleness
/// verdict and the resume prompt.
///
/// # Rules for the struct
///
/// `#[serde(default)]` on every struct, so that `{}` deserializes and a missing field never costs
/// its object; a scalar whose default could be taken for data is an `Option`; no `flatten`,
/// `untagged`, `tag` or `deny_unknown_fields`; `skip_serializing_if` only for `Option::is_none`;
/// a text of a fixed set keeps an unknown spelling. What is required is said in
/// [`inspect`](Checkpoint::inspect), not by the type.
pub trait Checkpoint:
    Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync + 'static
{
    /// The name of the format, such as `task`.
    const FORMAT: &'static str;

    /// The released versions of the format, oldest first, each with what it brought.
    ///
    /// Documents of older versions stay readable: see [`read`].
    const SCHEMA_VERSIONS: &'static [SchemaVersion] = &[];

    /// The place of a document's version, such as `/schemaVersion`; `None` if it has none. The value there is
    /// [`schema_version`](Checkpoint::schema_version).
    const VERSION_POINTER: Option<&'static str> = None;

    /// By what the elements of its lists are recognised when they change place.
    const IDENTITIES: &'static [Identity] = &[];

    /// Where the items of its work stand, and what one of them that could not be read counts as: `/steps/*` for
    /// each element of a list or member of an object, `/current` for a single one. What is not named here does not count.
    const ITEMS: &'static [(&'static str, ItemState)] = &[];

    /// Whether the status is derived from what is done and left, rather than said by the checkpoint. Then
    /// it cannot be *complete* while a part of the checkpoint could not be read.
    const STATUS_IS_DERIVED: bool = false;

    /// Whether the checkpoint has a heartbeat apart from its progress: see
    /// [`is_heartbeat`](Checkpoint::is_heartbeat).
    const HAS_HEARTBEAT: bool = false;
    /// Whether the texts of finished and pending work are ids, each of one piece of work. Then one that stands
    /// in both is done, and no prompt or plan has it again; a step in words may well come twice.
    const WORK_HAS_IDS: bool = false;

    /// Violations that the protocol itself passes through, each a code and the JSON pointer at which it stands, such as
    /// a field that is written at the end of a stage. A save treats them differently:
    /// [`Saved::transient`](crate::store::Saved::transient).
    const TRANSIENT: &'static [(Code, &'static str)] = &[];

    /// Whether every change writes all members, also those that the document lacks and the change left as they were.
    const WRITES_ALL: bool = false;

    /// The names of the operations that [`apply`](Checkpoint::apply) takes, such as `step done`.
    const OPERATIONS: &'static [&'static str] = &[];

    /// Whether the files of a finished step are source files only, as [`SourceFiles`] has them.
    const NAMES_SOURCES_ONLY: bool = false;

    /// The options that the command has for this format.
    const INPUTS: &'static [Input] = &[];

    /// Whether each checkpoint is a task; false for one that supervises those of others.
    const IS_TASK: bool = true;

    /// Whether the name of an agent is that of a role, which another agent has in each task.
    const AGENTS_ARE_ROLES: bool = false;

    /// The page to give an agent that keeps checkpoints of this format, in Markdown: when to write what, with examples, how
    /// to resume, and what to do when a checkpoint is stale.
    const GUIDE: Option<&'static str> = None;

    /// The version that the checkpoint says it has.
    fn schema_version(&self) -> Option<u64> {
        None
    }

    /// Sets the version; called for a new checkpoint that stands alone in its document, and for every save of a
    /// format that has migrations.
    fn set_schema_version(&mut self, _version: u64) {}

    /// The version that this type writes: the last one, where documents tell theirs.
    #[must_use]
    fn latest_version() -> Option<u64> {
        let last = Self::SCHEMA_VERSIONS.last().map(|last| last.number);
        Self::VERSION_POINTER.and(last)
    }

    /// When the checkpoint was last changed.
    fn updated_at(&self) -> Option<&Timestamp>;

    /// Sets what the protocol stamps on every write.
    fn stamp(&mut self, now: DateTime<Utc>);

    /// Sets the stamps for a change of what was `before`; the same as [`stamp`](Checkpoint::stamp)
    /// unless the format has changes, such as a heartbeat, that its stamp does not count.
    fn stamp_change(&mut self, _before: Option<&Self>, now: DateTime<Utc>) {
        self.stamp(now);
    }

    /// Whether `before` became this by a heartbeat alone.
    ///
    /// Such a save is no progress: what is known of the files stays as it was, and it leaves no state in
    /// the history, which would hold nothing else after a while.
    fn is_heartbeat(&self, _before: &Self) -> bool {
        false
    }

    /// The session that has the task, where the checkpoint names one.
    fn session(&self) -> Option<&str> {
        None
    }

    /// The files that the checkpoint names as made or changed, each once.
    fn files(&self) -> Vec<&str>;

    /// Those of its files that no other active checkpoint of the format should name: all of them, unless the
    /// protocol shares some, or counts fewer.
    fn exclusive_files(&self) -> Vec<&str> {
        self.files()
    }

    /// The state of the task: that of its hand-off.
    fn status(&self) -> Status {
        self.handoff().status
    }

    /// What the next agent needs.
    fn handoff(&self) -> Handoff;

    /// The hand-off with no finished work but the newest, and the number of the others: what is asked of a checkpoint
    /// before and after every report. The default is the whole hand-off; a format whose checkpoints grow spares the
    /// copy of what they have of finished work.
    fn outline(&self) -> Handoff {
        self.handoff()
    }

    /// Whether a piece of finished work has this text. The default looks into the hand-off.
    fn has_finished(&self, text: &str) -> bool {
        self.handoff().done.iter().any(|item| item.text == text)
    }

    /// The signals by which the agent is judged alive or not. The default is the status of its hand-off, and
    /// its last change as progress.
    fn pulse(&self) -> Pulse {
        let updated_at = self.updated_at().cloned();
        Pulse::default()
            .with_activity((&self.status()).into())
            .with_progress(updated_at.or_else(|| self.handoff().updated_at))
    }

    /// How long a silence may be by the protocol.
    fn thresholds() -> Thresholds {
        Thresholds::default()
    }

    /// How far the task is, in numbers, given its hand-off. The default counts the items of that.
    ///
    /// Of what it states only [`elapsed`](Progress::elapsed) depends on the present: it goes on with the time, or has
    /// ended.
    fn progress(&self, handoff: &Handoff, now: DateTime<Utc>) -> Progress {
        Progress::of(handoff, now)
    }

    /// The protocol's own message about an agent that is late or stalled, where it has one.
    fn notice(&self, _notice: Notice, _now: DateTime<Utc>) -> Option<String> {
        None
    }

    /// Reports what breaks the format's rules.
    fn inspect(&self, inspection: &mut Inspection<'_>);

    /// Whether and how to go on, by the protocol's own rules.
    ///
    /// What the files and the violations tell is added by
    /// [`Checkpoints::resume`](crate::Checkpoints::resume).
    fn resume_plan(&self, _context: &RuleContext<'_>) -> ResumePlan {
        ResumePlan::of(&self.handoff())
    }

    /// What templates of the format's own messages see as `own`, beside what all formats have.
    fn message_values(&self, _context: &RuleContext<'_>) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Does what an agent or a supervisor reports, and keeps the protocol's rules. The same report in the same context
    /// does the same to the same checkpoint.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] when the format has no such operation, [`ErrorKind::Transition`] when
    /// the protocol has no such transition and none was forced, [`ErrorKind::Refused`] when it does not
    /// go with the checkpoint's state. The checkpoint is then unchanged.
    fn apply(&mut self, operation: &Operation, _context: &OperationContext<'_>) -> Result<()> {
        Err(Error::unsupported(operation, Self::OPERATIONS))
    }

    /// Takes the task up again for the agent and session that report: after this it is theirs.
    ///
    /// The default changes nothing, for a format whose checkpoints belong to no agent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] when the protocol does not let this agent go on from it.
    fn take_up(&mut self, _context: &OperationContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Records that the agent stops although the task is not done. It is a full checkpoint of now, also
    /// where nothing else changed.
    ///
    /// Unless the format says otherwise, what failed is reported as a failure, a blocker or a note,
    /// whichever the protocol has first and takes now.
    ///
    /// # Errors
    ///
    /// None, unless the format has some.
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
            // One that is refused, as on a task that is complete, leaves the checkpoint as it was.
            let _taken = ways.iter().any(|way| self.apply(way, context).is_ok());
        }
        self.stamp(context.now);
        Ok(())
    }

    /// The message to the supervisor after a checkpoint, if the protocol has such a
    /// message for it.
    fn progress_report(&self) -> Option<String> {
        None
    }

    /// A first checkpoint, as `ckpt start` begins it. The default makes one from a hand-off with the plan.
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

    /// What the rules take from outside, made of the [inputs](Checkpoint::INPUTS) that were given.
    ///
    /// # Errors
    ///
    /// Those of reading what was given.
    fn take_inputs(_given: &Given, _file: &CheckpointFile<'_>) -> Result<Inputs> {
        Ok(Inputs::default())
    }

    /// What the rules take from files that the protocol keeps beside the checkpoint's: of `report` where they are to judge
    /// a report, and none where that needs nothing.
    ///
    /// # Errors
    ///
    /// Those of reading the files.
    fn inputs_beside(_file: &CheckpointFile<'_>, _report: Option<&Report>) -> Result<Inputs> {
        Ok(Inputs::default())
    }

    /// Adds what the inputs have of the task that the checkpoint itself lacks, and gives the phase in which they have the
    /// task where that is another than the checkpoint's.
    fn supervised(&self, _context: &RuleContext<'_>, _judged: &mut Supervised) -> Option<String> {
        None
    }

    /// Refuses a change of the file at this path, where no reader of the protocol looks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] then.
    fn check_place(_file: &CheckpointFile<'_>) -> Result<()> {
        Ok(())
    }

    /// The evidence that a file is of this format, from its path and its document; `None` for the
    /// document of a corrupt file.
    fn recognise(_path: &Path, _document: Option<&Document>) -> Option<Evidence> {
        None
    }

    /// How the protocol names its files.
    fn layout() -> Layout {
        Layout::default()
    }

    /// A checkpoint of this format with the same hand-off, as far as the format can hold it; `None`
    /// when the format cannot be made from one.
    fn from_handoff(_handoff: &Handoff, _now: DateTime<Utc>) -> Option<Self> {
        None
    }

    /// Completes a change of what was `before`, or refuses what no change may do, right before it is saved.
    ///
    /// `kept` gives what earlier saves dropped and kept beside the checkpoint, oldest first.
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

    /// Cuts what a save adds to `limits`; `before` is the checkpoint that it changes.
    ///
    /// Whatever goes is in the [`Truncation`], whole.
    fn shrink(&mut self, _limits: &Limits, _before: Option<&Self>) -> Truncation {
        Truncation::default()
    }
}

/// What is judged of a task that has a supervisor: see [`Checkpoint::supervised`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Supervised {
    /// What the next agent needs.
    pub handoff: Handoff,
    /// By what its agent is judged alive or not.
    pub pulse: Pulse,
    /// How far it is.
    pub progress: Progress,
}

/// All violations of a checkpoint: of its shape, from the reading, and of its format's rules.
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
