//! The testkit itself: each rule finds a broken store, and accepts correct ones.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::{ThreadId, current};
use std::time::Duration;

use agent_checkpoint::store::{CheckpointStore, Keep, MemoryStore};
use agent_checkpoint::testkit::{Place, serve, store};
use agent_checkpoint::{Clock, Error, ErrorKind, Expect, Result};
use chrono::{DateTime, SubsecRound, Utc};

use crate::broken::{Fault, broken};
use crate::common::only_swaps::OnlySwaps;
use crate::stores::Files;

/// A rule, a store that breaks it, and a part of the rule's message.
type Broken = (&'static str, Fault, &'static str, fn(&dyn Place));

macro_rules! each {
    ($($rule:ident($($argument:expr)?) $fault:ident $says:literal)+) => {
        [$((
            stringify!($rule),
            Fault::$fault,
            $says,
            (|place| { let _skipped = store::$rule(place $(, $argument)?); }) as fn(&dyn Place),
        )),+]
    };
}

#[allow(clippy::let_unit_value, reason = "some rules return nothing")]
fn each_rule_with_a_store_that_breaks_it() -> Vec<Broken> {
    each! {
        reading_creates_nothing() DefaultForNothing "nothing was put"
        a_put_comes_back_byte_for_byte() DropsUnknownKeys "the text came back changed"
        a_typed_update_changes_only_its_values() DropsUnknownKeys "/mood was lost"
        a_transaction_reads_the_present_document_and_writes_its_result() TransactsOnNothing "what the transaction was given"
        a_refused_write_changes_nothing() DeletesOnConflict "after a put that was refused"
        a_delete_returns_whether_there_was_a_document() DeletesAlways "a delete of nothing returns true"
        a_revision_depends_on_the_bytes_alone() CountsRevisions "the revision that the save returned"
        a_put_of_the_same_bytes_writes_nothing() CountsRevisions "after a put of the same bytes"
        a_put_of_other_bytes_is_a_write() CountsRevisions "replaced by a put of"
        a_put_with_a_wrong_expectation_is_a_conflict() IgnoresExpectations "was not refused"
        a_delete_with_a_wrong_expectation_is_a_conflict() IgnoresExpectations "was not refused"
        dropped_items_are_kept_until_a_checkpoint_is_created_anew() ForgetsDroppedItems "where dropped items are kept"
        text_beside_a_document_belongs_to_its_revision() TextOfAnyRevision "beside an earlier revision"
        a_heartbeat_leaves_the_document() BeatsInTheDocument "after a heartbeat"
        stamps_inside_documents_decide_nothing() OlderLoses "after a put of"
        a_large_or_deep_document_comes_back_complete_or_is_refused() CutsLargeTexts "a document of 70 KB was accepted, but the store has 7 bytes"
        a_document_over_the_size_limit_is_refused() HasNoLimit "was not refused"
        a_reopened_store_has_every_acknowledged_write() ForgetsDroppedItems "the number of dropped items"
        a_put_is_finished_when_it_returns() WritesLater "after the put"

        keys_are_independent() OneDocumentForAll "a put under US-003 wrote adhoc-7"
        keys_are_listed_in_order_and_in_pages() ListsBackwards "all keys"
        similar_keys_do_not_share_a_document() OneDocumentForAll "the document under"
        every_key_is_listed_as_it_is() ListsBackwards "the keys"
        pages_list_every_key_once() PagesWithoutEnd "pages of 1 do not end"
        pages_list_every_key_once() ListsBackwards "pages of 7 list"
        a_page_gives_what_a_read_gives() GivesAnotherDocument "the text of US-003 in a page"
        a_version_differs_after_each_write() VersionsAreRevisions "the version after a put of an earlier text"
        a_listing_shows_each_line_of_a_ledger() ListsNoLedgers "a line was added, and the listing says Empty"

        one_of_many_threads_creates_a_document() ChecksThenWrites "of 8 writers that expect no document"
        one_of_many_threads_replaces_a_revision() ChecksThenWrites "of 8 writers that expect revision"
        every_transaction_of_many_threads_counts() ChecksThenWrites "after transactions that each add one"
        a_second_opening_sees_every_write() WritesLater "is gone"
        one_of_many_openings_replaces_a_revision() ChecksThenWrites "of 8 writers that expect revision"
        every_transaction_of_many_openings_counts() ChecksThenWrites "after transactions that each add one"
        every_update_of_many_agents_counts() ChecksThenWrites "the updates of 16 agents on 8 keys"
        readers_see_complete_documents_in_order() WritesInTwoSteps "a scoped thread panicked"

        one_of_many_processes_replaces_a_revision(child()) ExcludesOnlyThreads "of 4 processes that expect one revision"
        every_transaction_of_many_processes_counts(child()) ExcludesOnlyThreads "after transactions that each add one"
        a_process_with_an_old_fence_cannot_write(child()) IgnoresFences "the process whose claim was taken over"
        a_killed_writer_loses_no_acknowledged_write(child()) WritesLater "is gone"
        a_killed_writer_loses_no_line_of_its_ledger(child()) AddsLinesLater "a killed process added"
        killed_effects_take_place_once(child()) AddsLinesLater "these effects took place more than once"

        while_a_claim_is_held_only_its_fence_can_write() IgnoresFences "a first put without the fence was not refused"
        a_held_claim_belongs_to_its_owner() GivesClaimsToAll "asked again and got"
        an_old_fence_is_refused_for_good() IgnoresFences "a put with an old fence was not refused"
        fences_only_grow() CountsFencesAnew "fence 1 follows 1"
        an_expired_claim_can_be_renewed_until_another_claims() RenewsForEveryone "a renewal after another claimed was not refused"
        a_released_claim_is_over() RenewsForEveryone "a renewal of a released claim was not refused"
        one_of_many_claims_is_granted() GivesClaimsToAll "of 8 claims at the same time"
        a_claim_expires_by_the_clock_of_the_store() GivesClaimsToAll "a claim a second too early was not refused"
        a_claim_without_a_document_is_listed_until_it_is_given_back() GivesClaimsToAll "claimed without a document"

        a_ledger_has_every_line_in_order() ReversesLedgers "after line 1"
        a_ledger_has_every_line_in_order() AddsLinesAnywhere "a line was added at 1, behind 0 others"
        a_ledger_has_every_line_in_order() AddsLinesLater "through another opening"
        one_of_many_threads_adds_a_line_at_a_place() AddsLinesAnywhere "of 8 lines at place 0"
        a_line_of_a_ledger_needs_the_fence() IgnoresFences "a line without the fence was not refused"
        a_ledger_outlives_its_documents() EndsLedgers "the ledger after a delete"
        a_copy_has_the_ledger() AddsNoLines "the copy: "
        a_mark_stands_only_for_lines_that_are_there() BelievesMarks "behind a mark of a ledger that was forgotten"
        one_of_many_threads_uses_an_approval() AddsLinesAnywhere "the uses of one approval"
        an_approval_is_used_with_the_fence() IgnoresFences "asking without the fence was not refused"

        history_has_what_was_replaced_or_deleted() KeepsNoHistory "after four puts"
        history_is_newest_first() HistoryOldestFirst "after five puts"
        a_missing_entry_is_refused() GivesAnotherState "the load of an entry that never was was not refused"
        failed_writes_leave_the_history() DeletesOnConflict "a delete with a wrong expectation was not refused"
        history_is_bounded() KeepsAllHistory "of 18 earlier states"
        pruning_keeps_the_newest_and_pinned_entries() PrunesEverything "after pruning to what is pinned"
        pruning_keeps_what_was_deleted_last() PrunesEverything "after a delete and pruning"
        a_heartbeat_leaves_no_entry() HeartbeatsAreStates "after six heartbeats"
        a_history_can_come_from_another_store() AppendsWithoutTasks "the copy differs from the source"
        a_clock_set_back_hides_no_write() OlderLoses "moved by -3600 seconds"

        a_damaged_document_is_an_error() CorruptIsNothing "the load of damage was not refused"
        a_damaged_document_is_never_replaced() WritesOverCorrupt "a put over damage that expects any document was not refused"
        recovery_continues_with_the_newest_good_state() RecoversWithNothing "which state was brought back"
        recovery_needs_the_fence() IgnoresFences "a recovery without the fence was not refused"
        recovery_of_a_good_document_changes_nothing() RecoversWhatIsGood "a recovery with Newest"
        recovery_brings_a_deleted_document_back() ForgetsDroppedItems "the number of dropped items"

        a_forgotten_task_leaves_only_its_fence() ForgetsTheDocument "dropped items of a task that was forgotten"
        a_forgotten_task_leaves_only_its_fence() ForgetsNoLedger "the ledger of a task that was forgotten"
        a_forgotten_task_leaves_only_its_fence() ForgetsNoFile "after a forget the place still has \"forget-this-last"

        a_failed_put_leaves_the_old_or_the_new_document() HidesFailures "the put returned Ok"
        a_failed_delete_is_complete_or_does_nothing() HidesFailures "the delete returned Ok(true)"
        a_failed_read_is_an_error() HidesFailures "the load returned Ok(None)"
        a_put_works_after_a_failed_one() StaysBroken "a save failed before"
        a_failed_line_is_not_in_the_ledger() HidesFailures "it returned Ok(true)"
    }
    .into()
}

macro_rules! names {
    ({ $list:ident } $($rule:ident)+) => {
        const $list: &[&str] = &[$(stringify!($rule)),+];
    };
}

agent_checkpoint::__store_rules! { names, { RULES } }
agent_checkpoint::__process_rules! { names, { RULES_ON_PROCESSES } }

#[test]
fn every_rule_finds_a_store_that_breaks_it() {
    let mut wrong = Vec::new();
    let mut found = BTreeSet::new();
    for (rule, fault, says, try_it) in each_rule_with_a_store_that_breaks_it() {
        let place = broken(fault);
        match failure(|| try_it(&place)) {
            Some(message) if message.contains(says) => {}
            other => wrong.push(format!("{fault:?}, {rule}: {other:?}")),
        }
        found.insert(rule);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all: BTreeSet<&str> = RULES.iter().chain(RULES_ON_PROCESSES).copied().collect();
    assert_eq!(found, all);
}

/// The message of a panic.
fn failure(run: impl FnOnce()) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
}

/// The full name of the test that works in a child process.
fn child() -> &'static str {
    let path = concat!(module_path!(), "::testkit_child");
    path.split_once("::").unwrap().1
}

#[test]
fn testkit_child() {
    // The place takes the fault from the address.
    serve(&broken(Fault::WritesLater));
}

/// A place whose address is longer in a child than in its parent, so that a chain of children would be noticed.
struct Chained(Files);

fn address_of_child() -> Option<String> {
    std::env::var("AGENT_CHECKPOINT_TESTKIT_ADDRESS").ok()
}

impl Place for Chained {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        self.0.clone().place().open()
    }

    fn address(&self) -> Option<String> {
        Some(address_of_child().unwrap_or_default() + "+")
    }
}

fn chained() -> Option<String> {
    let test = child().replace("testkit_child", "a_child_that_tries_the_rule_again");
    failure(|| {
        let place = Chained(Files::in_a_folder());
        let _skipped = store::one_of_many_processes_replaces_a_revision(&place, &test);
    })
}

/// Starts, only in a child, the same test as its parent, which would never end.
#[test]
fn a_child_that_tries_the_rule_again() {
    if address_of_child().is_some_and(|address| address.len() < 3) {
        std::panic::panic_any(chained().unwrap());
    }
}

#[test]
fn a_child_starts_no_children() {
    let message = chained().unwrap();
    assert!(message.contains("must call `serve`"), "{message}");
}

/// Promises something that it offers no trait to prove.
struct Boasts(Files);

impl Place for Boasts {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        self.0.clone().place().open()
    }
}

#[test]
fn a_promise_that_the_place_cannot_prove_is_a_failure() {
    let place = Boasts(Files::in_a_folder());
    let message = failure(|| {
        let _skipped = store::one_of_many_processes_replaces_a_revision(&place, child());
    });
    assert!(message.unwrap().contains("has no address"));
    let message = failure(|| {
        let _skipped = store::a_damaged_document_is_an_error(&place);
    });
    assert!(message.unwrap().contains("the store supports `recovery`"));
}

#[test]
fn a_skipped_rule_says_why() {
    let why = |skipped: Result<(), _>| {
        let skipped: agent_checkpoint::testkit::Skipped = skipped.unwrap_err();
        skipped.to_string()
    };
    let place = OnlySwaps::default();
    assert_eq!(
        why(store::fences_only_grow(&place)),
        "the store has no claims"
    );
    assert_eq!(
        why(store::history_is_bounded(&place)),
        "the store has no history"
    );
    let fails = store::a_failed_read_is_an_error(&place);
    assert_eq!(why(fails), "the place cannot make calls fail");
}

/// Names that the macros use, or once used, keep the meaning that the user gave them.
mod with_names_of_its_own {
    #![allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "they must only not be in the way"
    )]

    // Any attribute may be used: a test framework has one with that name.
    use core::prelude::v1::global_allocator as test;

    use crate::stores::in_memory;
    use agent_checkpoint::formats::task::TaskCheckpoint;
    use agent_checkpoint::{checkpoint_conformance, store_conformance};

    struct Vec;
    struct Option;

    fn samples() -> std::vec::Vec<TaskCheckpoint> {
        vec![TaskCheckpoint::default()]
    }

    macro_rules! stringify {
        ($($any:tt)*) => {
            compile_error!("not ours")
        };
    }

    store_conformance!(memory, in_memory());
    checkpoint_conformance!(task, TaskCheckpoint, samples());
}

/// Correct stores, each unusual in one way.
struct Unusual<S> {
    store: S,
    keeps: Option<usize>,
    resolution: Duration,
}

fn unusual<S>(store: S) -> Unusual<S> {
    let (keeps, resolution) = (None, Duration::from_millis(1));
    Unusual {
        store,
        keeps,
        resolution,
    }
}

impl<S: CheckpointStore + Clone + 'static> Place for Unusual<S> {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Ok(Box::new(self.store.clone()))
    }

    fn can_be_damaged(&self) -> bool {
        false
    }

    fn keeps(&self) -> Option<usize> {
        self.keeps
    }

    fn claim_resolution(&self) -> Duration {
        self.resolution
    }
}

fn of_few_states(keeps: usize) -> impl Place {
    let store = MemoryStore::new().with_history(Keep::newest(keeps));
    Unusual {
        keeps: Some(keeps),
        ..unusual(store)
    }
}

fn of_whole_seconds() -> impl Place {
    struct WholeSeconds;
    impl Clock for WholeSeconds {
        fn now(&self) -> DateTime<Utc> {
            Utc::now().trunc_subsecs(0)
        }
    }
    let store = MemoryStore::new().with_clock(WholeSeconds);
    Unusual {
        resolution: Duration::from_secs(1),
        ..unusual(store)
    }
}

mod right {
    use super::*;
    use agent_checkpoint::store_conformance;

    store_conformance!(keeps_one_state, of_few_states(1));
    store_conformance!(keeps_two_states, of_few_states(2));
    store_conformance!(behind_a_pointer, unusual(Arc::new(MemoryStore::new())));
}

#[test]
fn a_store_that_keeps_whole_seconds_passes() {
    let place = of_whole_seconds();
    assert_eq!(
        store::an_expired_claim_can_be_renewed_until_another_claims(&place),
        Ok(())
    );
}

/// Reports to each thread once that it is locked, when a put expects something.
fn that_asks_to_retry() -> OnlySwaps {
    let seen = Mutex::new(Vec::<ThreadId>::new());
    OnlySwaps::before_put(move |put| {
        let (thread, mut seen) = (current().id(), seen.lock().unwrap());
        if *put.expect() != Expect::Any && !seen.contains(&thread) {
            seen.push(thread);
            return Err(Error::new(ErrorKind::ChangedMeanwhile));
        }
        Ok(())
    })
}

#[test]
fn a_store_that_asks_to_retry_passes() {
    let place = || unusual(that_asks_to_retry());
    store::one_of_many_threads_creates_a_document(&place());
    store::one_of_many_threads_replaces_a_revision(&place());
    store::every_transaction_of_many_threads_counts(&place());
}
