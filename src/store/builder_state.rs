//! The checkpoints inside a builder-state host file.

use std::path::PathBuf;

use super::file::{DurableFile, FileOptions};
use super::{
    Capabilities, Change, CheckpointStore, Outcome, Page, PutOptions, Query, Saved, Stored,
    check_expected,
};
use crate::checkpoint::{Dropped, Error, ErrorKind, Expect, Key, Result, Revision, Timestamp};
use crate::formats::builder_state::{Slot, SlotPlace};
use crate::fsio;
use crate::json::{Document, Kind};

/// Keeps checkpoints inside a host file; keys are the host's slots: `active`, `adhoc:ID`, `top`.
///
/// A revision is that of one slot, so what the builder changes elsewhere in the file is no
/// conflict; the lock is that of the file. Everything outside the slot is left as it is. Deleting
/// writes `null`, as the protocol does.
///
/// # Durability
///
/// As [`FileStore`](super::FileStore).
#[derive(Debug)]
pub struct BuilderStateStore {
    path: PathBuf,
    options: FileOptions,
}

impl BuilderStateStore {
    /// The store of a host file, usually `docs/builder-state.json`. Opening creates nothing.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        BuilderStateStore::with_options(path, FileOptions::default())
    }

    /// The store of a host file, with options.
    pub fn with_options(path: impl Into<PathBuf>, options: FileOptions) -> Self {
        let path = path.into();
        options.sweep(path.parent().unwrap_or(std::path::Path::new("")));
        BuilderStateStore { path, options }
    }

    /// The places of the host file, as it is now; none when there is no file.
    ///
    /// # Errors
    ///
    /// As [`load`](CheckpointStore::load).
    pub fn places(&self) -> Result<Vec<SlotPlace>> {
        let host = self.file().load()?;
        Ok(host.map_or_else(Vec::new, |host| Slot::places(&host.document)))
    }

    fn file(&self) -> DurableFile<'_> {
        DurableFile::new(self.path.clone(), &self.options)
    }

    fn with_place(&self, error: Error, key: &Key) -> Error {
        error.with_path(&self.path).with_key(key)
    }

    fn slot(&self, key: &Key) -> Result<Slot> {
        key.as_str()
            .parse()
            .map_err(|error| self.with_place(error, key))
    }
}

/// What a slot of a host has.
fn stored(host: &Stored, place: &SlotPlace) -> Result<Option<Stored>> {
    if !place.occupied {
        return Ok(None);
    }
    let Some(document) = host.document.extract(&place.pointer) else {
        let found = host.document.get(&place.pointer);
        let kind = found.map_or("nothing", |node| node.kind().describe());
        return Err(Error::new(ErrorKind::Unreadable {
            detail: format!(
                "{} holds {kind} where a checkpoint object belongs; \
                 mend it, or set it to null and start again",
                place.pointer
            ),
        }));
    };
    let mut stored = Stored::new(document);
    stored.modified = host.modified;
    stored.context.task.clone_from(&place.task);
    stored.context.description.clone_from(&place.description);
    stored.context.heartbeat = host
        .document
        .get("/lastHeartbeat")
        .and_then(|node| node.as_str())
        .map(Timestamp::parse);
    Ok(Some(stored))
}

impl CheckpointStore for BuilderStateStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        let slot = self.slot(key)?;
        let Some(host) = self.file().load()? else {
            return Ok(None);
        };
        slot.find(&host.document)
            .and_then(|place| stored(&host, &place))
            .map_err(|error| self.with_place(error, key))
    }

    fn put(&self, key: &Key, document: &Document, options: &PutOptions) -> Result<Saved> {
        self.transact(key, &mut |present| {
            check_expected(key, &options.expect, present)?;
            Ok(Change::Put {
                document: document.clone(),
                overflow: options.overflow.clone(),
            })
        })
    }

    fn transact(
        &self,
        key: &Key,
        change: &mut dyn FnMut(Option<&Stored>) -> Result<Change>,
    ) -> Result<Saved> {
        let slot = self.slot(key)?;
        let _span = tracing::debug_span!("transact", %key).entered();
        let mut saved = None;
        self.file()
            .transact(&mut |host, overflow| {
                let empty;
                let host = match host {
                    Some(host) => host,
                    None if slot == Slot::Top => {
                        empty = Stored::new(Document::from_text("{}\n")?);
                        &empty
                    }
                    None => return Err(no_host(&slot)),
                };
                let place = slot.find(&host.document)?;
                let present = stored(host, &place)?;
                let (document, dropped) = match change(present.as_ref())? {
                    Change::Keep => {
                        saved = Some(Saved::unchanged(key, present.as_ref())?);
                        return Ok(None);
                    }
                    Change::Put { document, overflow } => (document, overflow),
                };
                let mut changed = host.document.clone();
                let is_new_text = changed.graft(&place.pointer, &document)?;
                let previous = present.map(|present| present.revision);
                // Grafting lays a text anew that comes from elsewhere, so the revision is that of
                // the slot afterwards.
                let revision = changed
                    .get(&place.pointer)
                    .map(|node| Revision::of(node.raw().as_bytes()))
                    .ok_or_else(|| no_host(&slot))?;
                let outcome = match &previous {
                    None => Outcome::Created,
                    Some(_) if !is_new_text => Outcome::Unchanged,
                    Some(_) => Outcome::Replaced,
                };
                let mut result = Saved::new(outcome, revision, previous);
                result.truncation.kept_in = overflow.keep(Some(key.as_str()), &dropped)?;
                saved = Some(result);
                Ok(is_new_text.then(|| changed.into_text()))
            })
            .map_err(|error| self.with_place(error, key))?;
        saved.ok_or_else(|| self.with_place(Error::new(ErrorKind::ChangedMeanwhile), key))
    }

    fn delete(&self, key: &Key, expect: &Expect) -> Result<bool> {
        let slot = self.slot(key)?;
        let mut deleted = false;
        self.file()
            .transact(&mut |host, _| {
                deleted = false;
                let Some(host) = host else {
                    check_expected(key, expect, None)?;
                    return Ok(None);
                };
                let place = slot.find(&host.document)?;
                // What is no object can be deleted too: it holds no checkpoint.
                let is_object = host
                    .document
                    .get(&place.pointer)
                    .is_none_or(|node| node.kind() == Kind::Object);
                if is_object || *expect != Expect::Any {
                    check_expected(key, expect, stored(host, &place)?.as_ref())?;
                }
                if !place.occupied {
                    return Ok(None);
                }
                let mut changed = host.document.clone();
                deleted = changed.set(&place.pointer, &())?;
                Ok(Some(changed.into_text()))
            })
            .map_err(|error| self.with_place(error, key))?;
        Ok(deleted)
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let occupied = self.places()?.into_iter().filter(|place| place.occupied);
        let keys: Result<Vec<Key>> = occupied.map(|place| place.key()).collect();
        Ok(query.page(keys?))
    }

    fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.file().overflow()?.read(Some(key.as_str()))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_power_loss: self.options.durability == fsio::Durability::Full,
            excludes_processes: true,
            embedded: true,
            ..Capabilities::default()
        }
    }
}

fn no_host(slot: &Slot) -> Error {
    Error::new(ErrorKind::NoSuchSlot {
        slot: slot.to_string(),
        slots: Vec::new(),
    })
}
