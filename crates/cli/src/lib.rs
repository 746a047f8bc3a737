//! `ckpt`: read, check, change and resume AI-agent checkpoints.
//!
//! The command as a function, for your own program that adds formats. `docs/cli.md` is the user's reference.
//!
//! ```no_run
//! use agent_checkpoint::formats::{Format, Formats, task::TaskCheckpoint};
//!
//! let mut formats = Formats::default();
//! formats.register(Format::of::<TaskCheckpoint>()); // a format of yours
//! agent_checkpoint_cli::run(formats);
//! ```

mod address;
mod advice;
mod args;
mod backend;
mod config_file;
mod exit;
mod failure;
mod global;
mod help;
mod inputs;
mod named;
mod output;
mod parse;
mod read;
mod replace;
mod report;
mod reported;
mod settings;
mod stdin;
mod verbs;

// For the MCP server of this project only; it may change at any time.
#[doc(hidden)]
pub use verbs::served;

use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use agent_checkpoint::formats::Formats;

/// Runs the command line of this process with these formats.
#[must_use]
pub fn run(formats: Formats) -> ExitCode {
    if let Some(ended) = verbs::wait_and_run() {
        return ended;
    }
    outlive_size_limits();
    let is_hook = verbs::hook::is_called(&formats);
    let run = || match parse::parse(formats) {
        Ok(args) => verbs::run(args),
        Err(outcome) => verbs::refused_words(*outcome),
    };
    if is_hook {
        return answer_hook(run);
    }
    output::print(&run())
}

/// How long an agent waits for a hook. A save that is cut off leaves either the old state or the complete new one.
const HOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// The stack size of a hook's thread, in bytes, as large as that of the main thread on most systems.
const HOOK_STACK: usize = 8 << 20;

/// Prints the answer of a hook, or that it takes too long. The exit code is 0 even if nothing reads the answer,
/// because an agent takes any other code as an order to stop.
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
            let _ = output::print(&verbs::hook::late(HOOK_TIMEOUT));
            let _ = std::io::stdout().flush();
            std::process::exit(0)
        }
    }
}

/// Turns a write beyond the file size limit (`ulimit -f`) into an error that is reported, and lets the temporary file
/// be removed. Otherwise the signal would end the process first.
fn outlive_size_limits() {
    #[cfg(unix)]
    {
        let signal = signal_hook::consts::SIGXFSZ;
        // If this fails, the signal ends the process as usual.
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
}
