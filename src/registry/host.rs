//! `builder-state`: a builder's session file with `task` checkpoints in its slots.

use std::path::Path;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::checkpoint::{
    Checkpoint, Evidence, Handoff, Inspection, Result, RuleContext, any_migration,
};
use crate::formats::builder_state::{self, BuilderState};
use crate::formats::{self, Converted, TaskCheckpoint};
use crate::json::{Code, Document, Violation};

pub(super) const NAME: &str = builder_state::FORMAT;
pub(super) const GUIDE: Option<&str> = Some(builder_state::GUIDE);

// Checkpoints are read as part of the host, so their migrations would not run.
const _: () = assert!(!any_migration(TaskCheckpoint::SCHEMA_VERSIONS));

pub(super) fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    builder_state::recognise(path, document)
}

pub(super) fn violations(host: &Document, context: &RuleContext<'_>) -> Result<Vec<Violation>> {
    let reading = host.read::<BuilderState>()?;
    let mut inspection = Inspection::new(host, &reading, context);
    reading.value.inspect(&mut inspection);
    let mut all = reading.violations.clone();
    all.retain(is_of_a_checkpoint);
    all.extend(inspection.finish());
    Ok(all)
}

pub(super) fn convert(handoff: &Handoff, now: DateTime<Utc>) -> Result<Converted<Document>> {
    #[derive(Serialize)]
    struct Host {
        checkpoint: TaskCheckpoint,
    }
    formats::convert(handoff, now)?.try_map(|checkpoint| Ok(Document::new(&Host { checkpoint })?))
}

/// Whether a violation of type concerns the checkpoints of a host: all other members belong to the builder and may have
/// any type.
fn is_of_a_checkpoint(violation: &Violation) -> bool {
    let shape = [
        Code::WRONG_TYPE,
        Code::OUT_OF_RANGE,
        Code::LONE_SURROGATE,
        Code::UNREADABLE,
    ];
    let places = ["/activePrd", "/activeWork", "/adhocQueue", "/lastHeartbeat"];
    !shape.contains(&violation.code)
        || places.contains(&violation.pointer.as_str())
        || violation
            .pointer
            .split('/')
            .any(|token| token == "checkpoint")
}

/// Creates a host file that contains only this checkpoint.
pub(super) fn put_in(checkpoint: &Document) -> Result<Document> {
    let mut host = Document::from_text("{\n}\n")?;
    host.graft("/checkpoint", checkpoint)?;
    Ok(host)
}

/// Moves a checkpoint out of a host file into its own file: its lines are unindented, and no byte of its values
/// changes.
pub(super) fn taken_out(checkpoint: &Document) -> Result<Document> {
    let mut host = Document::from_text("{\n  \"checkpoint\": null\n}\n")?;
    host.graft("/checkpoint", checkpoint)?;
    let inside = host.get("/checkpoint").map_or("{}", |node| node.raw());
    // Line ends occur only between values.
    let mut document = Document::from_text(format!("{}\n", inside.replace("\n  ", "\n")))?;
    if let (Some(pointer), Some(version)) = (
        TaskCheckpoint::VERSION_POINTER,
        TaskCheckpoint::latest_version(),
    ) && document.get(pointer).is_none()
    {
        document.set(pointer, &version)?;
    }
    Ok(document)
}
