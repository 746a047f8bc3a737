//! The fingerprints that a save records of the files that its checkpoint names.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::head::Head;
use super::stamp::FILE_CLOCK_TICK;
use super::tracking::{Found, Project, Tracking};
use crate::checkpoint::{Timestamp, hex};

/// The largest file whose contents are hashed, in bytes. Of a larger one only size and times are compared.
pub(crate) const LARGEST_HASHED: u64 = 64 * 1024 * 1024;

/// The most bytes that are read at a time.
const LARGEST_READ: usize = 64 * 1024;

/// The state of a checkpoint's tracked files at the time of a save.
///
/// They are recorded beside the checkpoint for one revision, and are meaningless for any other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fingerprints {
    /// The head of the project's git repository, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<Head>,
    /// The agent that reported the work on these files, if the checkpoint names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// The fingerprint of each tracked file, by its path as the checkpoint spells it.
    pub(crate) files: BTreeMap<String, Fingerprint>,
}

/// The state of one file at the time of a save.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub(crate) enum Fingerprint {
    /// A regular file.
    File(FilePrint),
    /// A folder; its contents are not tracked.
    Folder,
    /// It existed once, and was gone when the work that removed it was saved.
    Missing,
    /// It did not exist when it was named, nor since: a step removed it, or its name is mistyped.
    NeverThere,
    /// No save vouched for it since an earlier state. It is judged by the stamp of that state.
    Since(Option<Timestamp>),
    /// It could not be read, or it lies outside the project.
    Unknown,
}

/// The recorded properties of a regular file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub(crate) struct FilePrint {
    /// Its size in bytes.
    pub size: u64,
    /// When its contents were last changed.
    pub mtime: FileTime,
    /// When its inode was last changed; Unix only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ctime: Option<FileTime>,
    /// Its inode; Unix only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// SHA-256 of its contents; `None` if the file is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// When these properties were read.
    pub taken: FileTime,
}

/// A time as file systems store it: whole seconds since 1970, rounded down, and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct FileTime(pub i64, pub u32);

impl FileTime {
    fn plus(self, span: Duration) -> FileTime {
        let nanos = self.1.saturating_add(span.subsec_nanos());
        let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        let carry = i64::from(nanos / 1_000_000_000);
        FileTime(
            self.0.saturating_add(seconds).saturating_add(carry),
            nanos % 1_000_000_000,
        )
    }
}

impl From<SystemTime> for FileTime {
    fn from(time: SystemTime) -> FileTime {
        let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => FileTime(seconds(after), after.subsec_nanos()),
            Err(before) => match before.duration() {
                span if span.subsec_nanos() == 0 => FileTime(-seconds(span), 0),
                span => FileTime(-seconds(span) - 1, 1_000_000_000 - span.subsec_nanos()),
            },
        }
    }
}

/// How a file compares with its fingerprint.
pub(super) enum Compared {
    Unchanged,
    Touched,
    Modified,
    Unreadable(io::Error),
    TooLarge,
}

impl Fingerprints {
    /// Takes the fingerprints of files; paths are relative to the root. The entry in `before` of a file that
    /// surely did not change is reused, so that only changed files are read again. If none of the files exists,
    /// nothing is recorded.
    pub fn take<'f>(
        files: impl IntoIterator<Item = &'f str>,
        tracking: &Tracking,
        before: Option<&Fingerprints>,
    ) -> Fingerprints {
        let mut project = Project::new(tracking);
        let mut taken = Fingerprints {
            head: Head::of(project.root()),
            ..Fingerprints::default()
        };
        let mut any_there = false;
        for path in files {
            if taken.files.contains_key(path) || !project.tracks(path) {
                continue;
            }
            let known = before.and_then(|before| before.files.get(path));
            let found = project.find(path);
            any_there |= !matches!(found, Found::Missing);
            let print = Fingerprint::take(found, known);
            taken.files.insert(path.to_owned(), print);
        }
        // If none of the files exists, this is probably the wrong folder. Fingerprints taken from here would
        // make every file look new in the right one.
        if !any_there {
            return Fingerprints::default();
        }
        taken
    }
}

impl Fingerprint {
    /// Whether it records the contents, rather than the stamp by which the file is judged.
    pub(super) fn has_contents(&self) -> bool {
        !matches!(self, Fingerprint::Since(_) | Fingerprint::Unknown)
    }

    /// The fingerprint of a file as it was found.
    pub(super) fn take(found: Found, known: Option<&Fingerprint>) -> Fingerprint {
        match found {
            Found::File(path, found) => match FilePrint::take(&path, &found, known) {
                Ok(print) => Fingerprint::File(print),
                Err(_) => Fingerprint::Unknown,
            },
            Found::Folder => Fingerprint::Folder,
            // `Missing` is only recorded if the file was known to exist, because then work removed it.
            Found::Missing => match known {
                Some(Fingerprint::File(_) | Fingerprint::Folder | Fingerprint::Missing) => {
                    Fingerprint::Missing
                }
                _ => Fingerprint::NeverThere,
            },
            Found::Outside(_) | Found::Unreadable(_) => Fingerprint::Unknown,
        }
    }
}

impl FilePrint {
    /// Takes the fingerprint of a file. Its times are read before its contents, so that a later comparison
    /// finds a change made in between.
    fn take(path: &Path, found: &Metadata, known: Option<&Fingerprint>) -> io::Result<FilePrint> {
        let mut print = FilePrint::of(found);
        if let Some(Fingerprint::File(known)) = known
            && known.has_same_marks(&print)
            && !known.is_racy()
        {
            return Ok(known.clone());
        }
        print.sha256 = hash(path, found.len())?;
        Ok(print)
    }

    /// The same fingerprint, but marked as racy where no `ctime` can reveal that a time was set back. The
    /// contents are then always compared.
    pub(super) fn with_doubt(mut self) -> FilePrint {
        if self.ctime.is_none() {
            self.taken = self.mtime;
        }
        self
    }

    /// The fingerprint of a file whose contents did not change, with its present properties.
    pub(super) fn renewed(&self, marks: FilePrint) -> FilePrint {
        if self.has_same_marks(&marks) && !self.is_racy() {
            return self.clone();
        }
        FilePrint {
            sha256: self.sha256.clone(),
            ..marks
        }
    }

    pub(super) fn of(found: &Metadata) -> FilePrint {
        let modified = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        #[cfg(unix)]
        let (ctime, inode) = {
            use std::os::unix::fs::MetadataExt;
            let nanos = u32::try_from(found.ctime_nsec()).unwrap_or(0);
            (Some(FileTime(found.ctime(), nanos)), Some(found.ino()))
        };
        #[cfg(not(unix))]
        let (ctime, inode) = (None, None);
        FilePrint {
            size: found.len(),
            mtime: modified.into(),
            ctime,
            inode,
            sha256: None,
            taken: SystemTime::now().into(),
        }
    }

    fn has_same_marks(&self, other: &FilePrint) -> bool {
        self.size == other.size
            && self.mtime == other.mtime
            && self.ctime == other.ctime
            && self.inode == other.inode
    }

    /// Whether the file changed in the same clock tick in which it was read, or later by its own times. A
    /// change after the read may then have left size and times the same. (Git has the same rule for its index.)
    fn is_racy(&self) -> bool {
        let changed = self.ctime.map_or(self.mtime, |ctime| ctime.max(self.mtime));
        changed.plus(FILE_CLOCK_TICK) >= self.taken
    }

    /// Compares the fingerprint with the file, which exists and is regular.
    pub(super) fn compare(&self, path: &Path, found: &Metadata) -> Compared {
        let now = FilePrint::of(found);
        let same = self.has_same_marks(&now);
        if same && !self.is_racy() {
            return Compared::Unchanged;
        }
        if self.size != now.size {
            return Compared::Modified;
        }
        let Some(before) = &self.sha256 else {
            return Compared::TooLarge;
        };
        match hash(path, found.len()) {
            Err(error) => Compared::Unreadable(error),
            Ok(None) => Compared::TooLarge,
            Ok(Some(after)) if after != *before => Compared::Modified,
            Ok(Some(_)) if same => Compared::Unchanged,
            Ok(Some(_)) => Compared::Touched,
        }
    }
}

/// The hash of a file; `None` if the file is too large, or became too large while it was read.
fn hash(path: &Path, size: u64) -> io::Result<Option<String>> {
    if size > LARGEST_HASHED {
        return Ok(None);
    }
    let mut file = File::open(path)?.take(LARGEST_HASHED + 1);
    let mut hasher = Sha256::new();
    // Most files are small, so the buffer is no larger than the file plus one byte, which is enough to reach its end.
    let mut buffer =
        vec![0; usize::try_from(size + 1).map_or(LARGEST_READ, |it| it.min(LARGEST_READ))];
    let mut sum = 0_u64;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                sum += read as u64;
                hasher.update(&buffer[..read]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((sum <= LARGEST_HASHED).then(|| hex(&hasher.finalize())))
}
