//! From a changed checkpoint to the text that is saved.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{Checkpoints, Loaded};
use crate::checkpoint::{
    Archive, Checkpoint, Current, DropReason, Dropped, Error, ErrorKind, Fence, Key, Limits,
    Result, Revision, RuleContext, SavedFiles, Truncation, UnreadableItem, any_migration, read,
    unreadable_items, version_is_unreadable, violations,
};
use crate::event;
use crate::json::{Document, Reading, Rewrite, RewriteError, Rewritten, Violation};
use crate::resume::Newer;
use crate::staleness::{Fingerprints, Recording, Work};
use crate::store::{Put, Saved, Stored};

/// How a whole checkpoint is written over the existing text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PutMode {
    /// Changes only what differs, and keeps what the type does not know.
    #[default]
    Edit,
    /// Writes a new text without what the type does not know.
    Replace,
}

/// A put that is ready for the store, and the report of its save.
pub(super) struct Prepared {
    put: Put,
    report: Report,
    /// The files that the checkpoint names.
    files: Vec<String>,
    /// The previous fingerprints of the files, and the work that the save reports. `None` if the save changes
    /// nothing, or if files are judged by their times alone.
    work: Option<(Option<Fingerprints>, Work)>,
}

/// What the typed view adds to the [`Saved`] of the store.
#[derive(Default)]
pub(super) struct Report {
    truncation: Truncation,
    lost: Vec<String>,
    violations: Vec<Violation>,
    transient: Vec<Violation>,
    files: SavedFiles,
    /// The agent that the checkpoint names.
    pub(super) agent: Option<String>,
}

impl Report {
    /// Whether anything was dropped or shortened.
    pub(super) fn is_truncated(&self) -> bool {
        !self.truncation.dropped.is_empty()
    }

    /// Adds this to the report of the store.
    pub(super) fn complete(self, saved: Saved) -> Saved {
        let kept_in = saved.truncation.kept_in;
        Saved {
            truncation: Truncation {
                kept_in,
                ..self.truncation
            },
            lost: self.lost,
            violations: self.violations,
            transient: self.transient,
            files: self.files,
            ..saved
        }
    }
}

impl Prepared {
    /// A put of a text that equals the present one.
    fn unchanged(document: Document) -> Self {
        Prepared {
            put: Put::new(document),
            report: Report::default(),
            files: Vec::new(),
            work: None,
        }
    }

    /// States that the work continues another checkpoint than the one that is replaced.
    pub(super) fn goes_on_from<C: Checkpoint>(
        &mut self,
        checkpoints: &Checkpoints<C>,
        key: &Key,
        old: &Loaded<C>,
        new: &C,
    ) -> Result<()> {
        let work = || Work::between(&old.checkpoint, new);
        self.work = checkpoints.work_after(Some((key, &old.revision)), work)?;
        Ok(())
    }

    /// Records fingerprints of the files that the checkpoint names, and of those of its dropped items.
    pub(super) fn record_files<C: Checkpoint>(
        &mut self,
        checkpoints: &Checkpoints<C>,
        key: &Key,
    ) -> Result<()> {
        let Some((before, work)) = &self.work else {
            return Ok(());
        };
        let keeps = self.put.skips_history || checkpoints.keeps_fingerprints;
        let vouches = !keeps && work.is_reported(before.as_ref());
        let is_kept = before.is_some() || checkpoints.keeps_fingerprints;
        if checkpoints.tracking.is_none() && (vouches || !is_kept) {
            // The files are judged by their times alone.
            return Ok(());
        }
        // The previous record already has the files of all items that were dropped before it.
        let dropped = match &before {
            Some(_) => Vec::new(),
            None => checkpoints
                .store
                .beside()
                .newest_dropped(key, super::dropped::NEWEST)?,
        };
        let dropped = dropped.iter().chain(&self.report.truncation.dropped);
        let dropped = dropped.filter_map(super::dropped::as_checkpoint::<C>);
        let recorded = before.iter().flat_map(|before| before.files.keys());
        let files: Vec<String> = (self.files.iter().cloned())
            .chain(dropped.flat_map(|dropped| own(dropped.files())))
            .chain(recorded.filter(|file| !work.named_before(file)).cloned())
            .collect();
        let own_file = checkpoints.store.beside().document_file(key);
        let tracking = checkpoints.tracking.clone();
        let tracking = tracking.map(|tracking| tracking.of_checkpoint(own_file, C::layout()));
        let recording = Recording {
            before: before.as_ref(),
            work,
            vouches,
            tracking: tracking.as_ref(),
            now: checkpoints.now(),
        };
        let (fingerprints, report) = recording.of(files.iter().map(String::as_str));
        self.report.files = report;
        if before.is_none() && fingerprints == Fingerprints::default() {
            // No record at all means the same.
            return Ok(());
        }
        // Plain data always serializes.
        self.put.fingerprints = serde_json::to_string(&fingerprints).ok();
        Ok(())
    }

    /// The put, and the report of its save.
    pub(super) fn put(
        self,
        fence: Option<Fence>,
        archive: Option<(Archive, DateTime<Utc>)>,
    ) -> (Put, Report) {
        let report = self.report;
        let dropped = report.truncation.dropped.clone();
        // If the whole previous checkpoint is among the dropped items, it needs no archive.
        let is_kept = dropped.iter().any(|item| item.pointer.is_empty());
        let put = self.put.with_fence(fence).with_dropped(dropped);
        (put.with_archive(archive.filter(|_| !is_kept)), report)
    }
}

impl<C: Checkpoint> Checkpoints<C> {
    /// The previous fingerprints and the work of a save on this state; `None` if there are no fingerprints and
    /// none are wanted.
    fn work_after(
        &self,
        state: Option<(&Key, &Revision)>,
        work: impl FnOnce() -> Work,
    ) -> Result<Option<(Option<Fingerprints>, Work)>> {
        let before = match state {
            Some((key, revision)) => self.fingerprints(key, revision)?,
            None => None,
        };
        let is_wanted = before.is_some() || self.tracking.is_some() || self.keeps_fingerprints;
        Ok(is_wanted.then(|| (before, work())))
    }

    /// The text after a change, or `None` if it changed nothing.
    pub(super) fn changed(
        &self,
        key: &Key,
        stored: &Stored,
        change: &mut dyn FnMut(&mut C, &[UnreadableItem]) -> Result<()>,
    ) -> Result<Option<Prepared>> {
        let current = read::<C>(&stored.document)?;
        let reading = &current.reading;
        let mut wanted = reading.value.clone();
        change(&mut wanted, &unreadable_items(&current.document, reading))?;
        wanted.complete_change(&reading.value, &mut || self.store.beside().dropped(key))?;
        of_latest_version(&mut wanted);
        if wanted == reading.value {
            return Ok(None);
        }
        refuse_newer(&current)?;
        self.edited((key, &stored.revision), &current.document, reading, wanted)
            .map(Some)
    }

    /// The text of a whole checkpoint, over the present text.
    pub(super) fn whole(
        &self,
        key: &Key,
        present: Option<&Stored>,
        mut wanted: C,
        mode: PutMode,
        standalone: bool,
    ) -> Result<Prepared> {
        let current = present.map(|present| read::<C>(&present.document));
        let current = current.transpose()?;
        if let Some(current) = &current {
            refuse_newer(current)?;
        }
        refuse_newer_value(&wanted)?;
        let is_new_text = current.is_none() || mode == PutMode::Replace;
        if let (true, true, None, Some(version)) = (
            standalone,
            is_new_text,
            wanted.schema_version(),
            C::latest_version(),
        ) {
            wanted.set_schema_version(version);
        }
        of_latest_version(&mut wanted);
        match (present, &current) {
            (Some(present), Some(current)) if mode == PutMode::Edit => {
                if wanted == current.reading.value {
                    return Ok(Prepared::unchanged(present.document.clone()));
                }
                let state = (key, &present.revision);
                self.edited(state, &current.document, &current.reading, wanted)
            }
            _ => self.replaced(key, present.zip(current.as_ref()), wanted),
        }
    }

    /// A new text in the style of the present one.
    fn replaced(
        &self,
        key: &Key,
        present: Option<(&Stored, &Current<'_, C>)>,
        mut wanted: C,
    ) -> Result<Prepared> {
        let state = present.map(|(stored, _)| (key, &stored.revision));
        let present = present.map(|(_, current)| current);
        let before = present.map(|present| &present.reading.value);
        let mut truncation = self.finish(key, &mut wanted, before)?;
        let mut lost = Vec::new();
        if let Some(present) = present {
            lost = present.reading.left_out().to_vec();
            if !lost.is_empty() && !self.allow_loss {
                return Err(Error::new(ErrorKind::WouldLose { pointers: lost }));
            }
            truncation
                .dropped
                .extend(raw_values(&present.document, &lost));
        }
        let document = match present {
            Some(present) => present.document.replace_with(&wanted)?,
            None => Document::new(&wanted)?,
        };
        let read_back = document.read::<C>()?;
        if read_back.value != wanted || read_back.is_partial() {
            return Err(Error::not_faithful(
                read_back.violations.first().map_or_else(
                    || "it reads back as another value".to_owned(),
                    ToString::to_string,
                ),
            ));
        }
        let (transient, violations) = by_transience::<C>(
            &document,
            violations(&document, &read_back, &RuleContext::none()),
        );
        let work = || match before {
            Some(before) => Work::between(before, &read_back.value),
            None => Work::first(&read_back.value),
        };
        Ok(Prepared {
            work: self.work_after(state, work)?,
            files: own(read_back.value.files()),
            report: Report {
                truncation,
                lost,
                violations,
                transient,
                agent: agent_for_event(&read_back.value),
                ..Report::default()
            },
            ..Prepared::unchanged(document)
        })
    }

    /// The present text with only the changes applied.
    fn edited(
        &self,
        state: (&Key, &Revision),
        document: &Document,
        reading: &Reading<C>,
        mut wanted: C,
    ) -> Result<Prepared> {
        let (key, _) = state;
        // If everything could be read, no change can lose anything, so no copy is needed.
        let asked = reading.is_partial().then(|| wanted.clone());
        let mut truncation = self.finish(key, &mut wanted, Some(&reading.value))?;
        keep_whole(document, reading, &mut truncation);
        let rewrite = Rewrite::new().identities(C::IDENTITIES);
        let rewritten = match document.rewrite(reading, &wanted, &rewrite) {
            Err(RewriteError::Loss { pointers }) => {
                let unkept = not_below(pointers, reading, document, &truncation);
                self.refuse_loss(
                    document,
                    reading,
                    asked.as_ref().unwrap_or(&wanted),
                    &unkept,
                )?;
                truncation.dropped.extend(raw_values(document, &unkept));
                document.rewrite(reading, &wanted, &rewrite.allow_loss(true))?
            }
            result => result?,
        };
        let Rewritten {
            document: mut text,
            lost,
            reading: mut read_back,
            ..
        } = rewritten;
        if C::WRITES_ALL && add_absent(&mut text, &wanted)? {
            read_back = text.read::<C>()?;
        }
        let mut violations = violations(&text, &read_back, &RuleContext::none());
        if !violations.is_empty() {
            let before = crate::checkpoint::violations(document, reading, &RuleContext::none());
            violations = new_violations(&before, violations);
        }
        let (transient, violations) = by_transience::<C>(&text, violations);
        let mut put = Put::new(text);
        put.skips_history = read_back.value.is_heartbeat(&reading.value);
        Ok(Prepared {
            put,
            report: Report {
                lost: not_below(lost, reading, document, &truncation_of_lists(&truncation)),
                truncation,
                violations,
                transient,
                agent: agent_for_event(&read_back.value),
                ..Report::default()
            },
            files: own(read_back.value.files()),
            work: self.work_after(Some(state), || {
                Work::between(&reading.value, &read_back.value)
            })?,
        })
    }

    /// Refuses to overwrite values that could not be read, unless the caller allows it, or only the library's
    /// own stamp does it: a stamp must not prevent an agent from saving its work.
    fn refuse_loss(
        &self,
        document: &Document,
        reading: &Reading<C>,
        asked: &C,
        pointers: &[String],
    ) -> Result<()> {
        if self.allow_loss {
            return Ok(());
        }
        let rewrite = Rewrite::new().identities(C::IDENTITIES);
        let by_caller = match document.rewrite(reading, asked, &rewrite) {
            Ok(_) => return Ok(()),
            Err(RewriteError::Loss { pointers }) => pointers,
            Err(error) => return Err(error.into()),
        };
        let refused: Vec<String> = pointers
            .iter()
            .filter(|pointer| by_caller.contains(pointer))
            .cloned()
            .collect();
        if refused.is_empty() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::WouldLose { pointers: refused }))
    }

    /// Applies redaction, stamp and limits, in this order: a secret must not get into the dropped log, and the
    /// stamp counts for the size.
    fn finish(&self, key: &Key, wanted: &mut C, before: Option<&C>) -> Result<Truncation> {
        if let Some(redaction) = &self.redaction {
            let mut text = Document::compact(wanted)?;
            let old = before.map(Document::compact).transpose()?;
            if redaction.apply(&mut text, old.as_ref())? {
                let redacted = text.read::<C>()?;
                if let Some(violation) = redacted.violations.first() {
                    let detail = format!("after redaction, {violation}");
                    return Err(Error::not_faithful(detail));
                }
                *wanted = redacted.value;
            }
        }
        wanted.stamp_change(before, self.clock.now());
        let limits = Limits {
            dropped_log: self.store.beside().dropped_log(key)?,
            ..self.limits.clone()
        };
        let truncation = wanted.shrink(&limits, before);
        if let Some(over) = &truncation.over_budget {
            tracing::info!(
                bytes = over.bytes,
                limit = over.limit,
                "over the target size"
            );
        }
        Ok(truncation)
    }
}

/// The agent that the event of a save names; `None` if no subscriber listens.
fn agent_for_event<C: Checkpoint>(checkpoint: &C) -> Option<String> {
    event::is_watched().then(|| checkpoint.outline().agent)?
}

/// Splits violations into those of transient states of the protocol and the others.
fn by_transience<C: Checkpoint>(
    document: &Document,
    violations: Vec<Violation>,
) -> (Vec<Violation>, Vec<Violation>) {
    violations.into_iter().partition(|violation| {
        let pointer = violation.pointer.strip_prefix(document.at());
        let mut known = C::TRANSIENT.iter();
        known.any(|(code, at)| *code == violation.code && pointer == Some(at))
    })
}

/// Adds the members of a value that the text lacks; returns whether there were any.
fn add_absent<C: Checkpoint>(text: &mut Document, value: &C) -> Result<bool> {
    let whole = Document::compact(value)?;
    let mut added = false;
    for (name, member) in whole.root().members() {
        if text.root().get(&name).is_none_or(|node| node.is_null()) {
            let value: Value = serde_json::from_str(member.raw()).unwrap_or_default();
            added |= text.set(&crate::json::pointer::join("", &name), &value)?;
        }
    }
    Ok(added)
}

fn own(files: Vec<&str>) -> Vec<String> {
    files.into_iter().map(str::to_owned).collect()
}

/// Takes dropped items from the text of the file, so that they keep what the type does not know.
fn keep_whole<C: Checkpoint>(
    document: &Document,
    reading: &Reading<C>,
    truncation: &mut Truncation,
) {
    if truncation.dropped.is_empty() {
        return;
    }
    let Ok(before) = serde_json::to_value(&reading.value) else {
        return;
    };
    for piece in &mut truncation.dropped {
        // Only an item that the save did not change is in the file as it is.
        if before.pointer(&piece.pointer) == Some(&piece.value) {
            let pointer = inside(document, &reading.locate(document, &piece.pointer));
            if let Some(node) = document.get(&pointer) {
                piece.take_from(node);
            }
        }
    }
}

/// The pointers outside the dropped items; what lies inside them is kept whole in the dropped log.
fn not_below<C>(
    pointers: Vec<String>,
    reading: &Reading<C>,
    document: &Document,
    truncation: &Truncation,
) -> Vec<String> {
    let kept: Vec<String> = truncation
        .dropped
        .iter()
        .map(|piece| reading.locate(document, &piece.pointer))
        .collect();
    let is_below = |pointer: &String| {
        kept.iter().any(|kept| {
            pointer
                .strip_prefix(kept.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    pointers
        .into_iter()
        .filter(|pointer| !is_below(pointer))
        .collect()
}

/// The items that were dropped to stay within the limits, without those that were overwritten.
fn truncation_of_lists(truncation: &Truncation) -> Truncation {
    let mut cut = truncation.clone();
    cut.dropped
        .retain(|piece| piece.reason != DropReason::Unreadable);
    cut
}

/// Values that are about to be overwritten, for the dropped log.
fn raw_values<'p>(
    document: &'p Document,
    pointers: &'p [String],
) -> impl Iterator<Item = Dropped> + 'p {
    pointers.iter().map(|pointer| {
        let pointer = inside(document, pointer);
        let node = document.get(&pointer);
        let mut dropped = Dropped::new(pointer, DropReason::Unreadable, Value::Null);
        if let Some(node) = node {
            dropped.value = node.raw().into();
            dropped.take_from(node);
        }
        dropped
    })
}

/// A pointer into the file as a pointer into the document.
fn inside(document: &Document, pointer: &str) -> String {
    let inside = pointer.strip_prefix(document.at()).unwrap_or(pointer);
    inside.to_owned()
}

/// The violations that a save introduced. List positions are ignored, because elements move when others come and go.
fn new_violations(before: &[Violation], after: Vec<Violation>) -> Vec<Violation> {
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    for violation in before {
        *known.entry(without_positions(violation)).or_default() += 1;
    }
    after
        .into_iter()
        .filter(
            |violation| match known.get_mut(&without_positions(violation)) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            },
        )
        .collect()
}

fn without_positions(violation: &Violation) -> (String, String) {
    let tokens = violation.pointer.split('/').map(|token| {
        let is_position = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
        if is_position { "#" } else { token }
    });
    let place = tokens.collect::<Vec<_>>().join("/");
    (place, format!("{} {}", violation.code, violation.message))
}

/// Sets the version of a value in memory to the latest, whatever it states. Otherwise migrations would run on
/// it again after it is written.
fn of_latest_version<C: Checkpoint>(wanted: &mut C) {
    let Some(latest) = C::latest_version().filter(|_| any_migration(C::SCHEMA_VERSIONS)) else {
        return;
    };
    if wanted.schema_version().is_none_or(|says| says < latest) {
        wanted.set_schema_version(latest);
    }
}

fn refuse_newer<C: Checkpoint>(current: &Current<'_, C>) -> Result<()> {
    match newer(current) {
        Some(Newer { found: None, .. }) => Err(Error::refused(
            "its schema version cannot be read, so a newer program may have written it: it can be read, not changed; \
             correct the version first",
        )),
        _ => refuse_newer_value(&current.reading.value),
    }
}

/// The version of a checkpoint that a later version of the format wrote, or may have written.
pub(super) fn newer<C: Checkpoint>(current: &Current<'_, C>) -> Option<Newer> {
    let known = C::latest_version()?;
    if version_is_unreadable::<C>(&current.document, &current.reading) {
        return Some(Newer { found: None, known });
    }
    let found = current.reading.value.schema_version();
    found.filter(|found| *found > known).map(|found| Newer {
        found: Some(found),
        known,
    })
}

fn refuse_newer_value<C: Checkpoint>(checkpoint: &C) -> Result<()> {
    match (checkpoint.schema_version(), C::latest_version()) {
        (Some(found), Some(known)) if found > known => {
            Err(Error::new(ErrorKind::NewerSchema { found, known }))
        }
        _ => Ok(()),
    }
}
