//! Never lose an AI agent's work.
//!
//! An orchestrator that drives AI coding agents links this library and gets
//!
//! * typed **checkpoints** of what an agent did, decided and still has to do
//!   ([`TaskCheckpoint`](formats::task::TaskCheckpoint), and any type that implements [`Checkpoint`]);
//! * a **store** that survives crashes, loss of power and rival writers
//!   ([`FileStore`](store::FileStore), [`BuilderStateStore`](store::BuilderStateStore),
//!   [`MemoryStore`](store::MemoryStore), and any type that implements
//!   [`CheckpointStore`](store::CheckpointStore));
//! * a **verdict** on whether a checkpoint can still be trusted ([`Staleness`](staleness::Staleness)) and
//!   whether its agent is alive ([`Liveness`](liveness::Liveness));
//! * the **plan and the prompt** with which another agent carries on ([`Resume`](resume::Resume));
//! * a **recorder** that an orchestrator holds while an agent works and that does all of this
//!   ([`Recorder`](recorder::Recorder)).
//!
//! # A first look
//!
//! ```
//! use agent_checkpoint::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let project = folder.path();
//! let tasks = FileStore::open(project.join("checkpoints")).checkpoints::<TaskCheckpoint>();
//! let key = Key::new("US-003")?;
//! let plan = TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], tasks.now());
//!
//! // An agent begins the task. Each step is saved before the next one begins.
//! let options = RecorderOptions::new("ui-dev");
//! let failed = Recorder::run(&tasks, &key, options, &plan, |step| match step.text() {
//!     "Test it" => Err("the context is full"),
//!     _ => Ok(StepDone::current().with_created("src/toggle.tsx")),
//! });
//! assert!(failed.is_err());
//!
//! // Another agent finds out what was done and what is left, and a prompt for its model.
//! let resume = tasks.resume(&key, &ResumeOptions::new(project))?;
//! assert_eq!(resume.plan.start_at.as_deref(), Some("Test it"));
//! # #[cfg(feature = "template")]
//! println!("{}", resume.prompt()?);
//! # Ok(())
//! # }
//! ```
//!
//! The [`prelude`] has the names that an agent's program needs. [`chrono`] is re-exported because its times are part of
//! the interface.
//!
//! # Three rules
//!
//! **Reading has three outcomes.** A text is *corrupt* ([`ErrorKind::Corrupt`] with line, column and
//! offset), *readable with violations* (a typed checkpoint and a list of [`Violation`](json::Violation)s, each with a
//! JSON pointer and a stable [`Code`](json::Code)), or *valid*.
//!
//! **Writing changes only what changed.** Every byte outside the values that the caller changed stays:
//! order, indentation, unknown keys, number spellings, line ends. A save that changes nothing writes
//! nothing.
//!
//! **Nothing is guessed and nothing is silent.** No default stands in for an unreadable value without a
//! violation; nothing unreadable is overwritten unless the caller allows it; items that a save drops to stay within
//! [`Limits`] are listed in the [`Truncation`] and kept in the dropped log beside the checkpoint.
//!
//! # Layers
//!
//! Each module imports only those below it; `docs/design.md` has the few exceptions.
//!
//! | module | what it has |
//! |---|---|
//! | [`recorder`] | what an orchestrator holds while an agent works |
//! | [`fleet`] | many checkpoints of any formats, judged together |
//! | [`Checkpoints`] | the typed view of a store: lenient reading, limits, stamps, redaction, updates |
//! | [`resume`] | plan and prompt |
//! | [`ledger`] | what really happened: effects that must not happen twice, proofs, approvals, times to wait for, failed attempts |
//! | [`liveness`] | heartbeats and progress against a clock |
//! | [`staleness`] | files against a checkpoint |
//! | [`difference`] | what changed between two states of a checkpoint |
//! | [`store`] | documents under keys: memory, folder, host file |
//! | [`formats`] | the formats and their registry |
//! | this page | the [`Checkpoint`] trait and the vocabulary all formats share |
//! | [`json`] | the ground floor: a lossless document |
//!
//! # Features
//!
//! | feature | default | adds | crates it needs |
//! |---|---|---|---|
//! | `schema` | yes | JSON Schema of every checkpoint type, for files and at build time (module `schema`) | schemars |
//! | `template` | yes | prompts and messages (`resume::Prompts`) | minijinja |
//! | `ignore` | no | files that a project's `.gitignore` excludes are not tracked ([`staleness::Tracking`]) | ignore |
//! | `signals` | no | a checkpoint before a signal ends the process (`Recorder::scope_with_signals`, Unix) | signal-hook |
//! | `tokio` | no | the recorder for async programs (`recorder::AsyncRecorder`), and `Checkpoints::unblocked` | tokio |
//! | `proptest` | no | strategies for property tests in your own crate (module `strategies`) | proptest |
//! | `testkit` | no | tests of a store or a format of yours (module `testkit`), and a seam where tests can make file system calls fail (`testkit::seam`) | none |
//!
//! Features only add. Without any of them the library reads, writes, judges and plans, but renders no prompts.
//!
//! # Time
//!
//! Only [`SystemClock`] reads the clock. Every function that decides something takes the time as an argument or
//! from the [`Clock`] of the [`Checkpoints`].

#![cfg_attr(docsrs, feature(doc_cfg))]

mod checkpoint;
mod checkpoints;
pub mod difference;
mod event;
pub mod fleet;
pub mod formats;
mod fsio;
pub mod json;
pub mod ledger;
pub mod liveness;
pub mod recorder;
mod redaction;
mod registry;
pub mod resume;
#[cfg(feature = "schema")]
pub mod schema;
mod shown;
pub mod staleness;
pub mod store;
#[cfg(feature = "proptest")]
pub mod strategies;
#[cfg(feature = "template")]
mod template;
#[cfg(feature = "testkit")]
pub mod testkit;

pub use checkpoint::{
    Checkpoint, Claim, ClaimRequest, Clock, ContextLevel, ContextUse, DecisionItem, Detail,
    DoneItem, DropReason, Dropped, Error, ErrorKind, Expect, Fence, Fenced, FixedClock, Handoff,
    Key, Limits, OpenItem, Operation, OperationContext, OverBudget, Precision, ProcessId, Progress,
    Report, Result, Revision, RuleContext, Status, StepDone, SystemClock, Timestamp, Truncation,
    VerificationItem,
};
pub use checkpoints::{
    Begun, CheckpointStoreExt, Checkpoints, Loaded, PutMode, ReportEffect, Reported,
};
pub use chrono;
pub use redaction::Redaction;
pub use shown::{is_blank, quoted, visible};

/// The names that an agent's program needs: `use agent_checkpoint::prelude::*;`.
pub mod prelude {
    #[doc(no_inline)]
    pub use crate::formats::task::TaskCheckpoint;
    #[doc(no_inline)]
    pub use crate::recorder::{Opened, Ran, Recorder, RecorderOptions, Step};
    #[doc(no_inline)]
    pub use crate::resume::{ResumeDecision, ResumeOptions};
    #[doc(no_inline)]
    pub use crate::staleness::Tracking;
    #[doc(no_inline)]
    pub use crate::store::FileStore;
    #[doc(no_inline)]
    pub use crate::{Checkpoint, CheckpointStoreExt, Key, StepDone};
}

/// Guides: one page for each task.
///
/// The pages lie under `docs/guide`; their code is compiled and run with the tests.
#[cfg(any(doc, doctest))]
pub mod _guide {
    #[doc = include_str!("../docs/guide/first-checkpoint.md")]
    pub mod first_checkpoint {}

    #[doc = include_str!("../docs/guide/own-format.md")]
    pub mod own_format {}

    #[doc = include_str!("../docs/guide/own-store.md")]
    pub mod own_store {}

    #[cfg(feature = "template")]
    #[doc = include_str!("../docs/guide/resume.md")]
    pub mod resume {}

    #[doc = include_str!("../docs/guide/ledger.md")]
    pub mod ledger {}

    #[doc = include_str!("../docs/guide/fleet.md")]
    pub mod fleet {}

    #[cfg(feature = "schema")]
    #[doc = include_str!("../docs/guide/schema.md")]
    pub mod schema {}

    #[doc = include_str!("../docs/guide/upgrade.md")]
    pub mod upgrade {}
}

/// The examples of the README are compiled with the tests.
#[cfg(all(doctest, feature = "template"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of the recorder page are compiled with the tests.
#[cfg(all(doctest, feature = "template", feature = "tokio"))]
#[doc = include_str!("../docs/recorder.md")]
struct RecorderPage;

/// The examples of the testkit page are compiled with the tests.
#[cfg(all(doctest, feature = "testkit", feature = "proptest"))]
#[doc = include_str!("../docs/testkit.md")]
struct TestkitPage;
