//! The seam between this floor and the file system: every call that a save depends on goes through here.
//!
//! A test looks at each call of its own thread, in order, and may make one fail (`watched`). That is how
//! the states that a crash may leave are built, and how every error of the system is tried at every place.
//! Without the feature `testkit` there is nothing but the calls themselves.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::Operation;

#[cfg(any(test, feature = "testkit"))]
pub use watching::{Verdict, Watch, watched};

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
    /// Where it is written, of a write into the middle of a file; other writes go on at its end.
    pub at: Option<u64>,
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

    /// Runs `run` while `watch` looks at every call that this thread makes through this floor.
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
}
