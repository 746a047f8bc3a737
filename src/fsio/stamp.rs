use std::fs::Metadata;

/// Which version of a file's contents this is, as far as the file system tells without reading them.
///
/// On Unix: device, inode, size, and the times of the last change to contents and inode in nanoseconds.
/// Elsewhere: size and time of the last change.
///
/// Equal stamps are strong evidence of equal contents, not proof: a file written twice in place, to the
/// same size, within one tick of the kernel's clock (up to some milliseconds) keeps its stamp. A file
/// that was replaced by rename, as [`replace`](super::replace()) does, always has another inode.
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
    modified: Option<std::time::SystemTime>,
}

impl FileStamp {
    /// The stamp of the file that this metadata was taken from.
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

    /// The stamp as one word, for a note of ours.
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

    /// Equal in all but the inode's change time, which a hard link to the file moves forward without
    /// touching the contents.
    pub(crate) fn same_contents(&self, other: &Self) -> bool {
        #[cfg(unix)]
        let same = (self.size, self.dev, self.ino, self.mtime)
            == (other.size, other.dev, other.ino, other.mtime);
        #[cfg(not(unix))]
        let same = self == other;
        same
    }
}
