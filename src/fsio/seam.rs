//! The seam between the file stores and the file system: every call that a save depends on goes through here.
//!
//! A test watches each call of its own thread, in order, and can make one fail (`watched`, `fail_call`). So it
//! can produce every state that a crash may leave, and try every system error at every call.

#![cfg_attr(
    not(feature = "testkit"),
    allow(
        dead_code,
        unreachable_pub,
        reason = "public as `testkit::seam`, and no test watches without it"
    )
)]

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

#[cfg(any(test, feature = "testkit"))]
pub use watching::{Verdict, Watch, fail_call, watched};

/// One call to the file system.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The operation.
    pub operation: Operation,
    /// The file or folder that it is done to; for a rename and a link, the new name.
    pub path: &'a Path,
    /// For a rename and a link, the old name; for a set time, the file that the time is taken from.
    pub from: Option<&'a Path>,
    /// For a write, the bytes.
    pub bytes: Option<&'a [u8]>,
    /// For a write into the middle of a file, its offset; other writes append. For a cut, the number of bytes
    /// that remain.
    pub at: Option<u64>,
}

/// The operation of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Reading the metadata of a path without opening it.
    Inspect,
    /// Opening a file or folder.
    Open,
    /// Reading.
    Read,
    /// Listing a folder.
    List,
    /// Creating a file, or opening an existing one.
    Create,
    /// Creating the temporary file beside the one to replace.
    CreateTemp,
    /// Writing the temporary file.
    Write,
    /// Removing bytes that were appended to a file.
    Cut,
    /// Giving the temporary file the mode of the one it replaces.
    SetMode,
    /// Giving a copy the time of the file it was copied from.
    SetTime,
    /// Waiting until the bytes are on disk.
    Sync,
    /// Waiting until the names in a folder are on disk.
    SyncFolder,
    /// Making a hard link.
    Link,
    /// Putting the temporary file in place.
    Rename,
    /// Removing a file.
    Remove,
    /// Creating a folder.
    CreateFolder,
    /// Taking a lock.
    Lock,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inspect => "look at",
            Self::Open => "open",
            Self::Read => "read",
            Self::List => "list",
            Self::Create => "create",
            Self::CreateTemp => "create a temporary file beside",
            Self::Write => "write",
            Self::Cut => "cut back",
            Self::SetMode => "keep the mode of",
            Self::SetTime => "keep the time of",
            Self::Sync => "sync",
            Self::SyncFolder => "sync the folder",
            Self::Link => "link",
            Self::Rename => "rename the new contents to",
            Self::Remove => "remove",
            Self::CreateFolder => "create the folder",
            Self::Lock => "lock",
        })
    }
}

impl<'a> Call<'a> {
    fn new(operation: Operation, path: &'a Path) -> Self {
        Call {
            operation,
            path,
            from: None,
            bytes: None,
            at: None,
        }
    }
}

/// Runs `action`, which does `operation` on `path`.
pub(super) fn call<T>(
    operation: Operation,
    path: &Path,
    action: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    through(&Call::new(operation, path), action)
}

/// Runs `action`, which gives `from` the name `path`.
pub(super) fn call_from<T>(
    operation: Operation,
    from: &Path,
    path: &Path,
    action: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let call = Call {
        from: Some(from),
        ..Call::new(operation, path)
    };
    through(&call, action)
}

/// Runs `action`, which truncates a file to its first `length` bytes.
pub(super) fn cut(
    path: &Path,
    length: u64,
    action: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let call = Call {
        at: Some(length),
        ..Call::new(Operation::Cut, path)
    };
    through(&call, action)
}

/// Writes all of `bytes` to a file.
pub(super) fn write_all(file: &File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    Writer { file, path }.write_all(bytes)
}

/// Writes `bytes` into a file from `offset` on, in one call, and returns how many were written.
pub(super) fn write_at(
    path: &Path,
    bytes: &[u8],
    offset: u64,
    action: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let call = Call {
        bytes: Some(bytes),
        at: Some(offset),
        ..Call::new(Operation::Write, path)
    };
    write_through(&call, bytes, action)
}

struct Writer<'a> {
    file: &'a File,
    path: &'a Path,
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let call = Call {
            bytes: Some(bytes),
            ..Call::new(Operation::Write, self.path)
        };
        let mut file = self.file;
        write_through(&call, bytes, |bytes| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(not(any(test, feature = "testkit")))]
#[inline]
fn through<T>(_: &Call<'_>, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    action()
}

#[cfg(not(any(test, feature = "testkit")))]
#[inline]
fn write_through(
    _: &Call<'_>,
    bytes: &[u8],
    action: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    action(bytes)
}

#[cfg(any(test, feature = "testkit"))]
use watching::{through, write_through};

#[cfg(any(test, feature = "testkit"))]
mod watching {
    use std::cell::RefCell;
    use std::io;
    use std::rc::Rc;

    use super::Call;

    /// Watches the calls of one thread.
    pub trait Watch {
        /// Decides what happens to a call that is about to be made.
        fn before(&mut self, call: &Call<'_>) -> Verdict {
            let _ = call;
            Verdict::Go
        }

        /// Called after a call that succeeded; for a write with the bytes that were written.
        fn after(&mut self, call: &Call<'_>) {
            let _ = call;
        }
    }

    /// What happens to a call.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Verdict {
        /// It is made.
        Go,
        /// It is not made and fails with this error.
        Fail(io::Error),
        /// For a write: at most this many bytes are written.
        Short(usize),
    }

    thread_local! {
        static WATCH: RefCell<Option<Rc<RefCell<dyn Watch>>>> = const { RefCell::new(None) };
    }

    /// Removes the watch again, even if the watched function panics.
    struct Watched(Option<Rc<RefCell<dyn Watch>>>);

    impl Drop for Watched {
        fn drop(&mut self) {
            let outer = self.0.take();
            WATCH.with(|watch| *watch.borrow_mut() = outer);
        }
    }

    /// Runs `run` while `watch` sees every call that a file store makes on this thread.
    pub fn watched<T>(watch: Rc<RefCell<dyn Watch>>, run: impl FnOnce() -> T) -> T {
        let outer = WATCH.with(|slot| slot.borrow_mut().replace(watch));
        let _until_done = Watched(outer);
        run()
    }

    fn watch() -> Option<Rc<RefCell<dyn Watch>>> {
        WATCH.with(|watch| watch.borrow().clone())
    }

    pub(super) fn through<T>(
        call: &Call<'_>,
        action: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(watch) = watch() else {
            return action();
        };
        if let Verdict::Fail(error) = watch.borrow_mut().before(call) {
            return Err(error);
        }
        let done = action()?;
        watch.borrow_mut().after(call);
        Ok(done)
    }

    pub(super) fn write_through(
        call: &Call<'_>,
        bytes: &[u8],
        action: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let Some(watch) = watch() else {
            return action(bytes);
        };
        let verdict = watch.borrow_mut().before(call);
        let most = match verdict {
            Verdict::Fail(error) => return Err(error),
            Verdict::Short(most) => most.min(bytes.len()),
            Verdict::Go => bytes.len(),
        };
        let written = action(&bytes[..most])?;
        watch.borrow_mut().after(&Call {
            bytes: Some(&bytes[..written]),
            ..*call
        });
        Ok(written)
    }

    /// Calls `run` while one call that a file store makes on this thread fails: the one with this number, from
    /// 0. Returns whether `run` reached that call.
    ///
    /// For a store that keeps its documents in a [`FileStore`](crate::store::FileStore), use this as
    /// [`Place::fail`](crate::testkit::Place::fail) of its harness.
    pub fn fail_call(number: usize, run: &mut dyn FnMut()) -> bool {
        let watch = Rc::new(RefCell::new(Nth { number, seen: 0 }));
        watched(Rc::clone(&watch) as Rc<RefCell<dyn Watch>>, run);
        let seen = watch.borrow().seen;
        seen > number
    }

    struct Nth {
        number: usize,
        seen: usize,
    }

    impl Watch for Nth {
        fn before(&mut self, _: &Call<'_>) -> Verdict {
            let this = self.seen;
            self.seen += 1;
            match this == self.number {
                true => Verdict::Fail(io::Error::other("this call is made to fail")),
                false => Verdict::Go,
            }
        }
    }
}
