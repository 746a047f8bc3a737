//! `ckpt validate`: whether files are valid checkpoints.

use std::path::PathBuf;

use agent_checkpoint::json::{Document, Violation};
use agent_checkpoint::{Error, ErrorKind, Key, RuleContext};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::inputs;
use crate::named::{Named, files_or_store};
use crate::output::{Outcome, one_line};
use crate::report::{count, violation};

/// The verdict on one file.
#[derive(Serialize)]
pub(super) struct Verdict {
    file: String,
    pub(super) format: Option<String>,
    outcome: &'static str,
    pub(super) violations: Vec<Violation>,
    pub(super) error: Option<Corruption>,
}

/// Why a file is no document.
#[derive(Serialize)]
pub(super) struct Corruption {
    pub(super) code: String,
    line: usize,
    column: usize,
    offset: usize,
    pub(super) message: String,
}

impl Corruption {
    /// The corruption behind an error, if any.
    pub(super) fn of(error: &Error) -> Option<Corruption> {
        match error.kind() {
            ErrorKind::Corrupt(corrupt) => Some(Corruption {
                code: corrupt.code.to_string(),
                line: corrupt.line,
                column: corrupt.column,
                offset: corrupt.offset,
                message: corrupt.message.clone(),
            }),
            // Nothing was parsed, so the place is the beginning.
            ErrorKind::TooLarge {
                size,
                limit,
                is_new: false,
            } => Some(Corruption {
                code: "too-large".to_owned(),
                line: 1,
                column: 1,
                offset: 0,
                message: format!(
                    "{size} bytes or more, at most {limit} are read; raise --max-bytes or shorten the file"
                ),
            }),
            _ => None,
        }
    }
}

pub(super) fn run(files: &[PathBuf], global: &Global) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::new();
    let mut verdicts = Vec::new();
    for file in files_or_store(files, global)? {
        match judge(&file, global, &mut outcome) {
            Ok(verdict) => verdicts.push(verdict),
            Err(failure) => outcome.fail(&failure),
        }
    }
    if global.json {
        outcome.json(&verdicts);
    } else {
        for verdict in &verdicts {
            print(verdict, &mut outcome);
        }
    }
    Ok(outcome)
}

/// Judges one file.
pub(super) fn judge(
    named: &Named,
    global: &Global,
    outcome: &mut Outcome,
) -> Result<Verdict, Failure> {
    let formats = &global.formats;
    let file = named.shown();
    let verdict = |format: Option<String>, outcome| Verdict {
        file: file.display().to_string(),
        format,
        outcome,
        violations: Vec::new(),
        error: None,
    };
    let document: Document = match named.checkpoint(global) {
        Ok(Some(document)) => document,
        Ok(None) => return Err(named.missing()),
        Err(error) => {
            let Some(corruption) = Corruption::of(&error) else {
                return Err(error.into());
            };
            let detected = || {
                let format = named.format_of_damaged(&error, global)?;
                Some(format.name().to_owned())
            };
            let format = global.format.clone().or_else(detected);
            outcome.fail(&Failure::from(error));
            return Ok(Verdict {
                error: Some(corruption),
                ..verdict(format, "corrupt")
            });
        }
    };
    let format = match &global.format {
        Some(name) => *formats.get(name).map_err(|error| error.with_path(file))?,
        None => formats.detect(named.file(), Some(&document))?.format,
    };
    let inputs = inputs::of_file(&format, (file, named.file()), global, outcome)?;
    let mut context = RuleContext::none().with_inputs(&inputs);
    if let Some(now) = global.now {
        context = context.with_now(now);
    }
    // Only a checkpoint in a store has a key.
    let key = global.key.as_deref().map(Key::new).transpose()?;
    if let Some(key) = &key {
        context = context.with_key(key);
    }
    let found = format
        .violations(&document, &context)
        .map_err(|error| error.with_path(file))?;
    let word = if found.is_empty() {
        "valid"
    } else {
        "violations"
    };
    outcome.exit = outcome.exit.and(Exit::findings_if(!found.is_empty()));
    Ok(Verdict {
        violations: found,
        ..verdict(Some(format.name().to_owned()), word)
    })
}

fn print(verdict: &Verdict, outcome: &mut Outcome) {
    let format = verdict.format.as_deref().unwrap_or("unknown format");
    let word = match &verdict.error {
        Some(error) => format!("corrupt: {}", error.code),
        None if verdict.violations.is_empty() => "valid".to_owned(),
        None => count(verdict.violations.len(), "violation"),
    };
    outcome.line(one_line(&format!("{}: {word} ({format})", verdict.file)));
    for found in &verdict.violations {
        outcome.line(format!("  {}", one_line(&violation(found))));
    }
}
