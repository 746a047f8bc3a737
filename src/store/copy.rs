//! Copies checkpoints from one store to another.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use super::{CheckpointStore, ClaimChange, EntryId, Put, Query, Stored, claims_of, history_of};
use crate::checkpoint::{
    Claim, Clock, Dropped, Error, ErrorKind, Expect, Key, Result, Revision, SystemClock,
};

/// How many keys are listed at a time.
const PAGE: usize = 1000;

/// How often the copy of a key is restarted when its source changes.
const ATTEMPTS: usize = 3;

/// Refuses what is not a checkpoint.
type Check = dyn Fn(&Key, Result<&Stored, &Error>) -> Result<()> + Send + Sync;

/// Which keys are copied, and what is copied with them.
#[derive(Clone)]
pub struct CopyOptions {
    prefix: String,
    check: Option<Arc<Check>>,
    skips_history: bool,
    takes_claimed: bool,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for CopyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyOptions")
            .field("prefix", &self.prefix)
            .field("skips_history", &self.skips_history)
            .field("takes_claimed", &self.takes_claimed)
            .finish_non_exhaustive()
    }
}

impl Default for CopyOptions {
    fn default() -> Self {
        CopyOptions {
            prefix: String::new(),
            check: None,
            skips_history: false,
            takes_claimed: false,
            clock: Arc::new(SystemClock),
        }
    }
}

impl CopyOptions {
    /// Copies all keys with their history. A claimed key is refused.
    #[must_use]
    pub fn new() -> Self {
        CopyOptions::default()
    }

    /// Copies only keys with this prefix.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Copies only what `check` accepts. It gets each key with its document, or with the reason why that cannot
    /// be read. What it refuses is not a checkpoint and is [skipped](CopyReport::skipped). Without a check
    /// every document is copied.
    ///
    /// # Examples
    ///
    /// Copies only documents of known formats, from a folder that also has other JSON files:
    ///
    /// ```
    /// use agent_checkpoint::formats::Formats;
    /// use agent_checkpoint::store::CopyOptions;
    ///
    /// let formats = Formats::default();
    /// let options = CopyOptions::new().with_check(move |key, found| match found {
    ///     Ok(stored) => formats.detect(key.as_str().as_ref(), Some(&stored.document)).map(drop),
    ///     Err(_) => Ok(()), // it is damaged, and reported as such
    /// });
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn with_check(
        mut self,
        check: impl Fn(&Key, Result<&Stored, &Error>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Copies no earlier states, for a target that keeps no history or accepts none from elsewhere.
    #[must_use]
    pub fn skip_history(mut self) -> Self {
        self.skips_history = true;
        self
    }

    /// Copies claimed keys too. The claim stays in the source, and its owner goes on writing there. By default
    /// such a key is refused, because the task would then have two states.
    #[must_use]
    pub fn include_claimed(mut self) -> Self {
        self.takes_claimed = true;
        self
    }

    /// Takes the time from `clock` that decides whether a claim is valid.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

/// The result of a copy.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct CopyReport {
    /// How many keys were copied.
    pub copied: usize,
    /// How many were already in the target with the same contents.
    pub present: usize,
    /// The keys that were not copied, each with the reason: the key is claimed or damaged, the target has
    /// another document, or the key changed during the copy.
    pub refused: Vec<Error>,
    /// The keys that the [check](CopyOptions::with_check) refused, each with the reason.
    pub skipped: Vec<Error>,
    /// Files in the source that have no key.
    pub foreign: Vec<OsString>,
    /// Earlier states that cannot be read. They remain in the source; the rest of their key is copied.
    pub unreadable: Vec<(Key, EntryId)>,
}

/// The progress of a copy.
#[derive(Debug)]
#[non_exhaustive]
pub struct CopyProgress<'p> {
    /// The key that was handled last.
    pub key: &'p Key,
    /// Why it was not copied.
    pub refused: Option<&'p Error>,
    /// How many keys were handled.
    pub done: usize,
    /// How many keys there are.
    pub total: usize,
}

/// Copies the checkpoints of one store into another: each document byte for byte, with its history, pins,
/// dropped items, fingerprints and ledger, and with its last fence, so that no earlier owner can write in the
/// target. The source does not change.
///
/// A key that is not copied is [reported](CopyReport::refused). Nothing of it changes in the target, unless its source
/// changed or failed during the copy: then the target may have a part of it. The document of a key is written last, so
/// an interrupted copy is not listed in the target. The same call again continues where it stopped and leaves existing
/// copies as they are. Every copy is read back and compared.
///
/// Some things stay in the source: archives, quarantined texts, heartbeats, and tasks without a document, which
/// no store lists. The present document gets the time of the copy; earlier states keep theirs.
///
/// # Errors
///
/// A failure of either store as a whole. Repeat the call after it.
pub fn copy(
    from: &dyn CheckpointStore,
    to: &dyn CheckpointStore,
    options: &CopyOptions,
    progress: &mut dyn FnMut(&CopyProgress<'_>),
) -> Result<CopyReport> {
    if to.capabilities().embedded {
        let what = "copies into it: it would change the layout of documents inside a larger file";
        return Err(Error::new(ErrorKind::NotOffered { what }));
    }
    let mut report = CopyReport::default();
    let mut keys = Vec::new();
    let mut query = Query::all().with_prefix(&options.prefix).with_limit(PAGE);
    loop {
        let page = from.list(&query)?;
        keys.extend(page.keys().cloned());
        report.foreign = page.foreign;
        let Some(next) = page.next else { break };
        query = query.after(next);
    }
    for (at, key) in keys.iter().enumerate() {
        if let Err(error) = checked(from, key, options) {
            report.skipped.push(error.with_key(key));
            continue;
        }
        let mut unreadable = Vec::new();
        let copied = copy_key(from, to, key, options, &mut unreadable);
        let copied = copied.map_err(|error| error.with_key(key));
        let unreadable = unreadable.into_iter().map(|entry| (key.clone(), entry));
        report.unreadable.extend(unreadable);
        let refused = match copied {
            Ok(true) => {
                report.copied += 1;
                None
            }
            Ok(false) => {
                report.present += 1;
                None
            }
            Err(error) if is_of_the_key(&error) => Some(error),
            Err(error) => return Err(error),
        };
        progress(&CopyProgress {
            key,
            refused: refused.as_ref(),
            done: at + 1,
            total: keys.len(),
        });
        report.refused.extend(refused);
    }
    Ok(report)
}

fn checked(from: &dyn CheckpointStore, key: &Key, options: &CopyOptions) -> Result<()> {
    let Some(check) = &options.check else {
        return Ok(());
    };
    match from.load(key) {
        Ok(Some(stored)) => check(key, Ok(&stored)),
        // The document was deleted after the keys were listed; the copy reports that.
        Ok(None) => Ok(()),
        Err(error) => check(key, Err(&error)),
    }
}

/// Whether the error concerns only this key, so that other keys may still be copied.
fn is_of_the_key(error: &Error) -> bool {
    use ErrorKind::{Io, Locked, NewerLayout, NotDurable, ReadOnly};
    let kind = error.kind();
    let is_of_the_store = matches!(
        kind,
        Io | Locked { .. } | NewerLayout { .. } | NotDurable | ReadOnly
    );
    !is_of_the_store && error.code() != "disk-full"
}

/// What a store has under a key, without the texts.
#[derive(Debug, PartialEq)]
struct Seen {
    /// The revision of the present document.
    present: Option<Revision>,
    /// Its earlier states, oldest first.
    past: Vec<Past>,
    dropped: Vec<Dropped>,
    ledger: Vec<String>,
    claim: Option<Claim>,
}

/// An earlier state.
#[derive(Debug, PartialEq)]
struct Past {
    id: EntryId,
    revision: Revision,
    pinned: bool,
    tasks_since: usize,
}

impl Seen {
    fn of(
        store: &dyn CheckpointStore,
        key: &Key,
        options: &CopyOptions,
    ) -> Result<(Seen, Vec<EntryId>)> {
        let stored = store.load(key)?;
        let present = stored.map(|stored| stored.revision);
        let mut past: Vec<Past> = Vec::new();
        let mut unreadable = Vec::new();
        let history = store.history().filter(|_| !options.skips_history);
        for entry in history.map_or(Ok(Vec::new()), |history| history.states(key))? {
            let newer = past
                .last()
                .map(|newer| (&newer.revision, newer.tasks_since));
            let newer = newer.or(present.as_ref().map(|present| (present, 0)));
            match entry.revision {
                _ if entry.is_current() => {}
                Err(_) => unreadable.push(entry.id),
                // Not every store lists a state that follows itself.
                Ok(revision) if !entry.pinned && newer == Some((&revision, entry.tasks_since)) => {}
                Ok(revision) => past.push(Past {
                    id: entry.id,
                    revision,
                    pinned: entry.pinned,
                    tasks_since: entry.tasks_since,
                }),
            }
        }
        past.reverse();
        let seen = Seen {
            present,
            past,
            dropped: store.beside().dropped(key)?,
            ledger: store.beside().ledger(key)?,
            claim: match store.claims() {
                Some(claims) => claims.claimed(key)?,
                None => None,
            },
        };
        Ok((seen, unreadable))
    }

    /// How many tasks ended between the earlier state at this position and the next one.
    fn tasks_ended(&self, at: usize) -> usize {
        let next = self.past.get(at + 1).map_or(0, |next| next.tasks_since);
        self.past[at].tasks_since.saturating_sub(next)
    }

    /// Whether these are the oldest states and the oldest ledger lines of the source, so that a copy can
    /// continue from here.
    fn is_begun_from(&self, source: &Seen) -> bool {
        let ended = |at: usize| source.past.get(at).map_or(0, |_| source.tasks_ended(at));
        let is_same = |at: usize| {
            let (own, of) = (self.tasks_ended(at), source.past.get(at));
            // If the copy was interrupted at the next state, the tasks that end after that state may already be
            // recorded.
            let is_begun = at + 1 == self.past.len() && own == ended(at) + ended(at + 1);
            of.is_some_and(|of| of.revision == self.past[at].revision)
                && (own == ended(at) || is_begun)
        };
        let is_begun = self.present.is_none() && source.ledger.starts_with(&self.ledger);
        is_begun && (0..self.past.len()).all(is_same)
    }

    /// Whether this is everything that the source has. The target may lack some of the oldest states that are
    /// not pinned.
    fn is_copy_of(&self, source: &Seen) -> bool {
        let mut own = self.past.iter().peekable();
        let mut may_lack = true;
        for of in &source.past {
            let is_same = |own: &&Past| {
                (&own.revision, own.pinned, own.tasks_since)
                    == (&of.revision, of.pinned, of.tasks_since)
            };
            match own.next_if(is_same) {
                Some(own) => may_lack &= own.pinned,
                None if may_lack && !of.pinned => {}
                None => return false,
            }
        }
        let newest = |seen: &Seen| seen.past.last().map(|past| past.revision.clone());
        let fence = |seen: &Seen| seen.claim.as_ref().map(|claim| claim.fence);
        self.present == source.present
            && own.next().is_none()
            && newest(self) == newest(source)
            && self.dropped == source.dropped
            && self.ledger == source.ledger
            && fence(self) >= fence(source)
    }
}

/// Copies a key; `false` if the copy already exists.
fn copy_key(
    from: &dyn CheckpointStore,
    to: &dyn CheckpointStore,
    key: &Key,
    options: &CopyOptions,
    unreadable: &mut Vec<EntryId>,
) -> Result<bool> {
    let changed = |detail: &str| Err(Error::other("source-changed", detail));
    for _ in 0..ATTEMPTS {
        let (source, left_out) = Seen::of(from, key, options)?;
        *unreadable = left_out;
        let claim = source.claim.as_ref();
        if let Some(claim) = claim.filter(|claim| claim.stands(options.clock.now()))
            && !options.takes_claimed
        {
            return Err(Error::new(ErrorKind::Claimed {
                owner: claim.owner.clone(),
                until: claim.expires,
            }));
        }
        let (target, _) = Seen::of(to, key, options)?;
        if target.present.is_some() && target.is_copy_of(&source) {
            return Ok(false);
        }
        if !target.is_begun_from(&source) {
            return Err(other_there(target));
        }
        let Some(put) = bring_past(from, to, key, &source, &target)? else {
            continue;
        };
        if Seen::of(from, key, options)?.0 != source {
            continue;
        }
        to.put(key, put)?;
        if Seen::of(from, key, options)?.0 != source {
            return changed(
                "it changed in the source during the copy, so the copy has the earlier state; forget it in the \
                 target, and copy it again",
            );
        }
        if !Seen::of(to, key, options)?.0.is_copy_of(&source) {
            return Err(Error::other(
                "copy-differs",
                "the copy differs from the source; compare both, forget it in the target, and copy it again",
            ));
        }
        return Ok(true);
    }
    changed("it keeps changing in the source; copy it while no agent works on it")
}

/// The error for a key under which the target has something else.
fn other_there(target: Seen) -> Error {
    match target.present {
        Some(found) => Error::new(ErrorKind::Conflict {
            expected: Expect::Absent,
            found: Some(found),
        }),
        None => Error::refused(
            "the target has earlier states or a ledger of another task under this key, or of this one as it was before; forget it there first",
        ),
    }
}

/// Copies everything but the document, and returns the put of the document; `None` if it is gone by now.
fn bring_past(
    from: &dyn CheckpointStore,
    to: &dyn CheckpointStore,
    key: &Key,
    source: &Seen,
    target: &Seen,
) -> Result<Option<Put>> {
    if let Some(claim) = &source.claim {
        let fence = claim.fence;
        claims_of(to)?.change_claim(key, &ClaimChange::AtLeast { fence })?;
    }
    // An interrupted copy may have left the last state without its pin.
    for (own, of) in target.past.iter().zip(&source.past) {
        if of.pinned && !own.pinned {
            history_of(to)?.pin(key, &own.id, true)?;
        }
    }
    for (at, past) in source.past.iter().enumerate().skip(target.past.len()) {
        let stored = history_of(from)?.load_revision(key, &past.id)?;
        let entry = history_of(to)?.append(key, &stored, source.tasks_ended(at))?;
        // Pin before the next state is added: if that has the same contents, it is only listed beside a pinned one.
        if past.pinned {
            history_of(to)?.pin(key, &entry, true)?;
        }
    }
    for (at, line) in source.ledger.iter().enumerate().skip(target.ledger.len()) {
        if !to.beside().append_to_ledger(key, line, at, None)? {
            return Ok(None);
        }
    }
    let Some(stored) = from.load(key)? else {
        return Ok(None);
    };
    let fingerprints = from.beside().fingerprints(key, &stored.revision)?;
    let put = Put::new(stored.document)
        .with_expect(Expect::Absent)
        .with_dropped(source.dropped.clone())
        .with_fingerprints(fingerprints)
        .continue_task();
    Ok(Some(put))
}
