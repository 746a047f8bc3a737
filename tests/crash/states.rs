//! All states that a power loss leaves at every point of every action of a store: `explorer/disk.rs` says what is
//! explored and what is not.

use crate::explorer as crash;

use crash::{Depth, depth, scenarios};

/// One test for each scenario, named after what it does.
macro_rules! survive {
    ($how:ident: $($name:ident),* $(,)?) => { $(
        #[test]
        fn $name() {
            scenarios::$name().$how(depth());
        }
    )* };
}

/// A power loss after each call.
mod crash_after_each_call {
    use super::{depth, scenarios};

    survive!(
        survives_crashes:
        first_save,
        save_over,
        updates,
        cut,
        first_cut,
        restored_after_a_delete,
        history_beyond_its_limit,
        pruned,
        archived,
        deleted,
        restored,
        first_claim,
        claimed,
        taken_over,
        released,
        pinned_present,
        pinned_entry,
        unpinned,
        host_file,
        host_file_begun,
        host_file_taken_over,
        host_file_recovered,
        own_backups,
        copies,
        lazy,
        begun_anew,
        restarted,
        recovered_newest,
        recovered_fresh,
        recovered_by_salvage,
        foreign_deleted,
        foreign_archived,
        foreign_pinned,
        foreign_replaced,
        foreign_unchanged,
        foreign_healthy,
        emptied_slot,
        forgotten,
        appended,
        ledger,
        torn_ledger,
        ledger_of_a_slot,
        effect,
    );
}

/// A kill after each call, another run to the end, and then a power loss. Not for `archived`: a second archive reports
/// that there is nothing, which promises nothing.
mod kill_after_each_call {
    use super::{depth, scenarios};

    survive!(
        survives_a_kill_and_then_a_crash:
        first_save,
        save_over,
        updates,
        pruned,
        deleted,
        restored,
        first_claim,
        claimed,
        taken_over,
        released,
        pinned_present,
        pinned_entry,
        unpinned,
        begun_anew,
        recovered_fresh,
        foreign_deleted,
        foreign_pinned,
        forgotten,
        appended,
        ledger,
        torn_ledger,
        ledger_of_a_slot,
        effect,
    );
}

/// The same for scenarios with so few syncs that there are thousands of states.
mod kill_after_each_call_in_full {
    use std::io::Write;

    use super::{Depth, depth, scenarios};

    macro_rules! survive_in_full {
        ($($name:ident),* $(,)?) => { $(
            #[test]
            fn $name() {
                if depth() == Depth::Full {
                    return scenarios::$name().survives_a_kill_and_then_a_crash(Depth::Single);
                }
                let name = stringify!($name);
                let line = format!("SKIPPED {name} after a kill (scripts/crash explores it)\n");
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
        )* };
    }

    survive_in_full!(
        cut,
        history_beyond_its_limit,
        host_file,
        host_file_taken_over,
        host_file_recovered,
        own_backups,
        copies,
        lazy,
        recovered_newest,
        recovered_by_salvage,
    );
}
