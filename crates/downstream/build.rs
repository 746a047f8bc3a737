//! Writes the JSON Schemas of the checkpoints that this orchestrator keeps, so that its agents' tools
//! can check what they write.

use std::error::Error;
use std::path::PathBuf;

use agent_checkpoint::schema::{Contract, schema};
use agent_checkpoint::{TaskCheckpoint, formats::BuildCheckpoint};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
    for (name, schema) in [
        ("task", schema::<TaskCheckpoint>(Contract::Read)),
        ("build-pipeline", schema::<BuildCheckpoint>(Contract::Read)),
    ] {
        let text = serde_json::to_string_pretty(&schema)?;
        std::fs::write(folder.join(format!("{name}.schema.json")), text)?;
    }
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
