//! The calls to the file system, each made through the seam.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::seam::{call, call_from};
use super::{Operation, seam};

pub(super) fn symlink_metadata(path: &Path) -> io::Result<Metadata> {
    call(Operation::Inspect, path, || fs::symlink_metadata(path))
}

pub(super) fn metadata(path: &Path) -> io::Result<Metadata> {
    call(Operation::Inspect, path, || fs::metadata(path))
}

pub(super) fn metadata_of(file: &File, path: &Path) -> io::Result<Metadata> {
    call(Operation::Inspect, path, || file.metadata())
}

pub(super) fn read_link(path: &Path) -> io::Result<PathBuf> {
    call(Operation::Inspect, path, || fs::read_link(path))
}

pub(super) fn open(path: &Path) -> io::Result<File> {
    call(Operation::Open, path, || File::open(path))
}

/// Opens a file to sync it; Windows requires write access for that.
pub(super) fn open_to_sync(path: &Path) -> io::Result<File> {
    if cfg!(windows) {
        return open_with(OpenOptions::new().write(true), Operation::Open, path);
    }
    open(path)
}

/// Opens a file that may not exist yet; `operation` is the purpose of the call.
pub(super) fn open_with(
    options: &OpenOptions,
    operation: Operation,
    path: &Path,
) -> io::Result<File> {
    call(operation, path, || options.open(path))
}

/// Opens a path that should be a regular file: a link is refused, and a pipe does not block the call.
pub(super) fn open_plain(
    options: &mut OpenOptions,
    operation: Operation,
    path: &Path,
) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    open_with(options, operation, path)
}

/// Whether [`open_plain`] refused a link, a socket or a folder, by the error code of the system.
pub(super) fn is_not_plain(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let refused =
            [Errno::LOOP, Errno::MLINK, Errno::NXIO, Errno::ISDIR].map(Errno::raw_os_error);
        error
            .raw_os_error()
            .is_some_and(|code| refused.contains(&code))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

pub(super) fn read<T>(path: &Path, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    call(Operation::Read, path, action)
}

/// Reads at an offset in one system call.
pub(super) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, bytes, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, bytes, offset);
}

/// Writes at an offset in one system call.
pub(super) fn write_at(file: &File, path: &Path, bytes: &[u8], offset: u64) -> io::Result<usize> {
    seam::write_at(path, bytes, offset, |bytes| {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_at(file, bytes, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_write(file, bytes, offset);
    })
}

pub(super) fn sync_all(file: &File, path: &Path) -> io::Result<()> {
    call(Operation::Sync, path, || file.sync_all())
}

pub(super) fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    call(Operation::Sync, path, || file.sync_data())
}

pub(super) fn sync_folder(file: &File, path: &Path) -> io::Result<()> {
    call(Operation::SyncFolder, path, || file.sync_all())
}

pub(super) fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    call_from(Operation::Link, from, to, || fs::hard_link(from, to))
}

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    call(Operation::Remove, path, || fs::remove_file(path))
}

pub(super) fn create_dir(path: &Path) -> io::Result<()> {
    call(Operation::CreateFolder, path, || fs::create_dir(path))
}

pub(super) fn read_dir(path: &Path) -> io::Result<fs::ReadDir> {
    call(Operation::List, path, || fs::read_dir(path))
}
