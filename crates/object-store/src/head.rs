//! The object of a key. It holds everything that must change together, so one conditional put changes it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use agent_checkpoint::store::{Keep, Stored};
use agent_checkpoint::{Claim, Dropped, Error, ErrorKind, Fence, Result, Revision};
use chrono::{DateTime, Utc};
use object_store::{ObjectMeta, PutMode, UpdateVersion};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::remote::{Object, random};

/// How many writers the object remembers with their last writes. A writer whose answer was lost looks for its own write
/// there.
const RECENT: usize = 32;

/// The first line of the object, as JSON. The text of the document, if there is one, follows byte for byte.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    /// The layout of the object.
    pub(crate) layout: u64,
    /// The revision of the text as the store wrote it; `None` if there is no document.
    pub(crate) revision: Option<String>,
    /// When the text was written.
    pub(crate) modified: Option<DateTime<Utc>>,
    /// Grows with each state of the document.
    pub(crate) number: u64,
    /// Counts the tasks that followed each other under the key.
    pub(crate) task: u64,
    /// The id of the put that wrote the text.
    pub(crate) save: String,
    /// The last claim. It is never removed.
    pub(crate) claim: Option<Claim>,
    /// Earlier states, oldest first. The present state is among them only while it is pinned.
    pub(crate) history: Vec<Entry>,
    /// The objects that have the dropped items, oldest first.
    pub(crate) dropped: Vec<String>,
    /// Objects that are no longer needed. They are removed once there are enough of them.
    pub(crate) gone: Vec<String>,
    /// How often the object was written.
    pub(crate) writes: u64,
    /// The writers and the number of the last write of each, oldest first.
    recent: Vec<(String, u64)>,
}

/// A fence that must exceed all earlier ones, whatever clock gave them, lies this many milliseconds after the present
/// time.
const BEYOND: u64 = 60_000;

/// A state in the history. Its text is in a separate object, which begins with this entry as a line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) task: u64,
    pub(crate) revision: String,
    pub(crate) saved: Option<DateTime<Utc>>,
    pub(crate) bytes: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pinned: bool,
    /// The object with the text, if its name does not follow from the number and the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<String>,
}

/// The object of a key as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) header: Header,
    pub(crate) text: Vec<u8>,
    /// `None` if there is no object yet.
    version: Option<UpdateVersion>,
}

impl Head {
    pub(crate) fn of(object: Object) -> Result<Head> {
        let mut bytes = object.bytes;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let text = bytes.split_off(end.map_or(bytes.len(), |end| end + 1));
        let unreadable = || {
            let detail = "its object is not what the store writes there; bring an earlier version of the object back, or forget it"
                .to_owned();
            Error::new(ErrorKind::Unreadable { detail })
        };
        let header = serde_json::from_slice::<Header>(&bytes);
        let header = header.map_err(|error| unreadable().with_source(error))?;
        // A text that another program added.
        if header.revision.is_none() && !text.is_empty() {
            return Err(unreadable());
        }
        Ok(Head {
            header,
            text,
            version: Some(object.version),
        })
    }

    /// Like `of`, for a call that removes everything. From an object that the store did not write, it takes what can be
    /// read of the claim. If nothing can, it takes a fence and a number that are greater than all earlier ones.
    pub(crate) fn of_any(object: Object, now: DateTime<Utc>) -> Result<Head> {
        let version = Some(object.version.clone());
        let line = object.bytes.split(|byte| *byte == b'\n').next();
        let left = serde_json::from_slice::<Value>(line.unwrap_or_default()).unwrap_or_default();
        Head::of(object).or_else(|error| {
            if left["layout"].as_u64() > Some(LAYOUT) {
                return Err(error);
            }
            let claim = Claim::deserialize(&left["claim"]).ok();
            let millis = u64::try_from(now.timestamp_millis()).unwrap_or(0);
            let beyond = Claim::only_fence(Fence::new(millis.saturating_add(BEYOND)));
            let header = Header {
                number: millis,
                save: new_id(),
                claim: Some(claim.unwrap_or(beyond)),
                ..Header::default()
            };
            Ok(Head {
                header,
                text: Vec::new(),
                version,
            })
        })
    }

    /// The bytes of the object. Their number is even if there is a document and odd if not. A listing has the sizes, so
    /// it need not read the objects.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = line_of(&self.header)?;
        let size = bytes.len() + 1 + self.text.len();
        if has_document(size as u64) != self.is_there() {
            bytes.push(b' ');
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.text);
        Ok(bytes)
    }

    /// The condition under which the object is overwritten.
    pub(crate) fn mode(&self) -> PutMode {
        let version = self.version.clone();
        version.map_or(PutMode::Create, PutMode::Update)
    }

    pub(crate) fn is_there(&self) -> bool {
        self.header.revision.is_some()
    }

    /// The document, if there is one. A text that is no document or is too long is an error.
    pub(crate) fn stored(&self, max_bytes: u64) -> Result<Option<Stored>> {
        let header = &self.header;
        self.is_there()
            .then(|| stored(&self.text, header.modified, max_bytes))
            .transpose()
    }

    /// The entries of the history, oldest first: all states except the present one, which is an entry only while it is
    /// pinned.
    pub(crate) fn past(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.header.history.iter()
    }

    /// How many tasks ended after a state.
    pub(crate) fn tasks_since(&self, entry: &Entry) -> usize {
        usize::try_from(self.header.task.saturating_sub(entry.task)).unwrap_or_default()
    }

    /// The present state as an entry.
    pub(crate) fn entry(&self) -> Entry {
        Entry {
            number: self.header.number,
            task: self.header.task,
            // The revision of the actual text, which another program may have written.
            revision: Revision::of(&self.text).to_string(),
            saved: self.header.modified,
            bytes: self.text.len() as u64,
            pinned: false,
            part: None,
        }
    }

    /// Adds a text as the newest state to the history of a key without a document. Returns the name and the content of
    /// its object. `tasks_ended` is how many tasks ended after that state. Two calls at the same time have different
    /// texts, so each gets its own object.
    pub(crate) fn append(
        &mut self,
        text: &str,
        modified: DateTime<Utc>,
        tasks_ended: usize,
    ) -> Result<(String, Vec<u8>)> {
        let header = &mut self.header;
        header.number += 1;
        let entry = Entry {
            number: header.number,
            task: header.task,
            revision: Revision::of(text.as_bytes()).to_string(),
            saved: Some(modified),
            bytes: text.len() as u64,
            pinned: false,
            part: Some(format!("history-{}-{}", header.number, new_id())),
        };
        header.task = header.task.saturating_add(tasks_ended as u64);
        let part = entry.name();
        let bytes = object_of(&entry, text.as_bytes())?;
        header.history.push(entry);
        Ok((part, bytes))
    }

    /// The name and the content of the history object of the present state. They are the same for every writer.
    pub(crate) fn to_keep(&self) -> Result<(String, Vec<u8>)> {
        let entry = self.entry();
        Ok((entry.name(), object_of(&entry, &self.text)?))
    }

    /// Whether the present state is already in the history.
    pub(crate) fn is_kept(&self) -> bool {
        let last = self.header.history.last();
        last.is_some_and(|last| last.number == self.header.number)
    }

    /// Adds the present state to the history and removes the entries that exceed the limits.
    pub(crate) fn remember(&mut self, keep: &Keep, now: DateTime<Utc>) {
        if self.is_there() && !self.is_kept() {
            self.header.history.push(self.entry());
        }
        self.prune(keep, None, now);
    }

    /// Removes the entries that exceed the limits, except `spared`, and returns their numbers, newest first. The
    /// present state is never among them.
    pub(crate) fn prune(
        &mut self,
        keep: &Keep,
        spared: Option<u64>,
        now: DateTime<Utc>,
    ) -> Vec<u64> {
        let header = &mut self.header;
        let loose: Vec<&Entry> = header
            .history
            .iter()
            .rev()
            .filter(|entry| !entry.pinned)
            .collect();
        let sizes = loose.iter();
        let sizes = sizes.map(|entry| (entry.saved.map(SystemTime::from), entry.bytes));
        let beyond = keep.beyond(Keep::COUNT, sizes, SystemTime::from(now));
        let mut gone: Vec<u64> = beyond.into_iter().map(|at| loose[at].number).collect();
        gone.retain(|number| Some(*number) != spared);
        let is_gone = |entry: &Entry| gone.contains(&entry.number);
        let names = header.history.iter().filter(|entry| is_gone(entry));
        header.gone.extend(names.map(Entry::name));
        header.history.retain(|entry| !is_gone(entry));
        gone
    }

    /// Ends the present task if it has a state. All states so far then belong to earlier tasks.
    pub(crate) fn end_task(&mut self) {
        let task = self.header.task;
        if self.header.history.iter().any(|entry| entry.task == task) {
            self.header.task += 1;
        }
    }

    /// Makes a text the present one.
    pub(crate) fn set_text(&mut self, text: &str, now: DateTime<Utc>) {
        self.header.number += 1;
        self.header.revision = Some(Revision::of(text.as_bytes()).to_string());
        self.header.modified = Some(now);
        self.header.save = new_id();
        self.text = text.as_bytes().to_vec();
    }

    /// Marks the document as absent.
    pub(crate) fn set_absent(&mut self) {
        self.header.revision = None;
        self.text.clear();
    }

    /// Records the next write by this writer and returns its number.
    pub(crate) fn sign(&mut self, writer: &str) -> u64 {
        let header = &mut self.header;
        header.layout = LAYOUT;
        header.writes += 1;
        header.recent.retain(|(other, _)| other != writer);
        header.recent.push((writer.to_owned(), header.writes));
        let old = header.recent.len().saturating_sub(RECENT);
        header.recent.drain(..old);
        header.writes
    }

    /// Whether this writer made the write with this number, if that is its last one. `None` if so many others have
    /// written since that the object no longer remembers it.
    pub(crate) fn has_write(&self, writer: &str, number: u64) -> Option<bool> {
        let recent = &self.header.recent;
        if recent
            .iter()
            .any(|(by, last)| by == writer && *last == number)
        {
            return Some(true);
        }
        // The oldest write is forgotten first.
        let goes_back = recent.first().is_none_or(|(_, oldest)| *oldest <= number);
        (recent.len() < RECENT || goes_back).then_some(false)
    }

    /// Whether the object `part` is named by this one, or may be named by the next writer.
    pub(crate) fn may_need(&self, part: &str) -> bool {
        let is_named = self.past().any(|entry| entry.name() == part);
        let is_present = self.is_there() && self.entry().name() == part;
        is_named || is_present || self.header.dropped.iter().any(|name| name == part)
    }

    /// A copy without the objects beside it. The present text gets a new number and save id, so no object that another
    /// writer made for the old ones counts for it.
    pub(crate) fn without_past(&self) -> Head {
        let mut head = self.clone();
        let header = &mut head.header;
        header.history.clear();
        header.dropped.clear();
        header.gone.clear();
        header.number += 1;
        header.save = new_id();
        head
    }

    /// The rest after its task is forgotten; `None` if nothing would change. The number stays, so a history object that
    /// a slow writer still makes never counts for the next task.
    pub(crate) fn forgotten(&self) -> Option<Head> {
        let header = &self.header;
        let has_owner = header.claim.as_ref().is_some_and(|it| !it.is_only_fence());
        let has_more = !header.history.is_empty() || !header.dropped.is_empty();
        let is_there = self.is_there() || has_owner || has_more || !header.save.is_empty();
        is_there.then(|| Head {
            header: Header {
                number: header.number,
                claim: header
                    .claim
                    .as_ref()
                    .map(|claim| Claim::only_fence(claim.fence)),
                writes: header.writes,
                recent: header.recent.clone(),
                ..Header::default()
            },
            text: Vec::new(),
            version: self.version.clone(),
        })
    }

    /// Refuses to write over an object of a newer version of this crate.
    pub(crate) fn refuse_newer(&self) -> Result<()> {
        let (found, known) = (self.header.layout, LAYOUT);
        match found > known {
            true => Err(Error::new(ErrorKind::NewerLayout { found, known })),
            false => Ok(()),
        }
    }

    pub(crate) fn e_tag(&self) -> Option<&str> {
        self.version.as_ref()?.e_tag.as_deref()
    }

    /// Whether no writer has changed it since `before`.
    pub(crate) fn is_still(&self, before: &Head) -> bool {
        self.version == before.version
    }
}

/// The layout that this store writes.
pub(crate) const LAYOUT: u64 = 1;

/// Whether the size of an object means that it has a document.
pub(crate) fn has_document(size: u64) -> bool {
    size.is_multiple_of(2)
}

/// Objects whose size means that they have no document, by name: the e-tag at which each was read, and whether it has a
/// document after all.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<BTreeMap<String, (Option<String>, bool)>>);

impl Known {
    pub(crate) fn find(&self, name: &str, object: &ObjectMeta) -> Option<bool> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (e_tag, is_there) = known.get(name)?;
        (e_tag.is_some() && *e_tag == object.e_tag).then_some(*is_there)
    }

    pub(crate) fn note(&self, name: &str, object: &ObjectMeta, is_there: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), (object.e_tag.clone(), is_there));
    }
}

impl Entry {
    pub(crate) fn name(&self) -> String {
        // The digest is part of the name because numbers repeat if an earlier object of the key is restored.
        let of_state = || {
            let digest = self.revision.rsplit(':').next().unwrap_or_default();
            let digest: String = digest.chars().take(8).collect();
            format!("history-{}-{digest}", self.number)
        };
        self.part.clone().unwrap_or_else(of_state)
    }

    /// The text in the object of the entry.
    pub(crate) fn stored(&self, object: &Object, max_bytes: u64) -> Result<Stored> {
        let text = object.bytes.splitn(2, |byte| *byte == b'\n').nth(1);
        stored(text.unwrap_or_default(), self.saved, max_bytes)
    }
}

fn object_of(entry: &Entry, text: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = line_of(entry)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(text);
    Ok(bytes)
}

fn stored(text: &[u8], modified: Option<DateTime<Utc>>, max_bytes: u64) -> Result<Stored> {
    let modified = modified.map(SystemTime::from);
    Stored::read(text, modified, text.len() as u64, max_bytes)
}

pub(crate) fn too_large(size: u64, limit: u64) -> Error {
    Error::new(ErrorKind::TooLarge {
        size,
        limit,
        is_new: false,
    })
}

/// A dropped item and its text as one line.
pub(crate) fn line_of_item(item: &Dropped) -> Result<String> {
    let line = serde_json::to_string(&(item, &item.text));
    line.map_err(|error| Error::refused("a dropped item cannot be written").with_source(error))
}

pub(crate) fn item_of_line(line: &str) -> Result<Dropped> {
    let read = serde_json::from_str::<(Dropped, Option<String>)>(line);
    let (mut item, text) = read.map_err(|error| {
        let detail = "a dropped item of it cannot be read; correct its object".to_owned();
        Error::new(ErrorKind::Unreadable { detail }).with_source(error)
    })?;
    item.text = text;
    Ok(item)
}

fn line_of(value: &impl Serialize) -> Result<Vec<u8>> {
    let line = serde_json::to_vec(value);
    line.map_err(|error| Error::refused("its header cannot be written").with_source(error))
}

/// A name that no other object has.
pub(crate) fn new_id() -> String {
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_finds_its_last_write_however_often_others_wrote() {
        let mut head = Head::default();
        assert_eq!(head.sign("ours"), 1);
        for _ in 0..10 {
            for other in 0..RECENT - 1 {
                head.sign(&format!("other {other}"));
            }
        }
        assert_eq!(head.has_write("ours", 1), Some(true));
        // Another writer made the write with that number.
        assert_eq!(head.has_write("late", 300), Some(false));
        // As many writers as the object remembers have written since.
        assert_eq!(head.has_write("late", 2), Some(false));
        head.sign("one more");
        assert_eq!(head.has_write("late", 2), None);
        assert_eq!(head.has_write("ours", 1), None);
    }
}
