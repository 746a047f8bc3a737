//! Never lose an AI agent's work.

pub mod checkpoint;
mod checkpoints;
pub mod formats;
pub mod fsio;
pub mod json;
pub mod resume;
#[cfg(feature = "schema")]
pub mod schema;
pub mod staleness;
pub mod store;
#[cfg(feature = "proptest")]
pub mod strategies;

pub use checkpoint::{
    Checkpoint, Clock, Error, ErrorKind, Expect, FixedClock, Handoff, Inspection, Key, Knowledge,
    Limits, Result, Revision, Status, SystemClock, Timestamp, Truncation,
};
pub use checkpoints::{CheckpointStoreExt, Checkpoints, Loaded, Redaction, Write};
pub use formats::{Format, Formats, TaskCheckpoint};
pub use json::{Code, Document, Violation};
pub use resume::{Resume, ResumeDecision, ResumeOptions, ResumePlan};
pub use staleness::Staleness;
pub use store::{
    BuilderStateStore, CheckpointStore, FileOptions, FileStore, MemoryStore, Outcome, Saved, Stored,
};
