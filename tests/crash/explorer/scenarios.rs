//! Scenarios of stores for the tests of crashes and faults.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::Archive;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::task::{CompletedStep, TaskCheckpoint};
use agent_checkpoint::json::Document;
use agent_checkpoint::ledger::{Effect, EffectDecision, EffectGuard, Settlement};
use agent_checkpoint::recorder::{Recorder, RecorderOptions};
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, DeleteOptions, Durability, EntryId, FileOptions, FileStore,
    Keep, Put, RecoverOptions, Recovery, Stored,
};
use agent_checkpoint::testkit::unsynced;
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, Checkpoints, ClaimRequest, Dropped, Error, ErrorKind, Expect,
    Fence, Key, PutMode, Result, Revision,
};

use super::oracle::{Seen, told};
use super::scenario::{Act, Judged, Look, Scenario};
use super::tree::{Node, Tree};
use crate::common::{EXAMPLE, Reporting, clock, key, task, time};

const NOW: &str = "2026-03-02T08:00:00Z";

pub(crate) fn options() -> FileOptions {
    let options = FileOptions::default().with_holder("agent");
    options.with_clock(clock(NOW))
}

fn files(root: &Path, options: FileOptions) -> FileStore {
    FileStore::with_options(root.join("store"), options)
}

pub(crate) fn open(root: &Path) -> Box<dyn CheckpointStore> {
    Box::new(files(root, options()))
}

fn open_few(root: &Path) -> Box<dyn CheckpointStore> {
    Box::new(files(root, options().with_history(Keep::newest(2))))
}

fn open_copying(root: &Path) -> Box<dyn CheckpointStore> {
    let options = options().with_history(Keep::newest(2)).copying_history();
    Box::new(files(root, options))
}

fn open_lazy(root: &Path) -> Box<dyn CheckpointStore> {
    let options = options().with_durability(Durability::Data);
    Box::new(files(root, options.with_history(Keep::newest(2))))
}

fn open_sessions(root: &Path) -> Box<dyn CheckpointStore> {
    Box::new(files(root, options()).with_layout(AgentCheckpoint::layout()))
}

const HOST: &str = "docs/builder-state.json";

fn open_host(root: &Path) -> Box<dyn CheckpointStore> {
    Box::new(BuilderStateStore::with_options(root.join(HOST), options()))
}

/// Every text has a different length, so that a torn text equals none of them.
pub(crate) fn text(name: &str) -> String {
    format!(
        "{{\"state\": \"{name}\", \"of\": \"{}\"}}\n",
        name.repeat(5)
    )
}

fn a() -> Key {
    key("a")
}

fn put(store: &dyn CheckpointStore, name: &str) -> Result<()> {
    save(store, &a(), &text(name), None)
}

fn save(store: &dyn CheckpointStore, key: &Key, text: &str, fence: Option<Fence>) -> Result<()> {
    let document = Document::from_text(text)?;
    store
        .put(key, Put::new(document.clone()).with_fence(fence))
        .map(drop)
}

fn nothing(_: &Path) {}

fn fine(_: &Look<'_>) -> Judged {
    Ok(())
}

fn scenario(name: &'static str, before: fn(&Path), acts: &[Act]) -> Scenario {
    Scenario {
        name,
        open,
        key: a(),
        before,
        acts: acts.to_vec(),
        may_be_older: false,
        foreign: false,
        also: fine,
    }
}

fn old(root: &Path) {
    put(&*open(root), "old").unwrap();
}

fn save_new(root: &Path) -> Result<()> {
    put(&*open(root), "new")
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Judged {
    if holds { Ok(()) } else { Err(what()) }
}

/// Whether some file has this text.
fn is_somewhere(look: &Look<'_>, text: &str) -> bool {
    let files = Tree::read(look.folder).files;
    files.iter().any(|file| *file.bytes == *text.as_bytes())
}

pub(crate) fn first_save() -> Scenario {
    scenario("first save in a new folder", nothing, &[save_new])
}

pub(crate) fn save_over() -> Scenario {
    scenario("save over a checkpoint", old, &[save_new])
}

pub(crate) fn updates() -> Scenario {
    fn begin(root: &Path) {
        let tasks = typed(open(root));
        tasks.create(&a(), &task(&["one", "two"])).unwrap();
    }
    fn update(root: &Path) -> Result<()> {
        let tasks = typed(open(root));
        let change = |task: &mut TaskCheckpoint| task.blockers = vec!["no key".into()];
        tasks.update(&a(), change).map(drop)
    }
    scenario("update of a typed checkpoint", begin, &[update])
}

fn typed(store: Box<dyn CheckpointStore>) -> Checkpoints<TaskCheckpoint> {
    Checkpoints::new(store).with_clock(clock(NOW))
}

/// How many steps a checkpoint has before steps are dropped.
const STEPS: usize = 11;

fn finish(root: &Path, number: usize) -> Result<()> {
    let tasks = typed(open_few(root));
    let done = StepDone::new(format!("did {number}"));
    let finish = |task: &mut TaskCheckpoint| task.report_at(done.clone(), time(NOW));
    tasks.try_update(&a(), finish).map(drop)
}

fn begin_with_steps(root: &Path, steps: usize) {
    let tasks = typed(open_few(root));
    tasks.create(&a(), &task(&[])).unwrap();
    for number in 0..steps {
        finish(root, number).unwrap();
    }
}

/// Each of `count` steps is in the dropped log, or still in the checkpoint.
fn no_step_is_lost(look: &Look<'_>, count: usize) -> Judged {
    let tasks = Checkpoints::<TaskCheckpoint>::new(open_few(look.folder));
    let loaded = tasks.get(&a()).map_err(told("load"))?;
    let cut = tasks.dropped(&a()).map_err(told("read what was cut"))?;
    let steps = loaded.checkpoint.completed_steps.iter();
    let steps = steps.filter_map(|step| step.step.clone());
    let cut = cut.iter().map(|piece| &piece.value["step"]);
    let all: Vec<String> = cut
        .filter_map(|step| step.as_str().map(str::to_owned))
        .chain(steps)
        .collect();
    for number in 0..count {
        let step = format!("did {number}");
        ensure(all.contains(&step), || format!("{step} is gone"))?;
    }
    Ok(())
}

/// The first save that drops a step: the log, its name and its folder are new.
pub(crate) fn first_cut() -> Scenario {
    const FIT: usize = 10;
    Scenario {
        open: open_few,
        also: |look| no_step_is_lost(look, FIT + look.acknowledged),
        ..scenario(
            "first save that cuts",
            |root| begin_with_steps(root, FIT),
            &[|root| finish(root, FIT), |root| finish(root, FIT + 1)],
        )
    }
}

/// A deleted checkpoint is restored together with its dropped log.
pub(crate) fn restored_after_a_delete() -> Scenario {
    fn restore(root: &Path) -> Result<()> {
        let store = &*open_few(root);
        let history = store.states(&a())?;
        let newest = history.iter().find(|entry| !entry.is_current());
        match newest {
            Some(newest) => store.restore(&a(), &newest.id, Expect::Any, None).map(drop),
            None => Ok(()),
        }
    }
    Scenario {
        open: open_few,
        also: |look| match look.found {
            Seen::Text(_) => no_step_is_lost(look, STEPS + 1),
            _ => Ok(()),
        },
        ..scenario(
            "restored after a delete",
            |root| {
                begin_with_steps(root, STEPS + 1);
                delete(root).unwrap();
            },
            &[restore],
        )
    }
}

/// Items that a save drops are in the dropped log, or still in the checkpoint.
pub(crate) fn cut() -> Scenario {
    Scenario {
        open: open_few,
        also: |look| no_step_is_lost(look, STEPS + look.acknowledged),
        ..scenario(
            "save that cuts",
            |root| begin_with_steps(root, STEPS),
            &[|root| finish(root, STEPS), |root| finish(root, STEPS + 1)],
        )
    }
}

fn earlier(store: &dyn CheckpointStore, count: usize) {
    for number in 0..count {
        put(store, &format!("earlier {number}")).unwrap();
    }
    put(store, "old").unwrap();
}

pub(crate) fn history_beyond_its_limit() -> Scenario {
    Scenario {
        open: open_few,
        ..scenario(
            "history beyond its limit",
            |root| earlier(&*open_few(root), 2),
            &[
                |root| put(&*open_few(root), "first"),
                |root| put(&*open_few(root), "second"),
            ],
        )
    }
}

/// The newest entry is never removed.
fn some_history(look: &Look<'_>) -> Judged {
    let entries = look.store.states(&a()).map_err(told("list the history"))?;
    ensure(entries.len() > 1, || "the whole history is gone".to_owned())
}

pub(crate) fn pruned() -> Scenario {
    fn prune(root: &Path) -> Result<()> {
        let store = open(root);
        store.prune(&a(), &Keep::newest(1)).map(drop)
    }
    Scenario {
        also: some_history,
        ..scenario("prune", |root| earlier(&*open(root), 3), &[prune])
    }
}

pub(crate) fn archived() -> Scenario {
    fn archive(root: &Path) -> Result<()> {
        let store = files(root, options());
        let options = DeleteOptions::new();
        let aside = store.archive(&a(), Archive::Crashed, time(NOW), &options);
        aside.map(drop)
    }
    fn under_one_name(look: &Look<'_>) -> Judged {
        let listed = std::fs::read_dir(look.folder.join("store")).unwrap();
        let names = listed.map(|file| file.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
        let expected = match look.found {
            Seen::Nothing => ["a%crashed-1772438400.json"],
            _ => ["a.json"],
        };
        let is_there = is_somewhere(look, &text("old"));
        ensure(names == expected && is_there, || {
            format!("it is under {names:?}")
        })
    }
    Scenario {
        also: under_one_name,
        ..scenario("archive", old, &[archive])
    }
}

fn delete(root: &Path) -> Result<()> {
    open(root).delete(&a(), &DeleteOptions::new()).map(drop)
}

pub(crate) fn deleted() -> Scenario {
    fn in_history_when_gone(look: &Look<'_>) -> Judged {
        if *look.found != Seen::Nothing {
            return Ok(());
        }
        is_in_history(look, "old", false)
    }
    Scenario {
        also: in_history_when_gone,
        ..scenario("delete", old, &[delete])
    }
}

fn is_in_history(look: &Look<'_>, name: &str, pinned: bool) -> Judged {
    for entry in look.store.states(&a()).map_err(told("list the history"))? {
        if !entry.is_current() && (entry.pinned || !pinned) {
            let loaded = look.store.load_revision(&a(), &entry.id);
            if loaded.map_err(told("load"))?.document.text() == text(name) {
                return Ok(());
            }
        }
    }
    Err(format!("{name} is not in the history"))
}

pub(crate) fn restored() -> Scenario {
    fn restore(root: &Path) -> Result<()> {
        let store = open(root);
        let entries = store.states(&a())?;
        let earlier = store.load_revision(&a(), &entries[1].id)?;
        let put = store.put(&a(), Put::new(earlier.document.clone()));
        put.map(drop)
    }
    scenario(
        "restore of an earlier state",
        |root| earlier(&*open(root), 1),
        &[restore],
    )
}

fn request(owner: &str) -> ClaimRequest {
    ClaimRequest::new(owner, Duration::from_secs(600))
}

fn take(root: &Path, owner: &str) -> Result<()> {
    let request = request(owner).taking_over();
    open(root).claim(&a(), &request).map(drop)
}

/// Saves with the fence of the last claim.
fn save_claimed(store: &dyn CheckpointStore, key: &Key) -> Result<()> {
    let fence = store.claimed(key)?.map(|claim| claim.fence);
    save(store, key, &text("new"), fence)
}

/// The fence of the first claim, by the clock of these tests.
fn first_fence() -> u64 {
    u64::try_from(time(NOW).timestamp_millis()).unwrap()
}

fn fence(number: u64) -> Fence {
    Fence::new(first_fence() + number)
}

/// An old owner is kept out, and the next fence is greater than all earlier ones.
fn kept_out(look: &Look<'_>, key: &Key, old: &[Fence]) -> Judged {
    let document = Document::from_text(text("intruder")).unwrap();
    for fence in old {
        let put = look
            .store
            .put(key, Put::new(document.clone()).with_fence(Some(*fence)));
        match put {
            Err(error) if matches!(error.kind(), ErrorKind::Fenced { .. }) => {}
            other => return Err(format!("the old fence {fence} opens: {other:?}")),
        }
    }
    let next = look.store.claim(key, &request("next").taking_over());
    let next = next.map_err(told("claim"))?.fence;
    ensure(old.iter().all(|old| *old < next), || {
        format!("the next fence is {next}")
    })
}

pub(crate) fn claimed() -> Scenario {
    fn claim_it(root: &Path) -> Result<()> {
        open(root).claim(&a(), &request("one")).map(drop)
    }
    fn write(root: &Path) -> Result<()> {
        save_claimed(&*open(root), &a())
    }
    fn others_are_kept_out(look: &Look<'_>) -> Judged {
        if look.acknowledged == 0 {
            return Ok(());
        }
        let document = Document::from_text(text("intruder")).unwrap();
        let put = look.store.put(&a(), Put::new(document.clone()));
        ensure(put.is_err(), || {
            "a claim that was granted is lost".to_owned()
        })?;
        let next = look.store.claim(&a(), &request("next").taking_over());
        let next = next.map_err(told("claim"))?.fence;
        ensure(next > fence(0), || format!("the next fence is {next}"))
    }
    Scenario {
        also: others_are_kept_out,
        ..scenario("claim, then write", old, &[claim_it, write])
    }
}

pub(crate) fn first_claim() -> Scenario {
    Scenario {
        also: claimed().also,
        ..scenario(
            "claim before the first save",
            nothing,
            &[|root| open(root).claim(&a(), &request("one")).map(drop)],
        )
    }
}

pub(crate) fn taken_over() -> Scenario {
    fn owned(root: &Path) {
        old(root);
        take(root, "one").unwrap();
    }
    fn take_over(root: &Path) -> Result<()> {
        take(root, "two")
    }
    fn write(root: &Path) -> Result<()> {
        save_claimed(&*open(root), &a())
    }
    fn the_old_is_kept_out(look: &Look<'_>) -> Judged {
        match look.acknowledged {
            0 => Ok(()),
            _ => kept_out(look, &a(), &[fence(0)]),
        }
    }
    Scenario {
        also: the_old_is_kept_out,
        ..scenario("take-over, then write", owned, &[take_over, write])
    }
}

pub(crate) fn released() -> Scenario {
    fn owned(root: &Path) {
        old(root);
        take(root, "one").unwrap();
    }
    fn release(root: &Path) -> Result<()> {
        open(root).release(&a(), fence(0)).map(drop)
    }
    fn kept_out_afterwards(look: &Look<'_>) -> Judged {
        match look.acknowledged {
            0 => Ok(()),
            _ => kept_out(look, &a(), &[fence(0)]),
        }
    }
    Scenario {
        also: kept_out_afterwards,
        ..scenario(
            "release, then a write of another",
            owned,
            &[release, save_new],
        )
    }
}

pub(crate) fn pinned_present() -> Scenario {
    fn pin(root: &Path) -> Result<()> {
        let store = open(root);
        let present = store.states(&a())?[0].id.clone();
        store.pin(&a(), &present, true).map(drop)
    }
    Scenario {
        also: old_is_pinned,
        ..scenario("pin of the present state", old, &[pin, save_new])
    }
}

fn old_is_pinned(look: &Look<'_>) -> Judged {
    if look.acknowledged == 0 {
        return Ok(());
    }
    let pruned = look.store.prune(&a(), &Keep::newest(0));
    pruned.map_err(told("prune"))?;
    is_in_history(look, "old", true)
}

fn pin_old(root: &Path, pinned: bool) -> Result<()> {
    let store = open(root);
    let entry = store.states(&a())?[1].id.clone();
    store.pin(&a(), &entry, pinned).map(drop)
}

fn old_then_new(root: &Path) {
    old(root);
    save_new(root).unwrap();
}

pub(crate) fn pinned_entry() -> Scenario {
    Scenario {
        also: old_is_pinned,
        ..scenario(
            "pin of an entry",
            old_then_new,
            &[|root| pin_old(root, true), |root| put(&*open(root), "next")],
        )
    }
}

pub(crate) fn unpinned() -> Scenario {
    Scenario {
        also: |look| is_in_history(look, "old", false),
        ..scenario(
            "unpin",
            |root| {
                old_then_new(root);
                pin_old(root, true).unwrap();
                let store = open(root);
                store.prune(&a(), &Keep::newest(0)).unwrap();
            },
            &[|root| pin_old(root, false)],
        )
    }
}

const DAMAGED: &str = "{\"state\": \"damaged\", \"of\": \"da";

fn damage(root: &Path, file: &str) {
    std::fs::write(root.join(file), DAMAGED).unwrap();
}

/// The damaged text is at its place, or was quarantined.
fn damaged_is_kept(look: &Look<'_>) -> Judged {
    ensure(is_somewhere(look, DAMAGED), || {
        "the damaged text is gone".to_owned()
    })
}

fn recover(store: &dyn CheckpointStore, key: &Key, with: Recovery) -> Result<()> {
    store.recover(key, &RecoverOptions::new(with)).map(drop)
}

fn recovered(name: &'static str, act: Act) -> Scenario {
    fn damaged(root: &Path) {
        old_then_new(root);
        damage(root, "store/a.json");
    }
    Scenario {
        also: damaged_is_kept,
        ..scenario(name, damaged, &[act])
    }
}

pub(crate) fn recovered_newest() -> Scenario {
    recovered("recover with the newest", |root| {
        recover(&*open(root), &a(), Recovery::Newest)
    })
}

pub(crate) fn recovered_fresh() -> Scenario {
    recovered("recover fresh", |root| {
        recover(&*open(root), &a(), Recovery::Fresh)
    })
}

pub(crate) fn recovered_by_salvage() -> Scenario {
    recovered("recover by salvage", |root| {
        recover(&*open(root), &a(), Recovery::Salvage)
    })
}

fn active() -> Key {
    key("active")
}

fn host(root: &Path) {
    std::fs::create_dir(root.join("docs")).unwrap();
    std::fs::write(root.join(HOST), EXAMPLE).unwrap();
}

fn save_slot(root: &Path, name: &str) -> Result<()> {
    save(&*open_host(root), &active(), &text(name), None)
}

/// The builder's own members of the file are there.
fn the_builders_own_is_there(look: &Look<'_>) -> Judged {
    let text = std::fs::read_to_string(look.folder.join(HOST)).map_err(|why| why.to_string())?;
    ensure(text.contains("builder-abc123"), || {
        format!("the host is {text}")
    })
}

pub(crate) fn host_file() -> Scenario {
    Scenario {
        open: open_host,
        key: active(),
        also: the_builders_own_is_there,
        ..scenario(
            "slot of a host file",
            |root| {
                host(root);
                save_slot(root, "first").unwrap();
            },
            &[
                |root| save_slot(root, "second"),
                |root| {
                    let store = open_host(root);
                    store.delete(&active(), &DeleteOptions::new()).map(drop)
                },
            ],
        )
    }
}

pub(crate) fn host_file_begun() -> Scenario {
    Scenario {
        open: open_host,
        key: active(),
        also: the_builders_own_is_there,
        ..scenario(
            "first save in a slot of a host file",
            host,
            &[|root| save_slot(root, "first")],
        )
    }
}

pub(crate) fn host_file_taken_over() -> Scenario {
    fn claim_slot(root: &Path, owner: &str) -> Result<()> {
        let store = open_host(root);
        let request = request(owner).taking_over();
        store.claim(&active(), &request).map(drop)
    }
    fn the_old_is_kept_out(look: &Look<'_>) -> Judged {
        the_builders_own_is_there(look)?;
        match look.acknowledged {
            0 => Ok(()),
            _ => kept_out(look, &active(), &[fence(0)]),
        }
    }
    Scenario {
        open: open_host,
        key: active(),
        also: the_old_is_kept_out,
        ..scenario(
            "take-over of a slot of a host file",
            |root| {
                host(root);
                claim_slot(root, "one").unwrap();
            },
            &[
                |root| claim_slot(root, "two"),
                |root| save_claimed(&*open_host(root), &active()),
            ],
        )
    }
}

pub(crate) fn host_file_recovered() -> Scenario {
    Scenario {
        open: open_host,
        key: active(),
        also: damaged_is_kept,
        ..scenario(
            "recover of a host file",
            |root| {
                host(root);
                save_slot(root, "old").unwrap();
                damage(root, HOST);
            },
            &[|root| recover(&*open_host(root), &active(), Recovery::Newest)],
        )
    }
}

pub(crate) fn own_backups() -> Scenario {
    Scenario {
        open: open_sessions,
        ..scenario(
            "backups of a protocol",
            |root| put(&*open_sessions(root), "old").unwrap(),
            &[
                |root| put(&*open_sessions(root), "first"),
                |root| put(&*open_sessions(root), "second"),
            ],
        )
    }
}

pub(crate) fn copies() -> Scenario {
    Scenario {
        open: open_copying,
        ..scenario(
            "copies in the history",
            |root| earlier(&*open_copying(root), 2),
            &[
                |root| put(&*open_copying(root), "first"),
                |root| put(&*open_copying(root), "second"),
            ],
        )
    }
}

pub(crate) fn lazy() -> Scenario {
    Scenario {
        open: open_lazy,
        may_be_older: true,
        ..scenario(
            "saves that sync data only",
            |root| put(&*open_lazy(root), "old").unwrap(),
            &[
                |root| put(&*open_lazy(root), "first"),
                |root| put(&*open_lazy(root), "second"),
            ],
        )
    }
}

/// A checkpoint that is begun anew after an earlier one of that name, whose dropped items are in the log.
pub(crate) fn begun_anew() -> Scenario {
    fn begin(root: &Path) -> Result<()> {
        let tasks = typed(open(root));
        let anew = task(&["anew"]);
        let put = tasks.put(&a(), &anew, PutMode::Replace, &Expect::Any);
        put.map(drop)
    }
    fn nothing_of_before(look: &Look<'_>) -> Judged {
        let cut = look
            .store
            .beside()
            .dropped(&a())
            .map_err(told("read what was cut"))?;
        let is_new = matches!(look.found, Seen::Text(text) if text.contains("anew"));
        ensure(is_new == cut.is_empty(), || match is_new {
            true => "what was cut from the one before belongs to the new one".to_owned(),
            false => "what was cut from the one before is gone, and no other has begun".to_owned(),
        })
    }
    Scenario {
        also: nothing_of_before,
        ..scenario(
            "begun anew after a delete",
            |root| {
                (cut().before)(root);
                finish(root, STEPS).unwrap();
                delete(root).unwrap();
            },
            &[begin],
        )
    }
}

/// A task that begins anew in the place of an archived one, with dropped items of both in the log.
pub(crate) fn restarted() -> Scenario {
    fn restart(root: &Path) -> Result<()> {
        let tasks = typed(open_few(root)).archiving(Archive::Aborted);
        let mut anew = task(&[]);
        let steps = (0..STEPS).map(|number| CompletedStep::new(format!("anew {number}")));
        anew.completed_steps = steps.collect();
        let put = tasks.put(&a(), &anew, PutMode::Replace, &Expect::Any);
        put.map(drop)
    }
    fn each_has_its_own(look: &Look<'_>) -> Judged {
        let files = Tree::read(look.folder);
        let text_of = |node: &Node| match node {
            Node::File(file) => String::from_utf8_lossy(&files.files[*file].bytes).into_owned(),
            Node::Folder => String::new(),
        };
        if !matches!(look.found, Seen::Text(text) if text.contains("anew")) {
            // It is still the old task, which continues.
            no_step_is_lost(look, STEPS)?;
            finish(look.folder, STEPS).map_err(told("go on"))?;
            return no_step_is_lost(look, STEPS + 1);
        }
        for number in 0..STEPS {
            let step = format!("did {number}\"");
            let mut all = files.names.values();
            ensure(all.any(|node| text_of(node).contains(&step)), || {
                format!("{step} is gone")
            })?;
        }
        let newest = look.store.beside().newest_dropped(&a(), STEPS);
        let newest = newest.map_err(told("read the end of what was cut"))?;
        let cut = look.store.beside().dropped(&a());
        let cut = cut.map_err(told("read what was cut"))?;
        ensure(cut == newest, || {
            format!("the end is {newest:?}, all {cut:?}")
        })?;
        let of_now = |piece: &Dropped| piece.value.to_string().contains("anew");
        ensure(cut.len() == 1 && cut.iter().all(of_now), || {
            format!("what was cut is {cut:?}")
        })?;
        let old = format!("did {}", STEPS - 1);
        let is_archived = files.names.iter().any(|(name, node)| {
            let is_aside = name.to_string_lossy().starts_with("store/a%aborted-");
            is_aside && text_of(node).contains(&old)
        });
        ensure(is_archived, || "the archive is gone".to_owned())
    }
    Scenario {
        open: open_few,
        also: each_has_its_own,
        ..scenario(
            "restart in place",
            |root| begin_with_steps(root, STEPS),
            &[restart],
        )
    }
}

/// Another program replaces or creates the checkpoint, and syncs nothing.
fn foreign(root: &Path) {
    let path = root.join("store/a.json");
    unsynced::replace(&path, text("foreign").as_bytes()).unwrap();
}

/// Another program appends to the checkpoint in place, and syncs nothing.
fn foreign_in_place(root: &Path) {
    let path = root.join("store/a.json");
    unsynced::append(&path, b"\n").unwrap();
}

fn neighbour(root: &Path) {
    save(&*open(root), &key("b"), &text("neighbour"), None).unwrap();
}

fn of_foreign(
    name: &'static str,
    before: fn(&Path),
    act: Act,
    also: fn(&Look<'_>) -> Judged,
) -> Scenario {
    Scenario {
        foreign: true,
        also,
        ..scenario(name, before, &[act])
    }
}

pub(crate) fn foreign_deleted() -> Scenario {
    fn act(root: &Path) -> Result<()> {
        foreign(root);
        delete(root)
    }
    let kept: fn(&Look<'_>) -> Judged = |look| is_in_history(look, "foreign", false);
    of_foreign(
        "delete of what another made",
        nothing_but_a_folder,
        act,
        kept,
    )
}

fn nothing_but_a_folder(root: &Path) {
    neighbour(root);
    open(root).delete(&key("b"), &DeleteOptions::new()).unwrap();
}

pub(crate) fn foreign_archived() -> Scenario {
    fn act(root: &Path) -> Result<()> {
        foreign(root);
        let options = DeleteOptions::new();
        let store = files(root, super::scenarios::options());
        let aside = store.archive(&a(), Archive::Crashed, time(NOW), &options);
        aside.map(drop)
    }
    fn kept(look: &Look<'_>) -> Judged {
        let path = look.folder.join("store/a%crashed-1772438400.json");
        let found = std::fs::read_to_string(path).unwrap_or_default();
        ensure(found == text("foreign"), || {
            format!("put aside is {found:?}")
        })
    }
    of_foreign(
        "archive of what another made",
        nothing_but_a_folder,
        act,
        kept,
    )
}

pub(crate) fn foreign_pinned() -> Scenario {
    fn act(root: &Path) -> Result<()> {
        foreign(root);
        let store = open(root);
        store.pin(&a(), &EntryId::current(), true).map(drop)
    }
    fn kept(look: &Look<'_>) -> Judged {
        is_in_history(look, "foreign", true)
    }
    of_foreign("pin of what another made", nothing_but_a_folder, act, kept)
}

pub(crate) fn foreign_replaced() -> Scenario {
    fn act(root: &Path) -> Result<()> {
        foreign(root);
        save_new(root)
    }
    of_foreign("save over what another made", old, act, fine)
}

pub(crate) fn foreign_unchanged() -> Scenario {
    fn act(root: &Path) -> Result<()> {
        foreign_in_place(root);
        save(&*open(root), &a(), &(text("old") + "\n"), None)
    }
    of_foreign("save of what another made in place", old, act, fine)
}

pub(crate) fn foreign_healthy() -> Scenario {
    fn act(root: &Path) -> Result<()> {
        foreign_in_place(root);
        recover(&*open(root), &a(), Recovery::Newest)
    }
    of_foreign("recovery of what another made in place", old, act, fine)
}

/// The slot of a host file is emptied; its content is then in the history.
pub(crate) fn emptied_slot() -> Scenario {
    fn kept(look: &Look<'_>) -> Judged {
        the_builders_own_is_there(look)?;
        let kept = look.store.states(&active()).map_err(told("list"))?;
        ensure(!kept.is_empty(), || {
            "what was deleted is nowhere".to_owned()
        })
    }
    fn empty(root: &Path) -> Result<()> {
        let store = open_host(root);
        store.delete(&active(), &DeleteOptions::new()).map(drop)
    }
    Scenario {
        open: open_host,
        key: active(),
        also: kept,
        ..scenario(
            "delete in a host file",
            |root| {
                host(root);
                save_slot(root, "old").unwrap();
            },
            &[empty],
        )
    }
}

/// Whether any file still has a part of a forgotten task: its texts, its dropped steps, the name of its owner.
pub(crate) fn is_kept_somewhere(root: &Path) -> bool {
    let files = Tree::read(root).files;
    files.iter().any(|file| {
        let text = String::from_utf8_lossy(&file.bytes);
        ["did ", "damaged", "the owner"]
            .iter()
            .any(|part| text.contains(part))
    })
}

pub(crate) fn forget(root: &Path) -> Result<()> {
    let store = open_few(root);
    let fence = store.claimed(&a())?.map(|claim| claim.fence);
    store
        .forget(&a(), &DeleteOptions::new().with_fence(fence))
        .map(drop)
}

/// A task with everything that a store can keep is forgotten.
pub(crate) fn forgotten() -> Scenario {
    fn begin(root: &Path) {
        begin_with_steps(root, STEPS);
        let store = open_few(root);
        store.pin(&a(), &EntryId::current(), true).unwrap();
        std::fs::write(root.join("store/a.json"), "{\"damaged\": ").unwrap();
        recover(&*store, &a(), Recovery::Newest).unwrap();
        finish(root, STEPS).unwrap();
        let archive = files(root, options()).archive(
            &a(),
            Archive::Crashed,
            time(NOW),
            &DeleteOptions::new(),
        );
        archive.unwrap();
        begin_with_steps(root, 1);
        let line = r#"{"effect":"did 0"}"#;
        let added = store.beside().append_to_ledger(&a(), line, 0, None);
        assert!(added.unwrap());
        store.claim(&a(), &request("the owner")).unwrap();
    }
    fn nothing_is_kept(look: &Look<'_>) -> Judged {
        // The rest must not count as a ledger that is elsewhere.
        let ledger = look.store.beside().ledger(&a());
        ledger.map_err(told("read the ledger"))?;
        if look.acknowledged == 0 {
            return Ok(());
        }
        ensure(!is_kept_somewhere(look.folder), || {
            "a part of it is there".to_owned()
        })?;
        kept_out(look, &a(), &[fence(0)])
    }
    Scenario {
        open: open_few,
        also: nothing_is_kept,
        ..scenario("forget", begin, &[forget])
    }
}

/// The line for this position of a ledger; each has a different length.
fn line(at: usize) -> String {
    format!("{{\"line\":\"{}\"}}", "x".repeat(at + 1))
}

/// Adds the next line to the ledger of a key.
fn add_line(store: &dyn CheckpointStore, key: &Key) -> Result<()> {
    let at = store.beside().ledger(key)?.len();
    match store.beside().append_to_ledger(key, &line(at), at, None)? {
        true => Ok(()),
        false => Err(Error::refused("another line was added")),
    }
}

/// No acknowledged line is lost, no line is there that was never begun, and the ledger accepts more lines.
fn ledger_is_whole(look: &Look<'_>, key: &Key, acknowledged: usize) -> Judged {
    let lines = || {
        look.store
            .beside()
            .ledger(key)
            .map_err(told("read the ledger"))
    };
    let found = lines()?;
    let is_theirs = found
        .iter()
        .enumerate()
        .all(|(at, found)| *found == line(at));
    ensure(is_theirs && found.len() >= acknowledged, || {
        format!("of {acknowledged} lines or more there are {found:?}")
    })?;
    add_line(look.store, key).map_err(told("add a line"))?;
    let now = lines()?;
    ensure(
        now.len() == found.len() + 1 && now.starts_with(&found),
        || format!("behind {found:?} a line was added: {now:?}"),
    )
}

fn add_line_to_a(root: &Path) -> Result<()> {
    add_line(&*open(root), &a())
}

/// Lines are added to a ledger.
pub(crate) fn ledger() -> Scenario {
    Scenario {
        also: |look| ledger_is_whole(look, &a(), look.acknowledged),
        ..scenario(
            "lines of a ledger",
            nothing,
            &[add_line_to_a, add_line_to_a, add_line_to_a],
        )
    }
}

/// A ledger with a torn line accepts more lines.
pub(crate) fn torn_ledger() -> Scenario {
    fn torn(root: &Path) {
        add_line_to_a(root).unwrap();
        add_line_to_a(root).unwrap();
        let log = root.join("store/.agent-checkpoint/ledger/a.json.jsonl");
        let mut bytes = std::fs::read(&log).unwrap();
        bytes.extend(&line(2).as_bytes()[..9]);
        bytes.extend([0; 40]);
        std::fs::write(log, bytes).unwrap();
    }
    Scenario {
        also: |look| ledger_is_whole(look, &a(), 2 + look.acknowledged),
        ..scenario(
            "lines of a torn ledger",
            torn,
            &[add_line_to_a, add_line_to_a],
        )
    }
}

/// The ledger of a slot of a host file.
pub(crate) fn ledger_of_a_slot() -> Scenario {
    fn add(root: &Path) -> Result<()> {
        add_line(&*open_host(root), &active())
    }
    Scenario {
        open: open_host,
        key: active(),
        also: |look| ledger_is_whole(look, &active(), look.acknowledged),
        ..scenario("lines of a slot of a host file", host, &[add, add])
    }
}

thread_local! {
    /// The guard of the effect that was begun, kept from one act to the next.
    static GUARD: Cell<Option<EffectGuard>> = const { Cell::new(None) };
}

/// The recorder of a task, and an effect of it.
fn recorder_and_effect(root: &Path) -> Result<(Recorder<TaskCheckpoint>, Effect)> {
    let tasks = Checkpoints::<TaskCheckpoint>::new(open(root));
    let options = RecorderOptions::new("dev").without_claim();
    let recorder = Recorder::resume(&tasks, &a(), options)?.carry_on()?;
    Ok((recorder, Effect::with_id("pay")?))
}

/// An effect is begun, takes place between the two acts, and ends.
pub(crate) fn effect() -> Scenario {
    fn begin(root: &Path) -> Result<()> {
        let (recorder, effect) = recorder_and_effect(root)?;
        match recorder.effect(&effect)? {
            EffectDecision::Do(guard) => GUARD.set(Some(guard)),
            EffectDecision::InDoubt(doubt) => recorder.settle(&doubt, Settlement::done(&7)?)?,
            EffectDecision::AlreadyDone(_) | EffectDecision::InProgress(_) => {}
        }
        Ok(())
    }
    fn end(_root: &Path) -> Result<()> {
        match GUARD.take() {
            Some(mut guard) => guard.done(&7).map(drop),
            None => Ok(()),
        }
    }
    fn is_not_repeated(look: &Look<'_>) -> Judged {
        let (recorder, effect) = recorder_and_effect(look.folder).map_err(told("carry on"))?;
        let decision = recorder.effect(&effect).map_err(told("begin the effect"))?;
        let fits = match (&decision, look.acknowledged) {
            // The effect did not take place before its beginning was acknowledged.
            (EffectDecision::Do(_) | EffectDecision::InDoubt(_), 0) => true,
            (EffectDecision::InDoubt(_) | EffectDecision::AlreadyDone(_), 1) => true,
            (EffectDecision::AlreadyDone(receipt), _) => receipt.read::<u8>().ok() == Some(7),
            _ => false,
        };
        ensure(fits, || format!("the next agent is told {decision:?}"))
    }
    Scenario {
        also: is_not_repeated,
        ..scenario("effect", |root| begin_with_steps(root, 1), &[begin, end])
    }
}

/// A state from another store is added behind the states of a deleted task.
pub(crate) fn appended() -> Scenario {
    fn append(root: &Path) -> Result<()> {
        let state = Stored::new(Document::from_text(text("old"))?);
        let store = open(root);
        let history = store.history().expect("a folder of files has one");
        history.append(&a(), &state, 1).map(drop)
    }
    fn is_the_newest(look: &Look<'_>) -> Judged {
        let states = look.store.states(&a()).map_err(told("list the history"))?;
        let newest = states.first().ok_or("the history is gone")?;
        let is_it = newest.revision == Ok(Revision::of(text("old").as_bytes()));
        let is_done = is_it && newest.tasks_since == 1;
        ensure(look.acknowledged == 0 || is_done, || {
            format!("the newest is {newest:?}")
        })
    }
    Scenario {
        also: is_the_newest,
        ..scenario(
            "state from another store",
            |root| {
                old_then_new(root);
                delete(root).unwrap();
            },
            &[append],
        )
    }
}
