//! The plan of a build, which is kept outside its checkpoint.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::BuildCheckpoint;
use crate::checkpoint::{
    Checkpoint, CheckpointFile, Error, ErrorKind, Given, Input, InputKind, Inputs, Result, Start,
};
use crate::{is_blank, quoted};

/// The plan of a build: its phases in order, each with its workstreams, and its gates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ExecutionSpec {
    /// The phases, in order.
    pub phases: Vec<SpecPhase>,
    /// The names of all gates.
    pub gates: Vec<String>,
}

/// A phase of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SpecPhase {
    /// The number of the phase, from 1.
    pub n: u64,
    /// Its workstreams.
    pub workstreams: Vec<SpecWorkstream>,
}

/// A workstream of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SpecWorkstream {
    /// Its id, such as `WS2`.
    pub id: String,
    /// The title of the workstream.
    pub title: String,
}

impl SpecPhase {
    /// A phase of these workstreams, each an id and a title.
    pub fn new<'w>(n: u64, workstreams: impl IntoIterator<Item = (&'w str, &'w str)>) -> Self {
        let workstream = |(id, title): (&str, &str)| SpecWorkstream {
            id: id.to_owned(),
            title: title.to_owned(),
        };
        SpecPhase {
            n,
            workstreams: workstreams.into_iter().map(workstream).collect(),
        }
    }
}

impl ExecutionSpec {
    /// A plan with these phases and gates.
    pub fn new(
        phases: impl IntoIterator<Item = SpecPhase>,
        gates: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        ExecutionSpec {
            phases: phases.into_iter().collect(),
            gates: gates.into_iter().map(Into::into).collect(),
        }
    }

    /// All workstreams, in the order of their phases.
    pub fn workstreams(&self) -> impl Iterator<Item = &SpecWorkstream> {
        self.phases.iter().flat_map(|phase| &phase.workstreams)
    }

    /// The title of a workstream.
    #[must_use]
    pub fn title(&self, id: &str) -> Option<&str> {
        self.workstreams()
            .find(|workstream| workstream.id == id)
            .map(|workstream| workstream.title.as_str())
    }
}

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
        .map(|path| read(path, file))
        .transpose()?;
    Ok(spec.map(Inputs::of).unwrap_or_default())
}

pub(super) fn start(start: &Start<'_>) -> Result<BuildCheckpoint> {
    let given = start.given;
    if !start.plan.is_empty() {
        let message = format!(
            "a first checkpoint of {} cannot hold a plan; omit --plan",
            BuildCheckpoint::FORMAT
        );
        return Err(Error::wrong_input(message).with_path(start.file.path));
    }
    let plan = (given.file("spec"), "the file of its plan (--spec)");
    let [path] = start.needs(BuildCheckpoint::FORMAT, [plan])?;
    let spec = read(path, &start.file)?;
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

/// Reads the plan of a build from its file.
fn read(path: &Path, file: &CheckpointFile<'_>) -> Result<ExecutionSpec> {
    const LOOKS: &str =
        r#"{"phases": [{"n": 1, "workstreams": [{"id": "WS1", "title": "…"}]}], "gates": ["…"]}"#;
    let wrong = |why: String| Error::wrong_input(format!("{why}; it is {LOOKS}")).with_path(path);
    let no_plan = |why: String| wrong(format!("is not a plan of a build ({why})"));
    let document = match file.read_named(path) {
        Err(error) => match error.kind() {
            ErrorKind::Corrupt(corrupt) => {
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
    let ids = || spec.workstreams().map(|workstream| workstream.id.as_str());
    let mut known = HashSet::new();
    if let Some(twice) = ids().find(|id| !known.insert(*id)) {
        let twice = quoted(twice);
        return Err(wrong(format!("the plan has the workstream {twice} twice")));
    }
    if ids()
        .chain(spec.gates.iter().map(String::as_str))
        .any(is_blank)
    {
        let nameless = "a workstream or a gate of the plan has no name";
        return Err(wrong(nameless.to_owned()));
    }
    Ok(spec)
}
