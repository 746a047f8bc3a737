//! A slot of a host file as the checkpoint of a key.

use std::borrow::Cow;

use super::DurableFile;
use super::saved::Noted;
use crate::checkpoint::{Error, ErrorKind, Result, Revision, Timestamp};
use crate::formats::builder_state::{NO_SUCH_SLOT, Slot, SlotPlace};
use crate::json::{Document, Kind};
use crate::store::{Put, Stored};

/// The JSON pointer of a host's heartbeat.
pub(super) const HEARTBEAT: &str = "/lastHeartbeat";

/// A host file that was read, with one of its slots.
pub(super) struct InHost<'h> {
    pub(super) host: Cow<'h, Stored>,
    pub(super) place: SlotPlace,
    /// The checkpoint in the slot.
    pub(super) present: Option<Stored>,
}

impl<'h> InHost<'h> {
    /// The slot in a host that is about to be changed. Only the slot `top` does not need an existing host.
    ///
    /// # Errors
    ///
    /// The code `no-such-slot` if the host has no such slot.
    pub(super) fn open(
        slot: &Slot,
        host: Option<&'h Stored>,
        file: &DurableFile<'_>,
        noted: &Noted,
    ) -> Result<Self> {
        let host = match host {
            Some(host) => Cow::Borrowed(host),
            None if *slot == Slot::Top => Cow::Owned(Stored::new(Document::from_text("{}\n")?)),
            None => return Err(no_host(slot)),
        };
        let place = slot.find(&host.document)?;
        let mut present = stored(&host, &place)?;
        if let Some(present) = &mut present {
            say_former_task(file, slot, &host.document, present)?;
            let changed = noted.changed_without(&present.revision);
            present.changed_without = Some(changed.is_some());
        }
        Ok(InHost {
            host,
            place,
            present,
        })
    }

    /// The host with a document in the slot, and the resulting revision of the slot. A text from elsewhere is
    /// reindented.
    pub(super) fn with(&self, document: &Document) -> Result<(String, Revision)> {
        // This avoids a copy of the host, which may be large.
        let grafted = self.host.document.grafted(&self.place.pointer, document)?;
        let changed = grafted.as_ref().unwrap_or(&self.host.document);
        let node = changed.get(&self.place.pointer);
        let revision = node.map(|node| Revision::of(node.raw().as_bytes()));
        let revision = revision.ok_or_else(|| no_host(&self.place.slot))?;
        let text =
            grafted.map_or_else(|| self.host.document.text().to_owned(), Document::into_text);
        Ok((text, revision))
    }

    /// The text to keep beside the slot with a put. A checkpoint keeps its task until another one begins in the
    /// same slot.
    pub(super) fn kept_beside(&self, file: &DurableFile<'_>, put: &Put) -> Result<String> {
        let before = match (&self.present, put.archive) {
            (Some(present), None) => saved_for(file, &self.place.slot, &present.revision)?,
            _ => None,
        };
        let task = before.or_else(|| self.place.task.clone());
        let task = serde_json::Value::from(task).to_string();
        Ok(match put.fingerprints() {
            Some(text) => format!("{task}\n{text}"),
            None => task,
        })
    }
}

/// Splits [`kept_beside`](InHost::kept_beside) into the task that a checkpoint was saved for and the
/// fingerprints. Earlier versions stored only the fingerprints, as an object.
pub(super) fn of_kept_beside(kept: &str) -> (Option<String>, Option<&str>) {
    let (first, rest) = match kept.split_once('\n') {
        Some((first, rest)) => (first, Some(rest)),
        None => (kept, None),
    };
    match serde_json::from_str::<Option<String>>(first) {
        Ok(task) => (task, rest),
        Err(_) => (None, Some(kept)),
    }
}

/// The position of a slot; `None` if the host has none, for example an idle host without an active task.
pub(super) fn find(slot: &Slot, host: &Document) -> Result<Option<SlotPlace>> {
    match slot.find(host) {
        Ok(place) => Ok(Some(place)),
        Err(error) if error.code() == NO_SUCH_SLOT => Ok(None),
        Err(error) => Err(error),
    }
}

/// The checkpoint in a slot of a host.
pub(super) fn stored(host: &Stored, place: &SlotPlace) -> Result<Option<Stored>> {
    if !place.occupied {
        return Ok(None);
    }
    let Some(document) = host.document.extract(&place.pointer) else {
        let found = host.document.get(&place.pointer);
        let kind = found.map_or("nothing", |node| node.kind().describe());
        return Err(Error::new(ErrorKind::Unreadable {
            detail: format!(
                "{} has {kind} where a checkpoint object belongs; correct it, or set it to null and start again",
                place.pointer
            ),
        }));
    };
    let mut stored = Stored::new(document);
    stored.modified = host.modified;
    stored.context.task.clone_from(&place.task);
    stored.context.description.clone_from(&place.description);
    let heartbeat = host.document.get(HEARTBEAT).and_then(|node| node.as_str());
    stored.context.heartbeat = heartbeat.map(Timestamp::parse);
    Ok(Some(stored))
}

/// Whether the slot has something other than an object. It is no checkpoint, so it can be deleted.
pub(super) fn is_no_checkpoint(host: &Document, place: &SlotPlace) -> bool {
    let found = host.get(&place.pointer);
    found.is_some_and(|node| node.kind() != Kind::Object)
}

/// Whether a write of the whole host changes the checkpoint or the task of this slot. A name that is no slot
/// stands for the file.
pub(super) fn differs(name: &str, before: Option<&Stored>, after: &Document) -> bool {
    let Ok(slot) = name.parse::<Slot>() else {
        return true;
    };
    let of = |host: &Document| {
        let place = slot.find(host).ok()?;
        let text = host.get(&place.pointer).map(|node| node.raw().to_owned());
        Some((place.task, text))
    };
    before.and_then(|before| of(&before.document)) != of(after)
}

/// The checkpoint in a slot, if the host has that slot.
pub(super) fn in_host(slot: &Slot, host: Option<Stored>) -> Result<Option<Stored>> {
    let Some(host) = host else {
        return Ok(None);
    };
    let place = find(slot, &host.document)?;
    place.map_or(Ok(None), |place| stored(&host, &place))
}

/// The same for the present host.
pub(super) fn in_present_host(
    file: &DurableFile<'_>,
    slot: &Slot,
    host: &Stored,
) -> Result<Option<Stored>> {
    let place = find(slot, &host.document)?;
    let mut found = place.map_or(Ok(None), |place| stored(host, &place))?;
    if let Some(found) = &mut found {
        say_former_task(file, slot, &host.document, found)?;
    }
    Ok(found)
}

/// The task that the checkpoint of this revision was saved for. If the checkpoint was put back without the
/// store, the host in its history entry states the task.
fn saved_for(file: &DurableFile<'_>, slot: &Slot, revision: &Revision) -> Result<Option<String>> {
    if let Some(kept) = file.fingerprints(revision)? {
        return Ok(of_kept_beside(&kept).0);
    }
    let Some(history) = file.history()? else {
        return Ok(None);
    };
    for entry in history.entries()? {
        let host = match file.read_entry(&entry.path) {
            // A damaged entry must not hide the others.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Corrupt(_) | ErrorKind::TooLarge { .. }
                ) =>
            {
                continue;
            }
            host => host?,
        };
        if let Ok(Some(state)) = in_host(slot, host)
            && state.revision == *revision
        {
            return Ok(state.context.task);
        }
    }
    Ok(None)
}

/// Sets the task of a checkpoint that the host left in its slot when it moved on to the next story: the
/// checkpoint still belongs to the last one. That task is the story whose contract the checkpoint names, else
/// the one that it was saved for.
fn say_former_task(
    file: &DurableFile<'_>,
    slot: &Slot,
    host: &Document,
    stored: &mut Stored,
) -> Result<()> {
    // The other slots are found by the id of their task, or belong to no task.
    if !matches!(slot, Slot::Active | Slot::FormerActive) {
        return Ok(());
    }
    let Some(task) = stored.context.task.clone() else {
        return Ok(());
    };
    let own = match story_of_contract(&stored.document, &task) {
        Some(story) => Some(story),
        None => saved_for(file, slot, &stored.revision)?,
    };
    // Before its first story, a document stands for all of its stories.
    let is_document = |own: &String| {
        let id = host.get("/activePrd/id").and_then(|id| id.as_str());
        id.is_some_and(|id| id == own.as_str())
    };
    if let Some(own) = own.filter(|own| *own != task && !is_document(own)) {
        stored.context.task = Some(own);
        stored.context.description = None;
        stored.context.place_is_for = Some(task);
    }
    Ok(())
}

/// The story whose contract a checkpoint names, such as `US-003.verificationContract`, if the slot's task has
/// an id of the same kind.
fn story_of_contract(checkpoint: &Document, task: &str) -> Option<String> {
    let contract = checkpoint.get("/verification/contractRef")?.as_str()?;
    let story = contract.strip_suffix(".verificationContract")?;
    let kind = |id: &str| id.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let is_numbered = kind(story) != story;
    (is_numbered && kind(story) == kind(task)).then(|| story.to_owned())
}

fn no_host(slot: &Slot) -> Error {
    Error::refused(format!(
        "there is no host file, so it has no place for the checkpoint {slot}; \
         let the builder begin its session first"
    ))
}
