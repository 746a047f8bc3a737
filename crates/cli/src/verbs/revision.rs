//! `ckpt revision`: the token of the present state.

use std::path::Path;

use agent_checkpoint::json::Document;
use agent_checkpoint::{Error, Revision};
use serde::Serialize;

use crate::address::only_slot;
use crate::backend::{Access, is_address};
use crate::failure::Failure;
use crate::global::Global;
use crate::named::{Named, is_host_named};
use crate::output::Outcome;

#[derive(Serialize)]
struct Token {
    file: String,
    slot: Option<String>,
    revision: Revision,
}

pub(super) fn run(file: Option<&Path>, global: &Global) -> Result<Outcome, Failure> {
    let named = Named::new(file, Access::Read, global)?;
    let document = named.checkpoint(global)?.ok_or_else(|| named.missing())?;
    let (revision, slot) = token(named.shown(), &document, global)?;
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&Token {
            file: named.shown().display().to_string(),
            slot,
            revision,
        });
    } else {
        outcome.line(revision.to_string());
    }
    Ok(outcome)
}

/// The token of a file. For a host file with a checkpoint, the token of the checkpoint and its slot.
pub(super) fn token(
    path: &Path,
    document: &Document,
    global: &Global,
) -> Result<(Revision, Option<String>), Error> {
    if is_host(path, document, global) {
        let slot = match &global.slot {
            Some(slot) => slot.clone(),
            None => only_slot(path, document)?,
        };
        let place = slot.find(document).map_err(|error| error.with_path(path))?;
        if let Some(checkpoint) = document.extract(&place.pointer) {
            let revision = Revision::of(checkpoint.text().as_bytes());
            return Ok((revision, Some(slot.to_string())));
        }
    }
    Ok((Revision::of(document.text().as_bytes()), None))
}

/// Whether it is a host file. An unknown format has no slots.
fn is_host(path: &Path, document: &Document, global: &Global) -> bool {
    match &global.format {
        _ if is_address(path) => false,
        Some(_) => is_host_named(global),
        None => global
            .formats
            .detect(path, Some(document))
            .is_ok_and(|detected| detected.format.is_host()),
    }
}
