//! The calls of a program to the file system, in order.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use agent_checkpoint::testkit::seam::{Call, Operation, Watch, watched};

/// One call that changes something, or syncs a change. Paths are relative to the watched folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A file is opened, and created if it is missing.
    Create(PathBuf),
    /// A file is truncated to this many bytes.
    Cut(PathBuf, u64),
    /// Bytes are written at an offset, or at the end.
    Write(PathBuf, Option<u64>, Vec<u8>),
    /// A file gets the time of another.
    SetTime { of: PathBuf, to: PathBuf },
    /// The contents of a file are synced.
    Sync(PathBuf),
    /// The names in a folder are synced.
    SyncFolder(PathBuf),
    /// A folder is created.
    CreateFolder(PathBuf),
    /// A file gets a hard link.
    Link { from: PathBuf, to: PathBuf },
    /// A file is renamed, and replaces a file of that name.
    Rename { from: PathBuf, to: PathBuf },
    /// A name is removed.
    Remove(PathBuf),
    /// The program acknowledged an act to its user.
    Acknowledged,
}

/// Records the calls of one thread.
pub(crate) struct Recorder {
    root: PathBuf,
    steps: Vec<Step>,
}

impl Recorder {
    /// The calls of `run` below `root`. `run` gets a function to call when an act is acknowledged.
    pub(crate) fn record(root: &Path, run: impl FnOnce(&dyn Fn())) -> Vec<Step> {
        let recorder = Rc::new(RefCell::new(Recorder {
            root: root.to_path_buf(),
            steps: Vec::new(),
        }));
        let acknowledged = || recorder.borrow_mut().steps.push(Step::Acknowledged);
        watched(recorder.clone(), || run(&acknowledged));
        std::mem::take(&mut recorder.borrow_mut().steps)
    }

    fn name(&self, path: &Path) -> PathBuf {
        let name = path.strip_prefix(&self.root);
        name.expect("a call outside the folder").to_path_buf()
    }
}

impl Watch for Recorder {
    fn after(&mut self, call: &Call<'_>) {
        // The folder's own name is durable from the start.
        if call.operation == Operation::SyncFolder && !call.path.starts_with(&self.root) {
            return;
        }
        let path = || self.name(call.path);
        let from = || self.name(call.from.unwrap());
        let step = match call.operation {
            Operation::Create | Operation::CreateTemp => Step::Create(path()),
            Operation::Cut => Step::Cut(path(), call.at.unwrap()),
            Operation::Write => Step::Write(path(), call.at, call.bytes.unwrap().to_vec()),
            Operation::SetTime => Step::SetTime {
                of: from(),
                to: path(),
            },
            Operation::Sync => Step::Sync(path()),
            Operation::SyncFolder => Step::SyncFolder(path()),
            Operation::CreateFolder => Step::CreateFolder(path()),
            Operation::Link => Step::Link {
                from: from(),
                to: path(),
            },
            Operation::Rename => Step::Rename {
                from: from(),
                to: path(),
            },
            Operation::Remove => Step::Remove(path()),
            // Modes and owners are set before the file is synced. A crash in between leaves a temporary file with fewer
            // permissions than the file it was to replace.
            _ => return,
        };
        self.steps.push(step);
    }
}
