//! The seam between the file stores and the file system: every call that a save depends on goes through here.
//!
//! A test watches each call of its own thread, in order, and may make one fail (`watched`, `fail_call`). So it builds
//! every state that a crash may leave, and tries every error of the system at every call.

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
    /// What is done.
    pub operation: Operation,
    /// The file or folder it is done to; of a rename and a link the new name.
    pub path: &'a Path,
    /// The old name, of a rename and a link; of a time that is set, the file that it is taken from.
    pub from: Option<&'a Path>,
    /// What is written, of a write.
    pub bytes: Option<&'a [u8]>,
    /// Where it is written, of a write into the middle of a file; other writes go on at its end. Of a cut, how many bytes
    /// stay.
    pub at: Option<u64>,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Looking at a path without opening it.
    Inspect,
    /// Opening a file or folder.
    Open,
    /// Reading.
    Read,
    /// Listing what a folder holds.
    List,
    /// Creating a file, or opening one that may be there already.
    Create,
    /// Creating the temporary file beside the one to replace.
    CreateTemp,
    /// Writing the temporary file.
    Write,
    /// Taking back what was added to a file.
    Cut,
    /// Giving the temporary file the mode of the one to replace.
    SetMode,
    /// Giving a copy the time of the file it was copied from.
    SetTime,
    /// Waiting until the bytes are on the disk.
    Sync,
    /// Waiting until the names in a folder are on the disk.
    SyncFolder,
    /// Giving the file a hard link.
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

/// Does `action`, which is `operation` on `path`.
pub(super) fn call<T>(
    operation: Operation,
    path: &Path,
    action: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    through(&Call::new(operation, path), action)
}

/// Does `action`, which gives `from` the name `path`.
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

/// Cuts a file back to its first `length` bytes.
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

/// Writes `bytes` into a file from `offset` on, in one call, and says how many of them.
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

    /// Looks at the calls of one thread.
    pub trait Watch {
        /// Decides what becomes of a call that is about to be made.
        fn before(&mut self, call: &Call<'_>) -> Verdict {
            let _ = call;
            Verdict::Go
        }

        /// Is told of a call that succeeded; of a write with the bytes that were written.
        fn after(&mut self, call: &Call<'_>) {
            let _ = call;
        }
    }

    /// What becomes of a call.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Verdict {
        /// It is made.
        Go,
        /// It is not made and fails like this.
        Fail(io::Error),
        /// Of a write: only so many bytes are written.
        Short(usize),
    }

    thread_local! {
        static WATCH: RefCell<Option<Rc<RefCell<dyn Watch>>>> = const { RefCell::new(None) };
    }

    /// Takes the watch away again, also when the watched function panics.
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

    /// Calls `run` while call number `number`, from 0, that a file store makes on this thread fails. Returns whether
    /// `run` came to that call.
    ///
    /// A harness for a store that keeps its documents in a [`FileStore`](crate::store::FileStore) has
    /// [`Place::fail`](crate::testkit::Place::fail) from it.
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
