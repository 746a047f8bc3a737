//! Whether the files that a checkpoint names are still as they were when it was saved.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

use crate::checkpoint::{FUTURE_TOLERANCE, Timestamp};

/// How much earlier than its true time the kernel may stamp a file.
///
/// Linux stamps files from a clock that ticks every 4 to 10 ms, Windows every 15.6 ms, so a file written
/// *after* a time was read can bear an earlier one.
pub const FILE_CLOCK_TICK: Duration = Duration::from_millis(if cfg!(windows) { 16 } else { 10 });

/// The verdict over all files of a checkpoint.
///
/// Source: the stale-checkpoint rule of the builder-state protocol: a checkpoint is stale when a file
/// that it names has a newer modification time. Times are compared at the precision of the
/// checkpoint's stamp; what lies within it cannot be told apart and is *indeterminate*, not stale.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", content = "files", rename_all = "lowercase")]
#[must_use]
#[non_exhaustive]
pub enum Staleness {
    /// No file changed since the checkpoint.
    Fresh(Vec<TrackedFile>),
    /// Of at least one file it cannot be told, and no file surely changed.
    Indeterminate(Vec<TrackedFile>),
    /// At least one file changed or is missing.
    Stale(Vec<TrackedFile>),
}

/// One file with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TrackedFile {
    /// The path as the checkpoint has it.
    pub path: String,
    /// What became of it.
    #[serde(flatten)]
    pub state: FileState,
}

/// What became of a file since the checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileState {
    /// It was last written before the checkpoint.
    Unchanged,
    /// It was written after the checkpoint.
    Modified {
        /// When.
        #[serde(serialize_with = "rfc3339")]
        modified: SystemTime,
    },
    /// It is not there.
    Missing,
    /// Its state could not be read.
    Unreadable {
        /// Why.
        reason: String,
    },
    /// It was written so close to the checkpoint that the two cannot be told apart, or the checkpoint
    /// has no usable stamp.
    Indeterminate {
        /// Why.
        reason: String,
    },
}

impl FileState {
    /// The state in a word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            FileState::Unchanged => "unchanged",
            FileState::Modified { .. } => "modified",
            FileState::Missing => "missing",
            FileState::Unreadable { .. } => "unreadable",
            FileState::Indeterminate { .. } => "indeterminate",
        }
    }
}

impl std::fmt::Display for FileState {
    /// The state with its time or reason, such as `modified 2026-02-28T10:30:00Z`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileState::Modified { modified } => match time_text(*modified) {
                Some(time) => write!(f, "modified {time}"),
                None => f.write_str("modified"),
            },
            FileState::Unreadable { reason } | FileState::Indeterminate { reason } => {
                f.write_str(reason)
            }
            FileState::Unchanged | FileState::Missing => f.write_str(self.as_str()),
        }
    }
}

impl Staleness {
    /// Judges files, relative to `root`, against the stamp of their checkpoint.
    ///
    /// A stamp that lies in the future of `now`, where that is given, tells nothing. Looks at each file
    /// once, by its name alone; reads no content. Only files that the checkpoint names are judged: one
    /// that a step in progress is just making is not among them.
    pub fn of<'f>(
        files: impl IntoIterator<Item = &'f str>,
        stamp: Option<&Timestamp>,
        root: &Path,
        now: Option<DateTime<Utc>>,
    ) -> Staleness {
        let saved = Saved::new(stamp, now);
        let mut seen = std::collections::HashSet::new();
        let files: Vec<TrackedFile> = files
            .into_iter()
            .filter(|path| seen.insert(*path))
            .map(|path| TrackedFile {
                path: path.to_owned(),
                state: saved.judge(&root.join(path)),
            })
            .collect();
        let any = |of: fn(&FileState) -> bool| files.iter().any(|file| of(&file.state));
        if any(|state| matches!(state, FileState::Modified { .. } | FileState::Missing)) {
            Staleness::Stale(files)
        } else if any(|state| *state != FileState::Unchanged) {
            Staleness::Indeterminate(files)
        } else {
            Staleness::Fresh(files)
        }
    }

    /// The same for a checkpoint that could be read in part only: files that it names may be missing
    /// here, so it is not fresh.
    pub fn of_a_part(self) -> Staleness {
        match self {
            Staleness::Fresh(files) => Staleness::Indeterminate(files),
            verdict => verdict,
        }
    }

    /// All files.
    #[must_use]
    pub fn files(&self) -> &[TrackedFile] {
        match self {
            Staleness::Fresh(files) | Staleness::Indeterminate(files) | Staleness::Stale(files) => {
                files
            }
        }
    }

    /// The files that are not unchanged.
    pub fn changed(&self) -> impl Iterator<Item = &TrackedFile> {
        self.files()
            .iter()
            .filter(|file| file.state != FileState::Unchanged)
    }

    /// The verdict in a word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Staleness::Fresh(_) => "fresh",
            Staleness::Indeterminate(_) => "indeterminate",
            Staleness::Stale(_) => "stale",
        }
    }
}

/// The time of a checkpoint as far as its stamp tells it.
enum Saved {
    /// Not before the first and before the second.
    Between(SystemTime, SystemTime),
    /// The stamp is none, or none at all is there.
    Unknown(String),
}

impl Saved {
    fn new(stamp: Option<&Timestamp>, now: Option<DateTime<Utc>>) -> Saved {
        let Some(stamp) = stamp else {
            return Saved::Unknown("the checkpoint has no time stamp".to_owned());
        };
        let latest = now.and_then(|now| now.checked_add_signed(FUTURE_TOLERANCE));
        if latest.is_some_and(|latest| stamp.time().is_some_and(|time| time > latest)) {
            return Saved::Unknown(format!(
                "the checkpoint's time stamp {stamp} lies in the future"
            ));
        }
        let times = stamp.system_time().zip(stamp.precision());
        let between = times.and_then(|(from, precision)| {
            Some(Saved::Between(from, from.checked_add(precision.unit())?))
        });
        between.unwrap_or_else(|| {
            Saved::Unknown(format!(
                "the checkpoint's time stamp {:?} is no time",
                stamp.text()
            ))
        })
    }

    fn judge(&self, path: &Path) -> FileState {
        match modified(path) {
            Err(error) if is_missing(&error) => FileState::Missing,
            Err(error) => FileState::Unreadable {
                reason: error.to_string(),
            },
            Ok(modified) => match self {
                Saved::Unknown(reason) => FileState::Indeterminate {
                    reason: reason.clone(),
                },
                Saved::Between(from, until) => compare(modified, *from, *until),
            },
        }
    }
}

fn compare(modified: SystemTime, from: SystemTime, until: SystemTime) -> FileState {
    let surely_before = modified
        .checked_add(FILE_CLOCK_TICK)
        .is_some_and(|latest| latest < from);
    if surely_before {
        FileState::Unchanged
    } else if modified >= until {
        FileState::Modified { modified }
    } else {
        FileState::Indeterminate {
            reason: "written within the same instant as the checkpoint, as its stamp tells it"
                .to_owned(),
        }
    }
}

fn modified(path: &Path) -> io::Result<SystemTime> {
    std::fs::metadata(path)?.modified()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    match time_text(*time) {
        Some(text) => serializer.serialize_str(&text),
        None => serializer.serialize_none(),
    }
}

/// A file time as RFC 3339 in UTC, or `None` where the calendar does not reach.
fn time_text(time: SystemTime) -> Option<String> {
    let (seconds, nanos) = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).ok()?, after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let whole = i64::try_from(before.as_secs()).ok()?.checked_neg()?;
            match before.subsec_nanos() {
                0 => (whole, 0),
                nanos => (whole.checked_sub(1)?, 1_000_000_000 - nanos),
            }
        }
    };
    DateTime::<Utc>::from_timestamp(seconds, nanos)
        .map(|time| time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true))
}
