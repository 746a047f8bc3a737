//! Whether the files that a checkpoint names changed since it was saved.
//!
//! There are two methods. If the save recorded [`Fingerprints`], a file is judged by its contents: a checkout
//! that only changes times is no change, and an older time hides no change. Otherwise the protocol's method is
//! used: a file that was written after the checkpoint's stamp makes it stale, and a file that was written
//! within the stamp's precision is indeterminate.

mod covered;
mod fingerprint;
mod head;
#[cfg(feature = "ignore")]
mod ignored;
mod stamp;
mod state;
mod tracking;
mod vouching;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::Serialize;

pub(crate) use covered::{Covered, CoveredChange};
pub(crate) use fingerprint::Fingerprint;
#[doc(hidden)]
pub use fingerprint::Fingerprints;
pub(crate) use head::Checkout;
pub(crate) use head::Head;
pub use state::{FileState, TrackedFile};
pub use tracking::Tracking;
pub(crate) use vouching::{Recording, Work};

use crate::checkpoint::{Timestamp, stamp};
use crate::store::{EntryId, RolledBack};
use fingerprint::Compared;
pub(crate) use stamp::FILE_CLOCK_TICK;
use stamp::Saved;
use tracking::{Found, Project};

/// The verdict over all files of a checkpoint.
///
/// Source: the stale-checkpoint rule of the builder-state protocol: a checkpoint is stale when a file
/// that it names has a newer modification time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
#[must_use]
#[non_exhaustive]
pub enum Staleness {
    /// No file changed since the checkpoint. If the project is at another commit of the same branch, that is
    /// still listed as a reason: agents commit their work.
    Fresh(Judged),
    /// No file surely changed, but one may have, or another reason speaks against the checkpoint.
    Indeterminate(Judged),
    /// At least one file changed, is missing, or appeared.
    Stale(Judged),
}

/// What the verdict rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Judged {
    /// Every tracked file with its own verdict.
    pub files: Vec<TrackedFile>,
    /// Files that the checkpoint names but that are not tracked, because they are not source files of the project.
    pub untracked: Vec<String>,
    /// What speaks against the checkpoint besides its files.
    pub reasons: Vec<Reason>,
}

/// What speaks against a checkpoint besides its files.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// The project is on another branch.
    OtherBranch {
        /// The branch at the save; `None` if HEAD was detached.
        saved: Option<String>,
        /// The branch now.
        now: Option<String>,
    },
    /// The project is at another commit of the same branch. This speaks against the checkpoint only if the
    /// contents of a file could not be compared.
    OtherCommit {
        /// The commit at the save.
        saved: Option<String>,
        /// The commit now.
        now: Option<String>,
    },
    /// An older state of the checkpoint was put back without the store, for example by `git checkout` or
    /// `git stash`. It lacks everything that was done since.
    RolledBack {
        /// The newest history entry after the state that was put back.
        later: Option<EntryId>,
        /// When the last save was made.
        saved: DateTime<Utc>,
        /// Whether the history has the state of that save as an entry.
        last_is_kept: bool,
    },
    /// None of the files exists. This is more likely the wrong folder than a project without its files.
    NothingThere,
    /// Parts of the checkpoint could not be read, so it may name files that are not judged.
    ReadInPart,
}

impl From<RolledBack> for Reason {
    fn from(back: RolledBack) -> Reason {
        Reason::RolledBack {
            later: back.later,
            saved: back.saved.into(),
            last_is_kept: back.last_is_kept,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |branch: &Option<String>| match branch {
            Some(branch) => format!("the branch {branch}"),
            None => "no branch".to_owned(),
        };
        let short = |commit: &Option<String>| match commit {
            Some(commit) => commit.chars().take(12).collect(),
            None => "none".to_owned(),
        };
        match self {
            Reason::OtherBranch { saved, now } => {
                write!(f, "saved on {}, and now on {}", name(saved), name(now))
            }
            Reason::OtherCommit { saved, now } => {
                write!(
                    f,
                    "saved at commit {}, and now at {}",
                    short(saved),
                    short(now)
                )
            }
            Reason::RolledBack {
                later,
                saved,
                last_is_kept,
            } => {
                if let Some(later) = later {
                    write!(f, "a later state, entry {later}, was replaced without ckpt")?;
                }
                if later.is_none() || !last_is_kept {
                    let saved = stamp(*saved);
                    let after = if later.is_some() { "; " } else { "" };
                    write!(f, "{after}the last state, saved at {saved}, is missing from the history")?;
                }
                Ok(())
            }
            Reason::NothingThere => f.write_str(
                "none of the files is there: is this the project's folder? Judge it from the one that the files are \
                 relative to",
            ),
            Reason::ReadInPart => f.write_str("parts of the checkpoint could not be read"),
        }
    }
}

/// The evidence by which files are judged.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Basis<'b> {
    /// The checkpoint's stamp.
    pub stamp: Option<&'b Timestamp>,
    /// The present time: a stamp that lies in its future is no evidence.
    pub now: Option<DateTime<Utc>>,
    /// The fingerprints of the save, if they belong to this revision of the checkpoint.
    pub fingerprints: Option<&'b Fingerprints>,
}

impl<'b> Basis<'b> {
    /// Judges by the stamp.
    #[must_use]
    pub fn new(stamp: Option<&'b Timestamp>, now: Option<DateTime<Utc>>) -> Self {
        Basis {
            stamp,
            now,
            fingerprints: None,
        }
    }

    /// Judges by the fingerprints of the save where there are any.
    #[must_use]
    pub fn with_fingerprints(mut self, fingerprints: Option<&'b Fingerprints>) -> Self {
        self.fingerprints = fingerprints;
        self
    }
}

impl Staleness {
    /// Judges files only by the stamp of their checkpoint: the protocol's method.
    ///
    /// Paths are relative to `root`, and every file counts. No contents are read. Only the files that the
    /// checkpoint names are judged; a file that a step in progress is creating is not among them.
    pub fn of<'f>(
        files: impl IntoIterator<Item = &'f str>,
        stamp: Option<&Timestamp>,
        root: &Path,
        now: Option<DateTime<Utc>>,
    ) -> Staleness {
        let tracking = Tracking::new(root)
            .with_sources(crate::checkpoint::SourceFiles::all())
            .without_gitignore();
        Staleness::judge(files, &Basis::new(stamp, now), &tracking)
    }

    /// Judges the files of a checkpoint.
    ///
    /// A file with a fingerprint is judged by it. The contents are read only when size, times and inode do not
    /// decide, so an unchanged file costs one `stat`. A file without a fingerprint is judged by the stamp.
    /// Nothing outside the project's folder is read, not even through a link.
    #[doc(hidden)]
    pub fn judge<'f>(
        files: impl IntoIterator<Item = &'f str>,
        basis: &Basis<'_>,
        tracking: &Tracking,
    ) -> Staleness {
        let files: Vec<&str> = files.into_iter().collect();
        let looked = look_at_all(&files, basis, tracking);
        let mut seen = HashSet::with_capacity(files.len());
        let mut judged = Judged::default();
        judged.files.reserve(files.len());
        let (mut any_there, mut by_content) = (false, true);
        for (path, looked) in files.into_iter().zip(looked) {
            if !seen.insert(path) {
                continue;
            }
            let Some(looked) = looked else {
                judged.untracked.push(path.to_owned());
                continue;
            };
            by_content &= looked.by_content;
            any_there |= looked.is_there;
            judged.files.push(TrackedFile {
                path: path.to_owned(),
                state: looked.state,
            });
        }
        let is_as_known = |file: &TrackedFile| file.state.is_same();
        if !any_there && !judged.files.iter().all(is_as_known) {
            judged.reasons.push(Reason::NothingThere);
        }
        if let Some(fingerprints) = basis.fingerprints {
            judged.compare_heads(fingerprints.head.as_ref(), tracking.folder());
        }
        let counts =
            |reason: &Reason| !(by_content && matches!(reason, Reason::OtherCommit { .. }));
        let is_against = judged.reasons.iter().any(counts);
        judged.into_verdict(is_against)
    }

    /// The verdict for a checkpoint that could only be read in part. Files that it names may be missing from
    /// the list, so it is not fresh.
    pub(crate) fn of_a_part(self) -> Staleness {
        self.against(Reason::ReadInPart)
    }

    /// The verdict with a further reason that speaks against the checkpoint.
    pub(crate) fn against(self, reason: Reason) -> Staleness {
        let mut judged = self.into_judged();
        judged.reasons.push(reason);
        judged.into_verdict(true)
    }

    fn into_judged(self) -> Judged {
        match self {
            Staleness::Fresh(judged)
            | Staleness::Indeterminate(judged)
            | Staleness::Stale(judged) => judged,
        }
    }

    /// The evidence of the verdict.
    #[must_use]
    pub fn judged(&self) -> &Judged {
        match self {
            Staleness::Fresh(judged)
            | Staleness::Indeterminate(judged)
            | Staleness::Stale(judged) => judged,
        }
    }

    /// All tracked files.
    #[must_use]
    pub fn files(&self) -> &[TrackedFile] {
        &self.judged().files
    }

    /// What speaks against the checkpoint besides its files.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.judged().reasons
    }

    /// The files that changed, or of which that cannot be decided.
    pub fn changed(&self) -> impl Iterator<Item = &TrackedFile> {
        self.files().iter().filter(|file| !file.state.is_same())
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

impl Judged {
    fn compare_heads(&mut self, saved: Option<&Head>, root: &Path) {
        let Some(saved) = saved else { return };
        let Some(now) = Head::of(root) else {
            self.reasons.push(Reason::OtherBranch {
                saved: saved.branch.clone(),
                now: None,
            });
            return;
        };
        if saved.branch != now.branch {
            self.reasons.push(Reason::OtherBranch {
                saved: saved.branch.clone(),
                now: now.branch,
            });
        } else if saved.commit != now.commit {
            self.reasons.push(Reason::OtherCommit {
                saved: saved.commit.clone(),
                now: now.commit,
            });
        }
    }

    /// The verdict. `is_against` states whether a reason speaks against the checkpoint.
    fn into_verdict(self, is_against: bool) -> Staleness {
        let any = |of: fn(&FileState) -> bool| self.files.iter().any(|file| of(&file.state));
        if any(FileState::is_changed) {
            Staleness::Stale(self)
        } else if any(|state| !state.is_same()) || is_against {
            Staleness::Indeterminate(self)
        } else {
            Staleness::Fresh(self)
        }
    }
}

/// The result for one file.
struct Looked {
    state: FileState,
    is_there: bool,
    by_content: bool,
}

/// The number of files from which a further thread is worth its start.
const WORTH_A_THREAD: usize = 1024;

/// Judges all files, many of them on several threads; `None` for a file that is not tracked.
fn look_at_all(files: &[&str], basis: &Basis<'_>, tracking: &Tracking) -> Vec<Option<Looked>> {
    let look_at = |files: &[&str]| -> Vec<Option<Looked>> {
        let saved = Saved::new(basis.stamp, basis.now);
        let mut project = Project::new(tracking);
        let mut look = |path: &&str| {
            let tracked = project.tracks(path);
            tracked.then(|| {
                let print = basis.fingerprints.and_then(|all| all.files.get(*path));
                let found = project.find(path);
                Looked {
                    is_there: !matches!(found, Found::Missing),
                    by_content: print.is_some_and(Fingerprint::has_contents),
                    state: state_of(&found, print, &saved, basis.now),
                }
            })
        };
        files.iter().map(&mut look).collect()
    };
    // Asking for the number of threads makes the system read several files, so it is asked only when needed.
    let threads = match files.len() / WORTH_A_THREAD {
        0 | 1 => 1,
        worth => std::thread::available_parallelism().map_or(1, |there| worth.min(there.get())),
    };
    if threads < 2 {
        return look_at(files);
    }
    std::thread::scope(|scope| {
        let parts = files.chunks(files.len().div_ceil(threads));
        let parts: Vec<_> = parts.map(|part| scope.spawn(|| look_at(part))).collect();
        let parts = parts.into_iter().map(|part| {
            part.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        parts.flatten().collect()
    })
}

/// Compares a file with its fingerprint or stamp.
fn state_of(
    found: &Found,
    print: Option<&Fingerprint>,
    saved: &Saved,
    now: Option<DateTime<Utc>>,
) -> FileState {
    let unreadable = |reason: &str| FileState::Unreadable {
        reason: reason.to_owned(),
    };
    let indeterminate = |reason: &str| FileState::Indeterminate {
        reason: reason.to_owned(),
    };
    match (found, print) {
        (Found::Outside(reason), _) => unreadable(reason),
        (Found::Unreadable(error), _) => unreadable(&error.to_string()),
        (Found::Missing, Some(Fingerprint::Missing)) => FileState::Removed,
        // No save ever saw the file, so it cannot be unchanged.
        (Found::Missing, Some(Fingerprint::NeverThere)) => {
            indeterminate("it did not exist when it was recorded, and does not exist now")
        }
        (Found::Missing, _) => FileState::Missing,
        (Found::Folder, Some(Fingerprint::File(_))) => FileState::Replaced {
            by: "a folder".to_owned(),
        },
        (Found::Folder | Found::File(..), Some(Fingerprint::Missing | Fingerprint::NeverThere)) => {
            FileState::Appeared
        }
        (Found::Folder, _) => indeterminate("it is a folder, and the files in it are not tracked"),
        (Found::File(..), Some(Fingerprint::Folder)) => FileState::Replaced {
            by: "a file".to_owned(),
        },
        (Found::File(path, found), Some(Fingerprint::File(print))) => {
            match print.compare(path, found) {
                Compared::Unchanged => FileState::Unchanged,
                Compared::Touched => FileState::Touched,
                Compared::Modified => FileState::Modified {
                    modified: found.modified().unwrap_or(std::time::UNIX_EPOCH),
                },
                Compared::Unreadable(error) => unreadable(&error.to_string()),
                Compared::TooLarge => {
                    indeterminate("its times changed, and it is too large to be compared")
                }
            }
        }
        (Found::File(_, found), None | Some(Fingerprint::Unknown | Fingerprint::Since(_))) => {
            match (found.modified(), print) {
                (Ok(modified), Some(Fingerprint::Since(stamp))) => {
                    Saved::new(stamp.as_ref(), now).judge(modified)
                }
                (Ok(modified), _) => saved.judge(modified),
                (Err(error), _) => unreadable(&error.to_string()),
            }
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
