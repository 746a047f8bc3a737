//! Checkpoints of AI agents in PostgreSQL: the store of [`agent_checkpoint`] for agents on many machines.
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
//! `agent-checkpoint-sqlite` keeps thousands of tasks on one machine without a server. Choose this store where agents on several
//! machines work on the same tasks, or where a PostgreSQL is there already, with its backups and standbys.
//!
//! # What it promises
//!
//! All that [`CheckpointStore`](agent_checkpoint::store::CheckpointStore) asks for, and the testkit shows it, but for its
//! four rules that make calls to the file system fail. It has a lock for a change, claims, history and recovery.
//!
//! * A save is one transaction and two requests: one reads what is there, one writes all of the change where nobody came between.
//!   The second is one statement, which names the version that it goes on from. It is acknowledged when the server has synced it;
//!   [`capabilities`](agent_checkpoint::store::CheckpointStore::capabilities) says whether the server does (`fsync`), and where a
//!   user's commits do not wait (`synchronous_commit = off`), those of the store do.
//! * A connection that breaks and a server that is started again cost time and nothing else. Each write has a number, and a key keeps the
//!   last one of each of the 64 that wrote last; after a reconnect the store looks for it. Found, the write is acknowledged as it
//!   would have been; not found, it is decided anew on what is there. It is never made twice. Only where 64 others wrote the same key
//!   meanwhile, or the server stays away, this is an error with the code `outcome-unknown`.
//! * Serialization failures and deadlocks are tried again until [`with_lock_timeout`](PostgresStore::with_lock_timeout) is over.
//! * Claims and saves have the time of the database, so the clocks of the machines need not agree. A claim that runs out in the
//!   middle of a save lets nothing through.
//! * Every text comes back to the byte. Its revision is the SHA-256 of its bytes, as in all stores.
//! * A [`transact`](agent_checkpoint::CheckpointStoreExt::transact) locks the row of its key, and no other key. Its closure may use the
//!   store, but for writes of the same key, which would wait for itself until they are refused. Who stops in the middle of it keeps the
//!   others out for half of the lock timeout, a second at least; then the server ends its session, and the closure is called once more.
//!   All other calls hold no lock while they decide.
//! * Who waits too long for a lock or for a connection gets [`ErrorKind::Locked`](agent_checkpoint::ErrorKind::Locked). Readers wait for
//!   no writer.
//!
//! # Threads and runtimes
//!
//! The connections live on one thread of their own. Methods block, and may be called from any thread: inside a runtime or not, also one
//! of a single thread. As with every blocking call, other tasks of that runtime wait meanwhile; feature `tokio` of the library has
//! `Checkpoints::unblocked` for that. Clones of a store share its connections, 16 at most
//! ([`with_connections`](PostgresStore::with_connections)).
//!
//! # Connection strings
//!
//! `postgres://USER:PASSWORD@HOST:PORT/DATABASE` with the settings of
//! [tokio-postgres](https://docs.rs/tokio-postgres/0.7/tokio_postgres/config/struct.Config.html) behind a `?`, or the same as
//! `host=HOST user=USER`; several hosts are tried in turn. What is left open is taken from `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD` and
//! `PGDATABASE`; without a host it is the socket in `/var/run/postgresql`, or `localhost`. A file of passwords is not read. No message
//! and no `Debug` shows a password.
//!
//! `sslmode`, or `PGSSLMODE` where the string has none, says whether a connection over the network is encrypted, as for `psql`:
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
//! `sslrootcert`, or `PGSSLROOTCERT`, is a file in PEM format, or `system` for the authorities that the system trusts. The host is
//! looked for among the alternative names of the certificate only. Certificates must be of X.509 version 3; a self-signed one that
//! says `CA:TRUE` is refused as that of a server, also where `sslrootcert` names it. Client certificates and the files of
//! `~/.postgresql` are not read. Logins with SCRAM are bound to the encrypted connection where server and certificate can;
//! `channel_binding=require` insists on it, and without it only `verify-ca` and `verify-full` keep the password from who is in
//! between. All this comes with the feature `tls`, which is on by default; in a build without it `require` and stricter modes are an
//! error, never a plain connection.
//!
//! A pooler in between (PgBouncer) must pool sessions, not transactions or statements: each session has settings of its own.
//!
//! # The tables
//!
//! They lie in the schema `agent_checkpoint`, or one that you name ([`open_in`](PostgresStore::open_in)): `checkpoints` has a row for
//! each key with its revision, owner, fence and time, `states` the documents and their history, `ledger` the lines of the ledgers, `dropped`
//! and `quarantine` what was put aside. Documents are `bytea`: `SELECT name, convert_from(text, 'UTF8') FROM checkpoints JOIN states ON key = name AND number = present`
//! shows them. The first program that opens a schema makes them, under a lock, so any number may begin at once; the database needs the
//! encoding UTF8. `layout` has the number of the layout. Tables with a higher one are those of a newer program: they are read, and
//! every write is refused ([`ErrorKind::NewerLayout`](agent_checkpoint::ErrorKind::NewerLayout)).
//!
//! [`forget`](agent_checkpoint::store::CheckpointStore::forget) removes the rows of a task, and what a key's own row has but for the
//! fence. What PostgreSQL keeps besides is not in its reach: rows until a `VACUUM`, the log until it is recycled, standbys and backups.
//!
//! # What is not here
//!
//! * Archives: archiving ends the task, and its states stay in the history.
//! * A store's own heartbeat: one that is saved is a save.
//! * [`changed_without`](agent_checkpoint::store::History::changed_without): an edit with another program is a state like any other.

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
