//! A format of this orchestrator's own.

use agent_checkpoint::checkpoint::DoneItem;
use agent_checkpoint::{Checkpoint, Handoff, Inspection, Status, Timestamp};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// An errand with stops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Errand {
    /// Stops that were made.
    pub made: Vec<String>,
    /// Stops that are left.
    pub left: Vec<String>,
    /// When it was last changed.
    pub changed: Option<Timestamp>,
}

impl Errand {
    /// An errand of these stops.
    #[must_use]
    pub fn new(stops: &[&str], now: DateTime<Utc>) -> Self {
        Errand {
            made: Vec::new(),
            left: stops.iter().map(|&stop| stop.to_owned()).collect(),
            changed: Some(Timestamp::like(None, now)),
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
        inspection.require("left");
        inspection.timestamp("/changed", self.changed.as_ref());
    }
}
