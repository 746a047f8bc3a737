//! The last claim on each checkpoint of one file, beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::Owner;
use super::names::name_beside;
use crate::checkpoint::{Claim, Error, ErrorKind, Fence, Result};
use crate::fsio::{self, Durability, FileStamp, Present, Replace};
use crate::store::ClaimChange;

/// How often a record is read again that another process replaced meanwhile, as it may where somebody removed the
/// lock.
const ATTEMPTS: usize = 16;

/// The largest record that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// How far the first fence of a record that is begun anew lies beyond the time at which the damaged one was written:
/// further than the clock of any file system is behind, so that no fence is granted twice.
const BEYOND: u64 = 2000;

/// The record beside one file: `.agent-checkpoint/claims/{file}.json`, the last claim of each slot by name.
///
/// It is read and written under the lock of the file, and on disk before a claim is granted: so whoever was
/// granted one finds, after any crash, that the owner before it is kept out.
pub(in crate::store) struct ClaimsFile {
    target: PathBuf,
    path: PathBuf,
}

type Claims = BTreeMap<String, Claim>;

impl ClaimsFile {
    pub(super) fn beside(target: &Path) -> Self {
        let path = fsio::parent_of(target)
            .join(fsio::OWN_FOLDER)
            .join("claims")
            .join(name_beside(target, ".json"));
        ClaimsFile {
            target: target.to_path_buf(),
            path,
        }
    }

    fn read(&self) -> Result<Claims> {
        self.look()?.0
    }

    /// The claims, or why they cannot be read, and which version of the record that is.
    fn look(&self) -> Result<(Result<Claims>, Option<FileStamp>)> {
        // Most checkpoints are never claimed: one look tells.
        if fsio::look(&self.path)?.is_none() {
            return Ok((Ok(Claims::new()), None));
        }
        let Some(read) = fsio::read_limited(&self.path, MAX_BYTES)? else {
            return Ok((Ok(Claims::new()), None));
        };
        let claims = serde_json::from_slice(&read.bytes).map_err(|error| {
            Error::new(ErrorKind::Unreadable {
                detail: format!(
                    "the record of claims is damaged, so it is unknown which agent may write: {error}; \
                     claim the task anew, taking it over"
                ),
            })
            .with_path(&self.path)
        });
        Ok((claims, Some(read.stamp)))
    }

    /// The last claim on a checkpoint.
    pub(in crate::store) fn last(&self, owner: Owner<'_>) -> Result<Option<Claim>> {
        Ok(self.read()?.remove(name(owner)))
    }

    /// Whether a write that shows this fence may go through.
    pub(in crate::store) fn check(
        &self,
        owner: Owner<'_>,
        fence: Option<Fence>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        Claim::check(self.last(owner)?.as_ref(), fence, now)
    }

    /// Whether no claim at all stands on the file, but for one that `fence` opens: for what changes the
    /// file as a whole.
    pub(in crate::store) fn check_all(
        &self,
        fence: Option<Fence>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let claims = self.read()?;
        if claims.is_empty() {
            return Claim::check(None, fence, now);
        }
        let mut opened = fence.is_none();
        let mut refused = None;
        for claim in claims.values() {
            match Claim::check(Some(claim), fence, now) {
                Ok(()) => opened = true,
                Err(error) if claim.stands(now) => return Err(error),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if !opened => Err(error),
            _ => Ok(()),
        }
    }

    /// Puts what `change` makes of the last claim in its place. A take-over begins a record that cannot be read
    /// again.
    pub(super) fn change(
        &self,
        owner: Owner<'_>,
        change: &ClaimChange,
        now: DateTime<Utc>,
        durability: Durability,
    ) -> Result<Claim> {
        for _ in 0..ATTEMPTS {
            match self.try_to_change(owner, change, now, durability) {
                Err(error) if *error.kind() == ErrorKind::ChangedMeanwhile => {}
                done => return done,
            }
        }
        Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(&self.path))
    }

    fn try_to_change(
        &self,
        owner: Owner<'_>,
        change: &ClaimChange,
        now: DateTime<Utc>,
        durability: Durability,
    ) -> Result<Claim> {
        let (claims, stamp) = self.look()?;
        let mut least = None;
        let mut claims = match claims {
            Err(error)
                if change.takes_over() && matches!(error.kind(), ErrorKind::Unreadable { .. }) =>
            {
                tracing::warn!(path = %self.path.display(), %error, "begun anew");
                least = Some(self.beyond_its_fences(now)?);
                Claims::new()
            }
            read => read?,
        };
        let name = name(owner);
        // Written also when nothing changes: whoever wrote it may have been killed before it was on disk.
        let mut claim = change.apply(claims.get(name), now)?;
        claim.fence = least.map_or(claim.fence, |least| claim.fence.max(least));
        claims.insert(name.to_owned(), claim.clone());
        let mut text = serde_json::to_vec_pretty(&claims).map_err(|error| {
            Error::new(ErrorKind::Edit {
                detail: format!("the claim cannot be recorded: {error}"),
            })
        })?;
        text.push(b'\n');
        fsio::own_folder(fsio::parent_of(&self.target))?;
        fsio::create_folder_durably(fsio::parent_of(&self.path))?;
        let present = stamp.as_ref().map_or(Present::Absent, Present::Same);
        Replace::new(&self.path, present)
            .like(&self.target)
            .durability(durability)
            .write(&text)?;
        Ok(claim)
    }

    /// A fence that is greater than any in the record, which cannot be read: a fence grows with the time.
    fn beyond_its_fences(&self, now: DateTime<Utc>) -> Result<Fence> {
        let written = fsio::look(&self.path)?.and_then(|metadata| metadata.modified().ok());
        let written = written.map_or(now, DateTime::from).max(now);
        let millis = u64::try_from(written.timestamp_millis()).unwrap_or(0);
        Ok(Fence::new(millis.saturating_add(BEYOND)))
    }
}

/// The name of a slot in the record; the file itself has none.
fn name<'o>(owner: Owner<'o>) -> &'o str {
    owner.slot.unwrap_or_default()
}
