//! Writes the JSON Schemas of this orchestrator's checkpoints, so that its agents' tools can check their files.

#[cfg(feature = "schema")]
#[path = "src/errand.rs"]
#[allow(dead_code, unreachable_pub, reason = "only its schema is needed here")]
mod errand;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/errand.rs");
    #[cfg(feature = "schema")]
    {
        use agent_checkpoint::schema::Schemas;
        let schemas = Schemas::default()
            .with_ids_from::<errand::Errand>("https://orchestrator.example/schemas/");
        schemas.write_all(std::env::var("OUT_DIR")?)?;
    }
    Ok(())
}
