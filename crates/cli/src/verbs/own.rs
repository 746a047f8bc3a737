//! Verbs that only one format has.

use agent_checkpoint::formats::{Given, OwnVerb, VerbCall};
use serde_json::json;

use crate::address::Target;
use crate::backend::is_address;
use crate::failure::Failure;
use crate::global::{Global, Origin};
use crate::inputs;
use crate::named::is_folder;
use crate::output::Outcome;
use crate::report::saved;

/// Runs a verb that only one format has.
pub(super) fn run(verb: &str, global: &Global) -> Result<Outcome, Failure> {
    let mut formats = global.formats.iter();
    let is_named = |own: &&OwnVerb| own.name == verb;
    let found = formats.find_map(|format| Some((format, format.verbs().iter().find(is_named)?)));
    let Some((format, own)) = found else {
        return Err(Failure::usage("no verb; `ckpt --help` lists them"));
    };
    let mut global = global.clone();
    // If the protocol has a single file, the folder is enough to name it.
    if let Some(file) = format.layout().only_file {
        // A key from the environment belongs to another checkpoint.
        if *global.origin("key") == Origin::Variable {
            global.key = None;
            if *global.origin("fence") == Origin::Variable {
                global.fence = None;
            }
        }
        if global.key.is_some() {
            return Err(Failure::usage(format!(
                "`ckpt {verb}` changes {file}, which has no key; omit --key"
            )));
        }
        let Some(store) = &global.store else {
            return Err(Failure::usage(format!(
                "where is {file}? Name it or its folder with --store PATH"
            )));
        };
        if is_address(store) {
            return Err(Failure::usage(format!(
                "`ckpt {verb}` changes {file}, which is a file of the project; name it or its folder with --store PATH"
            )));
        }
        let store = if is_folder(store, &global) {
            store.join(file)
        } else {
            store.clone()
        };
        if !store.exists() {
            global
                .format
                .get_or_insert_with(|| format.name().to_owned());
        }
        global.store = Some(store);
    }
    let target = Target::to_write(&global)?;
    if target.format.name() != format.name() {
        return Err(Failure::new(format!(
            "{}: `ckpt {verb}` is for {}, and this is {}; name another file with --store",
            target.path.display(),
            format.name(),
            target.format.name()
        )));
    }
    run_on(&target, own, &global.given, &global)
}

pub(super) fn run_on(
    target: &Target,
    verb: &OwnVerb,
    given: &Given,
    global: &Global,
) -> Result<Outcome, Failure> {
    target.require_file()?;
    let read = inputs::reader(global);
    let (view, now) = (target.checkpoints(global), global.now());
    let file = target.as_file(&read, global);
    let mut call = VerbCall::new(view, &target.key, file, given, now);
    call.files = target.files();
    call.session = global.session.as_deref();
    call.fence = global.fence;
    let mut done = (verb.run)(&call).map_err(|error| target.error(error))?;
    let mut outcome = Outcome::new();
    if global.json
        && let Some(waits) = done.waits
    {
        outcome.json(&json!({ "message": done.line, "waits": waits, "saved": done.saved }));
    } else {
        if !global.json {
            // The line already names it.
            done.saved.archive = None;
        }
        saved::report(&mut outcome, target, global, &done.saved, &[done.line]);
    }
    for note in done.notes {
        outcome.note(note);
    }
    outcome.is_done = true;
    if done.waits == Some(true) {
        outcome.found();
    }
    Ok(outcome)
}
