//! The last claim on each checkpoint of one file, stored beside it.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::own_file::{OwnFile, Record, folders};
use crate::checkpoint::{Claim, Error, ErrorKind, Fence, Key, Result};
use crate::fsio::{self, Durability, Present};
use crate::store::ClaimChange;

/// How often a record is read again because another process replaced it meanwhile. That is only possible if the
/// lock file was removed.
const ATTEMPTS: usize = 16;

const RECORD: Record = Record {
    name: "the record of claims",
    unknown: "which agent may write",
    remedy: "take the task over with a new claim",
};

/// How far the first fence of a recreated record exceeds the time, in milliseconds, at which the damaged one
/// was written. It is more than any file system's clock lags behind, so that no fence is granted twice.
const BEYOND: u64 = 2000;

/// The record beside one file: `.agent-checkpoint/claims/{file}.json`, the last claim of each slot by name.
///
/// It is read and written under the lock of the file, and is on disk before a claim is granted. So after any
/// crash the former owner is still kept out.
pub(in crate::store) struct ClaimsFile(OwnFile);

type Claims = BTreeMap<String, Claim>;

impl ClaimsFile {
    pub(super) fn beside(target: &Path) -> Self {
        ClaimsFile(OwnFile::beside(target, folders::CLAIMS, ".json"))
    }

    fn read(&self) -> Result<Claims> {
        RECORD.read(&self.0)?.0
    }

    /// The last claim on a checkpoint.
    pub(in crate::store) fn last(&self, slot: Option<&str>) -> Result<Option<Claim>> {
        Ok(self.read()?.remove(name(slot)))
    }

    /// Whether a write with this fence is allowed, to the slot or to the whole file.
    pub(in crate::store) fn check(
        &self,
        slot: Option<&str>,
        fence: Option<Fence>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        match slot {
            Some(_) => Claim::check(self.last(slot)?.as_ref(), fence, now),
            None => self.check_whole(fence, now, &|_| true),
        }
    }

    /// The same for a write to the whole file. Without a fence, no claim on it may be valid. With a fence, one claim
    /// must have it, and other valid claims may only be on slots that do not change. The error names the slot whose
    /// claim is in the way.
    pub(in crate::store) fn check_whole(
        &self,
        fence: Option<Fence>,
        now: DateTime<Utc>,
        is_changed: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let claims = self.read()?;
        let opens = |claim: &Claim| Claim::check(Some(claim), fence, now).is_ok();
        let check = |claim: Option<(&String, &Claim)>, fence| {
            let checked = Claim::check(claim.map(|(_, claim)| claim), fence, now);
            checked.map_err(
                |error| match claim.map(|(slot, _)| Key::new(slot.as_str())) {
                    Some(Ok(slot)) => error.with_key(&slot),
                    _ => error,
                },
            )
        };
        if fence.is_some() && !claims.values().any(opens) {
            let standing = claims.iter().find(|(_, claim)| claim.stands(now));
            return check(standing.or(claims.iter().next_back()), fence);
        }
        let in_the_way = claims.iter().find(|(slot, claim)| {
            claim.stands(now) && !opens(claim) && (fence.is_none() || is_changed(slot))
        });
        check(in_the_way, None)
    }

    /// Whether a forget of the whole file with this fence is allowed.
    pub(super) fn check_forget(&self, fence: Option<Fence>, now: DateTime<Utc>) -> Result<()> {
        let claims = self.read()?;
        let is_left = |claim: &Claim| claim.is_only_fence() && fence == Some(claim.fence);
        match claims.values().any(is_left) && claims.values().all(Claim::is_only_fence) {
            true => Ok(()),
            false => self.check_whole(fence, now, &|_| true),
        }
    }

    /// Removes everything of the claims but their fences; returns whether there was more.
    pub(super) fn forget(&self, durability: Durability) -> Result<bool> {
        let (claims, read) = RECORD.read::<Claims>(&self.0)?;
        let (mut claims, Some(read)) = (claims?, read) else {
            return Ok(false);
        };
        let is_more = claims.values().any(|claim| !claim.is_only_fence());
        for claim in claims.values_mut() {
            *claim = Claim::only_fence(claim.fence);
        }
        // Write even if nothing changes: the process that wrote the record may have died before its sync.
        let present = Present::Same(&read.stamp);
        self.0.write(&RECORD.text(&claims)?, present, durability)?;
        Ok(is_more)
    }

    /// Replaces the last claim with the result of `change`. A take-over recreates a record that cannot be read.
    pub(super) fn change(
        &self,
        slot: Option<&str>,
        change: &ClaimChange,
        now: DateTime<Utc>,
        durability: Durability,
    ) -> Result<Claim> {
        for _ in 0..ATTEMPTS {
            match self.try_to_change(slot, change, now, durability) {
                Err(error) if *error.kind() == ErrorKind::ChangedMeanwhile => {}
                done => return done,
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(self.0.path()))
    }

    fn try_to_change(
        &self,
        slot: Option<&str>,
        change: &ClaimChange,
        now: DateTime<Utc>,
        durability: Durability,
    ) -> Result<Claim> {
        let (claims, read) = RECORD.read(&self.0)?;
        let mut least = None;
        let mut claims = match claims {
            Err(error)
                if change.takes_over() && matches!(error.kind(), ErrorKind::Unreadable { .. }) =>
            {
                tracing::warn!(path = %self.0.path().display(), %error, "begun anew");
                least = Some(self.beyond_its_fences(now)?);
                Claims::new()
            }
            claims => claims?,
        };
        let name = name(slot);
        // Write even if nothing changes: the process that wrote the record may have died before its sync.
        let mut claim = change.apply(claims.get(name), now)?;
        // Two slots that are first claimed within one millisecond would get the same fence, which would then
        // permit writes to both.
        let is_new = claims
            .get(name)
            .is_none_or(|last| last.fence != claim.fence);
        let highest = claims.values().map(|last| last.fence.number()).max();
        let above = highest.map(|highest| Fence::new(highest.saturating_add(1)));
        let least = above.filter(|_| is_new).or(least);
        claim.fence = least.map_or(claim.fence, |least| claim.fence.max(least));
        claims.insert(name.to_owned(), claim.clone());
        let present = read.as_ref().map(|read| &read.stamp);
        let present = present.map_or(Present::Absent, Present::Same);
        self.0.write(&RECORD.text(&claims)?, present, durability)?;
        Ok(claim)
    }

    /// A fence greater than any in the unreadable record. Fences grow with the time.
    fn beyond_its_fences(&self, now: DateTime<Utc>) -> Result<Fence> {
        let written = fsio::look(self.0.path())?.and_then(|metadata| metadata.modified().ok());
        let written = written.map_or(now, DateTime::from).max(now);
        let millis = u64::try_from(written.timestamp_millis()).unwrap_or(0);
        Ok(Fence::new(millis.saturating_add(BEYOND)))
    }
}

/// The name of a slot in the record; the file itself has an empty one.
fn name(slot: Option<&str>) -> &str {
    slot.unwrap_or_default()
}
