//! Checkpoints of AI agents in one SQLite database: a store of [`agent_checkpoint`] for thousands of tasks on one
//! machine.
//!
//! # A first look
//!
//! ```
//! use agent_checkpoint::formats::task::TaskCheckpoint;
//! use agent_checkpoint::{Checkpoint, CheckpointStoreExt, Key, OperationContext, StepDone};
//! use agent_checkpoint_sqlite::SqliteStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let project = folder.path();
//! let store = SqliteStore::open(project.join("checkpoints.db"))?;
//! let tasks = store.checkpoints::<TaskCheckpoint>();
//! let key = Key::new("US-003")?;
//! let now = chrono::Utc::now();
//!
//! tasks.create(&key, &TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], now))?;
//! let done = StepDone::new("Wire toggle").into();
//! tasks.try_update(&key, |task| task.apply(&done, &OperationContext::at(now)))?;
//!
//! // Another process opens the same file, and sees what was saved.
//! let other = SqliteStore::open(project.join("checkpoints.db"))?;
//! let loaded = other.checkpoints::<TaskCheckpoint>().load(&key)?.ok_or("not found")?;
//! assert_eq!(loaded.checkpoint.completed_steps.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # When to choose it
//!
//! A [`FileStore`](agent_checkpoint::store::FileStore) keeps each checkpoint in its own file, which people read, agents
//! edit, and git compares. Choose this store if you need none of that and save often: a save waits for the disk once
//! instead of twice, and thousands of tasks are one file. It is for one machine and a local disk. SQLite is compiled
//! in, which needs a C compiler.
//!
//! # What it promises
//!
//! Everything that [`CheckpointStore`](agent_checkpoint::store::CheckpointStore) requires. The testkit checks all of it
//! except four rules that need failing file-system calls, because SQLite's own calls cannot be intercepted. The store
//! offers locked changes, claims, history and recovery.
//!
//! * A save that returned survives a power loss. Each save syncs the log once; frames that a crash leaves behind the
//!   last sync are ignored. The first save of a connection also syncs the folder. A save that moves the log into the
//!   database (every thousand pages) also syncs the log and the database.
//! * Every text comes back byte for byte. Its revision is the SHA-256 of its bytes, as in all stores.
//! * Writers take turns: the threads of a store and its clones in order of arrival, processes by polling. A writer that
//!   waits for longer than [`with_lock_timeout`](SqliteStore::with_lock_timeout) gets
//!   [`ErrorKind::Locked`](agent_checkpoint::ErrorKind::Locked). Readers do not wait for writers.
//! * There is one lock for the whole database. A closure of
//!   [`transact`](agent_checkpoint::CheckpointStoreExt::transact) holds it until it returns. It may read the store, but
//!   a write inside it waits for its own lock and is refused after the timeout.
//! * If the database was removed or moved away, the store creates a new one at its path. If its log was removed, or the
//!   database was replaced by another file, the store refuses to write: no other program would find the data.
//!
//! # The files
//!
//! Beside `checkpoints.db` lie the log, `checkpoints.db-wal`, and its index, `checkpoints.db-shm`. The three belong
//! together. To copy a database that is in use, use `VACUUM INTO` or SQLite's backup. To restore a copy, end all
//! programs, remove `-wal` and `-shm`, and then put the copy in the place of the database; otherwise the old log would
//! be read as part of it. The log grows while another program keeps a read transaction open. After a fork only one of
//! the two processes may use a store that was opened before, because SQLite does not notice a fork.
//!
//! `PRAGMA user_version` is the layout number. A database with a higher number was written by a newer version: it can
//! be read, but every write is refused ([`ErrorKind::NewerLayout`](agent_checkpoint::ErrorKind::NewerLayout)). The
//! store refuses a database of another program, and a file with hard links, because SQLite would keep a separate log
//! for each name.
//!
//! [`SqliteStore::read_only`] creates none of these files, even if the log is missing.
//!
//! [`forget`](agent_checkpoint::store::CheckpointStore::forget) removes the rows of a key, overwrites their bytes
//! (`PRAGMA secure_delete`, on in all connections of a store), and then empties the log. While another connection reads
//! an older state, the log is still needed. The call then fails with
//! [`ErrorKind::Locked`](agent_checkpoint::ErrorKind::Locked) after the timeout: the rows are removed, and the same
//! call again empties the log.
//!
//! # What is not here
//!
//! * Archives: archiving ends the task, and its states stay in the history.
//! * A heartbeat of the store's own: a heartbeat is a save like any other.
//! * [`changed_without`](agent_checkpoint::store::History::changed_without): an edit by another program is a state like
//!   any other.

mod database;
mod failure;
mod history;
mod recovery;
mod rows;
mod store;
mod turn;

pub use store::SqliteStore;
