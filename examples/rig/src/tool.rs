//! The only tool of the agents.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rig_agent::tool::{Tool, ToolContext, ToolExecutionError};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Performs a step of the plan. Its effect is a file, which exists or not, however often the step is tried.
pub(crate) struct PerformStep {
    pub(crate) agent: String,
    pub(crate) root: PathBuf,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Arguments {
    pub(crate) step: String,
}

impl PerformStep {
    /// The step in the arguments of a call; the whole text if the model gave something else.
    pub(crate) fn step_in(arguments: &str) -> String {
        let read: Result<Arguments, _> = serde_json::from_str(arguments);
        read.map_or_else(|_| arguments.to_owned(), |read| read.step)
    }

    /// The log of calls, with agent and step in each line.
    pub(crate) fn calls(root: &Path) -> PathBuf {
        root.join("calls.log")
    }

    pub(crate) fn effect(root: &Path, step: &str) -> PathBuf {
        root.join(format!("{step}.effect"))
    }

    fn perform(&self, step: &str) -> std::io::Result<&'static str> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(Self::calls(&self.root));
        writeln!(log?, "{}\t{step}", self.agent)?;
        match File::create_new(Self::effect(&self.root, step)) {
            Ok(effect) => effect.sync_all().map(|()| "done"),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok("had been done already"),
            Err(error) => Err(error),
        }
    }
}

impl Tool for PerformStep {
    const NAME: &'static str = "perform_step";
    type Args = Arguments;
    type Output = String;
    type Error = ToolExecutionError;

    fn description(&self) -> String {
        "Performs a step of the plan.".into()
    }

    fn parameters(&self) -> serde_json::Value {
        json!({ "type": "object", "properties": { "step": { "type": "string" } }, "required": ["step"] })
    }

    async fn call(
        &self,
        _: &mut ToolContext,
        arguments: Arguments,
    ) -> Result<String, ToolExecutionError> {
        let performed = self.perform(&arguments.step);
        performed
            .map(str::to_owned)
            .map_err(|error| ToolExecutionError::other(error.to_string()))
    }
}
