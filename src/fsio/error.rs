use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{OWN_FOLDER, Operation};

/// A failed file operation.
///
/// The text of each variant names the path once and the next step. The message of the operating system is in
/// [`source`](std::error::Error::source) and is not repeated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FileError {
    /// The operating system refused an operation.
    #[error("cannot {operation} {}; {}", path.display(), next_step(source))]
    Io {
        /// The operation that failed.
        operation: Operation,
        /// The file or folder that it was done to; for a save this is the file being saved, not the temporary one.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The disk, or the user's quota on it, has no room left. The file is unchanged.
    #[error(
        "disk full: cannot {operation} {}; what was there is unchanged, free some space and save again",
        path.display()
    )]
    DiskFull {
        /// The operation that failed.
        operation: Operation,
        /// The file or folder that did not fit.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The new contents are in place, but the system could not confirm that they survive a power cut.
    #[error(
        "saved {}, but its folder could not be synced; the new contents may be lost in a power cut, check the disk and save again",
        path.display()
    )]
    NotDurable {
        /// The file that was replaced.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// There is a folder, pipe, socket or device where a file is expected.
    #[error("{} is not a regular file; move it away or choose another path", path.display())]
    NotAFile {
        /// The path that is not a file.
        path: PathBuf,
    },

    /// There is a file where a folder is expected.
    #[error("{} is not a folder; move it away or choose another path", path.display())]
    NotAFolder {
        /// The path that is not a folder.
        path: PathBuf,
    },

    /// A symbolic link leads to nothing.
    #[error(
        "{} is a symbolic link to {}, which does not exist; create the target or remove the link",
        path.display(),
        target.display()
    )]
    DanglingLink {
        /// The link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },

    /// Symbolic links form a loop, or there are more of them than any system follows.
    #[error("{} is a symbolic link in a loop or a chain that is too long; correct or remove the link", path.display())]
    LinkLoop {
        /// The link.
        path: PathBuf,
    },

    /// The file is larger than the caller's limit.
    #[error(
        "{} has {size} bytes or more, and the limit is {limit}; raise the limit or shorten the file",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size, or the number of bytes read until the limit was exceeded.
        size: u64,
        /// The caller's limit.
        limit: u64,
    },

    /// The file is write-protected. A rename would succeed anyway and silently remove the protection.
    #[error("{} is write-protected; make it writable (chmod u+w) if it may be changed", path.display())]
    WriteProtected {
        /// The file.
        path: PathBuf,
    },

    /// The file cannot be replaced by a rename: something is mounted on it.
    #[error(
        "{} cannot be replaced, because it is a mount point, such as a single file that is bound into a container; mount its folder instead",
        path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The file system has no locks, so writers could not exclude each other.
    #[error(
        "{}: this file system has no locks, so two writers could overwrite each other's work; keep the store on a \
         local disk",
        path.display()
    )]
    NoLocks {
        /// The lock file that could not be locked.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// A symbolic link inside a folder leads out of it.
    #[error(
        "{} is a symbolic link that leads out of its folder, to {}; remove it, or open that place itself",
        path.display(),
        target.display()
    )]
    LeadsOutside {
        /// The link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },

    /// Another process still held the lock when the timeout ended.
    #[error(
        "gave up waiting for the lock {} after {waited:.1?}{}; let the holder finish or stop it, then try again",
        lock.display(),
        held_by(holder.as_deref(), *held_for)
    )]
    Locked {
        /// The lock file. It is never deleted, and deleting it by hand does not release the lock.
        lock: PathBuf,
        /// How long this process waited.
        waited: Duration,
        /// The holder's name; `None` where the system does not let others read a locked file (Windows).
        holder: Option<String>,
        /// How long the holder has held the lock, by the time stamp of the file.
        held_for: Option<Duration>,
    },

    /// The file is no longer the one that was read and compared. Nothing was written.
    #[error(
        "{} was changed by another program in the meantime; nothing was written, read it again and redo the change",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl FileError {
    /// The file, folder or lock that the error concerns.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::DiskFull { path, .. }
            | Self::NotDurable { path, .. }
            | Self::NotAFile { path }
            | Self::NotAFolder { path }
            | Self::DanglingLink { path, .. }
            | Self::LinkLoop { path }
            | Self::TooLarge { path, .. }
            | Self::WriteProtected { path }
            | Self::Busy { path, .. }
            | Self::NoLocks { path, .. }
            | Self::LeadsOutside { path, .. }
            | Self::Locked { lock: path, .. }
            | Self::Changed { path } => path,
        }
    }

    /// The failure as a word.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::DiskFull { .. } => "disk-full",
            Self::NotDurable { .. } => "not-durable",
            Self::NotAFile { .. } => "not-a-file",
            Self::NotAFolder { .. } => "not-a-folder",
            Self::DanglingLink { .. } | Self::LinkLoop { .. } => "dangling-link",
            Self::TooLarge { .. } => "too-large",
            Self::WriteProtected { .. } => "write-protected",
            Self::Busy { .. } => "busy",
            Self::NoLocks { .. } => "no-locks",
            Self::LeadsOutside { .. } => "leads-outside",
            Self::Locked { .. } => "locked",
            Self::Changed { .. } => "changed-meanwhile",
        }
    }

    /// The error of an operating system call, classified by what the user can do about it.
    pub(crate) fn io(operation: Operation, path: &Path, source: io::Error) -> Self {
        // If a file is in the place of one of our folders, its owner must move it. Otherwise the path itself is
        // wrong.
        let in_the_way = || {
            let mut ours = path.ancestors();
            ours.find(|above| above.metadata().is_ok_and(|found| !found.is_dir()))
                .filter(|above| above.iter().any(|part| part == OWN_FOLDER))
        };
        if source.kind() == io::ErrorKind::NotADirectory
            && let Some(path) = in_the_way()
        {
            let path = path.to_path_buf();
            return Self::NotAFolder { path };
        }
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull {
                operation,
                path,
                source,
            },
            _ => Self::Io {
                operation,
                path,
                source,
            },
        }
    }

    /// An error of a rename to `path`.
    pub(crate) fn of_rename(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::ResourceBusy => Self::Busy {
                path: path.to_path_buf(),
                source,
            },
            _ => Self::io(Operation::Rename, path, source),
        }
    }

    /// The error of syncing contents that are already in place.
    pub(crate) fn not_durable(self, place: &Path) -> Self {
        match self {
            Self::Io { source, .. } | Self::DiskFull { source, .. } => Self::NotDurable {
                path: place.to_path_buf(),
                source,
            },
            other => other,
        }
    }

    /// Whether a sync failed: the data is there but may not survive a power cut.
    pub(crate) fn is_of_a_sync(&self) -> bool {
        let of_sync =
            |operation: &Operation| matches!(operation, Operation::Sync | Operation::SyncFolder);
        match self {
            Self::Io { operation, .. } | Self::DiskFull { operation, .. } => of_sync(operation),
            _ => false,
        }
    }

    /// The error of a step before the actual save: the file itself is unchanged, even if the result of the step
    /// is not durable.
    pub(crate) fn of_a_step(self) -> Self {
        match self {
            Self::NotDurable { path, source } => {
                Self::io(Operation::SyncFolder, super::parent_of(&path), source)
            }
            other => other,
        }
    }

    /// The same as [`io`](Self::io), as a function for `map_err`.
    pub(crate) fn on(operation: Operation, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::io(operation, path, source)
    }
}

fn next_step(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "check that its folder exists",
        io::ErrorKind::PermissionDenied => {
            "check the permissions of the file and its folder, and which user runs this"
        }
        io::ErrorKind::NotADirectory => "a part of the path is a file, correct the path",
        io::ErrorKind::IsADirectory => "it is a folder, correct the path",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only",
        io::ErrorKind::FileTooLarge => "raise the file size limit (ulimit -f)",
        io::ErrorKind::Unsupported => "the file system cannot do this, use a local one",
        _ => "fix the cause and try again",
    }
}

fn held_by(holder: Option<&str>, held_for: Option<Duration>) -> String {
    match (holder, held_for) {
        (Some(holder), Some(held_for)) => format!(", held for {held_for:.1?} by {holder}"),
        (Some(holder), None) => format!(", held by {holder}"),
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_or_quota_says_disk_full() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let error = FileError::io(Operation::Write, Path::new("a.json"), kind.into());
            assert!(matches!(error, FileError::DiskFull { .. }), "{error:?}");
            assert!(error.to_string().starts_with("disk full"), "{error}");
        }
    }

    #[test]
    fn the_text_names_the_path_once_and_leaves_the_cause_to_the_source() {
        let cause = io::Error::other("platter fell off");
        let error = FileError::io(Operation::Read, Path::new("some/a.json"), cause);
        let text = error.to_string();
        assert_eq!(text.matches("some/a.json").count(), 1, "{text}");
        assert!(!text.contains("platter"), "{text}");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("platter fell off"));
    }

    #[test]
    fn a_lock_error_names_the_holder_and_the_wait() {
        let error = FileError::Locked {
            lock: "a.lock".into(),
            waited: Duration::from_secs(2),
            holder: Some("pid 7 agent builder".into()),
            held_for: Some(Duration::from_secs(90)),
        };
        assert_eq!(
            error.to_string(),
            "gave up waiting for the lock a.lock after 2.0s, held for 90.0s by pid 7 agent builder; \
             let the holder finish or stop it, then try again"
        );
    }
}
