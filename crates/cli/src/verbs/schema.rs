//! `ckpt schema`: the JSON Schema of a format.

use std::path::Path;

use agent_checkpoint::formats::{
    AgentCheckpoint, BuildCheckpoint, BuilderState, PipelineState, SitebuilderCheckpoint,
    StoryCheckpoint, TaskCheckpoint, builder_state,
};
use agent_checkpoint::fsio::{self, Present};
use agent_checkpoint::schema::{self, schema};
use agent_checkpoint::{Checkpoint, Error, Formats};
use serde_json::{Map, Value};

use crate::args::{Contract, Global};
use crate::failure::Failure;
use crate::output::{Outcome, one_line};

pub(super) fn run(
    name: Option<&str>,
    contract: Contract,
    out: Option<&Path>,
    global: &Global,
) -> Result<Outcome, Failure> {
    let formats = Formats::default();
    let names: Vec<&str> = match name {
        Some(name) => vec![formats.get(name)?.name],
        None => formats.iter().map(|format| format.name).collect(),
    };
    let contract = match contract {
        Contract::Read => schema::Contract::Read,
        Contract::Write => schema::Contract::Write,
    };
    let mut schemas = Map::new();
    for name in names {
        schemas.insert(name.to_owned(), of(name, contract)?);
    }
    let mut outcome = Outcome::new();
    match (out, name) {
        (Some(folder), _) => write(folder, &schemas, global, &mut outcome)?,
        (None, Some(_)) => {
            for schema in schemas.values() {
                outcome.line(format!("{schema:#}"));
            }
        }
        (None, None) => outcome.line(format!("{:#}", Value::Object(schemas))),
    }
    Ok(outcome)
}

/// The schema of a whole file of a format.
fn of(name: &str, contract: schema::Contract) -> Result<Value, Failure> {
    Ok(match name {
        TaskCheckpoint::FORMAT => schema::<TaskCheckpoint>(contract),
        builder_state::FORMAT => schema::<BuilderState>(contract),
        AgentCheckpoint::FORMAT => schema::<AgentCheckpoint>(contract),
        SitebuilderCheckpoint::FORMAT => schema::<SitebuilderCheckpoint>(contract),
        StoryCheckpoint::FORMAT => schema::<StoryCheckpoint>(contract),
        BuildCheckpoint::FORMAT => schema::<BuildCheckpoint>(contract),
        PipelineState::FORMAT => schema::<PipelineState>(contract),
        other => return Err(Failure::new(format!("there is no schema of {other}"))),
    })
}

/// Writes each into a file of the folder, which is made if need be.
fn write(
    folder: &Path,
    schemas: &Map<String, Value>,
    global: &Global,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    fsio::create_folder_durably(folder).map_err(Error::from)?;
    let mut files = Vec::new();
    for (name, schema) in schemas {
        let path = folder.join(format!("{name}.schema.json"));
        let text = format!("{schema:#}\n");
        fsio::replace(&path, text.as_bytes(), Present::Whatever).map_err(Error::from)?;
        files.push(path.display().to_string());
    }
    if global.json {
        outcome.json(&files);
    } else {
        for file in files {
            outcome.line(one_line(&file));
        }
    }
    Ok(())
}
