//! `ckpt`: read, check, change and resume AI-agent checkpoints.
//!
//! The command as a function, for a program of yours that adds formats of its own. `docs/cli.md` is the user's reference.
//!
//! ```no_run
//! use agent_checkpoint::formats::{Format, Formats, task::TaskCheckpoint};
//!
//! let mut formats = Formats::default();
//! formats.register(Format::of::<TaskCheckpoint>()); // a format of yours
//! agent_checkpoint_cli::run(formats);
//! ```

mod address;
mod args;
mod backend;
mod config_file;
mod exit;
mod failure;
mod help;
mod inputs;
mod named;
mod output;
mod read;
mod report;
mod reported;
mod settings;
mod stdin;
mod verbs;

use std::process::ExitCode;

use agent_checkpoint::formats::Formats;

/// Does what the command line of this process says, with checkpoints of these formats.
#[must_use]
pub fn run(formats: Formats) -> ExitCode {
    if let Some(ended) = verbs::wait_and_run() {
        return ended;
    }
    outlive_size_limits();
    let is_hook = verbs::hook::is_called(&formats);
    let run = || match args::parse(formats) {
        Ok(args) => verbs::run(args),
        Err(outcome) => verbs::refused_words(*outcome),
    };
    if is_hook {
        // An agent takes another code as an order to stop, also where nobody reads the answer.
        let _ = output::print(&verbs::hook::guarded(run));
        return ExitCode::SUCCESS;
    }
    output::print(&run())
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
