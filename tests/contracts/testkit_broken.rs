//! A store that is broken in one way for each rule of the testkit: else a rule that holds would say nothing.

use crate::broken;

use agent_checkpoint::testkit::{Conformance, Verdict, rules, serve};
use broken::Fault::{self, *};
use broken::WithFault;

/// Each rule, with the store that breaks it and what the rule says of that.
const BROKEN: [(&str, Fault, &str); 66] = [
    (
        "reading_makes_nothing",
        DefaultForNothing,
        "nothing was put, and a load gave",
    ),
    (
        "what_is_put_comes_back_to_the_byte",
        EndsEveryText,
        "\"{}\" came back as",
    ),
    (
        "every_spelling_and_unknown_field_stays",
        Reserializes,
        "was laid out anew",
    ),
    (
        "a_typed_update_changes_only_its_values",
        WritesOnlyWhatItKnows,
        "/mood was",
    ),
    (
        "a_transaction_sees_what_is_there_and_writes_what_it_decides",
        TransactsOnNothing,
        "a transaction saw None where Some(0) was there",
    ),
    (
        "what_is_refused_leaves_what_was_there",
        DeletesOnConflict,
        "after a put that was refused, None is there",
    ),
    (
        "a_delete_says_whether_there_was_one",
        DeletesAlways,
        "a delete of nothing says that there was a document",
    ),
    (
        "one_key_does_not_touch_another",
        OneDocumentForAll,
        "a put under US-003 made adhoc-7",
    ),
    (
        "keys_are_listed_in_order_a_page_at_a_time",
        ListsBackwards,
        "are listed",
    ),
    (
        "a_revision_is_that_of_the_bytes",
        CountsRevisions,
        "the bytes have the revision",
    ),
    (
        "the_same_bytes_again_are_no_write",
        WritesTheSameAgain,
        "says that it Replaced",
    ),
    (
        "what_is_said_to_be_unchanged_is_unchanged",
        ComparesLengths,
        "says Unchanged",
    ),
    (
        "a_put_with_another_expectation_is_a_conflict",
        ForgetsExpect,
        "a put that expects revision",
    ),
    (
        "a_delete_with_another_expectation_is_a_conflict",
        DeletesWhatever,
        "a delete that expects revision",
    ),
    (
        "what_was_cut_is_kept_once_until_a_checkpoint_is_created_anew",
        ForgetsCuts,
        "does not say where what was cut is kept",
    ),
    (
        "a_companion_belongs_to_its_revision",
        CompanionOfAnyRevision,
        "is given for an earlier revision",
    ),
    (
        "what_is_not_offered_is_refused_as_such",
        HasMoreThanItSays,
        "`claim`, which is not offered, was not refused",
    ),
    (
        "a_heartbeat_leaves_the_document",
        BeatsInTheDocument,
        "a heartbeat changed",
    ),
    (
        "of_many_threads_that_expect_nothing_one_wins",
        ChecksAbsenceThenWrites,
        "of 8 writers that expect no document,",
    ),
    (
        "of_many_threads_that_expect_one_revision_one_wins",
        ChecksRevisionThenWrites,
        "of 8 writers that expect revision",
    ),
    (
        "every_transaction_of_many_threads_is_there",
        TransactsWithoutLooking,
        "120 transactions each added one",
    ),
    (
        "a_second_opening_sees_the_same",
        CachesReads,
        "2 was put, and a second opening sees Some(1)",
    ),
    (
        "of_many_openings_that_expect_one_revision_one_wins",
        LocksItsOpening,
        "of 8 writers that expect revision",
    ),
    (
        "every_transaction_of_many_openings_is_there",
        TransactsUnderItsOpening,
        "120 transactions each added one",
    ),
    (
        "who_reads_sees_whole_documents_that_never_go_back",
        WritesInTwoSteps,
        "a reader sees {}",
    ),
    (
        "of_many_processes_that_expect_one_revision_one_wins",
        LocksItsProcess,
        "of 4 processes that expect one revision",
    ),
    (
        "every_transaction_of_many_processes_is_there",
        TransactsUnderItsProcess,
        "80 transactions each added one",
    ),
    (
        "a_process_with_an_old_fence_does_not_get_in",
        ForgetsFencesOfOthers,
        "the process that had the task before was told Some(\"in\")",
    ),
    (
        "a_killed_writer_loses_nothing_that_it_was_told_of",
        WritesLater,
        "a killed process was told that",
    ),
    (
        "while_a_claim_stands_only_its_fence_writes",
        WritesWithoutFence,
        "a put without the fence was not refused",
    ),
    (
        "a_claim_that_stands_is_its_owners_alone",
        GivesClaimsToAll,
        "the owner asked again and got",
    ),
    (
        "an_old_fence_never_opens_again",
        TakesOldFences,
        "a put with an old fence was not refused",
    ),
    (
        "a_fence_only_ever_grows",
        CountsFencesAnew,
        "in round 1 the fence 1 came after 1",
    ),
    (
        "a_claim_that_ran_out_can_be_renewed_until_another_has_it",
        RenewsForAnybody,
        "a renewal of what another has was not refused",
    ),
    (
        "a_claim_that_was_given_back_is_over",
        ReleasesOnlyOnce,
        "it was given back already",
    ),
    (
        "a_key_that_many_claim_at_once_is_given_to_one",
        ClaimsInTwoSteps,
        "of eight that asked for the task at once",
    ),
    (
        "what_a_write_replaces_or_deletes_is_in_the_history",
        KeepsNoHistory,
        "after four puts the earlier states are []",
    ),
    (
        "history_is_newest_first",
        HistoryOldestFirst,
        "the earlier states are [1, 2, 1, 3]",
    ),
    (
        "a_state_that_is_not_there_is_told_as_such",
        GivesAnotherState,
        "an entry that never was was not refused",
    ),
    (
        "failed_saves_do_not_rotate_good_history_away",
        RotatesOnFailure,
        "the earlier states are [3], not [3, 2, 1]",
    ),
    (
        "history_does_not_grow_for_ever",
        KeepsAllHistory,
        "of 18 earlier states 10 are kept",
    ),
    (
        "pruning_leaves_the_newest_and_what_is_pinned",
        PrunesWhatIsPinned,
        "the earlier states are [6], not [6, 5, 3]",
    ),
    (
        "pruning_leaves_what_was_deleted_last",
        PrunesWhatWasDeleted,
        "the earlier states are [], not [2]",
    ),
    (
        "a_mere_sign_of_life_leaves_no_state",
        SignsOfLifeAreStates,
        "after six signs of life",
    ),
    (
        "what_cannot_be_read_is_not_taken_for_nothing",
        CorruptIsNothing,
        "the load of what is damaged was not refused",
    ),
    (
        "a_corrupt_document_is_never_written_over",
        WritesOverCorrupt,
        "a put over what is damaged that expects any document was not refused",
    ),
    (
        "what_cannot_be_read_is_put_aside_and_the_newest_state_goes_on",
        RecoversWithNothing,
        "does not say which state it brought back",
    ),
    (
        "only_who_has_the_task_recovers_it",
        RecoversForAnybody,
        "a recovery without the fence was not refused",
    ),
    (
        "where_nothing_is_wrong_a_recovery_changes_nothing",
        RecoversWhatIsRight,
        "a recovery with Newest",
    ),
    (
        "what_was_deleted_can_be_brought_back",
        RecoversNothing,
        "a recovery of what never was was not refused",
    ),
    (
        "a_reopened_store_has_all_that_was_saved",
        KeepsCutsInMemory,
        "what was cut is gone",
    ),
    (
        "a_dropped_store_has_nothing_left_to_write",
        WritesWhenDropped,
        "is gone",
    ),
    (
        "keys_that_look_alike_are_kept_apart",
        NamesFilesNaively,
        "3 was put under Key(\"a/b\"), and Some(6) is there",
    ),
    (
        "hostile_keys_come_back_from_the_list",
        ListsNames,
        "the list lacks",
    ),
    (
        "pages_of_many_keys_leave_none_out",
        PagesLeaveOneOut,
        "in pages of 7 there are 52 of 60 keys",
    ),
    (
        "stamps_inside_documents_decide_nothing",
        NewestStampWins,
        "was saved (Replaced)",
    ),
    (
        "a_clock_that_is_set_back_brings_no_old_state_back",
        NewestClockWins,
        "-3600 seconds later 2 was saved",
    ),
    (
        "fences_grow_although_the_clock_is_set_back",
        FencesOfTheClock,
        "the clock moved by -3600 seconds",
    ),
    (
        "a_claim_runs_out_by_the_stores_clock",
        ClaimsForEver,
        "claimed by one until",
    ),
    (
        "a_large_document_comes_back_whole_or_is_refused",
        CutsLargeTexts,
        "a document of 70 KB was taken, and Some(7) bytes are there",
    ),
    (
        "a_deep_document_comes_back_whole_or_is_refused",
        CutsDeepTexts,
        "a document 100 deep was taken, and Some(7) bytes are there",
    ),
    (
        "a_document_over_the_limit_is_refused_and_the_old_one_stays",
        HasNoLimit,
        "was taken, where 100000 is the most",
    ),
    (
        "a_call_that_fails_leaves_the_old_or_the_new_document",
        DeletesThenWrites,
        "and None is there",
    ),
    (
        "a_failed_delete_takes_all_or_nothing",
        SaysEveryDeleteIsDone,
        "the delete said Ok(true)",
    ),
    (
        "a_read_that_fails_is_an_error",
        FailedReadIsNothing,
        "the load gave Ok(None)",
    ),
    (
        "after_a_failure_the_next_save_works",
        StaysBroken,
        "the next save fails too",
    ),
];

/// Stores that break a rule in a way that the rule once let pass, or never came to the end of.
const BROKEN_OTHERWISE: [(&str, Fault, &str); 3] = [
    (
        "pages_of_many_keys_leave_none_out",
        PagesWithoutEnd,
        "pages of 1 come to no end",
    ),
    (
        "pages_of_many_keys_leave_none_out",
        PagesInCircles,
        "pages of 1 come to no end",
    ),
    (
        "who_reads_sees_whole_documents_that_never_go_back",
        WritesInTwoStepsAndReadsLate,
        "a reader sees {}",
    ),
];

#[test]
fn testkit_child() {
    serve(&WithFault(None));
}

#[test]
fn every_rule_finds_the_store_that_breaks_it() {
    let mut wrong = Vec::new();
    for (name, fault, says) in BROKEN.into_iter().chain(BROKEN_OTHERWISE) {
        let rule = rules().find(|rule| rule.name == name).unwrap();
        let harness = WithFault(Some(fault));
        let conformance = Conformance::of(&harness).with_child("testkit_broken::testkit_child");
        match conformance.judge(rule) {
            Verdict::Failed(why) if why.contains(says) => println!("{fault:?}, {name}: {why}"),
            other => wrong.push(format!("{fault:?}, {name}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_store_that_breaks_it() {
    let broken: Vec<&str> = BROKEN.iter().map(|(name, ..)| *name).collect();
    let all: Vec<&str> = rules().map(|rule| rule.name).collect();
    assert_eq!(broken, all);
}
