//! Checkpoints of AI agents in one SQLite database: the store of [`agent_checkpoint`] for thousands of tasks on one machine.
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
//! A [`FileStore`](agent_checkpoint::store::FileStore) keeps each checkpoint in a file of its own, which people read, agents
//! edit, and git compares. Choose this store where none of that is wanted and much is saved: a save waits for the disk once
//! instead of twice, and thousands of tasks are one file and no folder of thousands. It is for one machine and a local disk.
//! SQLite is compiled in, which needs a C compiler.
//!
//! # What it promises
//!
//! All that [`CheckpointStore`](agent_checkpoint::store::CheckpointStore) asks for, and the testkit shows it, but for its
//! four rules that make calls to the file system fail: SQLite's own calls cannot be watched. It has a lock for a change, claims, history and
//! recovery.
//!
//! * A save that returned survives a loss of power. The log is synced once for each; what a crash leaves behind the last sync is not seen.
//!   The first save through a connection syncs the folder, too, and one that moves the log into the database, each thousand pages, the
//!   log and the database.
//! * Every text comes back to the byte. Its revision is the SHA-256 of its bytes, as in all stores.
//! * Writers take turns: the threads of a store and its clones in the order in which they came, processes by asking again and again. Who
//!   waits for longer than [`with_lock_timeout`](SqliteStore::with_lock_timeout) gets
//!   [`ErrorKind::Locked`](agent_checkpoint::ErrorKind::Locked). Readers wait for nobody.
//! * There is one lock, not one for each key. A closure of
//!   [`transact`](agent_checkpoint::CheckpointStoreExt::transact) holds it until it returns: it may read the store, and a write by it would wait for
//!   itself, until it is refused.
//! * A store whose database was removed or moved away begins a new one at its path. One whose log was removed, or whose database was
//!   replaced by another file, refuses: nothing is written where nobody would find it.
//!
//! # The files
//!
//! Beside `checkpoints.db` lie the log, `checkpoints.db-wal`, and its index, `checkpoints.db-shm`. All three belong together: to copy a
//! database that is in use, `VACUUM INTO` or SQLite's backup copy it whole. To bring a copy back, end all programs, remove `-wal` and `-shm`,
//! then put the copy in the place of the database: the log of the one before would be read as part of it. The log grows while another
//! program keeps one reading transaction open. A store that was opened before a fork is for one of the two processes only: SQLite
//! does not know the other.
//!
//! `PRAGMA user_version` is the number of the layout. A database with a higher one is that of a newer program: it is read, and every
//! write is refused ([`ErrorKind::NewerLayout`](agent_checkpoint::ErrorKind::NewerLayout)). Refused are a database of another program,
//! and a file with several names (hard links): SQLite would keep a log for each.
//!
//! [`SqliteStore::read_only`] makes none of these files, also where the log is missing.
//!
//! [`forget`](agent_checkpoint::store::CheckpointStore::forget) removes the rows of a key, overwrites what they were in (`PRAGMA
//! secure_delete`, on in all connections of a store), and then empties the log. While another connection reads an older state the log is still
//! needed: then it is [`ErrorKind::Locked`](agent_checkpoint::ErrorKind::Locked) after the timeout, the rows are gone, and the same call again
//! empties the log.
//!
//! # What is not here
//!
//! * Archives: archiving ends the task, and its states stay in the history.
//! * A store's own heartbeat: one that is saved is a save.
//! * [`changed_without`](agent_checkpoint::store::History::changed_without): an edit with another program is a state like any other.

mod database;
mod failure;
mod history;
mod recovery;
mod rows;
mod store;
mod turn;

pub use store::SqliteStore;
