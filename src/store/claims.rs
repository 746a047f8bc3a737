//! Claims on keys: who may write.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::CheckpointStore;
use crate::checkpoint::{Claim, ClaimRequest, Error, ErrorKind, Fence, Key, Result};

/// The claims of a store.
///
/// [`CheckpointStoreExt`](crate::CheckpointStoreExt) has the calls for users: `claim`, `renew`, `release`.
pub trait Claims {
    /// Replaces the last claim on a key by what `change` makes of it, as one step that no other writer comes
    /// between. The new claim is as safe as a document when this returns.
    ///
    /// There need be no checkpoint yet.
    ///
    /// # Errors
    ///
    /// Those of [`ClaimChange::apply`], and any failure to write.
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim>;

    /// The last claim on a key, whether or not it still [stands](Claim::stands); `None` when there never was one.
    ///
    /// # Errors
    ///
    /// Any failure to read it.
    fn claimed(&self, key: &Key) -> Result<Option<Claim>>;

    /// The keys, in order, that have no document and whose last claim was not given back or cannot be read: of tasks that
    /// were claimed and not begun, and of those that ended under their claim. [`list`](CheckpointStore::list) has none of
    /// them.
    ///
    /// # Errors
    ///
    /// Whatever keeps the store from being read.
    fn claimed_without_document(&self) -> Result<Vec<Key>>;
}

/// A change of the claim on a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClaimChange {
    /// Claims the key. The owner of a claim that stands gets the same one again, for at least as long as it asks
    /// for.
    Claim(ClaimRequest),
    /// Lets a claim stand for longer, from now on; also one that ran out, as long as no other agent has claimed
    /// the key.
    Renew {
        /// The fence of the claim.
        fence: Fence,
        /// For how long it stands from now on.
        time_to_live: Duration,
    },
    /// Gives a claim back. Doing so again changes nothing.
    Release {
        /// The fence of the claim.
        fence: Fence,
    },
    /// Lets the next claim have a greater fence than this, also where the key was claimed in another store: for copies. A
    /// record of no less stays as it is.
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
    /// [`ErrorKind::Claimed`] while the claim of another agent stands; [`ErrorKind::Fenced`] when the fence is
    /// that of a claim that was given back, or that another claim followed.
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

    /// Whether this takes the key from an owner whose claim still stands.
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
