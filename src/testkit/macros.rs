//! The macros that make a test of each rule. Each rule is listed here once.

/// Makes one test of each [rule for stores](crate::testkit::store), in a new module.
///
/// The second argument is an expression for a new, empty [`Place`](crate::testkit::Place); each test evaluates it once.
/// The module also has the test `testkit_child`, which does nothing unless a rule has started the program again as
/// another process. A skipped rule prints the line `SKIPPED module::rule (reason)` to the standard error in a way that
/// the test harness does not capture.
///
/// ```no_run
/// use agent_checkpoint::Result;
/// use agent_checkpoint::store::{CheckpointStore, MemoryStore};
/// use agent_checkpoint::testkit::Place;
///
/// #[derive(Default)]
/// struct InMemory(MemoryStore);
///
/// impl Place for InMemory {
///     fn open(&self) -> Result<Box<dyn CheckpointStore>> {
///         Ok(Box::new(self.0.clone()))
///     }
///
///     fn can_be_damaged(&self) -> bool {
///         false
///     }
/// }
///
/// agent_checkpoint::store_conformance!(in_memory, InMemory::default());
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! store_conformance {
    ($module:ident, $place:expr $(,)?) => {
        mod $module {
            #[allow(
                unused_imports,
                reason = "the place may need no name of its surroundings"
            )]
            use super::*;

            #[::core::prelude::v1::test]
            fn testkit_child() {
                $crate::testkit::serve(&$place);
            }

            $crate::__store_rules! { $crate::__test_of_rule, { $place } }
            $crate::__process_rules! { $crate::__test_of_process_rule, { $place } }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __test_of_rule {
    ({ $place:expr } $($rule:ident)+) => { $(
        #[::core::prelude::v1::test]
        fn $rule() {
            $crate::testkit::__report(
                $crate::testkit::store::$rule(&$place),
                ::core::concat!(::core::module_path!(), "::", ::core::stringify!($rule)),
            );
        }
    )+ };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __test_of_process_rule {
    ({ $place:expr } $($rule:ident)+) => { $(
        #[::core::prelude::v1::test]
        fn $rule() {
            let child = ::core::concat!(::core::module_path!(), "::testkit_child");
            $crate::testkit::__report(
                $crate::testkit::store::$rule(&$place, $crate::testkit::__test_name(child)),
                ::core::concat!(::core::module_path!(), "::", ::core::stringify!($rule)),
            );
        }
    )+ };
}

/// The names of the rules for stores, as arguments of another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_rules {
    ($macro:path, $arguments:tt) => {
        $macro! { $arguments
            reading_creates_nothing
            a_put_comes_back_byte_for_byte
            a_typed_update_changes_only_its_values
            a_transaction_reads_the_present_document_and_writes_its_result
            a_refused_write_changes_nothing
            a_delete_returns_whether_there_was_a_document
            a_revision_depends_on_the_bytes_alone
            a_put_of_the_same_bytes_writes_nothing
            a_put_of_other_bytes_is_a_write
            a_put_with_a_wrong_expectation_is_a_conflict
            a_delete_with_a_wrong_expectation_is_a_conflict
            dropped_items_are_kept_until_a_checkpoint_is_created_anew
            text_beside_a_document_belongs_to_its_revision
            a_heartbeat_leaves_the_document
            stamps_inside_documents_decide_nothing
            a_large_or_deep_document_comes_back_complete_or_is_refused
            a_document_over_the_size_limit_is_refused
            a_reopened_store_has_every_acknowledged_write
            a_put_is_finished_when_it_returns

            keys_are_independent
            keys_are_listed_in_order_and_in_pages
            similar_keys_do_not_share_a_document
            every_key_is_listed_as_it_is
            pages_list_every_key_once
            a_page_gives_what_a_read_gives
            a_version_differs_after_each_write
            a_listing_shows_each_line_of_a_ledger

            one_of_many_threads_creates_a_document
            one_of_many_threads_replaces_a_revision
            every_transaction_of_many_threads_counts
            a_second_opening_sees_every_write
            one_of_many_openings_replaces_a_revision
            every_transaction_of_many_openings_counts
            every_update_of_many_agents_counts
            readers_see_complete_documents_in_order

            while_a_claim_is_held_only_its_fence_can_write
            a_held_claim_belongs_to_its_owner
            an_old_fence_is_refused_for_good
            fences_only_grow
            an_expired_claim_can_be_renewed_until_another_claims
            a_released_claim_is_over
            one_of_many_claims_is_granted
            a_claim_expires_by_the_clock_of_the_store
            a_claim_without_a_document_is_listed_until_it_is_given_back

            a_ledger_has_every_line_in_order
            one_of_many_threads_adds_a_line_at_a_place
            a_line_of_a_ledger_needs_the_fence
            a_ledger_outlives_its_documents
            a_copy_has_the_ledger
            a_mark_stands_only_for_lines_that_are_there
            one_of_many_threads_uses_an_approval
            an_approval_is_used_with_the_fence

            history_has_what_was_replaced_or_deleted
            history_is_newest_first
            a_missing_entry_is_refused
            failed_writes_leave_the_history
            history_is_bounded
            pruning_keeps_the_newest_and_pinned_entries
            pruning_keeps_what_was_deleted_last
            a_heartbeat_leaves_no_entry
            a_history_can_come_from_another_store
            a_clock_set_back_hides_no_write

            a_damaged_document_is_an_error
            a_damaged_document_is_never_replaced
            recovery_continues_with_the_newest_good_state
            recovery_needs_the_fence
            recovery_of_a_good_document_changes_nothing
            recovery_brings_a_deleted_document_back

            a_forgotten_task_leaves_only_its_fence

            a_failed_put_leaves_the_old_or_the_new_document
            a_failed_delete_is_complete_or_does_nothing
            a_failed_read_is_an_error
            a_put_works_after_a_failed_one
            a_failed_line_is_not_in_the_ledger
        }
    };
}

/// The names of the rules for processes, as arguments of another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __process_rules {
    ($macro:path, $arguments:tt) => {
        $macro! { $arguments
            one_of_many_processes_replaces_a_revision
            every_transaction_of_many_processes_counts
            a_process_with_an_old_fence_cannot_write
            a_killed_writer_loses_no_acknowledged_write
            a_killed_writer_loses_no_line_of_its_ledger
            killed_effects_take_place_once
        }
    };
}

/// Makes one test of each [rule for checkpoint types](crate::testkit::checkpoint), in a new module.
///
/// The third argument is an expression for a list of samples: checkpoints, some of which should have a value in every
/// field. Each test evaluates it once.
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
            #[allow(unused_imports, reason = "the samples may need no name of their surroundings")]
            use super::*;

            $crate::__checkpoint_rules! { $crate::__test_of_checkpoint_rule, { $checkpoint, $samples } }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __test_of_checkpoint_rule {
    ({ $checkpoint:ty, $samples:expr } $($rule:ident)+) => { $(
        #[::core::prelude::v1::test]
        fn $rule() {
            let samples: ::std::vec::Vec<$checkpoint> = $samples;
            $crate::testkit::__report(
                $crate::testkit::checkpoint::$rule(&samples),
                ::core::concat!(::core::module_path!(), "::", ::core::stringify!($rule)),
            );
        }
    )+ };
}

/// The names of the rules for checkpoint types, as arguments of another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __checkpoint_rules {
    ($macro:path, $arguments:tt) => {
        $macro! { $arguments
            an_empty_object_reads
            a_written_checkpoint_reads_back
            a_wrong_type_is_a_violation_and_costs_only_itself
            an_unchanged_save_changes_no_byte
            a_changed_value_changes_only_its_bytes
            unknown_keys_are_ignored_and_stay
            the_format_has_a_name_and_keeps_its_version
            a_stamp_is_the_time_of_the_last_change
            dropped_text_is_recorded
            every_reading_can_be_reported
            a_refused_operation_changes_nothing
        }
    };
}
