//! The command line of `ckpt-mcp`.

use std::ffi::OsString;
use std::time::Duration;

use agent_checkpoint_cli::served::Options;
use clap::Parser;
use tracing::level_filters::LevelFilter;

/// An MCP server on standard input and output, with which an agent begins, reports, resumes and hands over its task.
///
/// It serves one store. Tools name keys. The store, the format and the project's folder come from this command line,
/// else from CKPT_STORE, CKPT_FORMAT, CKPT_ROOT, CKPT_AGENT and CKPT_SESSION, else from the ckpt.toml of the project.
#[derive(Debug, Parser)]
#[command(name = "ckpt-mcp", version, max_term_width = 110)]
pub(crate) struct Args {
    /// A folder of checkpoint files, one checkpoint file, a host file, or a database in the form that `ckpt` takes
    #[arg(long, value_name = "PATH|ADDRESS")]
    store: Option<OsString>,
    /// The format of all checkpoints, instead of detecting it
    #[arg(long, value_name = "F")]
    format: Option<OsString>,
    /// The project's folder, to which tracked files are relative [default: the current folder]
    #[arg(long, value_name = "DIR")]
    root: Option<OsString>,
    /// The calling agent, if a call does not name it [default: the name of the client]
    #[arg(long, value_name = "A")]
    agent: Option<OsString>,
    /// Its session [default: a new one for each process]
    #[arg(long, value_name = "S")]
    session: Option<OsString>,
    /// Offer only the tools that change nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// How long a claim lasts unless a report renews it, such as `90s` or `2h`
    #[arg(long = "for", value_name = "TIME", default_value = "15m", value_parser = claimed_for)]
    pub(crate) time_to_live: Duration,
    /// What is logged on standard error: off, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub(crate) log: LevelFilter,
}

impl Args {
    pub(crate) fn options(&self) -> Options {
        Options {
            store: self.store.clone(),
            format: self.format.clone(),
            root: self.root.clone(),
            agent: self.agent.clone(),
            session: self.session.clone(),
        }
    }
}

pub(crate) fn parse() -> Result<Args, clap::Error> {
    Args::try_parse()
}

/// The longest time for a claim: if its agent is gone, others are kept out for that long.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

fn claimed_for(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match time.is_zero() || time > LONGEST {
        true => Err("a claim lasts more than zero and up to 7 days, such as 15m".to_owned()),
        false => Ok(time),
    }
}
