//! The plan of a build, which its checkpoint does not have.

use serde::{Deserialize, Serialize};

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
    /// Its number, from 1.
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
    /// What it is called.
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
    /// A plan of these phases and gates.
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

    /// What a workstream is called.
    #[must_use]
    pub fn title(&self, id: &str) -> Option<&str> {
        self.workstreams()
            .find(|workstream| workstream.id == id)
            .map(|workstream| workstream.title.as_str())
    }
}
