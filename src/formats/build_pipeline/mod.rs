//! `build-pipeline`.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, Handoff, Inspection, Status, Timestamp};

/// A checkpoint of the `build-pipeline` protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct BuildCheckpoint {}

impl Checkpoint for BuildCheckpoint {
    const FORMAT: &'static str = "build-pipeline";

    fn updated_at(&self) -> Option<&Timestamp> {
        None
    }

    fn stamp(&mut self, _now: DateTime<Utc>) {}

    fn files(&self) -> Vec<&str> {
        Vec::new()
    }

    fn status(&self) -> Status {
        Status::default()
    }

    fn handoff(&self) -> Handoff {
        Handoff::default()
    }

    fn inspect(&self, _inspection: &mut Inspection<'_>) {}
}
