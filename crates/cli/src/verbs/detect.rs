//! `ckpt detect`: which format a file has, and why.

use std::path::PathBuf;

use serde::Serialize;

use crate::failure::Failure;
use crate::global::Global;
use crate::named::{Named, files_or_store};
use crate::output::{Outcome, one_line};

#[derive(Serialize)]
struct Line {
    file: String,
    format: &'static str,
    reason: String,
}

pub(super) fn run(files: &[PathBuf], global: &Global) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::new();
    let mut lines = Vec::new();
    for file in files_or_store(files, global)? {
        match detect(&file, global) {
            Ok(line) => lines.push(line),
            Err(failure) => outcome.fail(&failure),
        }
    }
    if global.json {
        outcome.json(&lines);
    } else {
        for line in lines {
            let text = format!("{}: {} ({})", line.file, line.format, line.reason);
            outcome.line(one_line(&text));
        }
    }
    Ok(outcome)
}

fn detect(named: &Named, global: &Global) -> Result<Line, Failure> {
    let document = named.checkpoint(global)?.ok_or_else(|| named.missing())?;
    let detected = global.formats.detect(named.file(), Some(&document))?;
    Ok(Line {
        file: named.shown().display().to_string(),
        format: detected.format.name(),
        reason: detected.evidence.reason,
    })
}
