//! `sitebuilder`.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, Handoff, Inspection, Status, Timestamp};

/// A checkpoint of the `sitebuilder` protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct SitebuilderCheckpoint {}

impl Checkpoint for SitebuilderCheckpoint {
    const FORMAT: &'static str = "sitebuilder";

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
