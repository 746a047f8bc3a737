//! `ckpt archive`: put a checkpoint aside, so that its key is free again.

use std::path::Path;

use agent_checkpoint::checkpoint::Archive;
use agent_checkpoint::store::DeleteOptions;
use agent_checkpoint::{Expect, Revision};
use serde::Serialize;

use super::now;
use crate::address::Target;
use crate::args::{ArchivedAs, Global};
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Serialize)]
struct Report {
    file: String,
    put_aside: String,
}

pub(super) fn run(
    file: Option<&Path>,
    why: ArchivedAs,
    expect: Option<&str>,
    global: &Global,
) -> Result<Outcome, Failure> {
    let expect: Option<Revision> = expect.map(str::parse).transpose()?;
    let target = Target::to_change(file, global)?;
    target.require_file()?;
    let Some(files) = target.files() else {
        return Err(Failure::new(format!(
            "{}: the checkpoints of a host file stay in it; begin the next task, or set the slot to null",
            target.path.display()
        )));
    };
    let why = match why {
        ArchivedAs::Complete => Archive::Complete,
        ArchivedAs::Crashed => Archive::Crashed,
        ArchivedAs::Aborted => Archive::Aborted,
    };
    let expect = expect.map_or(Expect::Any, Expect::Revision);
    let options = DeleteOptions::expecting(expect).fenced(global.fence);
    let aside = files
        .archive(&target.key, why, now(global), &options)
        .map_err(|error| target.error(error))?;
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&Report {
            file: target.path.display().to_string(),
            put_aside: aside.display().to_string(),
        });
    } else {
        outcome.line(format!("put aside as {}", aside.display()));
    }
    Ok(outcome)
}
