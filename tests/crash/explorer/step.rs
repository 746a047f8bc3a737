//! What a program does to the file system, one call after the other.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use agent_checkpoint::testkit::seam::{Call, Operation, Watch, watched};

/// One call that changes something, or makes a change last. Paths are relative to the folder watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A file is opened that is made if it is not there.
    Create(PathBuf),
    /// A file loses its contents but for so many bytes.
    Cut(PathBuf, u64),
    /// Bytes are written at an offset, or at the end.
    Write(PathBuf, Option<u64>, Vec<u8>),
    /// A file gets the time of another.
    SetTime { of: PathBuf, to: PathBuf },
    /// The contents of a file are made to last.
    Sync(PathBuf),
    /// The names in a folder are made to last.
    SyncFolder(PathBuf),
    /// A folder is made.
    CreateFolder(PathBuf),
    /// A file gets a second name.
    Link { from: PathBuf, to: PathBuf },
    /// A file gets another name, whatever had it.
    Rename { from: PathBuf, to: PathBuf },
    /// A name goes.
    Remove(PathBuf),
    /// The program told its user that an act is done.
    Acknowledged,
}

/// Records the calls of one thread.
pub(crate) struct Recorder {
    root: PathBuf,
    steps: Vec<Step>,
}

impl Recorder {
    /// What `run` does below `root`. It is given a function to be called when an act is acknowledged.
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
        // The folder's own name is there for good, whether or not it is made to last.
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
            // Modes and owners are set before the file is synced; what a crash between leaves is a
            // temporary file that is narrower open than the one it was to replace.
            _ => return,
        };
        self.steps.push(step);
    }
}
