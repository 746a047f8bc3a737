//! The store: its options, and the documents.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_checkpoint::store::{
    Beside, Capabilities, Changes, CheckpointStore, Claims, DeleteOptions, Exclusive, Heartbeat,
    History, Keep, Outcome, Page, Put, Query, Recover, Saved, Stored, check_expected, check_size,
};
use agent_checkpoint::{Claim, Clock, Error, ErrorKind, Expect, Fence, Key, Result, SystemClock};
use chrono::{DateTime, TimeDelta, Utc};
use object_store::path::Path;
use object_store::{ObjectStore, PutMode};

use crate::failure::{Failure, outcome_unknown, unordered_listing};
use crate::head::{Head, Known, LAYOUT, new_id, too_large};
use crate::keys::name_of;
use crate::place::Place;
use crate::remote::{Got, Object, Remote, Time, Wait, random};
use crate::turns::Turns;

/// The largest size of an object besides its text, in bytes.
const HEADER_BYTES: u64 = 1 << 20;

/// How many objects that are no longer needed are removed with one request.
const GONE: usize = 16;

/// A store in the objects of a bucket, or in the memory of the driver.
///
/// A clone shares the store.
#[derive(Clone)]
pub struct ObjectCheckpointStore {
    pub(crate) remote: Arc<Remote>,
    pub(crate) place: Place,
    pub(crate) shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    pub(crate) keep: Keep,
    pub(crate) max_bytes: u64,
    skew: TimeDelta,
    timeout: Duration,
    is_read_only: bool,
    /// The layout number, if a newer version made the store.
    newer: Option<u64>,
}

/// Reads the object of a key.
type ReadHead<'r> = dyn Fn(Object) -> Result<Head> + 'r;

/// State that the clones of a store share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The name under which they write. Only one of them writes a key at a time.
    writer: String,
    turns: Turns,
    pub(crate) known: Known,
}

impl fmt::Debug for ObjectCheckpointStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The `Display` text of a driver has no credentials in it; its `Debug` text may.
        f.debug_struct("ObjectCheckpointStore")
            .field("objects", &self.remote.objects.to_string())
            .field("place", &self.place)
            .field("keep", &self.keep)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

impl ObjectCheckpointStore {
    /// Opens the store below `root`, a path in the bucket; an empty path means the whole bucket. Creates the store if
    /// it is missing.
    ///
    /// # Errors
    ///
    /// If the object store cannot be reached or does not support conditional puts, or if `root` is not a valid path.
    pub fn open(objects: Arc<dyn ObjectStore>, root: &str) -> Result<ObjectCheckpointStore> {
        ObjectCheckpointStore::prepared(objects, root, true)
    }

    /// Opens an existing store. Nothing is created, so a wrong address does not become a new store.
    ///
    /// # Errors
    ///
    /// Those of [`open`](ObjectCheckpointStore::open), and the code `no-store` if there is no store.
    pub fn open_existing(
        objects: Arc<dyn ObjectStore>,
        root: &str,
    ) -> Result<ObjectCheckpointStore> {
        ObjectCheckpointStore::prepared(objects, root, false)
    }

    fn prepared(
        objects: Arc<dyn ObjectStore>,
        root: &str,
        makes: bool,
    ) -> Result<ObjectCheckpointStore> {
        let mut store = ObjectCheckpointStore::of(objects, root, false)?;
        store.newer = store.place.prepare(&store.remote, makes, store.time())?;
        Ok(store)
    }

    /// Opens a store for reading only. No request is made before the first read, nothing is created, and every write
    /// fails with [`ErrorKind::ReadOnly`].
    ///
    /// # Errors
    ///
    /// If `root` is not a valid path.
    pub fn read_only(objects: Arc<dyn ObjectStore>, root: &str) -> Result<ObjectCheckpointStore> {
        ObjectCheckpointStore::of(objects, root, true)
    }

    /// Opens the store at a URL such as `s3://bucket/path`, with settings from the environment (`AWS_ACCESS_KEY_ID`,
    /// `AWS_REGION`, `AWS_ENDPOINT` and all others that the driver knows). The features of this crate decide which URLs
    /// it knows.
    ///
    /// # Errors
    ///
    /// Those of [`open`](ObjectCheckpointStore::open), and if the driver does not know the URL.
    pub fn from_url(address: &str) -> Result<ObjectCheckpointStore> {
        let (objects, root) = crate::place::from_url(address)?;
        ObjectCheckpointStore::open(objects, &root)
    }

    /// Like [`open_existing`](ObjectCheckpointStore::open_existing), at a URL.
    ///
    /// # Errors
    ///
    /// Those of [`from_url`](ObjectCheckpointStore::from_url), and the code `no-store` if there is no store.
    pub fn existing_from_url(address: &str) -> Result<ObjectCheckpointStore> {
        let (objects, root) = crate::place::from_url(address)?;
        ObjectCheckpointStore::open_existing(objects, &root)
    }

    /// Like [`read_only`](ObjectCheckpointStore::read_only), at a URL.
    ///
    /// # Errors
    ///
    /// If the driver does not know the URL.
    pub fn read_only_from_url(address: &str) -> Result<ObjectCheckpointStore> {
        let (objects, root) = crate::place::from_url(address)?;
        ObjectCheckpointStore::read_only(objects, &root)
    }

    fn of(
        objects: Arc<dyn ObjectStore>,
        root: &str,
        is_read_only: bool,
    ) -> Result<ObjectCheckpointStore> {
        // All buckets of S3 Express One Zone have this ending.
        if objects.to_string().contains("--x-s3") {
            return Err(unordered_listing());
        }
        Ok(ObjectCheckpointStore {
            place: Place::new(root)?,
            remote: Arc::new(Remote::start(objects)?),
            shared: Arc::new(Shared {
                writer: format!("{:016x}", random()),
                turns: Turns::default(),
                known: Known::default(),
            }),
            clock: Arc::new(SystemClock),
            keep: Keep::default(),
            max_bytes: 16 << 20,
            skew: TimeDelta::seconds(10),
            timeout: Duration::from_secs(60),
            is_read_only,
            newer: None,
        })
    }

    /// Takes the time of claims and saves from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets how much history is kept. The default is the newest ten states of each checkpoint. The object of a key
    /// names them all, with about 200 bytes each.
    #[must_use]
    pub fn with_history(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Sets the largest document that is read or written, in bytes. The default is 16 MiB.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets by how much the clocks of the machines may differ. The default is 10 s. A claim keeps all but its owner out
    /// for that much longer.
    #[must_use]
    pub fn with_clock_skew(mut self, skew: Duration) -> Self {
        self.skew = TimeDelta::from_std(skew).unwrap_or(TimeDelta::MAX);
        self
    }

    /// Sets how long a call keeps trying while the object store does not answer or other writers are faster. The
    /// default is 60 s. A single request may take half of it.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The time at which another owner's claim is judged: that owner's clock may be this far behind.
    pub(crate) fn now_for_others(&self) -> DateTime<Utc> {
        let now = self.now();
        now.checked_sub_signed(self.skew)
            .unwrap_or(DateTime::<Utc>::MIN_UTC)
    }

    pub(crate) fn time(&self) -> Time {
        Time::of(self.timeout)
    }

    /// The largest object of a key that is read, in bytes.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.max_bytes.saturating_add(HEADER_BYTES)
    }

    /// Reads the object of a key.
    pub(crate) fn head(&self, key: &Key, time: Time) -> Result<Head> {
        self.head_by(key, &Head::of, time)
    }

    fn head_by(&self, key: &Key, read: &ReadHead<'_>, time: Time) -> Result<Head> {
        let path = self.place.document(&name_of(key.as_str()))?;
        let head = match self.remote.get(&path, self.most_bytes(), time) {
            Ok(Got::Whole(object)) => read(object),
            Ok(Got::TooLarge(size)) => Err(too_large(size, self.max_bytes)),
            Err(Failure::Absent) => Ok(Head::default()),
            Err(failure) => Err(failure.into_error()),
        };
        head.map_err(|error| error.with_path(path.as_ref()).with_key(key))
    }

    /// Changes the object of a key: reads it, lets `decide` choose the next state, and writes that on condition that
    /// the object is still the one that was read. If another writer was faster, all of this is repeated.
    pub(crate) fn change<T>(
        &self,
        key: &Key,
        decide: impl FnMut(&Head, Time) -> Result<(Option<Next>, T)>,
    ) -> Result<T> {
        self.change_by(key, &Head::of, decide)
    }

    fn change_by<T>(
        &self,
        key: &Key,
        read: &ReadHead<'_>,
        mut decide: impl FnMut(&Head, Time) -> Result<(Option<Next>, T)>,
    ) -> Result<T> {
        self.check_writable().map_err(|error| error.with_key(key))?;
        let (time, began) = (self.time(), Instant::now());
        let Some(_held) = self.shared.turns.wait(key, time.until) else {
            let locked = ErrorKind::Locked {
                waited: began.elapsed(),
                holder: Some("another thread of this program".to_owned()),
                pid: None,
                held_for: None,
            };
            return Err(Error::new(locked).with_key(key));
        };
        let mut wait = Wait::default();
        loop {
            let head = self.head_by(key, read, time)?;
            // A newer version may have written since this store was opened.
            head.refuse_newer().map_err(|error| error.with_key(key))?;
            let decided = decide(&head, time).and_then(|(next, value)| match next {
                Some(next) => Ok(self.write(key, &head, next, time)?.then_some(value)),
                None => Ok(Some(value)),
            });
            match decided {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => {}
                // An object that the key named is gone. If the key has changed since, read it again.
                Err(error)
                    if error.code() == "missing-object"
                        && !self.head_by(key, read, time)?.is_still(&head) => {}
                Err(error) => return Err(error.with_key(key)),
            }
            let pause = wait.take();
            if Instant::now() + pause >= time.until {
                return Err(Error::new(ErrorKind::ChangedMeanwhile).with_key(key));
            }
            std::thread::sleep(pause);
        }
    }

    /// Refuses a write to a read-only store or one of a newer version.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.newer {
            _ if self.is_read_only => Err(Error::new(ErrorKind::ReadOnly)),
            Some(found) => {
                let known = LAYOUT;
                Err(Error::new(ErrorKind::NewerLayout { found, known }))
            }
            None => Ok(()),
        }
    }

    /// Writes the next state. Returns `false` if another writer was faster.
    fn write(&self, key: &Key, before: &Head, mut next: Next, time: Time) -> Result<bool> {
        let name = name_of(key.as_str());
        let path = self.place.document(&name)?;
        if !next.first.is_empty() {
            let mut first = Vec::new();
            for (part, bytes, mode) in next.first {
                first.push((self.place.beside(&name, &part)?, bytes, mode));
            }
            let put = self.remote.put_all(first, time);
            put.map_err(Failure::into_error)?;
        }
        // Remove only objects that the present object no longer names. Those that this write releases still count,
        // because it may lose.
        let over = &before.header.gone;
        if over.len() >= GONE {
            let paths = over.iter().map(|part| self.place.beside(&name, part));
            let paths: Result<Vec<Path>> = paths.collect();
            // If this fails, the next write tries again.
            if self.remote.delete_all(paths?, time).is_ok() {
                next.head.header.gone.retain(|part| !over.contains(part));
            }
        }
        let writer = &self.shared.writer;
        let number = next.head.sign(writer);
        let bytes = next.head.to_bytes()?;
        let unknown = |cause: Box<dyn std::error::Error + Send + Sync>| {
            let error = outcome_unknown().with_source(cause);
            Err(error.with_path(path.as_ref()))
        };
        let (mut wait, mut cause) = (Wait::default(), None);
        loop {
            let put = self
                .remote
                .put_once(&path, bytes.clone(), before.mode(), time);
            match put {
                Ok(()) => return Ok(true),
                // The driver retries some requests by itself, so this write may have been made already.
                Err(Failure::Lost | Failure::Absent) => {}
                Err(Failure::Unknown(why)) => cause = Some(why),
                Err(Failure::Refused(error)) if cause.is_some() => return unknown(error.into()),
                Err(Failure::Refused(error)) => return Err(error.with_path(path.as_ref())),
            }
            let now = match self.head(key, time) {
                Ok(now) => now,
                Err(error) => return unknown(error.into()),
            };
            match now.has_write(writer, number) {
                Some(true) => return Ok(true),
                _ if now.is_still(before) => {}
                Some(false) => {
                    self.remove_leftover(&name, &next.leftover, &now, time);
                    return Ok(false);
                }
                None => return unknown("too many other writers changed it in the meantime".into()),
            }
            // The first request may still be on its way. The second is the same request with the same condition, so
            // only one of them can succeed.
            let pause = wait.take();
            if Instant::now() + pause >= time.until {
                return match cause {
                    Some(cause) => unknown(cause.into()),
                    None => Err(Error::new(ErrorKind::ChangedMeanwhile)),
                };
            }
            std::thread::sleep(pause);
        }
    }

    /// Removes the objects of a write that lost, unless the present object may need them.
    fn remove_leftover(&self, name: &str, parts: &[String], now: &Head, time: Time) {
        let parts = parts.iter().filter(|part| !now.may_need(part));
        let paths = parts.map(|part| self.place.beside(name, part));
        let paths: Vec<Path> = paths.filter_map(Result::ok).collect();
        if !paths.is_empty() {
            // An object that stays only takes space.
            let _removed = self.remote.delete_all(paths, time);
        }
    }

    /// Checks the fence of a writer.
    pub(crate) fn check_fence(&self, head: &Head, fence: Option<Fence>) -> Result<()> {
        Claim::check(head.header.claim.as_ref(), fence, self.now_for(fence))
    }

    fn now_for(&self, fence: Option<Fence>) -> DateTime<Utc> {
        match fence {
            Some(_) => self.now(),
            None => self.now_for_others(),
        }
    }

    /// The next state after a put, unless the put changes nothing.
    fn save(
        &self,
        key: &Key,
        head: &Head,
        present: Option<&Stored>,
        put: &Put,
        time: Time,
    ) -> Result<(Option<Next>, Saved)> {
        check_expected(key, put.expect(), present)?;
        self.check_fence(head, put.fence())?;
        let text = put.document().text();
        check_size(text, self.max_bytes)?;
        let mut saved = put.saved(present);
        if saved.outcome == Outcome::Unchanged {
            return Ok((None, saved));
        }
        let mut next = Next::after(head);
        if !put.skips_history() {
            next.remember(&self.keep, self.now())?;
        }
        // An archive ends the task, although this store keeps no archives.
        if put.begins_task(saved.outcome) {
            next.clear_dropped();
            next.head.end_task();
        }
        if !put.dropped().is_empty() {
            self.add_dropped(key, &mut next, put.dropped(), time)?;
            saved.truncation.kept_in = Some(self.place.folder_beside(&name_of(key.as_str())));
        }
        next.head.set_text(text, self.now());
        if let Some(fingerprints) = put.fingerprints() {
            next.add_fingerprints(fingerprints);
        }
        Ok((Some(next), saved))
    }
}

/// The next state of a key, with the objects that must be written before it.
pub(crate) struct Next {
    pub(crate) head: Head,
    first: Vec<(String, Vec<u8>, PutMode)>,
    /// Those of `first` that are useless if another writer is faster.
    leftover: Vec<String>,
}

impl Next {
    pub(crate) fn after(head: &Head) -> Next {
        Next {
            head: head.clone(),
            first: Vec::new(),
            leftover: Vec::new(),
        }
    }

    /// Puts the present state into the history.
    pub(crate) fn remember(&mut self, keep: &Keep, now: DateTime<Utc>) -> Result<()> {
        if self.head.is_there() && !self.head.is_kept() {
            self.keep_present()?;
        }
        self.head.remember(keep, now);
        Ok(())
    }

    /// Writes the history object of the present state.
    pub(crate) fn keep_present(&mut self) -> Result<()> {
        let (part, bytes) = self.head.to_keep()?;
        self.leftover.push(part.clone());
        self.first.push((part, bytes, PutMode::Create));
        Ok(())
    }

    /// Writes an object under a new name that only this write uses. Returns the name.
    pub(crate) fn add(&mut self, kind: &str, bytes: Vec<u8>) -> String {
        let part = format!("{kind}-{}", new_id());
        self.add_as(part.clone(), bytes);
        part
    }

    /// Writes an object under a given name that nothing else uses.
    pub(crate) fn add_as(&mut self, part: String, bytes: Vec<u8>) {
        self.first.push((part.clone(), bytes, PutMode::Overwrite));
        self.leftover.push(part);
    }

    /// Writes an object that other writers may overwrite.
    pub(crate) fn set(&mut self, part: impl Into<String>, bytes: Vec<u8>) {
        self.first.push((part.into(), bytes, PutMode::Overwrite));
    }
}

impl CheckpointStore for ObjectCheckpointStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        let stored = self.head(key, self.time())?.stored(self.max_bytes);
        stored.map_err(|error| error.with_key(key))
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.change(key, |head, time| {
            let present = head.stored(self.max_bytes)?;
            self.save(key, head, present.as_ref(), &put, time)
        })
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        Some(self)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.change(key, |head, _| {
            let present = head.stored(self.max_bytes)?;
            check_expected(key, options.expect(), present.as_ref())?;
            self.check_fence(head, options.fence())?;
            if present.is_none() {
                return Ok((None, false));
            }
            let mut next = Next::after(head);
            next.remember(&self.keep, self.now())?;
            next.head.set_absent();
            Ok((Some(next), true))
        })
    }

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        let check = |head: &Head| {
            if *options.expect() != Expect::Any {
                check_expected(key, options.expect(), head.stored(self.max_bytes)?.as_ref())?;
            }
            let (claim, fence) = (head.header.claim.as_ref(), options.fence());
            Claim::check_forget(claim, fence, self.now_for(fence))
        };
        let read = |object| Head::of_any(object, self.now());
        // A document that is too large to be read is forgotten, too.
        let all = self.clone().with_max_bytes(u64::MAX);
        // Never remove an object that the key's object names, or that a writer is about to name. So the key's object
        // first drops all of these names, and later writers use new ones.
        let beside = all.change_by(key, &read, |head, time| {
            check(head)?;
            let beside = self.beside_of(key, |_| true, time)?;
            let next = (!beside.is_empty()).then(|| Next::after(&head.without_past()));
            Ok((next, beside))
        })?;
        let was_beside = !beside.is_empty();
        if was_beside {
            let removed = self.remote.delete_all(beside, self.time());
            removed.map_err(|failure| failure.into_error().with_key(key))?;
        }
        all.change_by(key, &read, |head, _| {
            check(head)?;
            let next = head.forgotten();
            let was_there = was_beside || next.is_some();
            Ok((next.as_ref().map(Next::after), was_there))
        })
    }

    fn list(&self, query: &Query) -> Result<Page> {
        let time = self.time();
        let (all, foreign) = match &query.keys {
            Some(keys) => (self.listed_keys(keys, query, time)?, Vec::new()),
            None => self.listed(query, time)?,
        };
        let mut page = query.page(all);
        page.foreign = foreign;
        if query.ledgers {
            self.tell_ledgers(&mut page, time)?;
        }
        if query.documents && query.keys.is_none() {
            self.fill(&mut page, time)?;
        }
        Ok(page)
    }

    fn beside(&self) -> &dyn Beside {
        self
    }

    fn claims(&self) -> Option<&dyn Claims> {
        Some(self)
    }

    fn history(&self) -> Option<&dyn History> {
        Some(self)
    }

    fn recovery(&self) -> Option<&dyn Recover> {
        Some(self)
    }

    fn heartbeat(&self) -> Option<&dyn Heartbeat> {
        None
    }

    fn changes(&self) -> Option<&dyn Changes> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        // The driver's memory ends with the process.
        let is_shared = !self.remote.objects.to_string().contains("InMemory");
        let mut offered = Capabilities::none();
        offered.survives_power_loss = is_shared;
        offered.excludes_processes = is_shared;
        offered.excludes_machines = is_shared;
        offered
    }
}

impl Exclusive for ObjectCheckpointStore {
    fn with_lock(
        &self,
        key: &Key,
        decide: &mut dyn FnMut(Option<&Stored>) -> Result<Option<Put>>,
    ) -> Result<Saved> {
        self.change(key, |head, time| {
            let present = head.stored(self.max_bytes)?;
            match decide(present.as_ref())? {
                Some(put) => self.save(key, head, present.as_ref(), &put, time),
                None => Ok((None, Saved::unchanged(key, present.as_ref())?)),
            }
        })
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]
mod tests {
    use agent_checkpoint::json::Document;
    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn a_key_whose_object_is_too_large_to_be_read_can_be_forgotten() {
        let store = ObjectCheckpointStore::open(Arc::new(InMemory::new()), "").unwrap();
        let key = Key::new("a").unwrap();
        let long = "x".repeat(2 << 20);
        for _ in 0..2 {
            let document = Document::new(&serde_json::json!({ "long": long })).unwrap();
            store.put(&key, Put::new(document)).unwrap();
        }
        let small = store.clone().with_max_bytes(10);
        assert_eq!(small.load(&key).unwrap_err().code(), "too-large");
        assert!(small.forget(&key, &DeleteOptions::new()).unwrap());
        assert!(small.load(&key).unwrap().is_none());
        assert!(small.states(&key).unwrap().is_empty());
    }
}
