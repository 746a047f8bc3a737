//! The calls that report one thing, of a recorder and of a batch.

use super::{Batch, Recorded, Recorder};
use crate::checkpoint::{Checkpoint, ItemKind, Operation, Result};
use crate::formats::task::StepDone;

/// Each call is written once, and is there twice: in a batch it is added, on a recorder it is one write.
macro_rules! reports {
    ($( $(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) => $operation:expr; )+) => {
        impl Batch {
            $(
                $(#[$doc])*
                pub fn $name(&mut self, $($argument: $type),*) {
                    self.report($operation);
                }
            )+
        }

        impl<C: Checkpoint> Recorder<C> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// As every call, and where it does not go with the state of the checkpoint.
                pub fn $name(&self, $($argument: $type),*) -> Result<Recorded> {
                    self.batch(|batch| batch.$name($($argument),*))
                }
            )+
        }
    };
}

reports! {
    /// A step begins; it stays in the plan until it is done. Another that was in progress is put aside.
    step_started(text: &str) => Operation::StepStart { text: text.to_owned() };
    /// A step is finished: it leaves the plan, and is no longer in progress. Files that are no sources are
    /// left out.
    step_done(done: &StepDone) => Operation::StepDone {
        text: done.text.clone(),
        pending: done.pending.clone(),
        files_created: done.files_created.clone(),
        files_modified: done.files_modified.clone(),
    };
    /// A step joins the plan, before another planned one or at its end.
    step_added(text: &str, before: Option<&str>) => Operation::StepAdd {
        text: text.to_owned(),
        before: before.map(str::to_owned),
    };
    /// A planned step is not to be done, and why.
    step_dropped(text: &str, because: &str) => Operation::StepDrop {
        text: text.to_owned(),
        because: because.to_owned(),
    };
    /// A planned step reads otherwise from now on.
    step_reworded(text: &str, to: &str) => Operation::StepEdit { text: text.to_owned(), to: to.to_owned() };
    /// A planned step comes before another.
    step_moved(text: &str, before: &str) => Operation::StepMove {
        text: text.to_owned(),
        before: before.to_owned(),
    };
    /// A decision that the next agent must respect, and why.
    decide(text: &str, rationale: Option<&str>) => Operation::Decide {
        text: text.to_owned(),
        rationale: rationale.map(str::to_owned),
    };
    /// How far the work in progress is; of an `agent-session`, how to resume from here.
    note_partial(text: &str) => Operation::Note { text: text.to_owned() };
    /// Something is in the way.
    block(text: &str) => Operation::Block { text: text.to_owned() };
    /// Nothing is in the way any more.
    unblock() => Operation::Unblock;
    /// The task enters a phase, by name or number.
    phase(name: &str) => Operation::Phase { name: name.to_owned() };
    /// The task enters a stage, by name or number.
    stage(name: &str) => Operation::Stage { name: name.to_owned() };
    /// The agent is at a sync point, and waits there.
    sync(name: &str) => Operation::Sync { name: name.to_owned() };
    /// An activity of verification has a result, as the format spells it.
    verification(activity: &str, status: &str) => Operation::Verify {
        activity: activity.to_owned(),
        status: status.to_owned(),
    };
    /// A gate was passed.
    gate_passed(name: &str) => Operation::GatePass {
        name: name.to_owned(),
        phase: None,
    };
    /// A subtask, workstream or task of the plan begins.
    item_started(kind: ItemKind, id: &str) => Operation::ItemStart { kind, id: id.to_owned() };
    /// A subtask, workstream or task of the plan is finished, with the files that it made or changed.
    item_done(kind: ItemKind, id: &str, files: &[&str]) => Operation::ItemDone {
        kind,
        id: id.to_owned(),
        files: files.iter().map(|&file| file.to_owned()).collect(),
    };
    /// A subtask, workstream or task of the plan failed, and why.
    item_failed(kind: ItemKind, id: &str, because: Option<&str>) => Operation::ItemFail {
        kind,
        id: id.to_owned(),
        because: because.map(str::to_owned),
    };
    /// The task waits for a decision.
    pause() => Operation::Pause;
    /// The task is complete.
    complete() => Operation::Complete;
    /// The model's service asked to wait: a full checkpoint, with how far the work in progress is.
    rate_limited(note: Option<&str>) => Operation::RateLimit { note: note.map(str::to_owned) };
    /// The task failed, after all that could be tried: a full checkpoint, with the reason in the way. Call it
    /// before anybody is told of the failure.
    failed(because: &str) => Operation::Fail { text: because.to_owned() };
}
