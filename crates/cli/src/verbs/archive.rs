//! `ckpt archive`: archive a checkpoint, so that its key is free again.

use std::path::Path;

use agent_checkpoint::formats::Archive;
use agent_checkpoint::store::DeleteOptions;
use agent_checkpoint::{Error, ErrorKind, Expect, Revision, RuleContext, Status};
use serde::Serialize;

use crate::address::Target;
use crate::args::ArchivedAs;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;

#[derive(Serialize)]
struct Report {
    file: String,
    put_aside: String,
}

pub(super) fn run(
    file: Option<&Path>,
    why: Option<ArchivedAs>,
    expect: Option<&str>,
    global: &Global,
) -> Result<Outcome, Failure> {
    let expect: Option<Revision> = expect.map(str::parse).transpose()?;
    let target = Target::to_change(file, global)?;
    target.require_file()?;
    let (why, judged) = match why {
        Some(ArchivedAs::Complete) => (Archive::Complete, None),
        Some(ArchivedAs::Crashed) => (Archive::Crashed, None),
        Some(ArchivedAs::Aborted) => (Archive::Aborted, None),
        None => (Archive::Complete, Some(complete(&target)?)),
    };
    // Archives exactly the state that was judged complete, because archiving it ends the ledger.
    let there = || target.store().load(&target.key).ok().flatten();
    let of = expect.or(judged).or_else(|| Some(there()?.revision));
    let ends = why == Archive::Complete;
    let expect = of.clone().map_or(Expect::Any, Expect::Revision);
    let options = DeleteOptions::new()
        .with_expect(expect)
        .with_fence(global.fence);
    let archive = || target.archive(why, global.now(), &options);
    let aside = match of.filter(|_| ends) {
        Some(revision) => target.ledger(global).end_with(&revision, archive)?,
        None => archive()?,
    };
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&Report {
            file: target.path.display().to_string(),
            put_aside: aside,
        });
    } else {
        outcome.line(format!("archived as {aside}"));
    }
    Ok(outcome)
}

/// The revision of a checkpoint whose task is complete. For any other, only the user knows why it is archived, and the
/// archive's name records that forever.
fn complete(target: &Target) -> Result<Revision, Failure> {
    let at = |error: Error| target.error(error);
    let stored = target.store().load(&target.key).map_err(at)?;
    let stored = stored.ok_or_else(|| at(Error::new(ErrorKind::NotFound)))?;
    let examined = target
        .format
        .inspect(&stored.document, &RuleContext::none())
        .map_err(at)?;
    let handoff = examined.handoff;
    if handoff.may_be_open() {
        let unreadable: Vec<String> = handoff.unreadable.iter().map(ToString::to_string).collect();
        return Err(at(Error::refused(format!(
            "it is unknown whether the task is complete: {}; correct that with `ckpt set`, or give the reason to \
             archive it: --as crashed, --as aborted or --as complete",
            unreadable.join("; ")
        ))));
    }
    match handoff.status {
        Status::Complete => Ok(stored.revision),
        status => Err(at(Error::refused(format!(
            "the task is {status}, not complete; say why it is archived with --as crashed (another agent takes \
             over), --as aborted (it begins anew) or --as complete (it is, whatever the checkpoint says)"
        )))),
    }
}
