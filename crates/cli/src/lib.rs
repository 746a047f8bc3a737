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
mod passing;
mod read;
mod replace;
mod report;
mod reported;
mod settings;
mod stdin;
mod verbs;

// For the MCP server of this project: no promise is made of it.
#[doc(hidden)]
pub use verbs::served;

use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

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
        return answer_hook(run);
    }
    output::print(&run())
}

/// How long an agent waits for the answer of a hook. A save that is cut off then leaves what was there before, or all of
/// itself.
const HOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// The stack of a hook's thread, in bytes: that of the main thread on most systems.
const HOOK_STACK: usize = 8 << 20;

/// Prints the answer to a hook; one that takes too long says nothing. An agent takes another exit code than 0 as an order
/// to stop, also where nobody reads the answer.
fn answer_hook(run: impl FnOnce() -> output::Outcome + Send + 'static) -> ExitCode {
    let (sender, receiver) = mpsc::sync_channel(1);
    let answer = move || {
        let _ = sender.send(verbs::hook::guarded(run));
    };
    let begun = thread::Builder::new().stack_size(HOOK_STACK).spawn(answer);
    match begun.map(|_| receiver.recv_timeout(HOOK_TIMEOUT)) {
        Ok(Ok(outcome)) => {
            let _ = output::print(&outcome);
            ExitCode::SUCCESS
        }
        _ => {
            let _ = std::io::stdout().flush();
            std::process::exit(0)
        }
    }
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
