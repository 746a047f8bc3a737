//! The state of one file compared with the checkpoint.

use std::fmt;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

/// One file with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TrackedFile {
    /// The path as the checkpoint spells it.
    pub path: String,
    /// Its state.
    #[serde(flatten)]
    pub state: FileState,
}

/// The state of a file since the checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileState {
    /// It did not change, by its fingerprint or because it was last written before the checkpoint.
    Unchanged,
    /// Its times changed but its contents did not, as after a checkout or a copy.
    Touched,
    /// Its contents changed, or it was written after the checkpoint.
    Modified {
        /// When it was last written.
        #[serde(serialize_with = "rfc3339")]
        modified: SystemTime,
    },
    /// There is something else in its place.
    Replaced {
        /// What is there.
        by: String,
    },
    /// It does not exist.
    Missing,
    /// It does not exist, and neither did it when work was last recorded: that work removed it, or found it removed.
    Removed,
    /// It did not exist when the checkpoint was saved, and exists now.
    Appeared,
    /// It could not be read, or it must not be read because it lies outside the project.
    Unreadable {
        /// Why it was not read.
        reason: String,
    },
    /// Unknown. It has no fingerprint, and it was written too close to the checkpoint to tell which came first,
    /// or the checkpoint has no usable stamp.
    Indeterminate {
        /// Why it is unknown.
        reason: String,
    },
}

impl FileState {
    /// The state as a word.
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

    /// Whether the file is the same as before. A file that the recorded work removed, and that is still gone,
    /// counts as the same.
    #[must_use]
    pub fn is_same(&self) -> bool {
        matches!(
            self,
            FileState::Unchanged | FileState::Touched | FileState::Removed
        )
    }

    /// Whether the file surely changed.
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
            FileState::Replaced { by } => write!(f, "{by} is in its place"),
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

/// A file time as RFC 3339 in UTC; `None` if it is outside the range of the calendar.
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
