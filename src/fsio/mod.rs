//! Durable file operations: replace, limited read, lock.
//!
//! This module moves bytes and does not know what they mean. It promises:
//!
//! - a file is replaced completely or not at all, whatever process or machine dies in between ([`Replace`]);
//! - only "there is no such file" counts as an absent file ([`read_limited`]);
//! - two writers that use the same lock file exclude each other, across threads and processes ([`Lock`]);
//! - temporary files of a killed writer have a name that only this library uses, and [`sweep`] removes them.
//!
//! `docs/durability.md` gives the order of the steps, the reason for each, and the states that a crash can leave.

mod append;
#[cfg(test)]
#[cfg(unix)]
mod durability_tests;
mod error;
mod folder;
mod folder_handle;
mod hard_link;
mod in_place;
mod known_synced;
mod list;
mod lock;
mod queue;
mod read;
mod remove;
mod rename;
mod replace;
mod resolve;
pub mod seam;
mod stamp;
mod sweep;
mod synced;
mod system;
#[cfg(any(test, feature = "testkit"))]
#[doc(hidden)]
pub mod unsynced;

pub(crate) use append::{append, cut_back};
pub(crate) use error::FileError;
pub(crate) use folder::{
    LOCKS_FOLDER, OWN_FOLDER, create_folder, create_folder_durably, ignore, own_folder,
    write_gitignore,
};
pub(crate) use folder_handle::sync_folder;
pub(crate) use hard_link::{copy, link};
pub(crate) use in_place::InPlace;
pub(crate) use known_synced::{ends_synced, inode_text, lasts, note as trust, note_end};
pub(crate) use list::{list, names};
pub(crate) use lock::{Lock, pid_of};
pub(crate) use read::{
    Contents, LOOKS, SECOND_LOOK, is_at_rest, read_end, read_limited, read_own, read_part,
    read_plain, unread,
};
pub(crate) use remove::{remove, remove_same};
pub(crate) use rename::rename_new;
pub use replace::Durability;
pub(crate) use replace::{Present, Replace, Replaced, replace};
pub(crate) use resolve::{is_plain, look, parent_of, resolve, target_of, within};
pub(crate) use seam::Operation;
pub(crate) use stamp::FileStamp;
pub(crate) use sweep::{ABANDONED_AFTER, is_temporary, sweep};
pub(crate) use synced::{distrust, ensure_end_synced, ensure_synced, sync_now};

/// The beginning of the names of our temporary files; [`sweep`] removes only files with this prefix.
pub(crate) const TEMP_PREFIX: &str = ".agent-checkpoint-";
/// The end of the names of our temporary files.
pub(crate) const TEMP_SUFFIX: &str = ".tmp";
/// The number of random letters and digits between the two.
const TEMP_RANDOM: usize = 12;
