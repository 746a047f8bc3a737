//! Claims of broken stores, and the fences that they accept.

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::{Claim, ClaimRequest, Fence, Key, Result};

use super::Broken;
use super::Fault::*;

impl Broken {
    /// The fence of the last claim.
    pub(super) fn last_fence(&self, key: &Key) -> Option<Fence> {
        Some(self.right.claimed(key).ok()??.fence)
    }

    /// The fence that is passed on to the right store.
    pub(super) fn fence(&self, key: &Key, given: Option<Fence>) -> Option<Fence> {
        match self.fault {
            IgnoresFences => self.last_fence(key),
            CountsFencesAnew => given.and(self.last_fence(key)),
            _ => given,
        }
    }

    pub(super) fn claim_wrongly(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
        let mut request = request.clone();
        request.take_over |= self.fault == GivesClaimsToAll;
        let mut claim = self.right.claim(key, &request)?;
        if self.fault == CountsFencesAnew {
            claim.fence = Fence::new(1);
        }
        Ok(claim)
    }

    pub(super) fn release_wrongly(&self, key: &Key, fence: Fence) -> Result<Claim> {
        let fence = self.fence(key, Some(fence)).unwrap_or(fence);
        self.right.release(key, fence)
    }
}
