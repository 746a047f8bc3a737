//! Checkpoints of AI agents in S3, Google Cloud Storage or Azure: a store of [`agent_checkpoint`] for agents on many
//! machines, without a server of your own.
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
//! To use a driver with your own settings, for example for another S3-compatible service, call
//! [`ObjectCheckpointStore::open`]. The crate `object_store`, which has the drivers, is re-exported. Give each store
//! its own driver, because the connections of a driver live in the runtime that made them, and stall with it.
//!
//! | feature | adds |
//! |---|---|
//! | `aws` | S3 and what speaks it: `s3://bucket/path` |
//! | `gcp` | Google Cloud Storage: `gs://bucket/path` |
//! | `azure` | Azure Blob Storage: `az://container/path` |
//!
//! Without these features the crate contains no HTTP client.
//!
//! # What it promises
//!
//! Everything that [`CheckpointStore`](agent_checkpoint::store::CheckpointStore) requires, across machines. The testkit
//! checks it on an S3 server (moto), over a network that breaks before, during and after each request. The drivers of
//! the other services take the same path and were not tested. The store offers locked changes, claims, history and
//! recovery.
//!
//! * Text, revision, claim and fence of a key are one object. A write replaces it on condition that the old object is
//!   still there (compare-and-swap). So no other write and no claim comes between the read and the write. A service
//!   that ignores or refuses such conditions is refused when the store is opened.
//! * A write whose answer is lost is not made twice. The object remembers the last write of each of its last 32
//!   writers; the store reads it and looks for its own. Only if the object is still the old one is the same request
//!   made again on the same condition, so at most one of them succeeds. If no answer comes within
//!   [`with_timeout`](ObjectCheckpointStore::with_timeout), the error is `outcome-unknown`: the new document may be
//!   there. Every other error leaves the old one.
//! * The ledger is a separate object. A line is added on condition that the ledger is unchanged since it was read. The
//!   claim is checked before that, so another agent may take over in between; the new owner then finds the line when it
//!   adds its own.
//! * A change that loses a race is decided anew on the state that the winner left. If others stay faster until the
//!   timeout, the error is [`ErrorKind::ChangedMeanwhile`](agent_checkpoint::ErrorKind::ChangedMeanwhile). The threads
//!   of one store take turns for a key, so they lose no races against each other. A closure of
//!   [`transact`](agent_checkpoint::CheckpointStoreExt::transact) may read the store, but a write inside it to the same
//!   key waits for its own turn and is refused after the timeout.
//! * Claims expire by the clocks of the machines, which may differ by
//!   [`with_clock_skew`](ObjectCheckpointStore::with_clock_skew): a claim keeps all but its owner out for that much
//!   longer. A clock that is further off lets another agent in too early; its fence then keeps the former owner from
//!   writing.
//! * Calls block, and may be made from any thread, inside an async runtime or outside; a separate thread of the store
//!   makes the requests. A store that was opened before a fork has no such thread in the new process: open another one
//!   there.
//! * Errors and `Debug` output have no credentials in them. Of a service's answer they repeat only the status and the
//!   name of the error.
//!
//! With the driver's in-memory store, [`Capabilities`](agent_checkpoint::store::Capabilities) promise nothing beyond
//! the process.
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
//! A save with fingerprints or dropped items writes their object together with the history object, at the same time.
//! After every sixteen objects that are no longer needed, a save removes them.
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
//! In the name of an object a key's letters, digits and `-` stand for themselves. Every other byte is written as one of
//! `! . = _ ~` and two hexadecimal digits, so names sort as their keys do. The first line of a document has its
//! revision, number, claim, and the list of its history. It is padded: an object with a document has an even number of
//! bytes, one without (a key that was claimed or deleted) an odd number, so a listing need not read it. An object stays
//! when its document is deleted, because fences must keep growing.
//!
//! A text that another program edits in its object is a state like any other. An object in a form that the store does
//! not write is [`ErrorKind::Unreadable`](agent_checkpoint::ErrorKind::Unreadable), and stays. A writer that was killed
//! may leave objects that nothing names; [`prune`](agent_checkpoint::store::History::prune) removes those of the
//! history.
//!
//! A store with a higher layout number was made by a newer version: it can be read, but every write is refused
//! ([`ErrorKind::NewerLayout`](agent_checkpoint::ErrorKind::NewerLayout)).
//!
//! After a task is [forgotten](agent_checkpoint::store::CheckpointStore::forget), only the line with its fence remains.
//! If the service itself keeps earlier versions or deleted objects, they stay for as long as it is configured to keep
//! them.
//!
//! # What is not here
//!
//! * Archives: archiving ends the task, and its states stay in the history.
//! * A heartbeat of the store's own: a heartbeat is a save like any other.
//! * [`changed_without`](agent_checkpoint::store::History::changed_without): an edit by another program is a state like
//!   any other.
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
