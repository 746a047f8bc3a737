//! How broken stores claim, and what fences they take.

use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::{Claim, ClaimRequest, Clock, Error, Fence, Key, Result};

use super::Broken;
use super::Fault::*;
use super::writes::MOMENT;

impl Broken {
    /// The fence of the last claim.
    pub(super) fn last_fence(&self, key: &Key) -> Option<Fence> {
        Some(self.right.claimed(key).ok()??.fence)
    }

    /// The fence that the right store is shown.
    pub(super) fn fence(&self, key: &Key, given: Option<Fence>) -> Option<Fence> {
        match self.fault {
            WritesWithoutFence => given.or_else(|| self.last_fence(key)),
            TakesOldFences | ForgetsFencesOfOthers | CountsFencesAnew | FencesOfTheClock => {
                given.and(self.last_fence(key))
            }
            _ => given,
        }
    }

    pub(super) fn claim_wrongly(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
        let mut request = request.clone();
        match self.fault {
            GivesClaimsToAll => request.take_over = true,
            ClaimsForEver => request.time_to_live *= 1000,
            ClaimsInTwoSteps => {
                let now = chrono::Utc::now();
                let is_free = self.claimed(key)?.is_none_or(|claim| !claim.stands(now));
                std::thread::sleep(2 * MOMENT);
                request.take_over |= is_free;
            }
            _ => {}
        }
        let mut claim = self.right.claim(key, &request)?;
        match self.fault {
            CountsFencesAnew => claim.fence = Fence::new(1),
            FencesOfTheClock => {
                let clock = self.shared.clock.lock().unwrap().clone().unwrap();
                claim.fence = Fence::new(clock.now().timestamp().unsigned_abs());
            }
            _ => {}
        }
        Ok(claim)
    }

    pub(super) fn release_wrongly(&self, key: &Key, fence: Fence) -> Result<Claim> {
        let fence = self.fence(key, Some(fence)).unwrap_or(fence);
        if self.fault == ReleasesOnlyOnce && self.claimed(key)?.is_some_and(|last| last.released) {
            return Err(Error::refused("it was given back already"));
        }
        self.right.release(key, fence)
    }
}
