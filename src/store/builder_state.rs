//! The checkpoints inside a builder-state host file.

use std::path::PathBuf;

use super::file::{DurableFile, Entries, FileOptions, Next, Owner};
use super::{
    Capabilities, Change, CheckpointStore, DeleteOptions, Outcome, Page, Put, PutOptions, Query,
    Saved, Stored, check_expected,
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
        BuilderStateStore {
            path: path.into(),
            options,
        }
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

/// The place of a slot; `None` where the host has none, as an idle one has no active task.
fn find(slot: &Slot, host: &Document) -> Result<Option<SlotPlace>> {
    match slot.find(host) {
        Ok(place) => Ok(Some(place)),
        Err(error) if matches!(error.kind(), ErrorKind::NoSuchSlot { .. }) => Ok(None),
        Err(error) => Err(error),
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
        find(&slot, &host.document)
            .and_then(|place| place.map_or(Ok(None), |place| stored(&host, &place)))
            .map_err(|error| self.with_place(error, key))
    }

    fn put(&self, key: &Key, document: &Document, options: &PutOptions) -> Result<Saved> {
        self.transact(key, &mut |present| {
            check_expected(key, &options.expect, present)?;
            let put = Put::new(document.clone());
            Ok(Change::Put(put.with_overflow(options.overflow.clone())))
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
                let put = match change(present.as_ref())? {
                    Change::Keep => {
                        saved = Some(Saved::unchanged(key, present.as_ref())?);
                        return Ok(None);
                    }
                    Change::Put(put) => put,
                };
                let mut changed = host.document.clone();
                let is_new_text = changed.graft(&place.pointer, &put.document)?;
                let previous = present.map(|present| present.revision);
                // Grafting lays a text anew that comes from elsewhere, so the revision is that of
                // the slot afterwards.
                let revision = changed
                    .get(&place.pointer)
                    .map(|node| Revision::of(node.raw().as_bytes()))
                    .ok_or_else(|| no_host(&slot))?;
                let outcome = Outcome::of(previous.as_ref(), &revision);
                let mut result = Saved::new(outcome, revision, previous);
                if !put.overflow.is_empty() {
                    result.truncation.kept_in = Some(overflow.place());
                }
                let owner = Owner {
                    slot: Some(key.as_str()),
                    task: place.task.as_deref(),
                };
                let begins = outcome == Outcome::Created;
                let record = overflow.entries(owner, begins, &put.overflow)?;
                saved = Some(result);
                Ok(is_new_text.then(|| Next {
                    text: changed.into_text(),
                    record,
                }))
            })
            .map_err(|error| self.with_place(error, key))?;
        saved.ok_or_else(|| self.with_place(Error::new(ErrorKind::ChangedMeanwhile), key))
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        let slot = self.slot(key)?;
        let mut deleted = false;
        self.file()
            .transact(&mut |host, _| {
                deleted = false;
                let place = match host {
                    Some(host) => find(&slot, &host.document)?,
                    None => None,
                };
                let (Some(host), Some(place)) = (host, place) else {
                    check_expected(key, &options.expect, None)?;
                    return Ok(None);
                };
                // What is no object can be deleted too: it holds no checkpoint.
                let is_object = host
                    .document
                    .get(&place.pointer)
                    .is_none_or(|node| node.kind() == Kind::Object);
                if is_object || options.expect != Expect::Any {
                    check_expected(key, &options.expect, stored(host, &place)?.as_ref())?;
                }
                if !place.occupied {
                    return Ok(None);
                }
                let mut changed = host.document.clone();
                deleted = changed.set(&place.pointer, &())?;
                Ok(Some(Next {
                    text: changed.into_text(),
                    record: Entries::default(),
                }))
            })
            .map_err(|error| self.with_place(error, key))?;
        Ok(deleted)
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let mut keys = Vec::new();
        let mut foreign = Vec::new();
        for place in self.places()?.iter().filter(|place| place.occupied) {
            match place.key() {
                Ok(key) => keys.push(key),
                Err(_) => foreign.push(place.slot.to_string().into()),
            }
        }
        let mut page = query.page(keys);
        page.foreign = foreign;
        Ok(page)
    }

    fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
        let slot = self.slot(key)?;
        let host = self.file().load()?;
        let place = host.map_or(Ok(None), |host| find(&slot, &host.document));
        let place = place.map_err(|error| self.with_place(error, key))?;
        let owner = Owner {
            slot: Some(key.as_str()),
            task: place.as_ref().and_then(|place| place.task.as_deref()),
        };
        self.file().overflow()?.read(owner)
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
    Error::refused(format!(
        "there is no host file, so it has no place for the checkpoint {slot}; \
         let the builder begin its session first"
    ))
}
