//! The explorer finds faulty writers. Otherwise the results of `states.rs` would mean nothing.

use crate::explorer as crash;

use std::path::Path;

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Put};
use crash::{Depth, Recorded, Scenario, Step, Tree, broken, scenarios, scratch};

/// The explorer finds this problem in the states that a broken writer may leave. For the correct writer `states` finds
/// nothing.
fn finds(what: &str, scenario: &Scenario, broken: impl Fn(&[Step]) -> Vec<Step>) {
    let mut recorded = scenario.record();
    let wrong = broken(&recorded.steps);
    assert_ne!(wrong, recorded.steps, "nothing was broken");
    recorded.steps = wrong;
    // One state is enough. Most writers are found by what they acknowledged, for which there are few states.
    let found = [1, 0].into_iter().any(|acknowledged| {
        let states = recorded.states(acknowledged, Depth::Single);
        states.chunks(32).any(|some| {
            let findings = scenario.judge_all(&recorded, some);
            findings.iter().any(|finding| finding.contains(what))
        })
    });
    assert!(found, "a broken writer is not found out: no {what:?}");
}

#[test]
fn a_save_that_does_not_sync_its_file_is_torn() {
    finds(
        "found Corrupt",
        &scenarios::save_over(),
        broken::without_file_sync,
    );
}

#[test]
fn a_save_that_does_not_sync_its_folder_is_lost() {
    finds(
        "1 acts acknowledged",
        &scenarios::save_over(),
        broken::without_folder_sync,
    );
}

#[test]
fn a_new_folder_whose_parent_is_not_synced_is_lost_with_all_in_it() {
    finds(
        "found Nothing",
        &scenarios::first_save(),
        broken::without_sync_of_parents,
    );
}

#[test]
fn a_file_that_is_written_in_place_is_torn() {
    finds("found Corrupt", &scenarios::save_over(), broken::in_place);
}

#[test]
fn a_file_that_takes_its_name_before_it_is_synced_is_torn() {
    finds(
        "found Corrupt",
        &scenarios::save_over(),
        broken::rename_before_sync,
    );
}

#[test]
fn a_record_of_what_was_cut_that_is_not_synced_is_lost() {
    finds("is gone", &scenarios::cut(), |steps| {
        let left_out =
            |step: &&Step| matches!(step, Step::Sync(path) if path.ends_with("a.json.jsonl"));
        steps
            .iter()
            .filter(|step| !left_out(step))
            .cloned()
            .collect()
    });
}

#[test]
fn a_line_of_a_ledger_that_is_not_synced_is_lost() {
    let is_ledger = |path: &Path| path.ends_with("ledger/a.json.jsonl");
    finds("there are []", &scenarios::ledger(), |steps| {
        let left_out = |step: &&Step| matches!(step, Step::Sync(path) if is_ledger(path));
        let kept = steps.iter().filter(|step| !left_out(step));
        kept.cloned().collect()
    });
}

#[test]
fn an_effect_whose_beginning_is_not_synced_is_brought_about_again() {
    let is_ledger = |path: &Path| path.ends_with("ledger/a.json.jsonl");
    finds("is told Do", &scenarios::effect(), |steps| {
        let left_out = |step: &&Step| matches!(step, Step::Sync(path) if is_ledger(path));
        let kept = steps.iter().filter(|step| !left_out(step));
        kept.cloned().collect()
    });
}

#[test]
fn a_ledger_whose_placeholder_comes_first_is_taken_for_one_that_is_elsewhere() {
    finds("its ledger is not here", &scenarios::ledger(), |steps| {
        let is_placeholder = |step: &Step| match step {
            Step::Create(path) | Step::Sync(path) => path.ends_with("overflow/a.json.ledger"),
            Step::SyncFolder(path) | Step::CreateFolder(path) => path.ends_with("overflow"),
            _ => false,
        };
        let is_ledger = |step: &Step| matches!(step, Step::Create(path) if path.ends_with("ledger/a.json.jsonl"));
        broken::earlier(steps, is_placeholder, is_ledger)
    });
}

#[test]
fn a_file_that_is_removed_before_its_history_lasts_is_gone_with_it() {
    finds("not in the history", &scenarios::deleted(), |steps| {
        // The file is removed first, and only then its history is synced.
        let is_removal =
            |step: &Step| matches!(step, Step::Remove(path) if path.ends_with("store/a.json"));
        let is_entry = |step: &Step| match step {
            // By a hard link, or a copy if the file may not be on disk.
            Step::Link { to, .. } | Step::Rename { to, .. } => {
                to.starts_with("store/.agent-checkpoint/history")
            }
            _ => false,
        };
        let entry = steps.iter().position(is_entry).unwrap();
        let mut changed = steps.to_vec();
        let removal = changed.remove(steps.iter().position(is_removal).unwrap());
        changed.insert(entry + 1, removal);
        changed
    });
}

#[test]
fn a_damaged_file_that_is_put_aside_after_it_was_replaced_is_lost() {
    finds(
        "the damaged text is gone",
        &scenarios::recovered_fresh(),
        |steps| {
            let is_removal =
                |step: &Step| matches!(step, Step::Remove(path) if path.ends_with("store/a.json"));
            let is_quarantine = |step: &Step| matches!(step, Step::Create(path) if path.to_string_lossy().contains("corrupt"));
            let changed = broken::earlier(steps, is_removal, is_quarantine);
            // Then there is nothing to take the time from.
            let left = changed.into_iter();
            left.filter(|step| !matches!(step, Step::SetTime { .. }))
                .collect()
        },
    );
}

#[test]
fn a_pin_that_is_not_synced_is_lost() {
    finds(
        "not in the history",
        &scenarios::pinned_present(),
        broken::without_folder_sync,
    );
}

#[test]
fn a_claim_that_is_recorded_after_it_was_granted_lets_the_old_owner_in() {
    finds("the old fence", &scenarios::taken_over(), |steps| {
        // The first act is acknowledged before its record is written.
        let end = steps
            .iter()
            .position(|step| *step == Step::Acknowledged)
            .unwrap();
        let mut changed = steps.to_vec();
        let done = changed.remove(end);
        changed.insert(0, done);
        changed
    });
}

/// With a fixed name for the temporary file, the leftovers of a crash block the next save. The states are correct, but
/// the writer that meets them is not.
#[test]
fn a_fixed_name_for_the_temporary_file_blocks_the_next_save() {
    let scenario = scenarios::save_over();
    let recorded: Recorded = scenario.record();
    let mut blocked = 0;
    for state in recorded.states(0, Depth::Single) {
        let tree = with_fixed_names(&state.tree);
        let folder = scratch();
        tree.write(folder.path());
        blocked += usize::from(naive_save(&folder.path().join("store")).is_err());
        // The library is not blocked.
        let store = (scenario.open)(folder.path());
        let document = Document::from_text(r#"{"next": 1}"#).unwrap();
        CheckpointStore::put(&*store, &scenario.key, Put::new(document)).unwrap();
    }
    assert!(blocked > 0, "a broken writer is not found out");
}

fn with_fixed_names(tree: &Tree) -> Tree {
    let mut fixed = tree.clone();
    fixed.names = tree
        .names
        .iter()
        .map(
            |(path, node)| match path.to_string_lossy().ends_with(".tmp") {
                true => (path.with_file_name("a.json.tmp"), node.clone()),
                false => (path.clone(), node.clone()),
            },
        )
        .collect();
    fixed
}

fn naive_save(folder: &Path) -> std::io::Result<()> {
    let temp = folder.join("a.json.tmp");
    let mut file = std::fs::File::create_new(&temp)?;
    std::io::Write::write_all(&mut file, b"{}")?;
    file.sync_all()?;
    std::fs::rename(temp, folder.join("a.json"))
}
