//! Claims on keys, which decide who may write.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::CheckpointStore;
use crate::checkpoint::{Claim, ClaimRequest, Error, ErrorKind, Fence, Key, Result};

/// The claims of a store.
///
/// [`CheckpointStoreExt`](crate::CheckpointStoreExt) has the calls for users: `claim`, `renew`, `release`.
pub trait Claims {
    /// Replaces the last claim on a key with the result of `change`, atomically with respect to other writers.
    /// When this returns, the new claim is as durable as a document.
    ///
    /// The key need not have a checkpoint yet.
    ///
    /// # Errors
    ///
    /// Those of [`ClaimChange::apply`], and any failure to write.
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim>;

    /// The last claim on a key, whether or not it is still [valid](Claim::stands); `None` if there never was one.
    ///
    /// # Errors
    ///
    /// Any failure to read it.
    fn claimed(&self, key: &Key) -> Result<Option<Claim>>;

    /// The keys, in order, that have no document and whose last claim was not released or cannot be read. These
    /// are tasks that were claimed but not begun, and tasks that ended under their claim.
    /// [`list`](CheckpointStore::list) does not include them.
    ///
    /// # Errors
    ///
    /// Any failure to read the store.
    fn claimed_without_document(&self) -> Result<Vec<Key>>;
}

/// A change of the claim on a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClaimChange {
    /// Claims the key. The owner of a valid claim gets the same claim again, extended to at least the time it
    /// asks for.
    Claim(ClaimRequest),
    /// Extends a claim from now on. This also works for an expired claim, as long as no other owner has claimed
    /// the key.
    Renew {
        /// The fence of the claim.
        fence: Fence,
        /// How long it lasts from now on.
        time_to_live: Duration,
    },
    /// Releases a claim. Releasing it again changes nothing.
    Release {
        /// The fence of the claim.
        fence: Fence,
    },
    /// Makes sure that the next claim has a greater fence than this, for copies of a key that was claimed in
    /// another store. A record with this fence or a greater one does not change.
    AtLeast {
        /// The last fence of the other store.
        fence: Fence,
    },
}

impl ClaimChange {
    /// The claim that follows the last one at this time.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Claimed`] while the claim of another owner is valid; [`ErrorKind::Fenced`] when the fence
    /// belongs to a claim that was released or succeeded by another; [`ErrorKind::Refused`] for an owner or a
    /// duration that no claim can have.
    pub fn apply(&self, last: Option<&Claim>, now: DateTime<Utc>) -> Result<Claim> {
        match (self, last) {
            (ClaimChange::Claim(request), last) => Claim::granted(last, request, now),
            (
                ClaimChange::Renew {
                    fence,
                    time_to_live,
                },
                Some(last),
            ) => last.renewed(*fence, *time_to_live, now),
            (ClaimChange::Release { fence }, Some(last)) => last.given_back(*fence),
            (ClaimChange::AtLeast { fence }, Some(last)) if last.fence >= *fence => {
                Ok(last.clone())
            }
            (ClaimChange::AtLeast { fence }, last) => {
                Claim::check(last, None, now)?;
                Ok(Claim::only_fence(*fence))
            }
            (ClaimChange::Renew { fence, .. } | ClaimChange::Release { fence }, None) => {
                Err(Claim::unknown(*fence))
            }
        }
    }

    /// Whether this may take the key from an owner whose claim is still valid.
    #[must_use]
    pub fn takes_over(&self) -> bool {
        matches!(self, ClaimChange::Claim(request) if request.take_over)
    }
}

/// The claims of a store, or the error that it has none.
pub(crate) fn claims_of<S: CheckpointStore + ?Sized>(store: &S) -> Result<&dyn Claims> {
    let none = || Error::new(ErrorKind::NotOffered { what: "claims" });
    store.claims().ok_or_else(none)
}
