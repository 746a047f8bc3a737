//! The options that every verb takes, and where their values come from.

use std::path::PathBuf;
use std::time::Duration;

use agent_checkpoint::formats::builder_state::Slot;
use agent_checkpoint::formats::{Formats, Given};
use agent_checkpoint::{Fence, Timestamp, is_blank};
use chrono::{DateTime, Datelike, TimeDelta, Utc};

/// The options that every verb takes, before or after it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Options of all verbs")]
pub(crate) struct Global {
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The format of the file, instead of detecting it
    #[arg(long, global = true, value_name = "F")]
    pub(crate) format: Option<String>,
    /// A folder of checkpoint files or a database, sqlite:PATH, postgres://HOST/DATABASE or s3://BUCKET/PREFIX (each
    /// with --key), one checkpoint file, or a builder-state host file
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    /// Let a report overwrite values that could not be read; they are kept in the dropped log
    #[arg(long, global = true)]
    pub(crate) allow_loss: bool,
    /// The checkpoint in a folder or a database: a task or agent id
    #[arg(long, global = true, value_name = "K")]
    pub(crate) key: Option<String>,
    /// The checkpoint in a builder-state host file: active, adhoc:ID or top [default: the only one there]
    #[arg(long, global = true, value_name = "SLOT", value_parser = slot)]
    pub(crate) slot: Option<Slot>,
    /// The project's folder, to which tracked files are relative
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,
    /// Use this RFC 3339 time as the present time, also for stamps
    #[arg(long, global = true, value_name = "T", value_parser = time)]
    pub(crate) now: Option<DateTime<Utc>>,
    /// The writing agent
    #[arg(long, global = true, value_name = "A", value_parser = words)]
    pub(crate) agent: Option<String>,
    /// The session that is writing
    #[arg(long, global = true, value_name = "S", value_parser = words)]
    pub(crate) session: Option<String>,
    /// The fence of your claim, as `ckpt claim` printed it; required for every change while a claim is valid
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true)]
    pub(crate) fence: Option<Fence>,
    /// Print text that looks like a secret, instead of a mark such as [redacted: github-token]
    #[arg(long, global = true)]
    pub(crate) show_secrets: bool,
    /// Remove text that looks like a secret from what a report writes
    #[arg(long, global = true)]
    pub(crate) redact: bool,
    /// The largest file or document that is read, in bytes
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true, default_value_t = 16 * 1024 * 1024)]
    pub(crate) max_bytes: u64,
    /// Print nothing but errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Exit with 0 instead of 1 when there are findings; errors keep their codes
    #[arg(long, global = true)]
    pub(crate) exit_zero: bool,
    /// The origin of each value.
    #[arg(skip)]
    pub(crate) settings: Vec<Setting>,
    /// The formats that this program knows.
    #[arg(skip)]
    pub(crate) formats: Formats,
    /// The values of the formats' own options.
    #[arg(skip)]
    pub(crate) given: Given,
    /// How long a call waits for a lock, if not the default time.
    #[arg(skip)]
    pub(crate) lock_timeout: Option<Duration>,
}

impl Global {
    /// The present time, or the time of `--now`.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.now.unwrap_or_else(Utc::now)
    }

    /// The claiming owner: two sessions of one agent are two owners.
    pub(crate) fn owner(&self) -> Option<String> {
        match (&self.agent, &self.session) {
            (Some(agent), Some(session)) => Some(format!("{agent}, session {session}")),
            (Some(agent), None) => Some(agent.clone()),
            // A session from the environment alone is no owner.
            (None, Some(session)) if *self.origin("session") == Origin::Flag => {
                Some(format!("session {session}"))
            }
            (None, _) => None,
        }
    }

    /// The author of a line of the ledger.
    pub(crate) fn author(&self) -> String {
        self.owner().unwrap_or_else(|| "ckpt".to_owned())
    }

    /// The origin of a setting's value.
    pub(crate) fn origin(&self, name: &str) -> &Origin {
        let setting = self.settings.iter().find(|setting| setting.name == name);
        setting.map_or(&Origin::Default, |setting| &setting.origin)
    }

    /// The name of the option or variable that gave a setting its value, for the advice to omit it.
    pub(crate) fn source(&self, name: &str) -> String {
        match self.origin(name) {
            Origin::Variable => variable(name),
            _ => format!("--{name}"),
        }
    }
}

/// A setting, its value as it may be printed, and the origin of the value.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) value: Option<String>,
    pub(crate) origin: Origin,
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Variable,
    /// The file and the line.
    File(String),
    Default,
}

/// The environment variable of a setting.
pub(crate) fn variable(name: &str) -> String {
    format!("CKPT_{}", name.to_uppercase())
}

/// Accepts a text that is not blank, so that an unset shell variable does not become a step. The name of a planned step
/// is not checked here: it is looked up in the plan and may be as empty as that step is.
pub(crate) fn words(text: &str) -> Result<String, String> {
    if is_blank(text) {
        Err("it is empty; describe it in a few words".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// A span of time.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        "a span of time is numbers with their units, such as 90s, 15m, 2h, 30days or 1h30m"
            .to_owned()
    })
}

pub(crate) fn worked(text: &str) -> Result<TimeDelta, String> {
    TimeDelta::from_std(span(text)?).map_err(|error| error.to_string())
}

/// The time so long after `now`.
pub(crate) fn after(span: Duration, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    let end = TimeDelta::from_std(span).ok();
    // A later year is no RFC 3339.
    end.and_then(|span| now.checked_add_signed(span))
        .filter(|end| end.year() <= 9999)
        .ok_or_else(|| "no calendar goes that far; give a shorter span".to_owned())
}

/// A time, or a span from `now`.
pub(crate) fn time_from(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    time(text).or_else(|no_time| match span(text) {
        Ok(span) => after(span, now),
        Err(no_span) => Err(format!("{no_time}; {no_span}")),
    })
}

fn slot(text: &str) -> Result<Slot, String> {
    text.parse()
        .map_err(|_| "a slot is `active`, `adhoc:ID` or `top`".to_owned())
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let time = Timestamp::parse(text).time();
    time.map(|time| time.to_utc())
        .ok_or_else(|| "a time is RFC 3339 with a zone, such as 2026-03-02T08:05:00Z".to_owned())
}
