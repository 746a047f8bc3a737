//! What the testkit tells: reports, waivers, and the tables of its page.

use crate::stores;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::store::{CheckpointStore, MemoryStore};
use agent_checkpoint::testkit::checkpoint::checks;
use agent_checkpoint::testkit::{Conformance, Harness, Place, Report, Verdict, report, rules};
use agent_checkpoint::{Result, store_conformance};
use stores::{Files, InMemory, Plain};

mod named {
    use super::*;

    store_conformance!(in_memory, InMemory);

    pub(crate) fn report() -> Report {
        in_memory::report()
    }
}

#[test]
fn a_report_is_the_same_each_time_and_says_what_was_not_proved() {
    let first = named::report();
    assert_eq!(first, named::report());
    assert!(first.is_conformant(), "{}", first.to_markdown());
    let names: Vec<_> = first.lines.iter().map(|line| line.rule).collect();
    assert_eq!(names, rules().map(|rule| rule.name).collect::<Vec<_>>());
    let markdown = first.to_markdown();
    let skipped = "| `a_heartbeat_leaves_the_document` | skipped: needs `heartbeat` |";
    assert!(markdown.contains(skipped), "{markdown}");
    assert!(markdown.ends_with("14 skipped, 0 failed.\n"), "{markdown}");
    let json = serde_json::to_value(&first).unwrap();
    assert_eq!(json["lines"][0]["verdict"], "held");
    assert_eq!(json["lines"][0]["rule"], "reading_makes_nothing");
    assert_eq!(json["lines"][17]["why"], "needs `heartbeat`");
}

/// A store that says less than it does is not let off these.
#[test]
fn whole_documents_revisions_and_conflicts_cannot_be_waived() {
    let report = report(&Plain);
    for rule in [
        "what_is_put_comes_back_to_the_byte",
        "every_spelling_and_unknown_field_stays",
        "what_is_refused_leaves_what_was_there",
        "a_revision_is_that_of_the_bytes",
        "the_same_bytes_again_are_no_write",
        "what_is_said_to_be_unchanged_is_unchanged",
        "a_put_with_another_expectation_is_a_conflict",
        "a_delete_with_another_expectation_is_a_conflict",
        "of_many_threads_that_expect_nothing_one_wins",
        "of_many_threads_that_expect_one_revision_one_wins",
        "every_transaction_of_many_threads_is_there",
        "of_many_openings_that_expect_one_revision_one_wins",
        "every_transaction_of_many_openings_is_there",
        "who_reads_sees_whole_documents_that_never_go_back",
        "a_reopened_store_has_all_that_was_saved",
    ] {
        let found = rules().find(|known| known.name == rule).unwrap();
        assert!(!found.can_be_waived(), "{rule}");
        let line = report.lines.iter().find(|line| line.rule == rule).unwrap();
        assert_eq!(line.verdict, Verdict::Held, "{rule}");
    }
}

/// Says that it keeps processes apart, and gives no address.
struct Boasts;

struct BoastsPlace(Box<dyn Place>);

impl Harness for Boasts {
    fn place(&self) -> Result<Box<dyn Place>> {
        Ok(Box::new(BoastsPlace(Files::in_a_folder().place()?)))
    }
}

impl Place for BoastsPlace {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        self.0.open()
    }
}

#[test]
fn a_promise_that_nothing_can_prove_is_a_failure() {
    let rule = "of_many_processes_that_expect_one_revision_one_wins";
    let rule = rules().find(|known| known.name == rule).unwrap();
    let verdict = Conformance::of(&Boasts).with_child("none").judge(rule);
    assert!(
        matches!(&verdict, Verdict::Failed(why) if why.contains("has no address")),
        "{verdict:?}"
    );
    // Where nobody can start processes it is not proved, and said so.
    let verdict = Conformance::of(&Files::in_a_folder()).judge(rule);
    assert!(matches!(&verdict, Verdict::Skipped(_)), "{verdict:?}");
}

#[test]
fn a_recovery_that_nothing_can_prove_is_a_failure() {
    // Its place has no `damage`, and files can be damaged.
    let report = report(&Boasts);
    let rule = "what_cannot_be_read_is_put_aside_and_the_newest_state_goes_on";
    let mut failed = report.failed();
    assert!(
        failed.any(|(name, why)| name == rule && why.contains("promises `recovery`")),
        "{}",
        report.to_markdown()
    );
}

#[test]
fn a_report_lists_the_promises_that_nothing_proved() {
    let files = report(&Files::in_a_folder());
    assert!(files.is_conformant(), "{}", files.to_markdown());
    // Without children nothing keeps processes apart.
    assert_eq!(
        files.unproved,
        ["survives_power_loss", "excludes_processes"]
    );
    let says = "Promised, and proved by no rule: `survives_power_loss`, `excludes_processes`.\n";
    assert!(
        files.to_markdown().contains(says),
        "{}",
        files.to_markdown()
    );
    assert_eq!(report(&InMemory).unproved, [""; 0]);
    assert_eq!(report(&Plain).unproved, [""; 0]);
}

/// In a child, a place whose address is longer than that of its parent: so a chain of children is seen.
struct Chained;

struct ChainedPlace(Box<dyn Place>);

/// What a child is told of its place.
fn address_of_child() -> Option<String> {
    std::env::var("AGENT_CHECKPOINT_TESTKIT_ADDRESS").ok()
}

impl Harness for Chained {
    fn place(&self) -> Result<Box<dyn Place>> {
        Ok(Box::new(ChainedPlace(Files::in_a_folder().place()?)))
    }
}

impl Place for ChainedPlace {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        self.0.open()
    }

    fn address(&self) -> Option<String> {
        Some(address_of_child().unwrap_or_default() + "+")
    }
}

fn judge_chained() -> Verdict {
    let rule = "of_many_processes_that_expect_one_revision_one_wins";
    let rule = rules().find(|known| known.name == rule).unwrap();
    Conformance::of(&Chained)
        .with_child("testkit_report::a_child_that_judges_again")
        .judge(rule)
}

/// Does nothing but in a child, where it does what a program does that is no test: the same again. Not
/// without end, even where the testkit lets it.
#[test]
fn a_child_that_judges_again() {
    if address_of_child().is_some_and(|address| address.len() < 3) {
        let _verdict = judge_chained();
    }
}

#[test]
fn a_child_starts_no_children() {
    let verdict = judge_chained();
    assert!(
        matches!(&verdict, Verdict::Failed(why) if why.contains("call `serve` first")),
        "{verdict:?}"
    );
}

/// Names that the macros use or once used mean what they mean to whoever wrote them.
mod with_names_of_its_own {
    #![allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "they only must not be in the way"
    )]

    // Any attribute: a test framework has one of that name.
    use core::prelude::v1::global_allocator as test;

    use super::InMemory;
    use agent_checkpoint::formats::task::TaskCheckpoint;
    use agent_checkpoint::{checkpoint_conformance, store_conformance};

    struct Vec;
    struct Report;
    const CHILD: InMemory = InMemory;

    fn report() -> InMemory {
        CHILD
    }

    fn samples() -> std::vec::Vec<TaskCheckpoint> {
        vec![TaskCheckpoint::default()]
    }

    macro_rules! stringify {
        ($($any:tt)*) => {
            compile_error!("not ours")
        };
    }

    store_conformance!(by_a_function, report());
    store_conformance!(by_a_constant, CHILD);
    checkpoint_conformance!(task, TaskCheckpoint, samples());
}

/// A harness that cannot be used fails every rule: nothing passes for want of a place.
#[test]
fn a_place_that_cannot_be_made_is_a_failure_and_so_is_a_panic() {
    struct Nowhere;
    impl Harness for Nowhere {
        fn place(&self) -> Result<Box<dyn Place>> {
            Err(agent_checkpoint::Error::refused("no room"))
        }
    }
    assert_eq!(report(&Nowhere).failed().count(), rules().count());

    struct Panics;
    impl Harness for Panics {
        fn place(&self) -> Result<Box<dyn Place>> {
            std::panic::panic_any("the place is on fire")
        }
    }
    let rule = rules().next().unwrap();
    let verdict = Conformance::of(&Panics).judge(rule);
    assert_eq!(
        verdict,
        Verdict::Failed("panicked: the place is on fire".to_owned())
    );
}

/// A store behind a pointer is proved like the store.
#[test]
fn stores_behind_pointers_are_stores() {
    struct Boxed;
    struct BoxedPlace(Arc<MemoryStore>);
    impl Harness for Boxed {
        fn place(&self) -> Result<Box<dyn Place>> {
            Ok(Box::new(BoxedPlace(Arc::default())))
        }
    }
    impl Place for BoxedPlace {
        fn can_be_damaged(&self) -> bool {
            false
        }

        fn open(&self) -> Result<Box<dyn CheckpointStore>> {
            let store: Box<dyn CheckpointStore> = Box::new(Arc::clone(&self.0));
            Ok(Box::new(store))
        }
    }
    let report = report(&Boxed);
    assert!(report.is_conformant(), "{}", report.to_markdown());
}

/// The tables of the page, as they must be.
fn tables() -> String {
    let mut text =
        "| rule | what it proves | needs | can be waived |\n|---|---|---|---|\n".to_owned();
    for rule in rules() {
        let needs: Vec<_> = rule.needs.iter().map(ToString::to_string).collect();
        let waived = if rule.can_be_waived() { "yes" } else { "no" };
        let needs = if needs.is_empty() {
            "nothing".to_owned()
        } else {
            needs.join(", ")
        };
        text += &format!(
            "| `{}` | {} | {needs} | {waived} |\n",
            rule.name, rule.about
        );
    }
    text += "\n| check of a type | what it proves |\n|---|---|\n";
    for check in checks::<TaskCheckpoint>() {
        text += &format!("| `{}` | {} |\n", check.name, check.about);
    }
    text
}

/// When a rule changes: `AGENT_CHECKPOINT_WRITE_DOCS=1 cargo test --test contracts testkit_report` writes them anew.
#[test]
fn the_page_has_a_table_of_the_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/testkit.md");
    let page = fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- rules -->\n", "<!-- end of rules -->\n");
    let (before, rest) = page.split_once(begin).unwrap();
    let (found, after) = rest.split_once(end).unwrap();
    let expected = format!("\n{}\n", tables());
    if std::env::var_os("AGENT_CHECKPOINT_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{before}{begin}{expected}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(
        found, expected,
        "docs/testkit.md has other rules than the testkit"
    );
}

/// Stores that are right, each in a way of its own.
mod right {
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    use std::thread::{ThreadId, current};
    use std::time::Duration;

    use agent_checkpoint::store::{Capabilities, DeleteOptions, Exclusive, Page, Put, Query};
    use agent_checkpoint::store::{Keep, Saved, Stored};
    use agent_checkpoint::{Claim, ClaimRequest, Clock, Dropped, Fence};
    use agent_checkpoint::{Error, ErrorKind, Expect, Key};
    use chrono::{DateTime, SubsecRound, Utc};

    use super::*;

    /// A store in memory, with what it keeps and how finely it tells the time.
    struct Of(Arc<MemoryStore>, Option<usize>, Duration);

    impl Place for Of {
        fn open(&self) -> Result<Box<dyn CheckpointStore>> {
            Ok(Box::new(Arc::clone(&self.0)))
        }
        fn can_be_damaged(&self) -> bool {
            false
        }
        fn keeps(&self) -> Option<usize> {
            self.1
        }
        fn claim_resolution(&self) -> Duration {
            self.2
        }
    }

    struct KeepsFew(usize);

    impl Harness for KeepsFew {
        fn place(&self) -> Result<Box<dyn Place>> {
            let store = MemoryStore::new().with_history(Keep::newest(self.0));
            Ok(Box::new(Of(Arc::new(store), Some(self.0), Duration::ZERO)))
        }
    }

    #[test]
    fn a_store_that_keeps_few_states_passes() {
        for keeps in [1, 2] {
            let report = report(&KeepsFew(keeps));
            assert!(report.is_conformant(), "{}", report.to_markdown());
        }
    }

    struct WholeSeconds;

    impl Clock for WholeSeconds {
        fn now(&self) -> DateTime<Utc> {
            Utc::now().trunc_subsecs(0)
        }
    }

    impl Harness for WholeSeconds {
        fn place(&self) -> Result<Box<dyn Place>> {
            let store = MemoryStore::new().with_clock(WholeSeconds);
            Ok(Box::new(Of(Arc::new(store), None, Duration::from_secs(1))))
        }
    }

    fn judge(harness: &dyn Harness, rule: &str) -> Verdict {
        let rule = rules().find(|known| known.name == rule).unwrap();
        Conformance::of(harness).judge(rule)
    }

    #[test]
    fn a_store_that_keeps_whole_seconds_passes() {
        let rule = "a_claim_that_ran_out_can_be_renewed_until_another_has_it";
        assert_eq!(judge(&WholeSeconds, rule), Verdict::Held);
    }

    /// Says to each thread once that it is locked, when a put expects something.
    #[derive(Clone, Default)]
    struct Locks(Arc<MemoryStore>, Arc<Mutex<BTreeSet<String>>>);

    impl CheckpointStore for Locks {
        fn load(&self, key: &Key) -> Result<Option<Stored>> {
            self.0.load(key)
        }
        fn put(&self, key: &Key, put: Put) -> Result<Saved> {
            let thread: ThreadId = current().id();
            let is_first = self.1.lock().unwrap().insert(format!("{thread:?}"));
            if is_first && *put.expect() != Expect::Any {
                return Err(Error::new(ErrorKind::ChangedMeanwhile));
            }
            self.0.put(key, put)
        }
        fn exclusive(&self) -> Option<&dyn Exclusive> {
            None
        }
        fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
            self.0.delete(key, options)
        }
        fn list(&self, query: &Query) -> Result<Page> {
            self.0.list(query)
        }
        fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
            self.0.overflow(key)
        }
        fn claim(&self, key: &Key, request: &ClaimRequest) -> Result<Claim> {
            self.0.claim(key, request)
        }
        fn release(&self, key: &Key, fence: Fence) -> Result<Claim> {
            self.0.release(key, fence)
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities::none()
        }
    }

    struct Locking;

    impl Harness for Locking {
        fn place(&self) -> Result<Box<dyn Place>> {
            Ok(Box::new(Locks::default()))
        }
    }

    impl Place for Locks {
        fn open(&self) -> Result<Box<dyn CheckpointStore>> {
            Ok(Box::new(self.clone()))
        }
    }

    #[test]
    fn a_store_that_asks_to_try_again_passes() {
        for rule in [
            "of_many_threads_that_expect_nothing_one_wins",
            "of_many_threads_that_expect_one_revision_one_wins",
            "every_transaction_of_many_threads_is_there",
        ] {
            assert_eq!(judge(&Locking, rule), Verdict::Held, "{rule}");
        }
    }
}
