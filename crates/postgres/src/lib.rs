//! Checkpoints of AI agents in PostgreSQL: a store of [`agent_checkpoint`] for agents on many machines.
//!
//! # A first look
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use agent_checkpoint::formats::task::TaskCheckpoint;
//! use agent_checkpoint::{Checkpoint, CheckpointStoreExt, ClaimRequest, Key, OperationContext, StepDone};
//! use agent_checkpoint_postgres::PostgresStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = PostgresStore::open("postgres://orchestrator@db.example/agents")?;
//! let tasks = store.checkpoints::<TaskCheckpoint>();
//! let key = Key::new("US-003")?;
//! let now = chrono::Utc::now();
//!
//! tasks.create(&key, &TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], now))?;
//! let done = StepDone::new("Wire toggle").into();
//! tasks.try_update(&key, |task| task.apply(&done, &OperationContext::at(now)))?;
//!
//! // An agent on another machine opens the same database, and takes the task once its owner is gone.
//! let other = PostgresStore::open("postgres://orchestrator@db.example/agents")?;
//! let claim = other.claim(&key, &ClaimRequest::new("ui-dev-2", Duration::from_secs(300)))?;
//! let tasks = other.checkpoints::<TaskCheckpoint>().fenced(claim.fence);
//! let loaded = tasks.load(&key)?.ok_or("not found")?;
//! assert_eq!(loaded.checkpoint.completed_steps.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # When to choose it
//!
//! A [`FileStore`](agent_checkpoint::store::FileStore) is a folder that people read and git compares, and
//! `agent-checkpoint-sqlite` keeps thousands of tasks on one machine without a server. Choose this store if agents on
//! several machines work on the same tasks, or if you already run PostgreSQL with backups and standbys.
//!
//! # What it promises
//!
//! Everything that [`CheckpointStore`](agent_checkpoint::store::CheckpointStore) requires. The testkit checks all of it
//! except four rules that need failing file-system calls. The store offers locked changes, claims, history and
//! recovery.
//!
//! * A save is one transaction with two requests: the first reads the key, the second writes the whole change unless
//!   another writer came between. The second is one statement, which names the version that it replaces. A save is
//!   acknowledged after the server has synced it.
//!   [`capabilities`](agent_checkpoint::store::CheckpointStore::capabilities) reports whether the server syncs
//!   (`fsync`). If the user's commits do not wait for the sync (`synchronous_commit = off`), those of the store still
//!   do.
//! * A broken connection or a restarted server costs only time. Each write has a number, and each key remembers the
//!   last write of each of its last 64 writers. After a reconnect the store looks for its number there. If it finds it,
//!   the write is acknowledged; if not, the write is decided anew on the present state. No write is made twice. Only if
//!   64 other writers wrote the same key meanwhile, or the server stays away, is it an error with the code
//!   `outcome-unknown`.
//! * Serialization failures and deadlocks are retried until [`with_lock_timeout`](PostgresStore::with_lock_timeout) is
//!   over.
//! * Claims and saves take their time from the database, so the clocks of the machines need not agree. If a claim
//!   expires during a save, nothing is written.
//! * Every text comes back byte for byte. Its revision is the SHA-256 of its bytes, as in all stores.
//! * A [`transact`](agent_checkpoint::CheckpointStoreExt::transact) locks the row of its key, and no other key. Its
//!   closure may use the store, except for writes of the same key, which wait for this lock and are refused after the
//!   timeout. A process that is suspended inside the closure keeps the others out for half of the lock timeout, at
//!   least one second; then the server ends its session, and the closure is called once more. All other calls hold no
//!   lock while they decide.
//! * A call that waits too long for a lock or a connection fails with
//!   [`ErrorKind::Locked`](agent_checkpoint::ErrorKind::Locked). Readers do not wait for writers.
//!
//! # Threads and runtimes
//!
//! The connections run on a separate thread. Methods block, and may be called from any thread, inside any runtime or
//! outside. As with every blocking call, other tasks of that runtime wait meanwhile; the library's feature `tokio` has
//! `Checkpoints::unblocked` for that. Clones of a store share its connections, 16 at most
//! ([`with_connections`](PostgresStore::with_connections)).
//!
//! # Connection strings
//!
//! `postgres://USER:PASSWORD@HOST:PORT/DATABASE` with the settings of
//! [tokio-postgres](https://docs.rs/tokio-postgres/0.7/tokio_postgres/config/struct.Config.html) after a `?`, or the
//! same as `host=HOST user=USER`. Several hosts are tried in turn. Missing settings are taken from `PGHOST`, `PGPORT`,
//! `PGUSER`, `PGPASSWORD` and `PGDATABASE`. Without a host, the store connects to the socket in `/var/run/postgresql`,
//! or to `localhost`. Password files are not read. No message and no `Debug` output has a password in it.
//!
//! `sslmode`, or `PGSSLMODE` if the string has none, decides whether a connection over the network is encrypted, as for
//! `psql`:
//!
//! | `sslmode` | encrypted | the server's certificate |
//! |---|---|---|
//! | `disable` | never | |
//! | `allow` | if the server refuses a plain connection | as for `require` |
//! | `prefer` (the default) | if the server can; else, or where that fails, it is plain | as for `require` |
//! | `require` | always | not looked at without `sslrootcert`, else as for `verify-ca` |
//! | `verify-ca` | always | of an authority in `sslrootcert`, whatever host it names |
//! | `verify-full` | always | of an authority in `sslrootcert` or, without it, of one that the system trusts; it names the host |
//!
//! `sslrootcert`, or `PGSSLROOTCERT`, is a file in PEM format, or `system` for the authorities that the system trusts.
//! The host must be among the alternative names of the certificate. Certificates must be X.509 version 3. A self-signed
//! certificate with `CA:TRUE` is refused as a server's certificate, even if `sslrootcert` names it. Client certificates
//! and the files of `~/.postgresql` are not read. SCRAM logins are bound to the encrypted connection if server and
//! certificate support it; `channel_binding=require` insists on it. Without it, only `verify-ca` and `verify-full`
//! protect the password from a man in the middle. All this needs the feature `tls`, which is on by default. In a build
//! without it, `require` and stricter modes are an error, never a plain connection.
//!
//! A pooler such as PgBouncer must pool sessions, not transactions or statements, because each session has its own
//! settings.
//!
//! # The tables
//!
//! The tables are in the schema `agent_checkpoint`, or in one that you name ([`open_in`](PostgresStore::open_in)).
//! `checkpoints` has a row for each key with its revision, owner, fence and time; `states` has the documents and their
//! history, `ledger` the ledger lines, `dropped` the dropped items, and `quarantine` the damaged texts. Documents are
//! `bytea`: `SELECT name, convert_from(text, 'UTF8') FROM checkpoints JOIN states ON key = name AND number = present`
//! shows them. The first program that opens a schema creates the tables under a lock, so any number of programs may
//! start at once. The database must have the encoding UTF8. `layout` has the layout number. Tables with a higher number
//! were made by a newer version: they can be read, but every write is refused
//! ([`ErrorKind::NewerLayout`](agent_checkpoint::ErrorKind::NewerLayout)).
//!
//! [`forget`](agent_checkpoint::store::CheckpointStore::forget) removes the rows of a task, and everything in the key's
//! own row except the fence. It cannot reach other traces in PostgreSQL: dead rows until a `VACUUM`, the log until it
//! is recycled, standbys and backups.
//!
//! # What is not here
//!
//! * Archives: archiving ends the task, and its states stay in the history.
//! * A heartbeat of the store's own: a heartbeat is a save like any other.
//! * [`changed_without`](agent_checkpoint::store::History::changed_without): an edit by another program is a state like
//!   any other.

mod address;
mod changes;
mod failure;
mod history;
mod io;
mod recovery;
mod rows;
mod server;
mod store;
mod tls;

pub use store::{PostgresStore, SCHEMA};
