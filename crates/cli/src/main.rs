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
mod stdin;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    outlive_size_limits();
    let outcome = match args::parse() {
        Ok(args) => verbs::run(args),
        Err(outcome) => outcome,
    };
    output::print(&outcome)
}

/// A write beyond the size limit of files (`ulimit -f`) becomes an error that is reported, and the
/// temporary file is removed; the signal that comes with it would end the process first.
fn outlive_size_limits() {
    #[cfg(unix)]
    {
        let signal = signal_hook::consts::SIGXFSZ;
        // Should it fail, the process ends as it would have without.
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
}
