//! `ckpt schema`: the JSON Schema of a format.

use std::path::Path;

use agent_checkpoint::schema::{self, Schemas};
use serde_json::{Map, Value};

use crate::args::Contract;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::{Outcome, one_line};

pub(super) fn run(
    name: Option<&str>,
    contract: Option<Contract>,
    out: Option<&Path>,
    global: &Global,
) -> Result<Outcome, Failure> {
    let mut schemas = Schemas::of(&global.formats);
    if let Some(name) = name {
        // Its error lists the known formats.
        let format = global.formats.get(name)?.name();
        schemas = schemas.only(format);
        if schemas.names().next().is_none() {
            return Err(Failure::new(format!(
                "this program has no JSON Schema of {format}"
            )));
        }
    }
    let contract = contract.map(|contract| match contract {
        Contract::Read => schema::Contract::Read,
        Contract::Write => schema::Contract::Write,
    });
    let mut outcome = Outcome::new();
    let Some(folder) = out else {
        print(
            &schemas,
            name,
            contract.unwrap_or(schema::Contract::Read),
            &mut outcome,
        );
        return Ok(outcome);
    };
    let files = match contract {
        Some(contract) => schemas.write(folder, contract)?,
        None => schemas.write_all(folder)?,
    };
    let files: Vec<_> = files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if global.json {
        outcome.json(&files);
    } else {
        for file in files {
            outcome.line(one_line(&file));
        }
    }
    Ok(outcome)
}

/// Prints one schema, or several as an object by name.
fn print(schemas: &Schemas, name: Option<&str>, contract: schema::Contract, outcome: &mut Outcome) {
    let mut all = Map::new();
    for name in schemas.names() {
        all.extend(
            schemas
                .get(name, contract)
                .map(|schema| (name.to_owned(), schema)),
        );
    }
    let printed = match name {
        Some(name) => all.remove(name).unwrap_or_default(),
        None => Value::Object(all),
    };
    outcome.line(format!("{printed:#}"));
}
