//! Every file-system call of every action of a store fails once, in every way that systems have.

use crate::common::{self, places};
use crate::explorer as crash;

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, DeleteOptions, FileStore, Put};
use agent_checkpoint::testkit::seam::{Call, Operation};
use agent_checkpoint::{Claim, ClaimRequest, Dropped, Error, ErrorKind, Revision};
use crash::faults::*;
use crash::{Depth, Scenario, Seen, Tree, depth, next_save_works, observe, scenarios, scratch};

/// Everything that a store shows of one checkpoint.
#[derive(Clone, Debug, PartialEq)]
struct View {
    seen: Seen,
    history: Vec<(String, Option<Revision>, bool, usize)>,
    claim: Option<Claim>,
    dropped: Vec<Dropped>,
    ledger: Vec<String>,
    /// The present checkpoints and the archived ones.
    files: Vec<PathBuf>,
}

impl View {
    /// What must hold even if a save may not be durable. The history may still have an entry beyond its limit.
    fn outcome(&self) -> (&Seen, &Option<Claim>, &[Dropped], &[String], &[PathBuf]) {
        let (dropped, ledger) = (&self.dropped, &self.ledger);
        (&self.seen, &self.claim, dropped, ledger, &self.files)
    }
}

/// The files that a restart, an archive or a recovery may add to.
fn files(root: &Path) -> Vec<PathBuf> {
    let is_wanted = |name: &PathBuf| {
        let folder = name.parent().unwrap();
        let is_open = ["store", "docs"].map(Path::new).contains(&folder);
        let is_json = name.extension().is_some_and(|ending| ending == "json");
        is_json && (is_open || folder.ends_with("archive"))
    };
    Tree::read(root)
        .names
        .into_keys()
        .filter(is_wanted)
        .collect()
}

fn view(scenario: &Scenario, root: &Path) -> View {
    let store = (scenario.open)(root);
    let history = store.states(&scenario.key).unwrap();
    let history = history.into_iter().map(|entry| {
        let (id, revision) = (entry.id.to_string(), entry.revision.ok());
        (id, revision, entry.pinned, entry.tasks_since)
    });
    View {
        seen: observe(&*store, &scenario.key),
        history: history.collect(),
        claim: store.claimed(&scenario.key).unwrap(),
        dropped: store.beside().dropped(&scenario.key).unwrap_or_default(),
        ledger: store.beside().ledger(&scenario.key).unwrap(),
        files: files(root),
    }
}

/// Runs the acts up to the first failure, and returns which act failed.
fn run(scenario: &Scenario, root: &Path) -> Result<(), (usize, Error)> {
    for (number, act) in scenario.acts.iter().enumerate() {
        act(root).map_err(|error| (number, error))?;
    }
    Ok(())
}

/// Makes each call fail in turn.
fn each_call_fails(scenario: &Scenario, fault: Fault) {
    let folder = scratch();
    (scenario.before)(folder.path());
    let initial = Tree::read(folder.path());
    // The state before each act, and after the last.
    let mut views = vec![view(scenario, folder.path())];
    for act in &scenario.acts {
        act(folder.path()).unwrap();
        views.push(view(scenario, folder.path()));
    }
    let counted = scratch();
    initial.write(counted.path());
    let calls = with_fault(fault, |_, _| false, || run(scenario, counted.path())).calls;

    let numbers = Mutex::new(places().take_while(|&number| number < calls));
    let findings = Mutex::new(Vec::new());
    let try_out = || {
        // A separate statement, so that the lock is held only for taking the number.
        let next = || numbers.lock().unwrap().next();
        while let Some(number) = next() {
            if let Err(why) = one_call_fails(scenario, &initial, &views, fault, number) {
                findings.lock().unwrap().push((number, why));
            }
        }
    };
    // A reader of a corrupt file waits briefly and reads again, so try others meanwhile.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(try_out);
        }
    });
    let mut findings = findings.into_inner().unwrap();
    findings.sort();
    assert!(
        findings.is_empty(),
        "{}, {fault:?}: {} of {calls} calls are not survived: {:#?}",
        scenario.name,
        findings.len(),
        &findings[..findings.len().min(5)]
    );
    println!(
        "FAILED IN TURN {} with {fault:?}: {calls} calls",
        scenario.name
    );
}

fn one_call_fails(
    scenario: &Scenario,
    initial: &Tree,
    views: &[View],
    fault: Fault,
    number: usize,
) -> Result<(), String> {
    let folder = scratch();
    let root = folder.path();
    initial.write(root);
    let outcome = with_fault(fault, move |call, _| call == number, || run(scenario, root));
    let what = format!("{:?}", outcome.failed);
    let found = view(scenario, root);
    match outcome.result {
        Ok(()) => {
            let last = views.last().unwrap();
            if found.outcome() != last.outcome() {
                return Err(format!("{what}: no error, and found {found:?}"));
            }
        }
        Err((act, error)) => {
            tells_what_happened(&error, fault, outcome.failed.first(), root)
                .map_err(|why| format!("{what}: {why}"))?;
            // The new document is in place, but may not be durable.
            let is_in_place = *error.kind() == ErrorKind::NotDurable;
            let expected = &views[act + usize::from(is_in_place)];
            let is_as_it_was = match is_in_place {
                true => found.outcome() == expected.outcome(),
                false => found == *expected,
            };
            // Syncing the present file may fail as well, which changes nothing.
            let is_old = is_in_place && found == views[act];
            if !is_as_it_was && !is_old {
                return Err(format!(
                    "{what}: {error} ({:?}), expected {expected:?}, found {found:?}",
                    error.kind()
                ));
            }
        }
    }
    let left = temps(root);
    if !left.is_empty() {
        return Err(format!("{what}: {left:?} are left"));
    }
    let store = (scenario.open)(root);
    next_save_works(&*store, &scenario.key).map_err(|why| format!("{what}: {why}"))
}

/// The error names the action that failed, its file, and the cause.
fn tells_what_happened(
    error: &Error,
    fault: Fault,
    failed: Option<&Failed>,
    root: &Path,
) -> Result<(), String> {
    let text = error.to_string();
    let failed = failed.ok_or_else(|| format!("nothing failed, and still: {text}"))?;
    let told = |holds: bool, what: &str| match holds {
        true => Ok(()),
        false => Err(format!(
            "the error does not tell {what}: {text} ({error:?})"
        )),
    };
    // The store's own folder is created in the scratch folder, which is then synced, too.
    let above = root.parent().unwrap();
    told(text.contains(&*above.to_string_lossy()), "the path")?;
    let Fault::Error(code) = fault else {
        return Err(format!("a short write was not continued: {text}"));
    };
    told(codes(error).contains(&code), "the cause")?;
    let operation = match failed.operation {
        Operation::Create => Operation::Open,
        other => other,
    };
    // An inspection is reported as the action that it was for.
    let names_it = operation == Operation::Inspect && text.contains("cannot ")
        || text.contains(&format!("cannot {operation}"));
    match error.code() {
        "not-durable" | "outcome-unknown" => Ok(()),
        "disk-full" => told(text.starts_with("disk full") && names_it, "the operation"),
        _ if fault == ENOSPC => Err(format!("a full disk is told as {:?}", error.kind())),
        "busy" => told(fault == EBUSY, "the cause"),
        "io" => told(names_it, "the operation"),
        other => Err(format!("{other:?}: {text}")),
    }
}

/// The numbers of the system's errors in the chain of causes.
fn codes(error: &Error) -> Vec<i32> {
    let mut codes = Vec::new();
    let mut next: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(cause) = next {
        codes.extend(
            cause
                .downcast_ref::<io::Error>()
                .and_then(io::Error::raw_os_error),
        );
        next = cause.source();
    }
    codes
}

const FAULTS: [Fault; 6] = [EIO, ENOSPC, EACCES, EINTR, EROFS, Fault::ShortWrite];

macro_rules! fail_in_turn {
    ($($name:ident: $faults:expr),* $(,)?) => { $(
        #[test]
        fn $name() {
            let faults: &[Fault] = if depth() == Depth::Full { &FAULTS } else { &$faults };
            for fault in faults {
                each_call_fails(&scenarios::$name(), *fault);
            }
        }
    )* };
}

// In the normal suite every scenario meets a broken disk, and some meet everything.
fail_in_turn!(
    first_save: FAULTS,
    save_over: FAULTS,
    updates: [EIO],
    cut: [EIO, ENOSPC],
    first_cut: [EIO, ENOSPC],
    restored_after_a_delete: [EIO],
    history_beyond_its_limit: [EIO],
    pruned: [EIO],
    archived: [EIO],
    deleted: [EIO, EACCES],
    restored: [EIO],
    first_claim: [EIO],
    claimed: [EIO],
    taken_over: FAULTS,
    released: [EIO],
    pinned_present: [EIO],
    pinned_entry: [EIO],
    unpinned: [EIO],
    host_file: [EIO],
    host_file_taken_over: [EIO],
    host_file_recovered: [EIO],
    own_backups: [EIO],
    copies: [EIO, ENOSPC],
    lazy: [EIO],
    begun_anew: [EIO],
    restarted: [EIO, ENOSPC],
    recovered_newest: [EIO],
    recovered_fresh: [EIO, ENOSPC],
    recovered_by_salvage: [EIO],
    emptied_slot: [EIO],
    ledger: FAULTS,
    torn_ledger: [EIO, ENOSPC],
    ledger_of_a_slot: [EIO],
);

fn is(operation: Operation) -> impl Fn(usize, &Call<'_>) -> bool {
    move |_, call| call.operation == operation
}

#[test]
fn a_mount_point_that_cannot_be_replaced_is_told_as_such() {
    let scenario = scenarios::save_over();
    let folder = scratch();
    (scenario.before)(folder.path());
    let outcome = with_fault(EBUSY, is(Operation::Rename), || {
        run(&scenario, folder.path())
    });
    let (_, error) = outcome.result.unwrap_err();
    assert_eq!(error.code(), "busy", "{error}");
    assert!(temps(folder.path()).is_empty());
    next_save_works(&*(scenario.open)(folder.path()), &scenario.key).unwrap();
}

#[test]
fn a_file_system_without_locks_is_refused_unless_there_is_one_writer() {
    for fault in [ENOLCK, ENOTSUP] {
        let scenario = scenarios::save_over();
        let folder = scratch();
        (scenario.before)(folder.path());
        let before = view(&scenario, folder.path());
        let outcome = with_fault(fault, is(Operation::Lock), || run(&scenario, folder.path()));
        let (_, error) = outcome.result.unwrap_err();
        assert_eq!(error.code(), "no-locks", "{error}");
        assert_eq!(view(&scenario, folder.path()), before);

        let options = scenarios::options().with_single_writer();
        let store = FileStore::with_options(folder.path().join("store"), options);
        let document = Document::from_text(r#"{"alone": true}"#).unwrap();
        let alone = || {
            store.put(&scenario.key, Put::new(document.clone()))?;
            let request = ClaimRequest::new("one", std::time::Duration::from_secs(60));
            store.claim(&scenario.key, &request)
        };
        with_fault(fault, is(Operation::Lock), alone)
            .result
            .unwrap();
        assert_eq!(view(&scenario, folder.path()).history.len(), 2);
    }
}

#[test]
fn where_there_are_no_hard_links_the_history_keeps_copies() {
    for fault in [EPERM, ENOTSUP, EMLINK, EXDEV] {
        for scenario in [
            scenarios::save_over(),
            scenarios::history_beyond_its_limit(),
            scenarios::deleted(),
            scenarios::own_backups(),
            scenarios::host_file(),
        ] {
            let folder = scratch();
            (scenario.before)(folder.path());
            let initial = Tree::read(folder.path());
            let linked = scratch();
            initial.write(linked.path());
            run(&scenario, linked.path()).unwrap();
            let outcome = with_fault(fault, is(Operation::Link), || run(&scenario, folder.path()));
            outcome.result.unwrap();
            assert!(
                !outcome.failed.is_empty(),
                "{} links nothing",
                scenario.name
            );
            assert_eq!(
                view(&scenario, folder.path()),
                view(&scenario, linked.path()),
                "{}",
                scenario.name
            );
            assert!(temps(folder.path()).is_empty());
        }
    }
}

/// If the folder could not be synced, the same save again must not count as done.
#[test]
fn a_save_that_may_not_last_is_made_to_last_when_it_is_saved_again() {
    let scenario = scenarios::save_over();
    let folder = scratch();
    (scenario.before)(folder.path());
    let sync = is(Operation::SyncFolder);
    let outcome = with_fault(EIO, sync, || run(&scenario, folder.path()));
    let (_, error) = outcome.result.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotDurable, "{error}");
    // Still broken: the error comes again, though there is nothing to write.
    let outcome = with_fault(EIO, is(Operation::SyncFolder), || {
        run(&scenario, folder.path())
    });
    let (_, error) = outcome.result.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotDurable, "{error}");
    let synced = Arc::new(AtomicUsize::new(0));
    let count = {
        let synced = Arc::clone(&synced);
        move |_, call: &Call<'_>| {
            let is_sync = call.operation == Operation::SyncFolder;
            synced.fetch_add(usize::from(is_sync), Ordering::Relaxed);
            false
        }
    };
    let outcome = with_fault(EIO, count, || run(&scenario, folder.path()));
    outcome.result.unwrap();
    assert!(synced.load(Ordering::Relaxed) > 0, "nothing was waited for");
}

/// A forget is the only act that is not atomic: the next forget finishes a failed one.
#[test]
fn a_forget_that_fails_is_finished_by_the_next() {
    let scenario = scenarios::forgotten();
    let folder = scratch();
    (scenario.before)(folder.path());
    let initial = Tree::read(folder.path());
    let calls = with_fault(EIO, |_, _| false, || run(&scenario, folder.path())).calls;
    let mut parts = 0;
    for number in places().take_while(|&number| number < calls) {
        let folder = scratch();
        let root = folder.path();
        initial.write(root);
        let dead = move |call, _: &Call<'_>| call >= number;
        let failed = with_fault(EIO, dead, || run(&scenario, root));
        if failed.result.is_ok() {
            assert!(!scenarios::is_kept_somewhere(root), "call {number}");
        }
        parts += usize::from(Tree::read(root).names.len() < initial.names.len());
        scenarios::forget(root).unwrap();
        assert!(!scenarios::is_kept_somewhere(root), "call {number}");
        next_save_works(&*(scenario.open)(root), &scenario.key).unwrap();
    }
    assert!(parts > 0, "nothing was removed by any that failed");
}

/// From each call on everything fails, as if the process had been killed there. The saved state, and the one about to
/// be saved, count as ours.
#[test]
fn a_save_that_was_killed_is_no_state_that_came_back() {
    for scenario in [
        scenarios::save_over(),
        scenarios::restored(),
        scenarios::updates(),
        scenarios::copies(),
        scenarios::own_backups(),
        scenarios::host_file(),
        scenarios::recovered_newest(),
        scenarios::begun_anew(),
        scenarios::restarted(),
    ] {
        let folder = scratch();
        (scenario.before)(folder.path());
        let initial = Tree::read(folder.path());
        let calls = with_fault(EIO, |_, _| false, || run(&scenario, folder.path())).calls;
        for killed_at in 0..calls {
            let folder = scratch();
            initial.write(folder.path());
            let dead = move |call, _: &Call<'_>| call >= killed_at;
            let killed = with_fault(EIO, dead, || run(&scenario, folder.path()));
            let store = (scenario.open)(folder.path());
            let Ok(Some(present)) = store.load(&scenario.key) else {
                continue;
            };
            let told = store
                .history()
                .unwrap()
                .rolled_back(&scenario.key, &present.revision);
            let name = scenario.name;
            let failed = killed.failed.first();
            assert_eq!(told.unwrap(), None, "{name}, killed at {failed:?}");
        }
    }
}

/// The new text is in place, so the replaced text is in the history, although the save is reported as failed.
#[test]
fn what_a_save_replaced_that_may_not_last_is_in_the_history() {
    for scenario in [scenarios::save_over(), scenarios::own_backups()] {
        let folder = scratch();
        (scenario.before)(folder.path());
        let store = (scenario.open)(folder.path());
        let before = observe(&*store, &scenario.key);
        let sync = is(Operation::SyncFolder);
        let (_, error) = with_fault(EIO, sync, || run(&scenario, folder.path()))
            .result
            .unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::NotDurable, "{error}");
        let kept = store.states(&scenario.key).unwrap();
        let kept = store.load_revision(&scenario.key, &kept[1].id).unwrap();
        assert_eq!(Seen::Text(kept.document.text().to_owned()), before);
    }
}

/// After a failed sync the system may mark the pages of the file as clean: a second sync of the same file would succeed
/// and mean nothing. Neither this call nor the next relies on one.
#[test]
fn a_file_that_could_not_be_synced_is_written_anew_by_the_next_call() {
    let folder = scratch();
    let store = FileStore::with_options(folder.path(), scenarios::options());
    let (a, path) = (common::key("a"), folder.path().join("a.json"));
    std::fs::write(&path, "{}").unwrap();
    let document = Document::from_text("{}").unwrap();
    let put = || store.put(&a, Put::new(document.clone()));
    let of_the_file = {
        let path = path.clone();
        move |call: &Call<'_>| call.operation == Operation::Sync && call.path == path
    };
    let failing = of_the_file.clone();
    let first = with_fault(EIO, move |_, call| failing(call), put);
    let error = first.result.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotDurable, "{error}");
    // The disk is fine again.
    let inode = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).unwrap().ino()
    };
    let before = inode(&path);
    let believed = with_fault(EIO, move |_, call| of_the_file(call), put);
    believed.result.unwrap();
    assert!(believed.failed.is_empty(), "it was synced again");
    assert_ne!(inode(&path), before, "nothing was written anew");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
}

/// An edit during a recovery is a conflict, at whatever point it comes: it is neither overwritten nor removed. Only in
/// the instant between the last check and the act it cannot be seen.
#[test]
fn an_edit_during_a_recovery_is_never_lost() {
    for scenario in [scenarios::recovered_newest(), scenarios::recovered_fresh()] {
        let edit = r#"{"mended": "by its owner"}"#;
        let folder = scratch();
        (scenario.before)(folder.path());
        let initial = Tree::read(folder.path());
        for at in 0.. {
            let folder = scratch();
            initial.write(folder.path());
            let path = folder.path().join("store/a.json");
            let acts = Arc::new(AtomicUsize::new(0));
            let edits = {
                let (path, acts) = (path.clone(), Arc::clone(&acts));
                move |call, made: &Call<'_>| {
                    if call == at {
                        std::fs::write(&path, edit).unwrap();
                        let is_act =
                            matches!(made.operation, Operation::Rename | Operation::Remove);
                        let is_act = is_act && made.path == path;
                        acts.store(usize::from(is_act), Ordering::Relaxed);
                    }
                    false
                }
            };
            // Either the edit is reported, or it came before the file was judged, and nothing was wrong.
            let run = with_fault(EIO, edits, || run(&scenario, folder.path()));
            if acts.load(Ordering::Relaxed) > 0 || at >= run.calls {
                assert!(at > 10, "nothing was tried");
                break;
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(found, edit, "{} at call {at}", scenario.name);
        }
    }
}

/// An editor saves while a task begins anew in place: its text is archived once instead of the text that was read
/// first, and the task ends once.
#[test]
fn a_restart_that_an_edit_came_between_leaves_nothing_of_its_first_try() {
    let scenario = scenarios::restarted();
    let folder = scratch();
    (scenario.before)(folder.path());
    let initial = Tree::read(folder.path());
    let undisturbed = {
        run(&scenario, folder.path()).unwrap();
        view(&scenario, folder.path())
    };
    let aside = |view: &View| {
        let is_aside = |name: &&PathBuf| !name.ends_with("a.json");
        let aside: Vec<PathBuf> = view.files.iter().filter(is_aside).cloned().collect();
        assert_eq!(aside.len(), 1, "{aside:?}");
        aside[0].clone()
    };
    let mut tried = 0;
    for at in 0.. {
        let folder = scratch();
        initial.write(folder.path());
        let path = folder.path().join("store/a.json");
        let edit = std::fs::read_to_string(&path).unwrap();
        let edit = edit.replace("did 3", "an edit");
        let is_act = Arc::new(AtomicUsize::new(0));
        let edits = {
            let (path, edit, is_act) = (path.clone(), edit.clone(), Arc::clone(&is_act));
            move |call, made: &Call<'_>| {
                if call == at {
                    std::fs::write(&path, &edit).unwrap();
                    let acts = made.operation == Operation::Rename && made.path == path;
                    is_act.store(usize::from(acts), Ordering::Relaxed);
                }
                false
            }
        };
        let run = with_fault(EIO, edits, || run(&scenario, folder.path()));
        // In the instant between the last check and the act an edit cannot be seen.
        if is_act.load(Ordering::Relaxed) > 0 {
            break;
        }
        assert!(at < run.calls, "there was no act");
        run.result.unwrap();
        let found = view(&scenario, folder.path());
        let archived = std::fs::read_to_string(folder.path().join(aside(&found))).unwrap();
        assert_eq!(archived, edit, "the edit came at call {at}");
        assert_eq!(found.seen, undisturbed.seen);
        assert_eq!(found.dropped, undisturbed.dropped);
        let ages = |view: &View| view.history.iter().map(|entry| entry.3).max();
        assert_eq!(ages(&found), ages(&undisturbed), "the edit came at {at}");
        tried += 1;
    }
    assert!(tried > 10, "nothing was tried");
    aside(&undisturbed);
}

/// The lock file was removed, so two processes are in the middle of a claim: the slower one sees the other's claim, at
/// whatever point it comes.
#[test]
fn a_claim_that_was_granted_meanwhile_is_never_replaced_blindly() {
    fn open(root: &Path) -> FileStore {
        FileStore::with_options(root, scenarios::options())
    }
    fn claim(root: &Path, owner: &str) -> agent_checkpoint::Result<Claim> {
        let minute = std::time::Duration::from_secs(60);
        open(root).claim(&common::key("a"), &ClaimRequest::new(owner, minute))
    }
    for claimed_before in [false, true] {
        let mut granted = 0;
        for at in 0.. {
            let folder = scratch();
            let root = folder.path().to_path_buf();
            if claimed_before {
                let before = claim(&root, "before").unwrap();
                open(&root)
                    .release(&common::key("a"), before.fence)
                    .unwrap();
            }
            let other = Arc::new(Mutex::new((false, None)));
            let between = {
                let (root, other) = (root.clone(), Arc::clone(&other));
                move |call, made: &Call<'_>| {
                    if call == at {
                        let _ = std::fs::remove_dir_all(root.join(".agent-checkpoint/locks"));
                        // In a separate thread, because this one is watched.
                        let root = root.clone();
                        let claimed = std::thread::spawn(move || claim(&root, "other").is_ok());
                        *other.lock().unwrap() = (claimed.join().unwrap(), Some(made.operation));
                    }
                    false
                }
            };
            let run = with_fault(EIO, between, || claim(&root, "one"));
            if at >= run.calls {
                break;
            }
            let (is_granted, operation) = *other.lock().unwrap();
            // In the instant between the last check of a record and its rename another one cannot be seen.
            if !is_granted || (claimed_before && operation == Some(Operation::Rename)) {
                continue;
            }
            granted += 1;
            let last = open(&root).claimed(&common::key("a")).unwrap().unwrap();
            assert_eq!(
                last.owner, "other",
                "the other came at call {at}, {operation:?}"
            );
            assert!(run.result.is_err(), "both are told that they have it");
        }
        assert!(granted > 5, "nothing was tried");
    }
}

/// Another sync of the same file does not repair a failed one: the system may have dropped the data. The next save,
/// even of another process, writes the dropped log to a new file.
#[test]
fn after_a_failed_sync_the_dropped_log_is_written_to_a_new_file() {
    use std::os::unix::fs::MetadataExt;
    let scenario = scenarios::cut();
    let folder = scratch();
    (scenario.before)(folder.path());
    let log = folder
        .path()
        .join("store/.agent-checkpoint/overflow/a.json.jsonl");
    let inode = || std::fs::metadata(&log).unwrap().ino();
    let cut = || {
        (scenario.open)(folder.path())
            .beside()
            .dropped(&scenario.key)
            .unwrap()
    };
    let (inode_before, before) = (inode(), cut());
    let of_the_log = |_: usize, call: &Call<'_>| {
        let is_log = call.path.to_string_lossy().ends_with(".jsonl");
        call.operation == Operation::Sync && is_log
    };
    let act = scenario.acts[0];
    let failed = with_fault(EIO, of_the_log, || act(folder.path()));
    failed.result.unwrap_err();
    assert_eq!(failed.failed.len(), 1);
    assert_eq!(cut(), before, "an error leaves no line in the log");
    act(folder.path()).unwrap();
    assert_ne!(
        inode(),
        inode_before,
        "the file whose sync failed is gone on with"
    );
    assert_eq!(cut().len(), before.len() + 1);
    let left: Vec<_> = std::fs::read_dir(log.parent().unwrap())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(left, ["a.json.jsonl"]);
}

/// The same for a ledger: the line is taken back, which may fail, and later processes do not rely on it.
#[test]
fn after_a_failed_sync_the_ledger_is_written_to_a_new_file() {
    use std::os::unix::fs::MetadataExt;
    let scenario = scenarios::ledger();
    let folder = scratch();
    let add = scenario.acts[0];
    add(folder.path()).unwrap();
    let log = folder
        .path()
        .join("store/.agent-checkpoint/ledger/a.json.jsonl");
    let inode = || std::fs::metadata(&log).unwrap().ino();
    let lines = || {
        let store = (scenario.open)(folder.path());
        store.beside().ledger(&scenario.key).unwrap()
    };
    let (inode_before, before) = (inode(), lines());
    let of_the_ledger = |_: usize, call: &Call<'_>| {
        call.operation == Operation::Sync && call.path.ends_with("ledger/a.json.jsonl")
    };
    let failed = with_fault(EIO, of_the_ledger, || add(folder.path()));
    let error = failed.result.unwrap_err();
    assert_eq!(error.code(), "outcome-unknown", "{error}");
    assert!(error.to_string().contains("may bring it back"), "{error}");
    assert_eq!(failed.failed.len(), 1);
    assert!(!log.exists(), "the file whose sync failed keeps its name");
    assert_eq!(lines(), before, "an error leaves no line in the ledger");
    add(folder.path()).unwrap();
    assert_ne!(
        inode(),
        inode_before,
        "the file whose sync failed is gone on with"
    );
    assert_eq!(lines().len(), before.len() + 1);
    let left: Vec<_> = std::fs::read_dir(log.parent().unwrap())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(left, ["a.json.jsonl"]);
}

#[test]
fn where_the_log_fails_once_a_task_has_begun_the_save_stands_and_what_comes_next_mends_the_log() {
    let scenario = scenarios::restarted();
    let folder = scratch();
    (scenario.before)(folder.path());
    let own = folder.path().join("store/.agent-checkpoint/overflow");
    let cut = || {
        let cut = (scenario.open)(folder.path())
            .beside()
            .dropped(&scenario.key);
        let cut = cut
            .unwrap()
            .into_iter()
            .map(|piece| piece.value["step"].to_string());
        cut.collect::<Vec<_>>()
    };
    assert_eq!(cut(), [r#""did 0""#]);
    let of_the_log = |_: usize, call: &Call<'_>| {
        call.operation == Operation::Sync && call.path.ends_with("a.json.jsonl")
    };
    let act = scenario.acts[0];
    let failed = with_fault(EIO, of_the_log, || act(folder.path()));
    failed.result.unwrap();
    assert_eq!(failed.failed.len(), 1);
    assert!(own.join("a.json.begins.jsonl").is_file());
    assert_eq!(cut(), [r#""anew 0""#]);
    let delete = DeleteOptions::new();
    assert!(
        (scenario.open)(folder.path())
            .delete(&scenario.key, &delete)
            .unwrap()
    );
    let left = std::fs::read_dir(own).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["a.json.jsonl"]);
    assert_eq!(cut(), [r#""anew 0""#], "it may be brought back");
}
