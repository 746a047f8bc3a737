//! What the command takes for a build: its plan.

use std::path::Path;

use super::{BuildCheckpoint, ExecutionSpec};
use crate::checkpoint::{
    Checkpoint, CheckpointFile, Error, Given, Input, InputKind, Inputs, Result, Start,
};

const SPEC: &str = r#"The plan of the build, as JSON: {"phases": [{"n", "workstreams": [{"id", "title"}]}], "gates": []}"#;

pub(super) const INPUTS: &[Input] = &[
    Input::new(
        "task",
        InputKind::Text,
        "The id of the document",
        &["start"],
    ),
    Input::new(
        "title",
        InputKind::Text,
        "What the document is called",
        &["start"],
    ),
    Input::new(
        "spec",
        InputKind::File,
        SPEC,
        &["start", "validate", "resume"],
    ),
    Input::new(
        "spec",
        InputKind::File,
        "The plan of the build, as JSON, which shows the phase that is finished",
        &["gate pass"],
    )
    .excluding(&["phase"]),
    Input::new(
        "revision",
        InputKind::Number(1, 2),
        "The revision of the protocol that the file follows: 2 has created_at and updated_at [default: 1]",
        &["start"],
    ),
];

pub(super) fn take(given: &Given, file: &CheckpointFile<'_>) -> Result<Inputs> {
    let spec = given
        .file("spec")
        .map(|path| spec(path, file))
        .transpose()?;
    Ok(spec.map(Inputs::of).unwrap_or_default())
}

pub(super) fn start(start: &Start<'_>) -> Result<BuildCheckpoint> {
    let given = start.given;
    if !start.plan.is_empty() {
        let message = format!(
            "a first checkpoint of {} has no place for --plan; leave --plan out",
            BuildCheckpoint::FORMAT
        );
        return Err(Error::wrong_input(message).with_path(start.file.path));
    }
    let path = start.needs(
        given.file("spec"),
        BuildCheckpoint::FORMAT,
        "its plan: name the file with --spec",
    )?;
    let spec = spec(path, &start.file)?;
    let id = given.text("task").unwrap_or(start.key.as_str());
    let title = given.text("title");
    let mut checkpoint =
        BuildCheckpoint::initialize(id, title.unwrap_or_default(), &spec, start.now)?;
    checkpoint.prd_title = title.map(str::to_owned);
    if given.number("revision") == Some(2) {
        checkpoint = checkpoint.in_later_revision();
    }
    Ok(checkpoint)
}

/// The plan of a build, from its file.
fn spec(path: &Path, file: &CheckpointFile<'_>) -> Result<ExecutionSpec> {
    const LOOKS: &str =
        r#"{"phases": [{"n": 1, "workstreams": [{"id": "WS1", "title": "…"}]}], "gates": ["…"]}"#;
    let wrong = |why: String| Error::wrong_input(format!("{why}; it is {LOOKS}")).with_path(path);
    let no_plan = |why: String| wrong(format!("is no plan of a build ({why})"));
    let document = match file.read_named(path) {
        Err(error) => match error.kind() {
            crate::checkpoint::ErrorKind::Corrupt(corrupt) => {
                return Err(no_plan(corrupt.to_string()));
            }
            _ => return Err(error),
        },
        Ok(document) => document,
    };
    let spec: ExecutionSpec =
        serde_json::from_str(document.text()).map_err(|error| no_plan(error.to_string()))?;
    if spec.workstreams().next().is_none() {
        return Err(wrong("the plan has no workstreams".to_owned()));
    }
    Ok(spec)
}
