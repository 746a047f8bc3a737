//! A process that waits until it may become a command.
//!
//! The ledger names the process of each effect that was begun. So this process is started first, and waits. If `ckpt`
//! is killed, a command that was allowed to run continues and is known to be running; one that was not allowed never
//! runs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Child, Command, ExitCode, Stdio};

use agent_checkpoint::ProcessId;

/// The exit code if the command did not run.
pub(super) const NOT_RUN: u8 = 125;

/// The first argument of a process of this program that waits and then becomes a command.
#[cfg(unix)]
const WAIT: &str = "__wait-and-run";

/// A command that is not running yet.
pub(super) struct Waiting {
    #[cfg(unix)]
    child: Child,
    #[cfg(unix)]
    may_run: io::PipeWriter,
    /// The file for the reason that it could not run.
    #[cfg(unix)]
    failure: tempfile::NamedTempFile,
    /// On other systems a process cannot become another program, so the command starts as a child once it may run.
    #[cfg(not(unix))]
    command: Vec<OsString>,
}

/// A running command.
pub(super) struct Running {
    pub(super) child: Child,
    #[cfg(unix)]
    failure: tempfile::NamedTempFile,
}

#[cfg(unix)]
impl Waiting {
    pub(super) fn new(command: &[OsString]) -> io::Result<Waiting> {
        use std::os::fd::AsRawFd;

        let (wait, may_run) = io::pipe()?;
        // The only file that the process inherits.
        rustix::io::fcntl_setfd(&wait, rustix::io::FdFlags::empty())?;
        let failure = tempfile::NamedTempFile::new()?;
        let child = Command::new(std::env::current_exe()?)
            .arg(WAIT)
            .arg(wait.as_raw_fd().to_string())
            .arg(failure.path())
            .args(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Waiting {
            child,
            may_run,
            failure,
        })
    }

    pub(super) fn process(&self) -> ProcessId {
        ProcessId::of(self.child.id()).unwrap_or_else(ProcessId::current)
    }

    pub(super) fn run(mut self) -> io::Result<Running> {
        io::Write::write_all(&mut self.may_run, b"\n")?;
        Ok(Running {
            child: self.child,
            failure: self.failure,
        })
    }

    /// Ends the process without running the command.
    pub(super) fn dismiss(mut self) {
        drop(self.may_run);
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
impl Running {
    /// Why the command could not be run, after its process ended.
    pub(super) fn failure(&mut self) -> Option<String> {
        let mut why = String::new();
        io::Read::read_to_string(self.failure.as_file_mut(), &mut why).ok()?;
        (!why.is_empty()).then_some(why)
    }
}

#[cfg(not(unix))]
impl Waiting {
    pub(super) fn new(command: &[OsString]) -> io::Result<Waiting> {
        Ok(Waiting {
            command: command.to_vec(),
        })
    }

    pub(super) fn process(&self) -> ProcessId {
        ProcessId::current()
    }

    pub(super) fn run(self) -> io::Result<Running> {
        let mut command = command(&self.command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn()?;
        Ok(Running { child })
    }

    pub(super) fn dismiss(self) {}
}

#[cfg(not(unix))]
impl Running {
    pub(super) fn failure(&mut self) -> Option<String> {
        None
    }
}

fn command(words: &[OsString]) -> Command {
    let (name, arguments) = words
        .split_first()
        .map_or((OsStr::new(""), words), |(name, rest)| {
            (name.as_os_str(), rest)
        });
    let mut command = Command::new(name);
    command.args(arguments);
    command
}

/// Waits and becomes the command, if this process was started for that.
pub(crate) fn wait_and_run() -> Option<ExitCode> {
    #[cfg(unix)]
    {
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next()? != WAIT {
            return None;
        }
        let (wait, failure) = (arguments.next()?, arguments.next()?);
        let words: Vec<OsString> = arguments.collect();
        let mut may_run = Vec::new();
        let read = std::fs::File::open(std::path::Path::new("/dev/fd").join(wait))
            .and_then(|wait| io::Read::read_to_end(&mut io::Read::take(wait, 1), &mut may_run));
        let error = match read {
            // The process that would have allowed it is gone.
            Ok(0) => return Some(ExitCode::from(NOT_RUN)),
            Ok(_) => std::os::unix::process::CommandExt::exec(&mut command(&words)),
            Err(error) => error,
        };
        // A command that did not run must not count as done. An end by a signal leaves the effect in doubt.
        if std::fs::write(failure, error.to_string()).is_err() {
            std::process::abort();
        }
        Some(ExitCode::from(NOT_RUN))
    }
    #[cfg(not(unix))]
    None
}
