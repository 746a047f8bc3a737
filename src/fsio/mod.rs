//! Files that survive: durable replace, limited read, sidecar lock.
//!
//! This floor moves bytes and knows nothing of what they mean. It promises:
//!
//! - a file is replaced whole or not at all, whatever dies in between ([`Replace`]);
//! - nothing but "there is no such file" is taken for an absent file ([`read_limited`]);
//! - two writers that use the same sidecar exclude each other, across threads and processes ([`Lock`]);
//! - what a killed writer leaves behind has a name only we use, and [`sweep`] removes it.
//!
//! `docs/durability.md` gives the order of the steps, the reason for each, and what a crash leaves.
//!
//! # Example
//!
//! ```
//! use agent_checkpoint::fsio::{self, Present};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("state.json");
//! fsio::replace(&path, b"{}", Present::Absent)?;
//!
//! let Some(read) = fsio::read_limited(&path, 1024)? else { return Ok(()) };
//! fsio::replace(&path, b"{\"step\":1}", Present::Same(&read.stamp))?;
//!
//! // The file is no longer the one that was read, so this save is refused.
//! let stale = fsio::replace(&path, b"{}", Present::Same(&read.stamp));
//! assert!(matches!(stale, Err(fsio::FileError::Changed { .. })));
//! # Ok(())
//! # }
//! ```

mod append;
mod error;
mod folder;
mod in_place;
mod list;
mod lock;
mod queue;
mod read;
mod remove;
mod rename;
mod replace;
mod resolve;
pub mod seam;
mod second_name;
mod stamp;
mod sweep;
mod synced;
mod system;

pub use append::append;
pub(crate) use append::cut_back;
pub use error::{FileError, Operation};
pub use folder::{OWN_FOLDER, create_folder, create_folder_durably, own_folder, sync_folder};
pub(crate) use in_place::InPlace;
pub use list::{list, names};
pub use lock::Lock;
pub(crate) use lock::pid_of;
pub(crate) use read::unread;
pub use read::{Contents, read_end, read_limited};
pub use remove::remove;
pub(crate) use remove::remove_same;
pub use rename::rename_new;
pub use replace::{Durability, Pending, Present, Replace, Replaced, replace};
pub(crate) use resolve::{look, parent_of, refuse_strange, target_of};
pub use resolve::{resolve, within};
pub use second_name::{copy, link};
pub use stamp::FileStamp;
pub use sweep::{ABANDONED_AFTER, sweep};
pub(crate) use synced::{distrust, is_trusted, make_last, sync_now, trust_name};

/// How the names of our temporary files begin; [`sweep`] removes nothing that begins otherwise.
pub(crate) const TEMP_PREFIX: &str = ".agent-checkpoint-";
/// How the names of our temporary files end.
pub(crate) const TEMP_SUFFIX: &str = ".tmp";
/// How many random letters and digits stand between the two.
const TEMP_RANDOM: usize = 12;
