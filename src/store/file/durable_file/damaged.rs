//! A damaged or missing file, and its replacement.

use std::path::{Path, PathBuf};

use super::DurableFile;
use super::lock::Locked;
use crate::checkpoint::{Error, Fence, Result, Revision};
use crate::fsio::{self, Contents, FileError, Present, Replace, look, parent_of};
use crate::json::{Corrupt, CorruptCode};
use crate::store::file::quarantine;

/// A damaged file with its lock held.
pub(in crate::store) struct Damaged<'f> {
    file: &'f DurableFile<'f>,
    target: PathBuf,
    contents: Option<Contents>,
    /// The damage; `None` if there is no file.
    pub(in crate::store) corrupt: Option<Corrupt>,
    _lock: Locked,
}

impl DurableFile<'_> {
    /// The file under the lock, if it is damaged or missing; `None` if nothing is wrong with it.
    ///
    /// # Errors
    ///
    /// A file that is merely too large or nested too deeply is an error, because nothing is wrong with it.
    pub(in crate::store) fn damaged(&self, fence: Option<Fence>) -> Result<Option<Damaged<'_>>> {
        let target = self.target()?;
        self.refuse_read_only()?;
        let is_there = look(&target)?.is_some();
        let lock = if is_there || look(parent_of(&target))?.is_some() {
            self.lock(&target)?
        } else {
            Locked::default()
        };
        // The bytes that are judged are the ones that go to quarantine.
        let (corrupt, contents) = match self.judged(&target)? {
            Some((Ok(stored), contents)) => {
                self.ensure_saved(&target, &contents, &stored)?;
                return Ok(None);
            }
            Some((Err(corrupt), contents)) if corrupt.code != CorruptCode::TooDeep => {
                (Some(corrupt), Some(contents))
            }
            Some((Err(corrupt), _)) => return Err(Error::from(corrupt).with_path(&self.path)),
            None => (None, None),
        };
        let beside = self.beside(&target);
        // The file is repaired as a whole, with all its slots, so the fence of any claim in it suffices. What a
        // slot loses is in the quarantined text.
        let claims = &beside.claims;
        claims.check_whole(fence, beside.now, &|_| false)?;
        Ok(Some(Damaged {
            contents,
            file: self,
            target,
            corrupt,
            _lock: lock,
        }))
    }
}

impl Damaged<'_> {
    /// The damaged bytes; empty if there is no file.
    pub(in crate::store) fn bytes(&self) -> &[u8] {
        self.contents
            .as_ref()
            .map_or(&[], |contents| &contents.bytes)
    }

    /// Quarantines the damaged bytes and replaces them with a text in which the checkpoint has this revision,
    /// or with nothing. Returns the path in quarantine. If there was no file, the new one has no wider
    /// permissions than `like`.
    pub(in crate::store) fn replace(
        &self,
        text: Option<(&str, Option<Revision>)>,
        like: Option<&Path>,
    ) -> Result<Option<PathBuf>> {
        if let Some((text, _)) = &text {
            self.file.refuse_too_large(text)?;
        }
        let durability = self.file.options.durability;
        let quarantined = match &self.contents {
            Some(contents) => Some(quarantine::quarantine(
                &self.target,
                &contents.bytes,
                durability,
            )?),
            None => None,
        };
        let present = match &self.contents {
            Some(contents) => Present::Same(&contents.stamp),
            None => Present::Absent,
        };
        match (text, &self.contents) {
            (Some((text, revision)), _) => {
                let revision = revision.as_ref();
                let noting = self.file.note(&self.target).begin(None, revision);
                let mut replace = Replace::new(&self.target, present).durability(durability);
                if let (Some(like), None) = (like, &self.contents) {
                    replace = replace.like(like);
                }
                match replace.write(text.as_bytes()) {
                    Ok(replaced) => {
                        let whole = Revision::of(text.as_bytes());
                        noting.done(revision, &whole, &replaced, durability, None);
                    }
                    Err(error) => {
                        match error {
                            FileError::NotDurable { .. } => {
                                self.file.note(&self.target).sync_failed();
                            }
                            _ => noting.undone(),
                        }
                        return Err(error.into());
                    }
                }
            }
            (None, Some(contents)) => {
                // Its owner may have repaired it meanwhile.
                fsio::remove_same(&self.target, &contents.stamp, durability)?;
                self.file.remove_link(&self.target)?;
            }
            (None, None) => self.file.ensure_absence_synced(&self.target)?,
        }
        Ok(quarantined)
    }
}
