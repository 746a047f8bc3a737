//! `ckpt set`: change values, and nothing else in the text.

use agent_checkpoint::quoted;
use std::path::Path;
use std::sync::Arc;

use agent_checkpoint::formats::{Format, Formats};
use agent_checkpoint::json::{Code, Document, Violation};
use agent_checkpoint::store::{CheckpointStore, Outcome as Wrote, Put, Saved};
use agent_checkpoint::{CheckpointStoreExt, Error, ErrorKind, Expect, Key, Revision, RuleContext};
use serde::Serialize;
use serde_json::value::RawValue;

use super::revision::token;
use crate::address::{file_options, store_of};
use crate::backend::Access;
use crate::failure::Failure;
use crate::global::Global;
use crate::named::Named;
use crate::output::Outcome;
use crate::report::violation;

/// One assignment, with the value as it was typed.
struct Assignment {
    pointer: String,
    value: Box<RawValue>,
}

/// What `set --json` prints.
#[derive(Serialize)]
struct Report<'s> {
    outcome: Wrote,
    revision: &'s Revision,
    previous: Option<&'s Revision>,
    /// The violations that the change introduced, as for every other save.
    violations: Vec<&'s Violation>,
    /// The violations that existed before and still exist.
    standing_violations: Vec<&'s Violation>,
}

/// The effect of the change on the file.
struct Changed {
    before: Vec<Violation>,
    after: Vec<Violation>,
    revision: Revision,
    previous: Revision,
}

pub(super) fn run(
    words: &[String],
    expect: Option<&str>,
    global: &Global,
) -> Result<Outcome, Failure> {
    let (named, assignments) = parse(words, global)?;
    let (path, file) = (named.shown().to_owned(), named.file().to_owned());
    let expect: Option<Revision> = expect.map(str::parse).transpose()?;
    // A file that cannot be changed is refused before anything is created beside it.
    let present = named.checkpoint(global)?.ok_or_else(|| named.missing())?;
    let mut outcome = Outcome::new();
    let rules = Rules::new(global);
    if let (Rules::None, Some(name)) = (&rules, &global.format) {
        outcome.note(format!(
            "no rules are known for the format {name}; the result is not checked",
            name = quoted(name)
        ));
    }
    let (store, key): (Arc<dyn CheckpointStore>, Key) = match named {
        Named::Key(named) => (named.store, named.key),
        Named::File(path) => {
            let options = file_options(Access::Change, global);
            let format = rules.of(&path, &present);
            let files = store_of(&path, Some(&present), format.as_ref(), global, options)?;
            (Arc::new(files.0), files.1)
        }
    };
    let (saved, changed) = store
        .transact_with(&key, |stored| {
            let stored = stored.ok_or_else(|| Error::new(ErrorKind::NotFound))?;
            let before = &stored.document;
            let format = rules.of(&file, before);
            let violations = examine(format.as_ref(), before, global)?;
            refuse_newer(&violations, &assignments)?;
            if let Some(expected) = &expect {
                let (found, _) = token(&path, before, global)?;
                if found != *expected {
                    return Err(Error::new(ErrorKind::Conflict {
                        expected: Expect::Revision(expected.clone()),
                        found: Some(found),
                    }));
                }
            }
            let mut after = before.clone();
            let mut is_new = false;
            for Assignment { pointer, value } in &assignments {
                is_new |= set(&mut after, pointer, value)?;
            }
            refuse_what_no_change_may_do(format.as_ref(), before, &after)?;
            // If the host file has several checkpoints, none is meant, so the token is that of the file.
            let revision = |document: &Document| {
                token(&path, document, global).map_or_else(
                    |_| Revision::of(document.text().as_bytes()),
                    |(revision, _)| revision,
                )
            };
            let changed = Changed {
                before: violations,
                after: examine(format.as_ref(), &after, global)?,
                revision: revision(&after),
                previous: revision(before),
            };
            let put = is_new.then(|| Put::new(after).with_fence(global.fence));
            Ok((put, changed))
        })
        .map_err(|error| error.with_path(&path))?;
    report(&mut outcome, global, &path, &saved, &changed);
    Ok(outcome)
}

/// Sets one value. If an object on its path is missing, the error explains how to create it.
fn set(document: &mut Document, pointer: &str, value: &RawValue) -> Result<bool, Error> {
    document.set(pointer, value).map_err(|error| {
        let missing = pointer
            .match_indices('/')
            .skip(1)
            .map(|(end, _)| &pointer[..end])
            .find(|parent| document.get(parent).is_none());
        match missing {
            Some(parent) => {
                // An item of a list is named by its position; an empty list has only the position after its end.
                let next = pointer[parent.len() + 1..].split('/').next();
                let is_place = next.is_some_and(|it| it == "-" || it.parse::<usize>().is_ok());
                let made = match is_place {
                    true => format!("'{parent}=[]' '{parent}/-=…'"),
                    false => format!("'{parent}={{}}' '{pointer}=…'"),
                };
                let detail = format!(
                    "{pointer}: there is no {parent}; make it first, as in `ckpt set FILE {made}`"
                );
                Error::edit(detail)
            }
            None => error.into(),
        }
    })
}

fn report(outcome: &mut Outcome, global: &Global, path: &Path, saved: &Saved, changed: &Changed) {
    let is_new = |found: &&Violation| !changed.before.contains(found);
    let (new, standing): (Vec<&Violation>, Vec<&Violation>) =
        changed.after.iter().partition(is_new);
    if global.json {
        outcome.json(&Report {
            outcome: saved.outcome,
            revision: &changed.revision,
            previous: saved.previous.as_ref().map(|_| &changed.previous),
            violations: new,
            standing_violations: standing,
        });
    } else if saved.outcome == Wrote::Unchanged {
        outcome.line(format!("{}: unchanged", path.display()));
    } else {
        outcome.line(format!(
            "{}: changed; now {}",
            path.display(),
            changed.revision
        ));
    }
    for found in &changed.after {
        let is_new = is_new(&found);
        let word = if is_new { "new violation" } else { "violation" };
        outcome.say(word, &violation(found));
        if is_new {
            outcome.found();
        }
    }
}

/// The file and its assignments.
fn parse(words: &[String], global: &Global) -> Result<(Named, Vec<Assignment>), Failure> {
    let (file, words) = match (&global.store, words) {
        (Some(_), words) => (None, words),
        (None, [file, words @ ..]) => (Some(Path::new(file)), words),
        (None, []) => (None, words),
    };
    let named = Named::new(file, Access::Change, global)?;
    if words.is_empty() {
        return Err(Failure::new(format!(
            "{}: no assignment was given; add POINTER=JSON, such as '/phase=\"verification\"'",
            named.shown().display()
        )));
    }
    let assignments: Result<Vec<_>, _> = words.iter().map(|word| assignment(word)).collect();
    Ok((named, assignments?))
}

/// How many characters of a value an error quotes.
const MOST_SHOWN: usize = 80;

fn assignment(word: &str) -> Result<Assignment, Failure> {
    let Some((pointer, value)) = word.split_once('=') else {
        return Err(Failure::new(format!(
            "{word} is not an assignment; write POINTER=JSON, such as '/phase=\"verification\"'",
            word = quoted(word)
        )));
    };
    let value = serde_json::from_str(value).map_err(|_| {
        let value: String = value.chars().take(MOST_SHOWN).collect();
        let as_json = serde_json::Value::from(value.as_str());
        Failure::new(format!(
            "{value} for {pointer} is not JSON; if text is meant, quote it: '{pointer}={as_json}'",
            value = quoted(&value)
        ))
    })?;
    Ok(Assignment {
        pointer: pointer.to_owned(),
        value,
    })
}

/// The format whose rules apply to the file.
enum Rules<'f> {
    Named(Format),
    Detected(&'f Formats),
    None,
}

impl<'f> Rules<'f> {
    fn new(global: &'f Global) -> Rules<'f> {
        match &global.format {
            None => Rules::Detected(&global.formats),
            Some(name) => match global.formats.get(name) {
                Ok(format) => Rules::Named(*format),
                Err(_) => Rules::None,
            },
        }
    }

    /// The present format of the file, if it has one.
    fn of(&self, path: &Path, document: &Document) -> Option<Format> {
        match self {
            Rules::Named(format) => Some(*format),
            Rules::Detected(formats) => {
                let detected = formats.detect(path, Some(document)).ok()?;
                Some(detected.format)
            }
            Rules::None => None,
        }
    }
}

fn examine(
    format: Option<&Format>,
    document: &Document,
    global: &Global,
) -> Result<Vec<Violation>, Error> {
    let mut context = RuleContext::none();
    if let Some(now) = global.now {
        context = context.with_now(now);
    }
    format.map_or(Ok(Vec::new()), |format| {
        format.violations(document, &context)
    })
}

/// Refuses changes that a protocol forbids even if they are spelled out.
fn refuse_what_no_change_may_do(
    format: Option<&Format>,
    before: &Document,
    after: &Document,
) -> Result<(), Error> {
    format.map_or(Ok(()), |format| format.check_change(before, after))
}

/// Refuses to change a checkpoint of a later or unknown version, because its rules are unknown. An unreadable version
/// may be corrected.
fn refuse_newer(violations: &[Violation], assignments: &[Assignment]) -> Result<(), Error> {
    let is_mended = |pointer: &str| assignments.iter().any(|set| set.pointer == pointer);
    let newer = violations.iter().find(|violation| {
        violation.code == Code::NEWER_SCHEMA
            || (violation.pointer.ends_with("/schemaVersion") && !is_mended(&violation.pointer))
    });
    newer.map_or(Ok(()), |violation| {
        Err(Error::refused(format!(
            "a newer program may have written it, so it can be read, not changed: {violation}"
        )))
    })
}
