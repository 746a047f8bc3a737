//! The macros that make a test of each rule.

/// Makes one test of each rule of the contract, in a module of its own, for the store of a [`Harness`].
///
/// The module also has, in tests, a function `report`, which gives the [`Report`] of all rules, and the test
/// `testkit_child`, which does nothing unless a rule starts the program again as another process. Rules that
/// the store or the harness does not offer are skipped, each with a line `SKIPPED module::rule (why)` on the
/// standard error.
///
/// The harness is an expression of the surrounding module; it is evaluated anew for each test.
///
/// [`Harness`]: crate::testkit::Harness
/// [`Report`]: crate::testkit::Report
///
/// ```no_run
/// # use agent_checkpoint::store::{CheckpointStore, MemoryStore};
/// # use agent_checkpoint::Result;
/// # use agent_checkpoint::testkit::{Harness, Place};
/// # use std::sync::Arc;
/// struct InMemory;
/// struct Empty(Arc<MemoryStore>);
///
/// impl Harness for InMemory {
///     fn place(&self) -> Result<Box<dyn Place>> {
///         Ok(Box::new(Empty(Arc::new(MemoryStore::new()))))
///     }
/// }
///
/// impl Place for Empty {
///     fn open(&self) -> Result<Box<dyn CheckpointStore>> {
///         Ok(Box::new(Arc::clone(&self.0)))
///     }
///
///     fn can_be_damaged(&self) -> bool {
///         false
///     }
/// }
///
/// agent_checkpoint::store_conformance!(in_memory, InMemory);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! store_conformance {
    ($module:ident, $harness:expr $(,)?) => {
        mod $module {
            // The harness is evaluated where no name is ours, and the tests are where no name is the user's.
            mod __surroundings {
                #[allow(
                    unused_imports,
                    reason = "the harness may need nothing of its surroundings"
                )]
                use super::super::*;

                #[allow(dead_code, reason = "outside of tests there is no test that needs it")]
                pub(super) fn __harness() -> impl $crate::testkit::Harness {
                    $harness
                }
            }

            #[allow(dead_code, reason = "outside of tests there is no test that needs it")]
            const __CHILD: &str = ::core::concat!(::core::module_path!(), "::testkit_child");

            /// What becomes of every rule. Only in tests: in no other program can children be started for a
            /// test of it.
            #[cfg(test)]
            #[allow(dead_code, reason = "for whoever wants the report")]
            pub(crate) fn report() -> $crate::testkit::Report {
                let harness = __surroundings::__harness();
                let child = $crate::testkit::test_name(__CHILD);
                $crate::testkit::Conformance::of(&harness)
                    .with_child(child)
                    .report()
            }

            #[::core::prelude::v1::test]
            fn testkit_child() {
                $crate::testkit::serve(&__surroundings::__harness());
            }

            $crate::__store_rules! { tests }
        }
    };
}

/// The names of the rules: of each a test, or all as a list.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_rules {
    ($($then:tt)*) => {
        $crate::__each_rule! { { $($then)* }
            reading_makes_nothing
            what_is_put_comes_back_to_the_byte
            every_spelling_and_unknown_field_stays
            a_typed_update_changes_only_its_values
            a_transaction_sees_what_is_there_and_writes_what_it_decides
            what_is_refused_leaves_what_was_there
            a_delete_says_whether_there_was_one
            one_key_does_not_touch_another
            keys_are_listed_in_order_a_page_at_a_time

            a_revision_is_that_of_the_bytes
            the_same_bytes_again_are_no_write
            what_is_said_to_be_unchanged_is_unchanged
            a_put_with_another_expectation_is_a_conflict
            a_delete_with_another_expectation_is_a_conflict

            what_was_cut_is_kept_once_until_a_checkpoint_is_created_anew
            a_companion_belongs_to_its_revision
            what_is_not_offered_is_refused_as_such
            a_heartbeat_leaves_the_document

            of_many_threads_that_expect_nothing_one_wins
            of_many_threads_that_expect_one_revision_one_wins
            every_transaction_of_many_threads_is_there
            a_second_opening_sees_the_same
            of_many_openings_that_expect_one_revision_one_wins
            every_transaction_of_many_openings_is_there
            who_reads_sees_whole_documents_that_never_go_back

            of_many_processes_that_expect_one_revision_one_wins
            every_transaction_of_many_processes_is_there
            a_process_with_an_old_fence_does_not_get_in
            a_killed_writer_loses_nothing_that_it_was_told_of

            while_a_claim_stands_only_its_fence_writes
            a_claim_that_stands_is_its_owners_alone
            an_old_fence_never_opens_again
            a_fence_only_ever_grows
            a_claim_that_ran_out_can_be_renewed_until_another_has_it
            a_claim_that_was_given_back_is_over
            a_key_that_many_claim_at_once_is_given_to_one

            what_a_write_replaces_or_deletes_is_in_the_history
            history_is_newest_first
            a_state_that_is_not_there_is_told_as_such
            failed_saves_do_not_rotate_good_history_away
            history_does_not_grow_for_ever
            pruning_leaves_the_newest_and_what_is_pinned
            pruning_leaves_what_was_deleted_last
            a_mere_sign_of_life_leaves_no_state

            what_cannot_be_read_is_not_taken_for_nothing
            a_corrupt_document_is_never_written_over
            what_cannot_be_read_is_put_aside_and_the_newest_state_goes_on
            only_who_has_the_task_recovers_it
            where_nothing_is_wrong_a_recovery_changes_nothing
            what_was_deleted_can_be_brought_back

            a_reopened_store_has_all_that_was_saved
            a_dropped_store_has_nothing_left_to_write

            keys_that_look_alike_are_kept_apart
            hostile_keys_come_back_from_the_list
            pages_of_many_keys_leave_none_out

            stamps_inside_documents_decide_nothing
            a_clock_that_is_set_back_brings_no_old_state_back
            fences_grow_although_the_clock_is_set_back
            a_claim_runs_out_by_the_stores_clock

            a_large_document_comes_back_whole_or_is_refused
            a_deep_document_comes_back_whole_or_is_refused
            a_document_over_the_limit_is_refused_and_the_old_one_stays

            a_call_that_fails_leaves_the_old_or_the_new_document
            a_failed_delete_takes_all_or_nothing
            a_read_that_fails_is_an_error
            after_a_failure_the_next_save_works
        }
    };
}

/// What is made of the names.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_rule {
    ({ names } $($rule:ident)+) => {
        [$(::core::stringify!($rule)),+]
    };
    ({ tests } $($rule:ident)+) => { $(
        #[::core::prelude::v1::test]
        fn $rule() {
            let harness = __surroundings::__harness();
            let child = $crate::testkit::test_name(__CHILD);
            let conformance = $crate::testkit::Conformance::of(&harness).with_child(child);
            let module = $crate::testkit::test_name(::core::module_path!());
            $crate::testkit::test(conformance, module, ::core::stringify!($rule));
        }
    )+ };
}

/// Makes one test of each check of a [`Checkpoint`](crate::Checkpoint) type, in a module of its own.
///
/// The samples are a list of checkpoints that have something in every field.
///
/// ```no_run
/// use agent_checkpoint::formats::task::TaskCheckpoint;
///
/// agent_checkpoint::checkpoint_conformance!(
///     task,
///     TaskCheckpoint,
///     vec![TaskCheckpoint::begin("dev", ["Wire toggle"], chrono::Utc::now())]
/// );
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! checkpoint_conformance {
    ($module:ident, $checkpoint:ty, $samples:expr $(,)?) => {
        mod $module {
            #[cfg(test)]
            mod __surroundings {
                #[allow(
                    unused_imports,
                    reason = "the samples may need nothing of their surroundings"
                )]
                use super::super::*;

                pub(super) fn __samples() -> ::std::vec::Vec<$checkpoint> {
                    $samples
                }
            }

            $crate::__checkpoint_checks! { tests }
        }
    };
}

/// The names of the checks: of each a test, or all as a list.
#[doc(hidden)]
#[macro_export]
macro_rules! __checkpoint_checks {
    ($($then:tt)*) => {
        $crate::__each_check! { { $($then)* }
            an_empty_object_reads
            what_is_written_reads_back
            what_does_not_fit_is_a_violation_and_costs_only_itself
            a_save_that_changes_nothing_changes_no_byte
            a_changed_value_changes_only_its_bytes
            unknown_keys_are_passed_over_and_stay
            the_format_has_a_name_and_keeps_its_version
            a_stamp_is_the_time_of_the_last_change
            what_is_cut_is_recorded
            whatever_was_read_can_be_reported
            a_refused_operation_changes_nothing
        }
    };
}

/// What is made of the names.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_check {
    ({ names } $($check:ident)+) => {
        [$(::core::stringify!($check)),+]
    };
    ({ tests } $($check:ident)+) => { $(
        #[::core::prelude::v1::test]
        fn $check() {
            let samples = __surroundings::__samples();
            let module = $crate::testkit::test_name(::core::module_path!());
            $crate::testkit::checkpoint::test(&samples, module, ::core::stringify!($check));
        }
    )+ };
}
