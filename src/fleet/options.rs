//! What a scan looks at, and how.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::checkpoint::Thresholds;
use crate::formats::Formats;
use crate::store::CheckpointStore;

/// Folders that hold dependencies, what builds make, and version control: never looked into below a
/// folder that was named.
pub const IGNORED_FOLDERS: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "node_modules",
    "bower_components",
    "vendor",
    "target",
    "dist",
    "build",
    "out",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".gradle",
    ".next",
    ".cache",
    ".terraform",
];

/// What is looked at.
#[derive(Clone)]
#[non_exhaustive]
pub enum Source<'s> {
    /// A folder with its sub-folders, or one file. It is one project: paths in two of them are not the
    /// same file, and agents of one name are not the same agent.
    Folder(PathBuf),
    /// A store of any kind.
    Store {
        /// What it is called in the table.
        name: String,
        /// The store.
        store: &'s dyn CheckpointStore,
        /// The format of its checkpoints; detected from each when `None`.
        format: Option<String>,
    },
}

impl<'s> Source<'s> {
    /// A folder with its sub-folders, or one file.
    pub fn folder(path: impl AsRef<Path>) -> Source<'s> {
        Source::Folder(path.as_ref().to_path_buf())
    }

    /// A store whose checkpoints tell their format.
    pub fn store(name: impl Into<String>, store: &'s dyn CheckpointStore) -> Source<'s> {
        Source::Store {
            name: name.into(),
            store,
            format: None,
        }
    }

    /// A store of checkpoints of one format.
    pub fn store_of(
        name: impl Into<String>,
        store: &'s dyn CheckpointStore,
        format: impl Into<String>,
    ) -> Source<'s> {
        Source::Store {
            name: name.into(),
            store,
            format: Some(format.into()),
        }
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Folder(path) => f.debug_tuple("Folder").field(path).finish(),
            Source::Store { name, format, .. } => f
                .debug_struct("Store")
                .field("name", name)
                .field("format", format)
                .finish_non_exhaustive(),
        }
    }
}

/// A task that is planned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Planned {
    /// Its id, as its checkpoint will have it.
    pub task: String,
    /// Who is to do it.
    pub agent: Option<String>,
}

impl Planned {
    /// A task for whoever comes.
    pub fn new(task: impl Into<String>) -> Planned {
        Planned {
            task: task.into(),
            agent: None,
        }
    }

    /// A task for this agent.
    #[must_use]
    pub fn by(mut self, agent: impl Into<String>) -> Planned {
        self.agent = Some(agent.into());
        self
    }
}

/// How a scan looks and judges.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FleetOptions {
    /// How many folders deep below one that was named. Default 8; 0 looks at that one only.
    pub depth: usize,
    /// The largest file that is read, in bytes. Default 16 MiB.
    pub max_bytes: u64,
    /// The names of folders that are not looked into. Default [`IGNORED_FOLDERS`].
    pub ignored: Vec<String>,
    /// The formats that are known. Default those of the library.
    pub formats: Formats,
    /// The format of all files; detected from each when `None`, which is the default.
    pub format: Option<String>,
    /// Thresholds in place of those of a format, by its name.
    pub thresholds: BTreeMap<String, Thresholds>,
    /// Thresholds in place of those of every format that has none in
    /// [`thresholds`](FleetOptions::thresholds).
    pub thresholds_of_all: Option<Thresholds>,
    /// Agents that should have a checkpoint.
    pub expected: Vec<String>,
    /// Tasks that are planned.
    pub planned: Vec<Planned>,
}

impl Default for FleetOptions {
    fn default() -> Self {
        FleetOptions {
            depth: 8,
            max_bytes: 16 * 1024 * 1024,
            ignored: IGNORED_FOLDERS
                .iter()
                .map(|&name| name.to_owned())
                .collect(),
            formats: Formats::default(),
            format: None,
            thresholds: BTreeMap::new(),
            thresholds_of_all: None,
            expected: Vec::new(),
            planned: Vec::new(),
        }
    }
}

impl FleetOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        FleetOptions::default()
    }

    /// Sets how many folders deep.
    #[must_use]
    pub fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the largest file that is read, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the formats that are known.
    #[must_use]
    pub fn with_formats(mut self, formats: Formats) -> Self {
        self.formats = formats;
        self
    }

    /// Names the format of all files.
    #[must_use]
    pub fn with_format(mut self, format: impl Into<String>) -> Self {
        self.format = Some(format.into());
        self
    }

    /// Judges one format by these thresholds.
    #[must_use]
    pub fn with_thresholds(mut self, format: impl Into<String>, thresholds: Thresholds) -> Self {
        self.thresholds.insert(format.into(), thresholds);
        self
    }

    /// Judges every format by these thresholds.
    #[must_use]
    pub fn with_thresholds_of_all(mut self, thresholds: Thresholds) -> Self {
        self.thresholds_of_all = Some(thresholds);
        self
    }

    /// Says that an agent should have a checkpoint.
    #[must_use]
    pub fn expecting(mut self, agent: impl Into<String>) -> Self {
        self.expected.push(agent.into());
        self
    }

    /// Says that a task is planned.
    #[must_use]
    pub fn planning(mut self, planned: Planned) -> Self {
        self.planned.push(planned);
        self
    }
}
