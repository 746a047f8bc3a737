use std::fs::Metadata;
use std::time::{Duration, SystemTime};

/// The version of a file's contents, as far as the metadata shows it.
///
/// On Unix it is device, inode, size, modification time and change time in nanoseconds. On other systems it is
/// size and modification time.
///
/// Equal stamps are strong evidence of equal contents, but no proof: a file that is written twice in place, to
/// the same size, within one tick of the kernel's clock (up to some milliseconds) keeps its stamp. A file that
/// was replaced by rename, as [`replace`](super::replace()) does, always has another inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    size: u64,
    #[cfg(unix)]
    dev: u64,
    #[cfg(unix)]
    ino: u64,
    #[cfg(unix)]
    mtime: (i64, i64),
    #[cfg(unix)]
    ctime: (i64, i64),
    #[cfg(not(unix))]
    modified: Option<SystemTime>,
}

impl FileStamp {
    /// The stamp of the file with this metadata.
    #[must_use]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            size: metadata.len(),
            #[cfg(unix)]
            dev: metadata.dev(),
            #[cfg(unix)]
            ino: metadata.ino(),
            #[cfg(unix)]
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            #[cfg(unix)]
            ctime: (metadata.ctime(), metadata.ctime_nsec()),
            #[cfg(not(unix))]
            modified: metadata.modified().ok(),
        }
    }

    /// The size of the file in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Whether the file changed within `tick` of this time, or later by its own times. A change after this time
    /// may then have left the stamp the same. (Git has the same rule for its index.)
    pub(crate) fn is_racy(&self, taken: SystemTime, tick: Duration) -> bool {
        #[cfg(unix)]
        let changed = {
            let (seconds, nanos) = self.mtime.max(self.ctime);
            let nanos = u32::try_from(nanos).unwrap_or(0);
            // A file from before 1970 was not changed just now.
            let since = u64::try_from(seconds).map(|seconds| Duration::new(seconds, nanos));
            SystemTime::UNIX_EPOCH.checked_add(since.unwrap_or_default())
        };
        #[cfg(not(unix))]
        let changed = self.modified;
        changed
            .and_then(|changed| changed.checked_add(tick))
            .is_none_or(|until| until >= taken)
    }

    /// The stamp as one word, for our notes.
    pub(crate) fn text(&self) -> String {
        #[cfg(unix)]
        let text = format!(
            "{}-{}-{}-{}.{}-{}.{}",
            self.size, self.dev, self.ino, self.mtime.0, self.mtime.1, self.ctime.0, self.ctime.1
        );
        #[cfg(not(unix))]
        let text = format!("{}-{:?}", self.size, self.modified).replace(' ', "");
        text
    }

    /// Whether everything but the inode's change time is equal. A hard link to the file changes that time
    /// without changing the contents.
    pub(crate) fn same_contents(&self, other: &Self) -> bool {
        #[cfg(unix)]
        let same = (self.size, self.dev, self.ino, self.mtime)
            == (other.size, other.dev, other.ino, other.mtime);
        #[cfg(not(unix))]
        let same = self == other;
        same
    }
}
