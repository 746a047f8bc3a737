//! Checkpoints of AI agents in S3, Google Cloud Storage or Azure: the store of [`agent_checkpoint`] for agents on many
//! machines, without a server of one's own.
//!
//! # A first look
//!
//! ```
//! use agent_checkpoint::formats::task::TaskCheckpoint;
//! use agent_checkpoint::{Checkpoint, CheckpointStoreExt, Key, OperationContext, StepDone};
//! use agent_checkpoint_object_store::ObjectCheckpointStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // With the feature `aws`: "s3://bucket/checkpoints". This is in memory, for tests.
//! let store = ObjectCheckpointStore::from_url("memory:///checkpoints")?;
//! let tasks = store.checkpoints::<TaskCheckpoint>();
//! let key = Key::new("US-003")?;
//! let now = chrono::Utc::now();
//!
//! tasks.create(&key, &TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], now))?;
//! let done = StepDone::new("Wire toggle").into();
//! tasks.try_update(&key, |task| task.apply(&done, &OperationContext::at(now)))?;
//!
//! let loaded = tasks.load(&key)?.ok_or("not found")?;
//! assert_eq!(loaded.checkpoint.completed_steps.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! A driver with settings of your own, such as one for another service that speaks S3, goes to
//! [`ObjectCheckpointStore::open`]. The crate `object_store`, which has the drivers, is re-exported. Give each store a driver
//! of its own: the connections of a driver live in the runtime that made them, and wait with it.
//!
//! | feature | adds |
//! |---|---|
//! | `aws` | S3 and what speaks it: `s3://bucket/path` |
//! | `gcp` | Google Cloud Storage: `gs://bucket/path` |
//! | `azure` | Azure Blob Storage: `az://container/path` |
//!
//! Without any of them the crate has no HTTP in it.
//!
//! # What it promises
//!
//! All that [`CheckpointStore`](agent_checkpoint::store::CheckpointStore) asks for, across machines; the testkit shows it on an
//! S3 server (moto), on a network that breaks before, in and after each request. The other services go the same way through their drivers, and
//! were not tried. It has a lock for a change, claims, history and recovery.
//!
//! * Text, revision, claim and fence of a key are one object. A write puts a new one on condition that the old one is still
//!   there (compare-and-swap), so no other writer, and no claim, comes between what was looked at and what is written. A back
//!   end that ignores or refuses such conditions is refused when the store is opened.
//! * A write whose answer is lost is not done twice. The object names the last write of each of its last 32 writers: the store reads it and
//!   looks for its own. Only if the object is still the old one, the same request is made again on the same condition, so at most one of them
//!   is done. Where the answer cannot be had within [`with_timeout`](ObjectCheckpointStore::with_timeout), the error is
//!   `outcome-unknown`: the new document may be there. Every other error leaves the old one.
//! * A line of a ledger is added to an object of its own, on condition that this is as it was read. The claim is looked at before, and may
//!   be taken over in between: the new owner then finds the line when it adds its own.
//! * A change that loses the race is decided anew on what the winner left. Where others stay faster for as long as the timeout, it is
//!   [`ErrorKind::ChangedMeanwhile`](agent_checkpoint::ErrorKind::ChangedMeanwhile). The threads of one store take turns for a key,
//!   so they lose no races to each other; a closure of [`transact`](agent_checkpoint::CheckpointStoreExt::transact) may read
//!   the store, and a write by it to the same key waits for itself, until it is refused.
//! * Claims end by the clocks of the machines, which may differ by
//!   [`with_clock_skew`](ObjectCheckpointStore::with_clock_skew): for so much longer a claim keeps all but its owner out. A clock
//!   that is further off lets another agent in too early; its fence then keeps the former owner from writing.
//! * Calls block, and come from any thread, inside an async runtime or not: the requests are made on a thread of the store's own. A
//!   store that was opened before a fork has no such thread in the new process: open another.
//! * Errors and `Debug` have no credentials in them: of a service's answer they repeat only the status and the name of the error.
//!
//! [`Capabilities`](agent_checkpoint::store::Capabilities) promise nothing beyond the process for the memory of the driver.
//!
//! # What a call asks for
//!
//! | call | requests |
//! |---|---|
//! | load, claimed, states | read the object |
//! | a save over another | read the object, write the state that is replaced into the history, write the object |
//! | a first save, a claim | read the object, write it |
//! | a line of a ledger | read the ledger, read the object, write the ledger |
//! | a listing | one for each 1,000 keys; a key without a document is read once for each state of its object. The version of a key is its e-tag, so a fleet that is scanned again reads only what changed, 16 objects at a time |
//!
//! A save with fingerprints or dropped items writes their object beside the state of the history, at the same time. Every sixteenth removes what no longer
//! counts.
//!
//! # The objects
//!
//! | object | what it is |
//! |---|---|
//! | `agent-checkpoint.json` | the number of the layout |
//! | `documents/KEY` | the document: a line of JSON, then the text to the byte |
//! | `beside/KEY/history-N-ID` | an earlier state: a line of JSON, then the text |
//! | `beside/KEY/dropped-ID` | dropped items, one in each line |
//! | `beside/KEY/fingerprints` | the save that they are of, then the text |
//! | `beside/KEY/ledger` | the ledger: in each line the name of the write that added it, a space, and the line to the byte |
//! | `beside/KEY/damaged-REVISION` | a damaged text that a recovery replaced |
//!
//! In the name of an object a key's letters, digits and `-` stand for themselves; every other byte is written as two hexadecimal
//! digits behind one of `! . = _ ~`, so that names sort as their keys do. The first line of a document has its revision, number, claim,
//! and the list of its history. It is padded: an object with a document has an even number of bytes, one without (a key
//! that was claimed or deleted) an odd one, so a listing need not read it. An object stays when its document is deleted,
//! because fences go on growing.
//!
//! A text that somebody edits in its object is a state like any other. An object that is not as the store writes it is
//! [`ErrorKind::Unreadable`](agent_checkpoint::ErrorKind::Unreadable), and stays. A writer that was killed may leave
//! objects that nothing names; [`prune`](agent_checkpoint::store::History::prune) removes those of the history.
//!
//! A store of a higher layout is that of a newer program: it is read, and every write is refused
//! ([`ErrorKind::NewerLayout`](agent_checkpoint::ErrorKind::NewerLayout)).
//!
//! A task that is [forgotten](agent_checkpoint::store::CheckpointStore::forget) leaves the line with its fence. Where the service itself keeps
//! earlier versions of objects, or what was deleted, those stay for as long as it says.
//!
//! # What is not here
//!
//! * Archives: archiving ends the task, and its states stay in the history.
//! * A store's own heartbeat: one that is saved is a save.
//! * [`changed_without`](agent_checkpoint::store::History::changed_without): an edit with another program is a state like any other.
//! * S3 Express One Zone: it lists its objects in no order.

mod beside;
mod claims;
mod failure;
mod head;
mod history;
mod keys;
mod ledger;
mod listing;
mod place;
mod recovery;
mod remote;
mod store;
mod turns;

pub use object_store;
pub use store::ObjectCheckpointStore;
