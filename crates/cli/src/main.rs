//! `ckpt`: read, check, change and resume AI-agent checkpoints from the shell.
//!
//! A thin layer: it finds the file, asks the library, and reports. `docs/cli.md` is the user's reference.

mod address;
mod args;
mod dispatch;
mod exit;
mod failure;
mod given;
mod output;
mod read;
mod report;
mod reported;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match args::parse() {
        Ok(args) => verbs::run(args),
        Err(outcome) => outcome,
    };
    output::print(&outcome)
}
