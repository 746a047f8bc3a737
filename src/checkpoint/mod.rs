//! The [`Checkpoint`] trait and the vocabulary all formats share.

mod clock;
mod codes;
mod error;
mod handoff;
mod inspection;
mod key;
mod limits;
mod open_enum;
mod revision;
mod status;
mod timestamp;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use clock::{Clock, FixedClock, SystemClock};
pub use error::{Error, ErrorKind, Result};
pub use handoff::{DecisionItem, DoneItem, Handoff, OpenItem, VerificationItem};
pub use inspection::{FUTURE_TOLERANCE, Inspection};
pub use key::Key;
pub use limits::{DropReason, Dropped, Limits, OverBudget, Truncation};
pub use open_enum::OpenEnum;
pub(crate) use open_enum::open_enum;
pub use revision::{Expect, Revision};
pub use status::Status;
pub use timestamp::{Precision, Timestamp};

use crate::json::{Document, Identity, Reading, Violation};

/// What a format tells of itself; all else of the library follows from it.
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

    /// The latest version of the format that this type writes, where the format counts versions.
    const SCHEMA_VERSION: Option<u64> = None;

    /// By what the elements of its lists are recognised when they change place.
    const IDENTITIES: &'static [Identity] = &[];

    /// The version that the checkpoint says it has.
    fn schema_version(&self) -> Option<u64> {
        None
    }

    /// Sets the version; called once for a new checkpoint that stands alone in its document.
    fn set_schema_version(&mut self, _version: u64) {}

    /// When the checkpoint was last changed.
    fn updated_at(&self) -> Option<&Timestamp>;

    /// Sets what the protocol stamps on every write.
    fn stamp(&mut self, now: DateTime<Utc>);

    /// The files that the checkpoint names as made or changed, each once.
    fn files(&self) -> Vec<&str>;

    /// The state of the task.
    fn status(&self) -> Status;

    /// What the next agent needs.
    fn handoff(&self) -> Handoff;

    /// Reports what breaks the format's rules.
    fn inspect(&self, inspection: &mut Inspection<'_>);

    /// Cuts what a save adds to `limits`; `before` is the checkpoint that it changes.
    ///
    /// Whatever goes is in the [`Truncation`], whole.
    fn shrink(&mut self, _limits: &Limits, _before: Option<&Self>) -> Truncation {
        Truncation::default()
    }
}

/// What a judgement of a checkpoint may take from outside; what is not given is not judged.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Knowledge<'a> {
    /// The present time: judges stamps in the future.
    pub now: Option<DateTime<Utc>>,
    /// The key the checkpoint is kept under: judges the id inside.
    pub key: Option<&'a Key>,
}

impl<'a> Knowledge<'a> {
    /// Nothing known.
    #[must_use]
    pub fn none() -> Self {
        Knowledge::default()
    }

    /// With the present time.
    #[must_use]
    pub fn with_now(mut self, now: DateTime<Utc>) -> Self {
        self.now = Some(now);
        self
    }

    /// With the key.
    #[must_use]
    pub fn with_key(mut self, key: &'a Key) -> Self {
        self.key = Some(key);
        self
    }
}

/// All violations of a checkpoint: of its shape, from the reading, and of its format's rules.
pub fn violations<C: Checkpoint>(
    document: &Document,
    reading: &Reading<C>,
    knowledge: &Knowledge<'_>,
) -> Vec<Violation> {
    let mut inspection = Inspection::new(document, reading)
        .with_now(knowledge.now)
        .with_key(knowledge.key);
    reading.value.inspect(&mut inspection);
    if let (Some(found), Some(known)) = (reading.value.schema_version(), C::SCHEMA_VERSION)
        && found > known
    {
        inspection.report(
            "/schemaVersion",
            crate::json::Code::NEWER_SCHEMA,
            format!("version {found}; this library knows up to {known}"),
        );
    }
    let mut all = reading.violations.clone();
    all.extend(inspection.finish());
    all
}
