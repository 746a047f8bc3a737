//! What a scan reads and how it judges.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::checkpoint::Thresholds;
use crate::registry::{Format, Formats};
use crate::store::CheckpointStore;

/// A folder or store that a scan reads.
#[derive(Clone)]
#[non_exhaustive]
pub enum Source<'s> {
    /// A folder with its sub-folders, or one file. Each source is its own project: the same path in two of them is two
    /// files, and the same name two agents.
    Folder(PathBuf),
    /// A store of any kind.
    Store {
        /// The name of the store in places and messages.
        name: String,
        /// The store.
        store: &'s dyn CheckpointStore,
        /// The format of its checkpoints; detected from each document when `None`.
        format: Option<String>,
    },
}

impl<'s> Source<'s> {
    /// A folder with its sub-folders, or one file. Sub-folders of dependencies, build output and version control, such
    /// as `node_modules`, `target` and `.git`, are skipped.
    pub fn folder(path: impl AsRef<Path>) -> Source<'s> {
        Source::Folder(path.as_ref().to_path_buf())
    }

    /// A store; the format of each checkpoint is detected.
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

/// Options of a scan.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::liveness::Thresholds;
/// use agent_checkpoint::fleet::FleetOptions;
/// use chrono::TimeDelta;
///
/// let strict = Thresholds::at(TimeDelta::minutes(5), TimeDelta::minutes(15));
/// let options = FleetOptions::new()
///     .with_depth(2)
///     .with_thresholds("agent-session", strict)
///     .with_expected("Secondary-A")
///     .with_planned("T001", Some("media"));
/// ```
#[derive(Clone, Debug)]
pub struct FleetOptions {
    pub(super) depth: usize,
    pub(super) max_bytes: u64,
    pub(super) formats: Formats,
    pub(super) format: Option<String>,
    pub(super) threads: Option<usize>,
    thresholds: BTreeMap<String, Thresholds>,
    thresholds_of_all: Option<Thresholds>,
    pub(super) expected: Vec<String>,
    pub(super) planned: Vec<Planned>,
}

/// A planned task and the agent that is to do it.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) task: String,
    pub(super) agent: Option<String>,
}

impl Default for FleetOptions {
    fn default() -> Self {
        FleetOptions {
            depth: 8,
            max_bytes: 16 * 1024 * 1024,
            formats: Formats::default(),
            format: None,
            threads: None,
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

    /// Sets how many levels of sub-folders are read. Default 8; 0 reads only the folder of the source.
    #[must_use]
    pub fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the largest file that is read, in bytes. Default 16 MiB.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the formats to detect. Default: those of the library.
    #[must_use]
    pub fn with_formats(mut self, formats: Formats) -> Self {
        self.formats = formats;
        self
    }

    /// Sets the format of all files, which is then not detected.
    #[must_use]
    pub fn with_format(mut self, format: impl Into<String>) -> Self {
        self.format = Some(format.into());
        self
    }

    /// Sets the thresholds of one format, in place of those of its protocol.
    #[must_use]
    pub fn with_thresholds(mut self, format: impl Into<String>, thresholds: Thresholds) -> Self {
        self.thresholds.insert(format.into(), thresholds);
        self
    }

    /// Sets the thresholds of every format without [`with_thresholds`](Self::with_thresholds).
    #[must_use]
    pub fn with_thresholds_of_all(mut self, thresholds: Thresholds) -> Self {
        self.thresholds_of_all = Some(thresholds);
        self
    }

    /// Adds an agent that should have a checkpoint. Without one it becomes a row `missing`.
    #[must_use]
    pub fn with_expected(mut self, agent: impl Into<String>) -> Self {
        self.expected.push(agent.into());
        self
    }

    /// Adds a planned task, and the agent that is to do it. Without a checkpoint it becomes a row `not_started`.
    #[must_use]
    pub fn with_planned(mut self, task: impl Into<String>, agent: Option<&str>) -> Self {
        self.planned.push(Planned {
            task: task.into(),
            agent: agent.map(str::to_owned),
        });
        self
    }

    /// Sets on how many threads files are read. Default: as many as the system offers this process; 1 starts no thread.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    pub(super) fn threads(&self) -> usize {
        let offered = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(offered)
    }

    pub(super) fn thresholds_of(&self, format: &Format) -> Thresholds {
        let own = self.thresholds.get(format.name()).copied();
        own.or(self.thresholds_of_all)
            .unwrap_or_else(|| format.thresholds())
    }
}
