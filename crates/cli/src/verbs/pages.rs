//! `ckpt completions` and `ckpt man`: files for a shell and for `man`.

use std::io;
use std::path::{Path, PathBuf};

use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::global::Global;
use crate::help;
use crate::output::{Outcome, one_line};

pub(super) fn completions(shell: Shell, global: &Global) -> Outcome {
    let mut script = Vec::new();
    let mut command = help::command(&global.formats);
    clap_complete::generate(shell, &mut command, "ckpt", &mut script);
    Outcome {
        out: String::from_utf8_lossy(&script).into_owned(),
        ..Outcome::new()
    }
}

pub(super) fn manual(out: Option<&Path>, global: &Global) -> Result<Outcome, Failure> {
    let mut command = help::command(&global.formats).disable_help_subcommand(true);
    command.build();
    let mut outcome = Outcome::new();
    let Some(folder) = out else {
        let mut page = Vec::new();
        let rendered = page_of(command).render(&mut page);
        rendered.map_err(|error| Failure::new(format!("the page cannot be made: {error}")))?;
        outcome.out = String::from_utf8_lossy(&page).into_owned();
        return Ok(outcome);
    };
    let mut files = Vec::new();
    let written = std::fs::create_dir_all(folder).and_then(|()| write(command, folder, &mut files));
    written.map_err(|error| {
        let message = format!(
            "{}: cannot be written: {error}; check the folder",
            folder.display()
        );
        Failure::new(message).at(Some(folder), None)
    })?;
    let files = files.iter().map(|file| file.display().to_string());
    let files: Vec<String> = files.collect();
    if global.json {
        outcome.json(&files);
    } else {
        for file in files {
            outcome.line(one_line(&file));
        }
    }
    Ok(outcome)
}

fn page_of(command: clap::Command) -> Man {
    // A verb has no version of its own.
    Man::new(command).source(concat!("ckpt ", env!("CARGO_PKG_VERSION")))
}

/// Writes the manual page of a command and of its subcommands.
fn write(command: clap::Command, folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let below: Vec<_> = command.get_subcommands().cloned().collect();
    files.push(page_of(command).generate_to(folder)?);
    below
        .into_iter()
        .try_for_each(|verb| write(verb, folder, files))
}
