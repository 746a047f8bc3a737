//! One call of a scenario fails, each in turn.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use agent_checkpoint::testkit::seam::{Call, Operation, Verdict, Watch, watched};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call fails with this error number.
    Error(i32),
    /// A write writes only a part.
    ShortWrite,
}

pub(crate) const ENOSPC: Fault = Fault::Error(28);
pub(crate) const EIO: Fault = Fault::Error(5);
pub(crate) const EACCES: Fault = Fault::Error(13);
pub(crate) const EINTR: Fault = Fault::Error(4);
pub(crate) const EROFS: Fault = Fault::Error(30);
pub(crate) const EBUSY: Fault = Fault::Error(16);
pub(crate) const EPERM: Fault = Fault::Error(1);
pub(crate) const EXDEV: Fault = Fault::Error(18);
pub(crate) const EMLINK: Fault = Fault::Error(31);
pub(crate) const ENOLCK: Fault = Fault::Error(37);
pub(crate) const ENOTSUP: Fault = Fault::Error(95);

/// The call that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) operation: Operation,
}

/// Picks calls, by their number and what they do.
type Which = dyn Fn(usize, &Call<'_>) -> bool;

/// Makes calls fail, and checks for actions that must not follow a failure.
struct Failing {
    fault: Fault,
    which: Box<Which>,
    calls: usize,
    failed: Vec<Failed>,
    not_synced: HashSet<PathBuf>,
}

/// The result of a run.
pub(crate) struct Run<T> {
    pub(crate) result: T,
    /// How many calls there were.
    pub(crate) calls: usize,
    pub(crate) failed: Vec<Failed>,
}

/// Runs `run` while the calls that `which` selects fail. `which` gets the number of the call.
pub(crate) fn with_fault<T>(
    fault: Fault,
    which: impl Fn(usize, &Call<'_>) -> bool + 'static,
    run: impl FnOnce() -> T,
) -> Run<T> {
    let failing = Rc::new(RefCell::new(Failing {
        fault,
        which: Box::new(which),
        calls: 0,
        failed: Vec::new(),
        not_synced: HashSet::new(),
    }));
    let result = watched(failing.clone(), run);
    let failing = failing.borrow();
    Run {
        result,
        calls: failing.calls,
        failed: failing.failed.clone(),
    }
}

impl Watch for Failing {
    fn before(&mut self, call: &Call<'_>) -> Verdict {
        let number = self.calls;
        self.calls += 1;
        let is_sync = matches!(call.operation, Operation::Sync);
        assert!(
            !is_sync || !self.not_synced.contains(call.path),
            "{} is synced again after that failed: that would mean nothing",
            call.path.display()
        );
        if !(self.which)(number, call) {
            if matches!(call.operation, Operation::Rename) {
                // The name now belongs to another file, or to none.
                self.not_synced.remove(call.path);
            }
            return Verdict::Go;
        }
        self.failed.push(Failed {
            operation: call.operation,
        });
        match self.fault {
            Fault::Error(code) => {
                if is_sync {
                    self.not_synced.insert(call.path.to_path_buf());
                }
                Verdict::Fail(io::Error::from_raw_os_error(code))
            }
            Fault::ShortWrite => match call.bytes {
                Some(bytes) => Verdict::Short(bytes.len().div_ceil(3)),
                None => Verdict::Go,
            },
        }
    }
}

/// The temporary files below a folder.
pub(crate) fn temps(root: &Path) -> Vec<PathBuf> {
    let names = super::Tree::read(root).names.into_keys();
    names
        .filter(|name| name.to_string_lossy().ends_with(".tmp"))
        .collect()
}
