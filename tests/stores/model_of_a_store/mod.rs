//! A small model of the behaviour of a store, and random sequences of steps on which a store is compared with it.
//!
//! The model is independent of any particular store: implement [`Subject`] for yours and call [`follow`] with
//! [`steps`]. If the contract allows several answers, the model accepts each of them, and says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    CheckpointStore, DeleteOptions, EntryId, HistoryEntry, Keep, Outcome, Put, Query,
    RecoverOptions, Recovery, Stored,
};
use agent_checkpoint::testkit::MovableClock;
use agent_checkpoint::{
    CheckpointStoreExt, ClaimRequest, Clock, DropReason, Dropped, Error, ErrorKind, Expect, Fence,
    Fenced, Key, Revision,
};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;

/// A store to compare with the model: new, empty, and with a clock that the test moves.
pub(crate) trait Subject {
    /// The store.
    fn store(&self) -> &dyn CheckpointStore;

    /// The clock of its claims.
    fn clock(&self) -> &MovableClock;

    /// Keys that can have documents; for a store inside a larger file, all in that one file.
    fn keys(&self) -> Vec<Key>;

    /// How many history entries it keeps for each key.
    fn keep(&self) -> usize;

    /// Opens the same place again, like another process. A store that cannot be opened does nothing.
    fn reopen(&mut self) {}

    /// Replaces a document, unnoticed by the store, by a text that is none, with or without a readable part. For a
    /// store inside a larger file it replaces that file, and its readable part has room for all keys. Returns `false`
    /// if this is not possible.
    fn damage(&mut self, key: &Key, has_good_part: bool) -> bool {
        let _ = (key, has_good_part);
        false
    }

    /// Removes a document, unnoticed by the store. Returns `false` if this is not possible.
    fn remove(&mut self, key: &Key) -> bool {
        let _ = key;
        false
    }
}

/// The expectation of a writer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    Any,
    Absent,
    /// The present revision.
    Present,
    /// One of the earlier revisions.
    Former(usize),
}

/// The fence of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    None,
    /// The fence of the last claim.
    Last,
    /// One of the fences granted so far.
    Former(usize),
    /// A fence that was never granted.
    Invented,
}

/// The decision of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Decision {
    Put(usize),
    Keep,
    Refuse,
}

/// One step. Keys, texts and entries are numbers that select from the existing ones.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Put {
        key: usize,
        text: usize,
        wanted: Wanted,
        shown: Shown,
        cut: Option<u64>,
    },
    Transact {
        key: usize,
        decision: Decision,
        shown: Shown,
    },
    Delete {
        key: usize,
        wanted: Wanted,
        shown: Shown,
    },
    List {
        limit: usize,
    },
    Claim {
        key: usize,
        owner: usize,
        seconds: u64,
        take_over: bool,
    },
    Renew {
        key: usize,
        shown: Shown,
        seconds: u64,
    },
    Release {
        key: usize,
        shown: Shown,
    },
    Clock {
        seconds: i64,
    },
    LoadRevision {
        key: usize,
        entry: usize,
    },
    Pin {
        key: usize,
        entry: usize,
        pinned: bool,
    },
    Prune {
        key: usize,
        count: usize,
    },
    Restore {
        key: usize,
        entry: usize,
        shown: Shown,
    },
    Recover {
        key: usize,
        with: Recovery,
        shown: Shown,
    },
    Damage {
        key: usize,
        has_good_part: bool,
    },
    Remove {
        key: usize,
    },
    /// A line at the end of a ledger, or at this distance from it.
    AddLine {
        key: usize,
        from_end: isize,
        shown: Shown,
    },
    Reopen,
}

impl Step {
    /// The key of the step.
    fn key(self) -> Option<usize> {
        match self {
            Step::List { .. } | Step::Clock { .. } | Step::Reopen => None,
            Step::Put { key, .. }
            | Step::Transact { key, .. }
            | Step::Delete { key, .. }
            | Step::Claim { key, .. }
            | Step::Renew { key, .. }
            | Step::Release { key, .. }
            | Step::LoadRevision { key, .. }
            | Step::Pin { key, .. }
            | Step::Prune { key, .. }
            | Step::Restore { key, .. }
            | Step::Recover { key, .. }
            | Step::Damage { key, .. }
            | Step::AddLine { key, .. }
            | Step::Remove { key } => Some(key),
        }
    }
}

const OWNERS: [&str; 3] = ["ada", "ben", "cleo"];

/// Few, so that the same bytes come back.
const TEXTS: [&str; 5] = [
    "{\"n\":1}",
    "{\"n\":2}",
    "{\"n\":3,\"x\":[]}",
    "{\"n\": 1.50, \"x\": \"\\u00e4\"}",
    "{}",
];

/// Sequences of at most this many steps.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..most)
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..2_usize;
    let wanted = || {
        prop_oneof![
            4 => Just(Wanted::Any),
            1 => Just(Wanted::Absent),
            2 => Just(Wanted::Present),
            1 => any::<usize>().prop_map(Wanted::Former),
        ]
    };
    let shown = || {
        prop_oneof![
            3 => Just(Shown::None),
            4 => Just(Shown::Last),
            1 => any::<usize>().prop_map(Shown::Former),
            1 => Just(Shown::Invented),
        ]
    };
    let decision = prop_oneof![
        4 => (0..TEXTS.len()).prop_map(Decision::Put),
        1 => Just(Decision::Keep),
        1 => Just(Decision::Refuse),
    ];
    let entry = 0..5_usize;
    let seconds = prop_oneof![Just(1_u64), 1..100_u64];
    let recovery = prop_oneof![
        4 => Just(Recovery::Newest),
        1 => Just(Recovery::Fresh),
        1 => Just(Recovery::Salvage),
    ];
    prop_oneof![
        8 => (key.clone(), 0..TEXTS.len(), wanted(), shown(), prop::option::weighted(0.3, 0..3_u64))
            .prop_map(|(key, text, wanted, shown, cut)| Step::Put { key, text, wanted, shown, cut }),
        3 => (key.clone(), decision, shown())
            .prop_map(|(key, decision, shown)| Step::Transact { key, decision, shown }),
        2 => (key.clone(), wanted(), shown())
            .prop_map(|(key, wanted, shown)| Step::Delete { key, wanted, shown }),
        1 => (0..4_usize).prop_map(|limit| Step::List { limit }),
        2 => (key.clone(), 0..OWNERS.len(), seconds.clone(), any::<bool>())
            .prop_map(|(key, owner, seconds, take_over)| Step::Claim { key, owner, seconds, take_over }),
        1 => (key.clone(), shown(), seconds)
            .prop_map(|(key, shown, seconds)| Step::Renew { key, shown, seconds }),
        1 => (key.clone(), shown()).prop_map(|(key, shown)| Step::Release { key, shown }),
        2 => prop_oneof![-50..0_i64, 1..150_i64].prop_map(|seconds| Step::Clock { seconds }),
        1 => (key.clone(), entry.clone()).prop_map(|(key, entry)| Step::LoadRevision { key, entry }),
        2 => (key.clone(), entry.clone(), any::<bool>())
            .prop_map(|(key, entry, pinned)| Step::Pin { key, entry, pinned }),
        1 => (key.clone(), 0..4_usize).prop_map(|(key, count)| Step::Prune { key, count }),
        1 => (key.clone(), entry, shown())
            .prop_map(|(key, entry, shown)| Step::Restore { key, entry, shown }),
        3 => (key.clone(), recovery, shown())
            .prop_map(|(key, with, shown)| Step::Recover { key, with, shown }),
        1 => (key.clone(), any::<bool>())
            .prop_map(|(key, has_good_part)| Step::Damage { key, has_good_part }),
        1 => key.clone().prop_map(|key| Step::Remove { key }),
        3 => (key, prop_oneof![4 => Just(0), 1 => -1..2_isize], shown())
            .prop_map(|(key, from_end, shown)| Step::AddLine { key, from_end, shown }),
        1 => Just(Step::Reopen),
    ]
}

/// Runs the steps on the store, and checks every answer, and the store after it, against the model.
///
/// # Panics
///
/// If the store deviates.
pub(crate) fn follow(subject: &mut dyn Subject, steps: &[Step]) {
    let mut model = Model::new(subject);
    for (at, step) in steps.iter().enumerate() {
        let place = format!("step {at}, {step:?}, of {steps:#?}\n");
        model.take(subject, *step, &place);
        model.check(subject, *step, &place);
    }
    model.check_list(subject, None, "at the end");
}

/// Why something is refused.
#[derive(Clone, Debug, PartialEq)]
enum Fault {
    Conflict,
    /// By whom.
    Claimed(String),
    /// By whom.
    TakenOver(String),
    Released(String),
    Expired(String),
    UnknownFence,
    Corrupt,
    NotFound,
    NoSuchRevision,
    NotRecoverable,
    NotOffered,
    Refused,
}

fn fault_of(error: &Error) -> Option<Fault> {
    Some(match error.kind() {
        ErrorKind::Conflict { .. } => Fault::Conflict,
        ErrorKind::Claimed { owner, .. } => Fault::Claimed(owner.clone()),
        ErrorKind::Fenced { why, .. } => match why {
            Fenced::TakenOver { by } => Fault::TakenOver(by.clone()),
            Fenced::Released { owner } => Fault::Released(owner.clone()),
            Fenced::Expired { owner, .. } => Fault::Expired(owner.clone()),
            Fenced::Unknown => Fault::UnknownFence,
            _ => return None,
        },
        ErrorKind::Corrupt(_) => Fault::Corrupt,
        ErrorKind::NotFound => Fault::NotFound,
        ErrorKind::NoSuchRevision { .. } => Fault::NoSuchRevision,
        ErrorKind::NotRecoverable { .. } => Fault::NotRecoverable,
        ErrorKind::NotOffered { .. } => Fault::NotOffered,
        ErrorKind::Refused { .. } => Fault::Refused,
        _ => return None,
    })
}

/// The answer, if it was not to be refused. If several things are wrong at once, any of them may be reported.
#[track_caller]
fn judged<T>(answer: Result<T, Error>, faults: &[Fault], place: &str) -> Option<T> {
    match answer {
        Ok(answer) => {
            assert!(
                faults.is_empty(),
                "done, and not refused for {faults:?}: {place}"
            );
            Some(answer)
        }
        Err(error) => {
            let fault = fault_of(&error);
            let is_right = fault.is_some_and(|fault| faults.contains(&fault));
            assert!(
                is_right,
                "refused with {error:?}, not for {faults:?}: {place}"
            );
            None
        }
    }
}

#[derive(Clone)]
struct State {
    document: Document,
    revision: Revision,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.document.text(), self.revision)
    }
}

impl State {
    fn of(stored: Stored) -> State {
        State {
            revision: stored.revision,
            document: stored.document,
        }
    }
}

/// The content of a key.
#[derive(Clone, Debug)]
enum Present {
    Nothing,
    Good(State),
    Damaged,
}

#[derive(Clone)]
struct Entry {
    /// The id, once it was listed.
    id: Option<EntryId>,
    /// `None` for a state of a larger file that had nothing for this key.
    state: Option<State>,
    pinned: bool,
    /// Whether it may have been removed: it exceeded the limits, or the entry below has the same state.
    may_be_gone: bool,
    /// Whether its task has ended since; a recovery does not go back to it.
    has_ended: bool,
    /// The version of the file at which it was made.
    version: u64,
    /// For a store inside a larger file, the content of all keys.
    all: BTreeMap<usize, Present>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pinned = if self.pinned { ", pinned" } else { "" };
        let gone = if self.may_be_gone {
            ", may be gone"
        } else {
            ""
        };
        write!(f, "{:?}: {:?}{pinned}{gone}", self.id, self.state)
    }
}

#[derive(Clone, Debug)]
struct Holder {
    owner: String,
    fence: Fence,
    expires: DateTime<Utc>,
    released: bool,
}

#[derive(Clone, Debug)]
struct OfKey {
    key: Key,
    present: Present,
    /// Newest first.
    entries: Vec<Entry>,
    holder: Option<Holder>,
    fences: Vec<Fence>,
    revisions: Vec<Revision>,
    cut: Vec<u64>,
    ledger: Vec<String>,
    version: u64,
    /// Whether the last step replaced a state: only then entries beyond the limits are removed.
    was_replaced: bool,
}

struct Model {
    keys: Vec<OfKey>,
    /// Whether all documents are in one file.
    embedded: bool,
    claims: bool,
    history: bool,
    recovery: bool,
    keep: usize,
    now: DateTime<Utc>,
    versions: u64,
}

impl Model {
    fn new(subject: &dyn Subject) -> Model {
        let store = subject.store();
        let of_key = |key| OfKey {
            key,
            present: Present::Nothing,
            entries: Vec::new(),
            holder: None,
            fences: Vec::new(),
            revisions: Vec::new(),
            cut: Vec::new(),
            ledger: Vec::new(),
            version: 0,
            was_replaced: false,
        };
        Model {
            keys: subject.keys().into_iter().map(of_key).collect(),
            embedded: store.capabilities().embedded,
            claims: store.claims().is_some(),
            history: store.history().is_some(),
            recovery: store.recovery().is_some(),
            keep: subject.keep(),
            now: subject.clock().now(),
            versions: 0,
        }
    }

    // The requests of a step.

    fn expect(&self, key: usize, wanted: Wanted) -> Expect {
        let of_key = &self.keys[key];
        match (wanted, &of_key.present) {
            (Wanted::Any, _) => Expect::Any,
            (Wanted::Absent, _) => Expect::Absent,
            (Wanted::Present, Present::Good(state)) => Expect::Revision(state.revision.clone()),
            (Wanted::Present, _) => Expect::Absent,
            (Wanted::Former(_), _) if of_key.revisions.is_empty() => {
                Expect::Revision(Revision::of(b"never there"))
            }
            (Wanted::Former(at), _) => {
                Expect::Revision(of_key.revisions[at % of_key.revisions.len()].clone())
            }
        }
    }

    fn fence(&self, key: usize, shown: Shown) -> Option<Fence> {
        let fences = &self.keys[key].fences;
        let last = fences.last().copied();
        match shown {
            Shown::None => None,
            Shown::Last => last,
            Shown::Former(at) => Some(*fences.get(at.checked_rem(fences.len())?)?),
            Shown::Invented => Some(Fence::new(last.map_or(7, |last| last.number() + 1_000_000))),
        }
    }

    /// The entry that a step selects: the present state, one in the history, or none.
    fn entry(&self, subject: &dyn Subject, key: usize, entry: usize) -> EntryId {
        let listed = self.own_states(subject, key);
        let listed = listed.get(entry).map(|entry| entry.id.clone());
        listed.unwrap_or_else(|| match entry % 2 {
            0 => "current".parse().unwrap(),
            _ => "987654".parse().unwrap(),
        })
    }

    /// The listed entries of a key, without the entries of other keys with which a damaged larger file is recovered.
    fn own_states(&self, subject: &dyn Subject, key: usize) -> Vec<HistoryEntry> {
        let of_key = &self.keys[key];
        let listed = subject.store().states(&of_key.key);
        let mut listed = listed.unwrap_or_default();
        let is_own = |id: &EntryId| of_key.entries.iter().any(|own| own.id.as_ref() == Some(id));
        listed.retain(|entry| !self.embedded || entry.is_current() || is_own(&entry.id));
        listed
    }

    // The reasons for a refusal.

    fn expectation_faults(&self, key: usize, expect: &Expect) -> Vec<Fault> {
        let present = match &self.keys[key].present {
            Present::Damaged => return vec![Fault::Corrupt],
            Present::Nothing => None,
            Present::Good(state) => Some(&state.revision),
        };
        let fits = match expect {
            Expect::Any => true,
            Expect::Absent => present.is_none(),
            Expect::Revision(wanted) => present == Some(wanted),
        };
        if fits { vec![] } else { vec![Fault::Conflict] }
    }

    fn stands(&self, holder: &Holder) -> bool {
        !holder.released && self.now < holder.expires
    }

    /// The problem of a fence, apart from an expired claim.
    fn fence_fault(&self, key: usize, fence: Fence) -> Option<Fault> {
        let holder = match &self.keys[key].holder {
            None => return Some(Fault::UnknownFence),
            Some(holder) => holder,
        };
        if fence > holder.fence {
            Some(Fault::UnknownFence)
        } else if fence < holder.fence {
            Some(Fault::TakenOver(holder.owner.clone()))
        } else if holder.released {
            Some(Fault::Released(holder.owner.clone()))
        } else {
            None
        }
    }

    fn claim_faults(&self, key: usize, fence: Option<Fence>) -> Vec<Fault> {
        let holder = self.keys[key].holder.as_ref();
        let fault = match (fence, holder) {
            (None, Some(holder)) if self.stands(holder) => {
                Some(Fault::Claimed(holder.owner.clone()))
            }
            (None, _) => None,
            (Some(fence), _) => self.fence_fault(key, fence).or_else(|| {
                let holder = holder.filter(|holder| !self.stands(holder))?;
                Some(Fault::Expired(holder.owner.clone()))
            }),
        };
        fault.into_iter().collect()
    }

    /// For the recovery of a larger file as a whole: the fence of any claim in it is accepted, and without a fence no
    /// claim may be valid.
    fn claim_faults_of_all(&self, key: usize, fence: Option<Fence>) -> Vec<Fault> {
        if !self.embedded {
            return self.claim_faults(key, fence);
        }
        let claimed: Vec<usize> = (0..self.keys.len())
            .filter(|key| self.keys[*key].holder.is_some())
            .collect();
        let standing = claimed
            .iter()
            .filter(|key| self.stands(self.keys[**key].holder.as_ref().unwrap()));
        let opens = fence.is_none()
            || claimed
                .iter()
                .any(|key| self.claim_faults(*key, fence).is_empty());
        let shut = standing.filter(|key| !self.claim_faults(**key, fence).is_empty());
        if opens {
            let shut = shut.filter(|_| fence.is_none());
            return shut.flat_map(|key| self.claim_faults(*key, None)).collect();
        }
        let in_the_way: Vec<Fault> = shut
            .flat_map(|key| self.claim_faults(*key, fence))
            .collect();
        if !in_the_way.is_empty() {
            return in_the_way;
        }
        match claimed.as_slice() {
            [] => vec![Fault::UnknownFence],
            claimed => claimed
                .iter()
                .flat_map(|key| self.claim_faults(*key, fence))
                .collect(),
        }
    }

    // The effect of a step.

    fn bump(&mut self, key: usize) {
        self.versions += 1;
        if self.embedded {
            for of_key in &mut self.keys {
                of_key.version = self.versions;
            }
        } else {
            self.keys[key].version = self.versions;
        }
    }

    /// Makes an entry of the present state, unless it is the newest one already.
    fn keep_present(&mut self, key: usize, pinned: Option<bool>) {
        let all = if self.embedded {
            let all = self.keys.iter().enumerate();
            all.map(|(at, of_key)| (at, of_key.present.clone()))
                .collect()
        } else {
            BTreeMap::new()
        };
        let of_key = &mut self.keys[key];
        let state = match &of_key.present {
            Present::Good(state) => Some(state.clone()),
            // The larger file exists anyway.
            Present::Nothing if self.embedded => None,
            _ => return,
        };
        match of_key.entries.first_mut() {
            Some(newest) if newest.version == of_key.version => {
                newest.pinned = pinned.unwrap_or(newest.pinned);
            }
            newest => {
                // The same bytes, put at the same time, may count as one state or as two.
                let same = newest.is_some_and(|newest| {
                    let of = |state: &State| state.revision.clone();
                    newest.state.as_ref().map(of) == state.as_ref().map(of)
                });
                of_key.entries.insert(
                    0,
                    Entry {
                        id: None,
                        state,
                        pinned: pinned.unwrap_or(false),
                        may_be_gone: same && pinned.is_none(),
                        has_ended: false,
                        version: of_key.version,
                        all,
                    },
                );
            }
        }
    }

    /// Entries beyond `most` may be removed, but never the newest.
    fn limit(&mut self, key: usize, most: usize) {
        let loose = self.keys[key]
            .entries
            .iter_mut()
            .filter(|entry| !entry.pinned);
        let mut newest = None;
        for (at, entry) in loose.enumerate() {
            // For a larger file the newest is the newest in which this key had something.
            let is_newest = entry.state.is_some() && *newest.get_or_insert(at) == at;
            if at >= most && !is_newest {
                entry.may_be_gone = true;
            }
        }
    }

    fn replace(&mut self, key: usize, next: Present) {
        self.keys[key].was_replaced = matches!(self.keys[key].present, Present::Good(_));
        if self.history {
            self.keep_present(key, None);
            self.limit(key, self.keep);
        }
        self.set(key, next);
    }

    fn set(&mut self, key: usize, next: Present) {
        if let Present::Good(state) = &next {
            self.keys[key].revisions.push(state.revision.clone());
        }
        self.keys[key].present = next;
        self.bump(key);
    }

    /// Records a successful put.
    #[allow(clippy::too_many_arguments, reason = "all that a put is, in one place")]
    fn was_put(
        &mut self,
        subject: &dyn Subject,
        key: usize,
        document: &Document,
        outcome: Outcome,
        cut: Option<u64>,
        brings_back: bool,
        place: &str,
    ) {
        let stored = subject.store().load(&self.keys[key].key).unwrap().unwrap();
        if self.embedded {
            assert!(stored.document.same_value(document), "{place}");
        } else {
            assert_eq!(stored.document.text(), document.text(), "{place}");
        }
        let before = match &self.keys[key].present {
            Present::Good(state) => Some(state.revision.clone()),
            _ => None,
        };
        assert_eq!(
            outcome,
            Outcome::of(before.as_ref(), &stored.revision),
            "{place}"
        );
        if outcome == Outcome::Unchanged {
            return;
        }
        // A deleted task continues if one of its states comes back; in a larger file the history shows that nothing was
        // there for a while.
        if outcome == Outcome::Created && (!brings_back || self.embedded) {
            self.end_task(key);
        }
        if outcome == Outcome::Created && !brings_back {
            self.keys[key].cut.clear();
        }
        if let Some(cut) = cut.filter(|cut| !self.keys[key].cut.contains(cut)) {
            self.keys[key].cut.push(cut);
        }
        self.replace(key, Present::Good(State::of(stored)));
    }

    fn end_task(&mut self, key: usize) {
        for entry in &mut self.keys[key].entries {
            entry.has_ended = true;
        }
    }

    fn take(&mut self, subject: &mut dyn Subject, step: Step, place: &str) {
        match step {
            Step::Put {
                key,
                text,
                wanted,
                shown,
                cut,
            } => {
                let expect = self.expect(key, wanted);
                let fence = self.fence(key, shown);
                let document = Document::from_text(TEXTS[text]).unwrap();
                let pieces = cut.map(|cut| Dropped::new("/x", DropReason::Elements(1), cut.into()));
                let put = Put::new(document.clone())
                    .with_expect(expect.clone())
                    .with_fence(fence)
                    .with_dropped(pieces.into_iter().collect());
                let mut faults = self.expectation_faults(key, &expect);
                faults.extend(self.write_faults(key, fence));
                let saved = subject.store().put(&self.keys[key].key, put);
                if let Some(saved) = judged(saved, &faults, place) {
                    self.was_put(subject, key, &document, saved.outcome, cut, false, place);
                }
            }
            Step::Transact {
                key,
                decision,
                shown,
            } => self.transact(subject, key, decision, shown, place),
            Step::Delete { key, wanted, shown } => {
                let expect = self.expect(key, wanted);
                let fence = self.fence(key, shown);
                let mut faults = self.expectation_faults(key, &expect);
                let claim_faults = self.write_faults(key, fence);
                let is_there = !matches!(self.keys[key].present, Present::Nothing);
                let options = DeleteOptions::new().with_expect(expect).with_fence(fence);
                let deleted = subject.store().delete(&self.keys[key].key, &options);
                // Deleting nothing is no write: a wrong fence may be reported or not.
                if is_there || deleted.is_err() {
                    faults.extend(claim_faults);
                }
                if let Some(deleted) = judged(deleted, &faults, place) {
                    assert_eq!(deleted, is_there, "{place}");
                    if deleted {
                        self.replace(key, Present::Nothing);
                    }
                }
            }
            Step::AddLine {
                key,
                from_end,
                shown,
            } => {
                let fence = self.fence(key, shown).filter(|_| self.claims);
                let mut faults = self.claim_faults(key, fence);
                let ledger = &self.keys[key].ledger;
                let at = ledger.len().saturating_add_signed(from_end);
                let is_next = at == ledger.len();
                let line = format!("{{\"line\":{}}}", ledger.len());
                let beside = subject.store().beside();
                let added = beside.append_to_ledger(&self.keys[key].key, &line, at, fence);
                // Adding nothing is no write: a wrong fence may be reported or not.
                if !is_next && added.is_ok() {
                    faults.clear();
                }
                if let Some(added) = judged(added, &faults, place) {
                    assert_eq!(added, is_next, "{place}");
                    self.keys[key].ledger.extend(added.then_some(line));
                }
            }
            Step::List { limit } => self.check_list(subject, Some(limit), place),
            Step::Claim {
                key,
                owner,
                seconds,
                take_over,
            } => {
                self.claim(subject, key, OWNERS[owner], seconds, take_over, place);
            }
            Step::Renew {
                key,
                shown,
                seconds,
            } => self.renew(subject, key, shown, seconds, place),
            Step::Release { key, shown } => self.release(subject, key, shown, place),
            Step::Clock { seconds } => {
                subject.clock().step(seconds);
                self.now = subject.clock().now();
            }
            Step::LoadRevision { key, entry } => {
                let id = self.entry(subject, key, entry);
                let loaded = subject.store().load_revision(&self.keys[key].key, &id);
                let (state, faults) = self.revision(key, &id);
                if let Some(stored) = judged(loaded, &faults, place) {
                    assert_eq!(stored.revision, state.unwrap().revision, "{place}");
                }
            }
            Step::Pin { key, entry, pinned } => {
                let id = self.entry(subject, key, entry);
                let (_, faults) = self.revision(key, &id);
                let named = subject.store().pin(&self.keys[key].key, &id, pinned);
                let Some(named) = judged(named, &faults, place) else {
                    return;
                };
                if id.is_current() {
                    // The same bytes, put at the same time: the store may take an entry for the present state.
                    let version = self.keys[key].version;
                    let mut entries = self.keys[key].entries.iter_mut();
                    if let Some(same) = entries.find(|entry| entry.id.as_ref() == Some(&named)) {
                        same.version = version;
                    }
                    self.keep_present(key, Some(pinned));
                    self.keys[key].entries[0].id = Some(named);
                } else {
                    assert_eq!(named, id, "{place}");
                    let mut entries = self.keys[key].entries.iter_mut();
                    let entry = entries
                        .find(|entry| entry.id.as_ref() == Some(&id))
                        .unwrap();
                    entry.pinned = pinned;
                }
            }
            Step::Prune { key, count } => {
                let faults = self.offered(self.history);
                let gone = subject
                    .store()
                    .prune(&self.keys[key].key, &Keep::newest(count));
                let Some(gone) = judged(gone, &faults, place) else {
                    return;
                };
                for id in &gone {
                    let error = subject
                        .store()
                        .load_revision(&self.keys[key].key, id)
                        .unwrap_err();
                    assert_eq!(fault_of(&error), Some(Fault::NoSuchRevision), "{place}");
                }
                self.limit(key, count);
                let is_damaged = !matches!(self.keys[key].present, Present::Good(_));
                let listed = self.own_states(subject, key);
                let loose = listed
                    .iter()
                    .filter(|entry| !entry.pinned && !entry.is_current())
                    .count();
                // While the present state is damaged, the newest good one stays as well.
                let most = count.max(1) + usize::from(is_damaged);
                assert!(loose <= most, "{loose} are left of {count}: {place}");
            }
            Step::Restore { key, entry, shown } => {
                let id = self.entry(subject, key, entry);
                let fence = self.fence(key, shown);
                let (state, mut faults) = self.revision(key, &id);
                if faults.is_empty() {
                    faults.extend(self.expectation_faults(key, &Expect::Any));
                    faults.extend(self.write_faults(key, fence));
                }
                let entries = subject
                    .store()
                    .states(&self.keys[key].key)
                    .unwrap_or_default();
                let mut entries = entries.iter();
                let of_this_task = entries.any(|known| known.id == id && known.tasks_since == 0);
                let key_of = &self.keys[key].key;
                let saved = subject.store().restore(key_of, &id, Expect::Any, fence);
                if let Some(saved) = judged(saved, &faults, place) {
                    let document = state.unwrap().document;
                    self.was_put(
                        subject,
                        key,
                        &document,
                        saved.outcome,
                        None,
                        of_this_task,
                        place,
                    );
                }
            }
            Step::Recover { key, with, shown } => self.recover(subject, key, with, shown, place),
            Step::Damage { key, has_good_part } => {
                if subject.damage(&self.keys[key].key, has_good_part) {
                    let all = if self.embedded {
                        0..self.keys.len()
                    } else {
                        key..key + 1
                    };
                    for key in all {
                        self.set(key, Present::Damaged);
                    }
                }
            }
            Step::Remove { key } => {
                if subject.remove(&self.keys[key].key) {
                    self.set(key, Present::Nothing);
                }
            }
            Step::Reopen => subject.reopen(),
        }
    }

    fn offered(&self, is_offered: bool) -> Vec<Fault> {
        if is_offered {
            vec![]
        } else {
            vec![Fault::NotOffered]
        }
    }

    /// Without claims, a fence has no effect.
    fn write_faults(&self, key: usize, fence: Option<Fence>) -> Vec<Fault> {
        if self.claims {
            self.claim_faults(key, fence)
        } else {
            vec![]
        }
    }

    /// The state with this id, or why there is none.
    fn revision(&self, key: usize, id: &EntryId) -> (Option<State>, Vec<Fault>) {
        if !self.history {
            return (None, vec![Fault::NotOffered]);
        }
        let of_key = &self.keys[key];
        if id.is_current() {
            return match &of_key.present {
                Present::Good(state) => (Some(state.clone()), vec![]),
                Present::Damaged => (None, vec![Fault::Corrupt]),
                Present::Nothing => (None, vec![Fault::NoSuchRevision]),
            };
        }
        let mut entries = of_key.entries.iter();
        match entries.find(|entry| entry.id.as_ref() == Some(id)) {
            Some(entry) => (entry.state.clone(), vec![]),
            None => (None, vec![Fault::NoSuchRevision]),
        }
    }

    fn transact(
        &mut self,
        subject: &dyn Subject,
        key: usize,
        decision: Decision,
        shown: Shown,
        place: &str,
    ) {
        let fence = self.fence(key, shown);
        let present = match &self.keys[key].present {
            Present::Good(state) => Some(state.revision.clone()),
            _ => None,
        };
        let mut faults = self.expectation_faults(key, &Expect::Any);
        match decision {
            Decision::Put(_) => faults.extend(self.write_faults(key, fence)),
            Decision::Keep if present.is_none() => faults.push(Fault::NotFound),
            Decision::Keep => {}
            Decision::Refuse => faults.push(Fault::Refused),
        }
        let saved = subject.store().transact(&self.keys[key].key, |stored| {
            let found = stored.map(|stored| stored.revision.clone());
            assert_eq!(found, present, "{place}");
            match decision {
                Decision::Put(text) => {
                    let put = Put::new(Document::from_text(TEXTS[text])?);
                    Ok(Some(put.with_fence(fence)))
                }
                Decision::Keep => Ok(None),
                Decision::Refuse => Err(Error::refused("not now")),
            }
        });
        let Some(saved) = judged(saved, &faults, place) else {
            return;
        };
        match decision {
            Decision::Put(text) => {
                let document = Document::from_text(TEXTS[text]).unwrap();
                self.was_put(subject, key, &document, saved.outcome, None, false, place);
            }
            _ => assert_eq!(saved.outcome, Outcome::Unchanged, "{place}"),
        }
    }

    fn claim(
        &mut self,
        subject: &dyn Subject,
        key: usize,
        owner: &str,
        seconds: u64,
        take_over: bool,
        place: &str,
    ) {
        let mut faults = self.offered(self.claims);
        let holder = self.keys[key]
            .holder
            .clone()
            .filter(|holder| self.stands(holder));
        let own = holder.filter(|holder| !take_over && holder.owner == owner);
        if own.is_none() && !take_over {
            faults.extend(self.claim_faults(key, None));
        }
        let mut request = ClaimRequest::new(owner, Duration::from_secs(seconds));
        request.take_over = take_over;
        let claim = subject.store().claim(&self.keys[key].key, &request);
        let Some(claim) = judged(claim, &faults, place) else {
            return;
        };
        let mut expires = self.now + TimeDelta::seconds(i64::try_from(seconds).unwrap());
        match own {
            Some(own) => {
                assert_eq!(claim.fence, own.fence, "{place}");
                expires = expires.max(own.expires);
            }
            None => {
                let greatest = self.keys[key].fences.iter().max();
                assert!(
                    greatest.is_none_or(|greatest| claim.fence > *greatest),
                    "{place}"
                );
                self.keys[key].fences.push(claim.fence);
            }
        }
        self.keys[key].holder = Some(Holder {
            owner: owner.to_owned(),
            fence: claim.fence,
            expires,
            released: false,
        });
    }

    fn renew(
        &mut self,
        subject: &dyn Subject,
        key: usize,
        shown: Shown,
        seconds: u64,
        place: &str,
    ) {
        let Some(fence) = self.fence(key, shown) else {
            return;
        };
        let faults = match self.claims {
            true => self.fence_fault(key, fence).into_iter().collect(),
            false => vec![Fault::NotOffered],
        };
        let live = Duration::from_secs(seconds);
        let renewed = subject.store().renew(&self.keys[key].key, fence, live);
        if judged(renewed, &faults, place).is_some() {
            let expires = self.now + TimeDelta::seconds(i64::try_from(seconds).unwrap());
            let holder = self.keys[key].holder.as_mut().unwrap();
            holder.expires = holder.expires.max(expires);
        }
    }

    fn release(&mut self, subject: &dyn Subject, key: usize, shown: Shown, place: &str) {
        let Some(fence) = self.fence(key, shown) else {
            return;
        };
        let faults = match (self.claims, self.fence_fault(key, fence)) {
            (false, _) => vec![Fault::NotOffered],
            // Releasing it again changes nothing.
            (true, Some(Fault::Released(_))) => vec![],
            (true, fault) => fault.into_iter().collect(),
        };
        let released = subject.store().release(&self.keys[key].key, fence);
        if judged(released, &faults, place).is_some() {
            self.keys[key].holder.as_mut().unwrap().released = true;
        }
    }

    fn recover(
        &mut self,
        subject: &dyn Subject,
        key: usize,
        with: Recovery,
        shown: Shown,
        place: &str,
    ) {
        let fence = self.fence(key, shown);
        let options = RecoverOptions::new(with).with_fence(fence);
        let recovered = subject.store().recover(&self.keys[key].key, &options);
        if !self.recovery {
            judged(recovered, &[Fault::NotOffered], place);
            return;
        }
        let claim_faults = match self.claims {
            true => self.claim_faults_of_all(key, fence),
            false => vec![],
        };
        // In a larger file an empty slot is no damage.
        let is_healthy = match &self.keys[key].present {
            Present::Good(_) => true,
            Present::Nothing => self.embedded || with == Recovery::Fresh,
            Present::Damaged => false,
        };
        if is_healthy {
            // Nothing is written, so a wrong fence may be reported or not.
            let faults = if recovered.is_err() {
                claim_faults
            } else {
                vec![]
            };
            if let Some(recovered) = judged(recovered, &faults, place) {
                assert!(
                    recovered.damage.is_none() && recovered.saved.is_none(),
                    "{place}"
                );
                if with == Recovery::Fresh && matches!(self.keys[key].present, Present::Nothing) {
                    self.end_task(key);
                }
            }
            return;
        }
        let is_damaged = matches!(self.keys[key].present, Present::Damaged);
        let newest = self.newest(key);
        let mut faults = claim_faults;
        let cannot = match with {
            Recovery::Newest => newest.is_none(),
            Recovery::Fresh => self.embedded,
            // The model cannot predict whether a part of the damaged text is readable.
            _ => !is_damaged || (recovered.is_err() && faults.is_empty()),
        };
        if cannot {
            faults.push(Fault::NotRecoverable);
        }
        let Some(recovered) = judged(recovered, &faults, place) else {
            return;
        };
        assert_eq!(recovered.damage.is_some(), is_damaged, "{place}");
        assert_eq!(recovered.put_aside.is_some(), is_damaged, "{place}");
        match (with, newest) {
            (Recovery::Newest, Some(newest)) if self.embedded => {
                for (key, present) in newest.all {
                    self.set(key, present);
                }
            }
            (Recovery::Newest, Some(newest)) => {
                self.set(key, Present::Good(newest.state.unwrap()));
            }
            (Recovery::Fresh, _) => {
                self.set(key, Present::Nothing);
                self.end_task(key);
            }
            _ => {
                let all = if self.embedded {
                    0..self.keys.len()
                } else {
                    key..key + 1
                };
                for key in all {
                    let stored = subject.store().load(&self.keys[key].key).unwrap();
                    let present =
                        stored.map_or(Present::Nothing, |it| Present::Good(State::of(it)));
                    self.set(key, present);
                }
            }
        }
    }

    /// The entry that a recovery restores.
    fn newest(&self, key: usize) -> Option<Entry> {
        if self.embedded {
            let all = self.keys.iter().flat_map(|of_key| of_key.entries.first());
            return all.max_by_key(|entry| entry.version).cloned();
        }
        let mut entries = self.keys[key].entries.iter();
        entries
            .find(|entry| entry.state.is_some() && !entry.has_ended)
            .cloned()
    }

    // The expected state of the store.

    fn check(&mut self, subject: &dyn Subject, step: Step, place: &str) {
        for key in 0..self.keys.len() {
            let of_key = &self.keys[key];
            // A store may read an unreadable text twice, which takes time.
            if matches!(of_key.present, Present::Damaged) && step.key() != Some(key) {
                continue;
            }
            let loaded = subject.store().load(&of_key.key);
            match &of_key.present {
                Present::Damaged => {
                    judged(loaded.map(drop), &[Fault::Corrupt], place);
                }
                Present::Nothing => assert!(loaded.unwrap().is_none(), "{place}"),
                Present::Good(state) => {
                    let stored = loaded.unwrap().unwrap_or_else(|| panic!("lost: {place}"));
                    assert_eq!(stored.revision, state.revision, "{place}");
                    assert_eq!(stored.document.text(), state.document.text(), "{place}");
                }
            }
            let ledger = subject.store().beside().ledger(&of_key.key).unwrap();
            assert_eq!(ledger, of_key.ledger, "{place}");
            let is_damaged = matches!(of_key.present, Present::Damaged);
            if !(is_damaged && self.embedded) {
                let pieces = subject.store().beside().dropped(&of_key.key).unwrap();
                let pieces: Vec<_> = pieces
                    .iter()
                    .filter_map(|piece| piece.value.as_u64())
                    .collect();
                assert_eq!(pieces, of_key.cut, "{place}");
            }
            self.check_claim(subject, key, place);
            if self.history {
                self.check_history(subject, key, place);
            }
        }
    }

    fn check_claim(&self, subject: &dyn Subject, key: usize, place: &str) {
        let claimed = subject.store().claimed(&self.keys[key].key);
        let Some(claim) = judged(claimed, &self.offered(self.claims), place) else {
            return;
        };
        match (&self.keys[key].holder, claim) {
            (None, None) => {}
            (Some(holder), Some(claim)) => {
                assert_eq!(claim.owner, holder.owner, "{place}");
                assert_eq!(claim.fence, holder.fence, "{place}");
                assert_eq!(claim.expires, holder.expires, "{place}");
                assert_eq!(claim.released, holder.released, "{place}");
                assert_eq!(claim.stands(self.now), self.stands(holder), "{place}");
            }
            (holder, claim) => panic!("{claim:?}, not {holder:?}: {place}"),
        }
    }

    /// The listing must be the present state and then the entries of the model in their order. Entries that may be gone
    /// may be missing, and so may one that only repeats the state listed before it.
    fn check_history(&mut self, subject: &dyn Subject, key: usize, place: &str) {
        let mut listed = subject.store().states(&self.keys[key].key).unwrap();
        if self.embedded && matches!(self.keys[key].present, Present::Damaged) {
            // The first listed entry is the one that the recovery of the larger file restores.
            let newest = self.newest(key);
            let newest = newest.and_then(|newest| match newest.all.get(&key) {
                Some(Present::Good(state)) => Some(state.revision.clone()),
                _ => None,
            });
            let is_this_task = |entry: &&HistoryEntry| entry.tasks_since == 0;
            let first = listed.iter().skip(1).find(is_this_task);
            let first = first.map(|entry| entry.revision.clone().unwrap());
            assert_eq!(first, newest, "{place}");
            return;
        }
        let mut before = None;
        match &self.keys[key].present {
            Present::Nothing => {}
            present => {
                let first = listed.remove(0);
                assert!(first.is_current() && !first.pinned, "{first:?}: {place}");
                match present {
                    Present::Good(state) => {
                        assert_eq!(first.revision.as_ref(), Ok(&state.revision), "{place}");
                        before = Some(state.revision.clone());
                    }
                    _ => assert!(first.revision.is_err(), "{place}"),
                }
            }
        }
        let told = format!("{listed:?}\nnot {:#?}\n{place}", self.keys[key].entries);
        let mut names = BTreeSet::new();
        let mut listed = listed.into_iter().peekable();
        let (mut loose, embedded) = (0, self.embedded);
        self.keys[key].entries.retain_mut(|entry| {
            let Some(state) = &entry.state else {
                // It has nothing of this key, so it is not listed; whether it still exists is unknown.
                return true;
            };
            let is_it = listed.next_if(|next| {
                next.revision.as_ref() == Ok(&state.revision)
                    && next.pinned == entry.pinned
                    && entry.id.as_ref().is_none_or(|id| *id == next.id)
            });
            let repeats = before.as_ref() == Some(&state.revision) && !entry.pinned;
            match is_it {
                Some(it) => {
                    assert!(names.insert(it.id.to_string()), "twice: {told}");
                    loose += usize::from(!it.pinned);
                    if !embedded {
                        assert_eq!(it.tasks_since > 0, entry.has_ended, "{told}");
                    }
                    entry.id = Some(it.id);
                    entry.may_be_gone = false;
                    before = Some(state.revision.clone());
                    true
                }
                None => {
                    assert!(
                        repeats || entry.may_be_gone,
                        "{:?} is missing in {told}",
                        entry.id
                    );
                    repeats
                }
            }
        });
        assert!(listed.peek().is_none(), "more than there can be: {told}");
        // An unpinned entry may be one too many until something is replaced again.
        let was_replaced = std::mem::take(&mut self.keys[key].was_replaced);
        assert!(!was_replaced || loose <= self.keep, "history grows: {told}");
    }

    fn check_list(&self, subject: &dyn Subject, limit: Option<usize>, place: &str) {
        let is_there = |of_key: &&OfKey| !matches!(of_key.present, Present::Nothing);
        let mut there: Vec<_> = self
            .keys
            .iter()
            .filter(is_there)
            .map(|it| it.key.clone())
            .collect();
        there.sort();
        let is_damaged = self
            .keys
            .iter()
            .any(|it| matches!(it.present, Present::Damaged));
        let faults = match self.embedded && is_damaged {
            true => vec![Fault::Corrupt],
            false => vec![],
        };
        let mut query = Query::all();
        if let Some(limit) = limit {
            query = query.with_limit(limit);
            there.truncate(limit);
        }
        if let Some(page) = judged(subject.store().list(&query), &faults, place) {
            assert!(page.keys().eq(&there), "{page:?}, not {there:?}: {place}");
        }
    }
}
