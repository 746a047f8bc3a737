//! Claims. A claim is part of the object of its key, so a write and the check of its fence are one request.

use agent_checkpoint::store::{ClaimChange, Claims};
use agent_checkpoint::{Claim, Key, Result};

use crate::store::{Next, ObjectCheckpointStore};

impl Claims for ObjectCheckpointStore {
    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        self.change(key, |head, _| {
            let last = head.header.claim.as_ref();
            // Another owner's clock may be behind, so its claim keeps others out for that much longer.
            change.apply(last, self.now_for_others())?;
            let claim = change.apply(last, self.now())?;
            if last == Some(&claim) {
                return Ok((None, claim));
            }
            let mut next = Next::after(head);
            next.head.header.claim = Some(claim.clone());
            Ok((Some(next), claim))
        })
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        Ok(self.head(key, self.time())?.header.claim)
    }

    fn claimed_without_document(&self) -> Result<Vec<Key>> {
        self.held_alone(self.time())
    }
}
