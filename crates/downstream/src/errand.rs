//! A format of this orchestrator's own.

use agent_checkpoint::checkpoint::{DoneItem, SchemaVersion};
#[cfg(feature = "schema")]
use agent_checkpoint::schema::Shape;
use agent_checkpoint::{Checkpoint, Handoff, Inspection, Status, Timestamp};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// An errand with stops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new("the errand handbook, chapter 2").required(Self::REQUIRED)))]
#[serde(default)]
pub struct Errand {
    /// Stops that were made, oldest first.
    pub made: Vec<String>,
    /// Stops that are left, in order.
    pub left: Vec<String>,
    /// How many seconds a stop takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_per_stop: Option<u32>,
    /// When it was last changed.
    pub changed: Option<Timestamp>,
}

impl Errand {
    const REQUIRED: &'static [&'static str] = &["left"];

    /// An errand of these stops.
    #[must_use]
    pub fn new(stops: &[&str], now: DateTime<Utc>) -> Self {
        Errand {
            left: stops.iter().map(|&stop| stop.to_owned()).collect(),
            changed: Some(Timestamp::like(None, now)),
            ..Errand::default()
        }
    }

    /// The next stop is made.
    pub fn make_stop(&mut self) {
        if !self.left.is_empty() {
            self.made.push(self.left.remove(0));
        }
    }
}

impl Checkpoint for Errand {
    const FORMAT: &'static str = "errand";
    const SCHEMA_VERSIONS: &'static [SchemaVersion] =
        &[SchemaVersion::new(1, "An errand with stops.")];

    fn updated_at(&self) -> Option<&Timestamp> {
        self.changed.as_ref()
    }

    fn stamp(&mut self, now: DateTime<Utc>) {
        self.changed = Some(Timestamp::like(self.changed.as_ref(), now));
    }

    fn files(&self) -> Vec<&str> {
        Vec::new()
    }

    fn handoff(&self) -> Handoff {
        let mut handoff = Handoff::default();
        handoff.done = self.made.iter().map(DoneItem::new).collect();
        handoff.pending.clone_from(&self.left);
        handoff.status = match self.left.is_empty() {
            true => Status::Complete,
            false => Status::InProgress,
        };
        handoff
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        inspection.require_all(Self::REQUIRED);
        inspection.timestamp("/changed", self.changed.as_ref());
    }
}
