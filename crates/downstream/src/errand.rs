//! A format that only this orchestrator has.

use std::path::Path;

use agent_checkpoint::formats::{Evidence, Input, InputKind, Inspection, SchemaVersion, Start};
use agent_checkpoint::json::Document;
#[cfg(feature = "schema")]
use agent_checkpoint::schema::Shape;
use agent_checkpoint::{
    Checkpoint, DoneItem, Error, Handoff, OpenItem, Operation, OperationContext, Result, Status,
    Timestamp,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// An errand with stops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new("the errand handbook, chapter 2").required(Self::REQUIRED)))]
#[serde(default)]
pub struct Errand {
    /// The stops made so far, oldest first.
    pub made: Vec<String>,
    /// The remaining stops, in order.
    pub left: Vec<String>,
    /// The stop to which the agent is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The blockers.
    pub in_the_way: Vec<String>,
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
    pub fn new(stops: &[impl AsRef<str>], now: DateTime<Utc>) -> Self {
        Errand {
            left: stops.iter().map(|stop| stop.as_ref().to_owned()).collect(),
            changed: Some(Timestamp::like(None, now)),
            ..Errand::default()
        }
    }

    /// Records that the next stop was made.
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
        handoff.in_progress = self.at.iter().map(OpenItem::new).collect();
        handoff.blockers.clone_from(&self.in_the_way);
        handoff.status = match (self.left.is_empty(), self.in_the_way.is_empty()) {
            (_, false) => Status::Blocked,
            (true, _) => Status::Complete,
            (false, _) => Status::InProgress,
        };
        handoff
    }

    const GUIDE: Option<&'static str> = Some("# Errands\n\nReport each stop that you make.\n");

    const OPERATIONS: &'static [&'static str] = &["step start", "step done", "block", "unblock"];

    /// `ckpt start` has an option for errands.
    const INPUTS: &'static [Input] = &[Input::new(
        "seconds-per-stop",
        InputKind::Number(1, 3600),
        "How long a stop takes",
        &["start"],
    )];

    fn start(start: &Start<'_>) -> Result<Self> {
        let seconds = start.given.number("seconds-per-stop");
        Ok(Errand {
            seconds_per_stop: seconds.and_then(|seconds| seconds.try_into().ok()),
            ..Errand::new(start.plan, start.now)
        })
    }

    /// Applies a report of the recorder. A refused operation leaves the errand unchanged.
    fn apply(&mut self, operation: &Operation, _: &OperationContext<'_>) -> Result<()> {
        match operation {
            Operation::StepStart { text } => self.at = Some(text.clone()),
            Operation::StepDone(done) => {
                let stop = done.pending().or(self.at.as_deref());
                let place = self
                    .left
                    .iter()
                    .position(|left| Some(left.as_str()) == stop);
                let Some(place) = place else {
                    return Err(Error::refused("that stop is not in the plan"));
                };
                let stop = self.left.remove(place);
                self.made.push(done.text().map_or(stop, str::to_owned));
                self.at = None;
            }
            // This is how the recorder records an error or a panic.
            Operation::Block { text, kind: None } => self.in_the_way.push(text.clone()),
            Operation::Unblock => self.in_the_way.clear(),
            other => return Err(Error::unsupported(other, Self::OPERATIONS)),
        }
        Ok(())
    }

    /// Only errands have `made` and `left`.
    fn recognise(_: &Path, document: Option<&Document>) -> Option<Evidence> {
        let document = document?;
        let mut own = vec!["made", "left"];
        own.retain(|name| document.root().get(name).is_some());
        Evidence::gather(None, &own)
    }

    fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> Option<Self> {
        let text = |done: &DoneItem| done.text.clone();
        Some(Errand {
            made: handoff.done.iter().map(text).collect(),
            in_the_way: handoff.blockers.clone(),
            ..Errand::new(&handoff.pending, now)
        })
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        inspection.require_all(Self::REQUIRED);
        inspection.timestamp("/changed", self.changed.as_ref());
    }
}
