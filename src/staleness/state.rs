//! What became of one file.

use std::fmt;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

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
    /// It is as it was: by what was recorded of it, or it was last written before the checkpoint.
    Unchanged,
    /// Its times changed, as a checkout or a copy does, and its contents did not.
    Touched,
    /// Its contents changed, or it was written after the checkpoint.
    Modified {
        /// When it was last written.
        #[serde(serialize_with = "rfc3339")]
        modified: SystemTime,
    },
    /// Something else stands in its place.
    Replaced {
        /// What.
        by: String,
    },
    /// It is not there.
    Missing,
    /// It is gone, as it was when work was last recorded: that work removed it, or found it removed.
    Removed,
    /// It was not there when the checkpoint was saved, and is now.
    Appeared,
    /// Its state could not be read, or must not be: it leads out of the project.
    Unreadable {
        /// Why.
        reason: String,
    },
    /// Unknown: nothing was recorded of it, and it was written too close to the checkpoint to know which came
    /// first, or the checkpoint has no usable stamp.
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
            FileState::Touched => "touched",
            FileState::Modified { .. } | FileState::Replaced { .. } => "modified",
            FileState::Missing => "missing",
            FileState::Removed => "removed",
            FileState::Appeared => "appeared",
            FileState::Unreadable { .. } => "unreadable",
            FileState::Indeterminate { .. } => "indeterminate",
        }
    }

    /// Whether the file is what it was, which includes that it is gone as the recorded work left it.
    #[must_use]
    pub fn is_same(&self) -> bool {
        matches!(
            self,
            FileState::Unchanged | FileState::Touched | FileState::Removed
        )
    }

    /// Whether the file surely is not what it was.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        matches!(
            self,
            FileState::Modified { .. }
                | FileState::Replaced { .. }
                | FileState::Missing
                | FileState::Appeared
        )
    }
}

impl fmt::Display for FileState {
    /// The state with its time or reason, such as `modified 2026-02-28T10:30:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileState::Modified { modified } => match time_text(*modified) {
                Some(time) => write!(f, "modified {time}"),
                None => f.write_str("modified"),
            },
            FileState::Replaced { by } => write!(f, "{by} stands in its place"),
            FileState::Unreadable { reason } | FileState::Indeterminate { reason } => {
                f.write_str(reason)
            }
            _ => f.write_str(self.as_str()),
        }
    }
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
        .map(|time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}
