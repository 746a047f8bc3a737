//! Behaviour that only file stores have.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::{EXAMPLE, Reporting, an_hour_passes_since_the_sweep, key, task, time, tree};
use agent_checkpoint::StepDone;
use agent_checkpoint::formats::Archive;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, DeleteOptions, Durability, EntryId, FileOptions, FileStore,
    Keep, MemoryStore, Put, Query, RecoverOptions, Recovery, RolledBack,
};
use agent_checkpoint::testkit::seam::{Call, Operation, Verdict, Watch, watched};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, Checkpoints, ClaimRequest, DropReason, Dropped, ErrorKind,
    Expect,
};

/// Opens the lock file, and creates it if needed.
fn sidecar(path: &Path) -> fs::File {
    let mut options = fs::File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).unwrap()
}

/// Holds a lock, as another program would.
fn locked(path: &Path) -> fs::File {
    let file = sidecar(path);
    file.try_lock().unwrap();
    file
}

fn put(store: &dyn CheckpointStore, name: &str, text: &str) {
    let document = Document::from_text(text).unwrap();
    store.put(&key(name), Put::new(document.clone())).unwrap();
}

#[test]
fn opening_and_reading_create_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("not/yet");
    for options in [FileOptions::default(), FileOptions::read_only()] {
        let store = FileStore::with_options(&new, options.clone());
        assert!(store.load(&key("a")).unwrap().is_none());
        assert!(store.list(&Query::all()).unwrap().entries.is_empty());
        assert!(store.beside().dropped(&key("a")).unwrap().is_empty());
        assert!(
            !store
                .delete(&key("a"), &DeleteOptions::new())
                .is_ok_and(|gone| gone)
        );
        let host = BuilderStateStore::with_options(new.join("host.json"), options);
        assert!(host.load(&key("active")).unwrap().is_none());
        assert!(host.places().unwrap().is_empty());
    }
    assert!(tree(folder.path()).is_empty());
    fs::write(folder.path().join("a.json"), "{}").unwrap();
    let store = FileStore::with_options(folder.path(), FileOptions::read_only());
    assert!(store.load(&key("a")).unwrap().is_some());
    assert_eq!(tree(folder.path()), ["a.json"]);
}

#[test]
fn a_store_opened_for_reading_refuses_every_write() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    fs::write(&host, EXAMPLE).unwrap();
    let stores: [(Box<dyn CheckpointStore>, &str); 2] = [
        (
            Box::new(FileStore::with_options(
                folder.path(),
                FileOptions::read_only(),
            )),
            "host",
        ),
        (
            Box::new(BuilderStateStore::with_options(
                &host,
                FileOptions::read_only(),
            )),
            "active",
        ),
    ];
    for (store, name) in stores {
        let document = Document::from_text("{}").unwrap();
        let put = store.put(&key(name), Put::new(document.clone()));
        assert_eq!(*put.unwrap_err().kind(), ErrorKind::ReadOnly);
        let delete = store.delete(&key(name), &DeleteOptions::new());
        assert_eq!(*delete.unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    assert_eq!(tree(folder.path()), ["host.json"]);
    assert_eq!(fs::read_to_string(&host).unwrap(), EXAMPLE);
}

#[test]
fn no_key_leaves_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path().join("store"));
    for name in ["../../escape", "/etc/passwd", "..", "a/b", "C:\\x", "nul"] {
        put(&store, name, "{}");
    }
    let outside: Vec<_> = tree(folder.path())
        .into_iter()
        .filter(|name| !name.starts_with("store"))
        .collect();
    assert!(outside.is_empty(), "{outside:?}");
    assert_eq!(store.list(&Query::all()).unwrap().entries.len(), 6);
}

#[test]
fn our_own_files_are_in_one_hidden_folder_that_git_ignores() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    put(&store, "a", "{}");
    let visible: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert_eq!(visible, ["a.json"]);
    let ours = folder.path().join(".agent-checkpoint");
    let ignored = || fs::read_to_string(ours.join(".gitignore")).unwrap();
    assert!(ignored().starts_with("*\n"), "{}", ignored());
    // `git clean -dfx` while a program has the store open.
    fs::remove_dir_all(&ours).unwrap();
    put(&store, "a", "{\"n\":1}");
    assert!(ignored().starts_with("*\n"), "{}", ignored());
}

#[test]
fn files_whose_names_no_key_has_are_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("%zz.json"), "{}").unwrap();
    fs::write(folder.path().join("notes.txt"), "").unwrap();
    fs::write(folder.path().join("ok.json"), "{}").unwrap();
    let page = FileStore::open(folder.path()).list(&Query::all()).unwrap();
    assert!(page.keys().eq(&[key("ok")]));
    assert_eq!(page.foreign, ["%zz.json"]);
}

#[test]
fn one_file_of_any_name_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("%zz état.json");
    fs::write(&path, "{\"n\":1}").unwrap();
    let store = FileStore::single(&path, FileOptions::default()).unwrap();
    let only = store.key().unwrap().clone();
    put(&store, only.as_str(), "{\"n\":2}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"n\":2}");
    assert!(store.load(&key("another")).is_err());
}

#[cfg(unix)]
#[test]
fn two_names_of_one_file_share_its_lock_and_the_link_stays() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("a.json"), "{}").unwrap();
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink("real/a.json", &link).unwrap();
    let store = FileStore::open(folder.path());
    put(&store, "link", "{\"n\":1}");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::read_to_string(real.join("a.json")).unwrap(),
        "{\"n\":1}"
    );
    assert!(real.join(".agent-checkpoint/locks/a.json.lock").exists());
    assert!(!folder.path().join(".agent-checkpoint").exists());
}

#[test]
fn what_cannot_be_read_is_never_taken_for_a_first_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a.json")).unwrap();
    let store = FileStore::open(folder.path());
    let tasks = store.checkpoints::<TaskCheckpoint>();
    assert_eq!(store.load(&key("a")).unwrap_err().code(), "not-a-file");
    let create = tasks.create(&key("a"), &task(&["x"]));
    assert_eq!(create.unwrap_err().code(), "not-a-file");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", folder.path().join("b.json")).unwrap();
        let create = tasks.create(&key("b"), &task(&["x"]));
        assert_eq!(create.unwrap_err().code(), "dangling-link");
        let link = fs::symlink_metadata(folder.path().join("b.json")).unwrap();
        assert!(link.is_symlink());
    }
}

#[test]
fn a_file_over_the_limit_is_neither_read_nor_written() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::default().with_max_bytes(20);
    let store = FileStore::with_options(folder.path(), options);
    fs::write(
        folder.path().join("a.json"),
        format!("{{\"n\":{}}}", "1".repeat(20)),
    )
    .unwrap();
    let before = fs::read(folder.path().join("a.json")).unwrap();
    let error = store.load(&key("a")).unwrap_err();
    assert_eq!(
        *error.kind(),
        ErrorKind::TooLarge {
            size: 26,
            limit: 20,
            is_new: false
        }
    );
    let long = Document::from_text(format!("{{\"n\":{}}}", "1".repeat(20))).unwrap();
    let error = store.put(&key("b"), Put::new(long.clone())).unwrap_err();
    assert_eq!(
        *error.kind(),
        ErrorKind::TooLarge {
            size: 26,
            limit: 20,
            is_new: true
        }
    );
    assert!(!folder.path().join("b.json").exists());
    assert_eq!(fs::read(folder.path().join("a.json")).unwrap(), before);
}

#[test]
fn a_writer_that_waits_too_long_is_told_who_holds_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let slow = FileStore::with_options(
        folder.path(),
        FileOptions::default().with_holder("slow-agent"),
    );
    let waiting = FileStore::with_options(
        folder.path(),
        FileOptions::default().with_lock_timeout(Duration::from_millis(30)),
    );
    put(&slow, "a", "{}");
    slow.transact(&key("a"), |_| {
        let document = Document::from_text("{\"n\":1}").unwrap();
        let error = waiting
            .put(&key("a"), Put::new(document.clone()))
            .unwrap_err();
        match error.kind() {
            ErrorKind::Locked { waited, holder, .. } => {
                assert!(*waited >= Duration::from_millis(30));
                if cfg!(unix) {
                    assert!(holder.as_ref().unwrap().contains("slow-agent"));
                }
            }
            other => panic!("{other:?}"),
        }
        Ok(None)
    })
    .unwrap();
}

/// A program without the lock changes the file between our read and our write.
#[test]
fn a_change_by_a_program_without_the_lock_is_seen_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let store = FileStore::open(folder.path());
    put(&store, "a", "{\"n\":1}");
    let mut runs = 0;
    store
        .transact(&key("a"), |present| {
            runs += 1;
            if runs == 1 {
                fs::write(&path, "{\"n\":1,\"foreign\":true}").unwrap();
            }
            let mut document = present.unwrap().document.clone();
            document.set("/n", &2).unwrap();
            Ok(Some(Put::new(document)))
        })
        .unwrap();
    assert_eq!(runs, 2);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\"n\":2,\"foreign\":true}"
    );
}

#[test]
fn what_is_cut_is_kept_beside_the_checkpoint_before_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    fs::write(&host, EXAMPLE).unwrap();
    let files = FileStore::open(folder.path());
    let hosted = BuilderStateStore::open(&host);
    let stores: [(Arc<dyn CheckpointStore>, &str); 2] =
        [(Arc::new(files), "a"), (Arc::new(hosted), "active")];
    let now = time("2026-03-02T08:00:00Z");
    for (store, name) in stores {
        let tasks = Checkpoints::<TaskCheckpoint>::new(store);
        let key = key(name);
        if tasks.load(&key).unwrap().is_none() {
            tasks.create(&key, &task(&[])).unwrap();
        }
        let had = tasks.get(&key).unwrap().checkpoint.completed_steps.len();
        for n in 0..12 {
            let saved = tasks
                .try_update(&key, |task| {
                    task.report_at(
                        StepDone::new(format!("did {n}")).with_created(format!("{n}.rs")),
                        now,
                    )
                })
                .unwrap();
            if let Some(kept_in) = &saved.truncation.kept_in {
                assert!(Path::new(kept_in).exists());
            }
            assert_eq!(
                saved.truncation.dropped.is_empty(),
                saved.truncation.kept_in.is_none()
            );
        }
        let kept: Vec<String> = tasks
            .dropped(&key)
            .unwrap()
            .iter()
            .map(|piece| piece.value["step"].as_str().unwrap().to_owned())
            .collect();
        let present = tasks.get(&key).unwrap().checkpoint.completed_steps;
        let mut all = kept.clone();
        all.extend(present.iter().map(|step| step.step.clone().unwrap()));
        assert_eq!(all.len(), had + 12);
        assert_eq!(
            all[had..],
            (0..12).map(|n| format!("did {n}")).collect::<Vec<_>>()
        );
        // Files of dropped steps still count for staleness.
        let stale = tasks.stale(&key, folder.path()).unwrap();
        assert!(stale.files().iter().any(|file| file.path == "0.rs"));
    }
}

#[test]
fn what_is_put_aside_is_kept_under_a_name_of_its_own_and_listed_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let now = time("2026-03-02T08:00:00Z");
    for n in 0..3 {
        put(&store, "a", &format!("{{\"n\":{n}}}"));
        let aside = store
            .archive(&key("a"), Archive::Crashed, now, &DeleteOptions::new())
            .unwrap();
        assert_eq!(
            fs::read_to_string(&aside).unwrap(),
            format!("{{\"n\":{n}}}")
        );
        assert!(store.load(&key("a")).unwrap().is_none());
    }
    let names: Vec<_> = tree(folder.path())
        .into_iter()
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert_eq!(
        names,
        [
            "a%crashed-1772438400-1.json",
            "a%crashed-1772438400-2.json",
            "a%crashed-1772438400.json",
        ]
    );
    let page = store.list(&Query::all()).unwrap();
    assert!(page.entries.is_empty() && page.foreign.is_empty());
    let missing = store.archive(&key("a"), Archive::Crashed, now, &DeleteOptions::new());
    assert_eq!(*missing.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_change_of_nothing_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path().join("new"));
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let missing = tasks.update(&key("a"), |task| task.blockers.clear());
    assert_eq!(*missing.unwrap_err().kind(), ErrorKind::NotFound);
    let host = BuilderStateStore::open(folder.path().join("other/host.json"));
    let hosted = host.checkpoints::<TaskCheckpoint>();
    assert!(hosted.create(&key("active"), &task(&[])).is_err());
    assert!(tree(folder.path()).is_empty());
}

#[cfg(unix)]
#[test]
fn what_is_deleted_or_put_aside_through_a_link_is_gone_for_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    let store = FileStore::open(folder.path());
    let link = folder.path().join("a.json");
    for archive in [false, true] {
        fs::write(real.join("a.json"), "{}").unwrap();
        std::os::unix::fs::symlink("real/a.json", &link).unwrap();
        if archive {
            let now = time("2026-03-02T08:00:00Z");
            let aside = store
                .archive(&key("a"), Archive::Aborted, now, &DeleteOptions::new())
                .unwrap();
            assert_eq!(fs::read_to_string(aside).unwrap(), "{}");
        } else {
            assert!(store.delete(&key("a"), &DeleteOptions::new()).unwrap());
        }
        assert!(store.load(&key("a")).unwrap().is_none());
        assert!(fs::symlink_metadata(&link).is_err());
    }
}

#[cfg(unix)]
#[test]
fn the_record_of_what_was_cut_is_no_wider_open_than_the_checkpoint() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    put(&store, "a", "{}");
    let path = folder.path().join("a.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let cut =
        agent_checkpoint::Dropped::new("/x", agent_checkpoint::DropReason::Elements(1), 1.into());
    let document = Document::from_text("{\"n\":1}").unwrap();
    let saved = store
        .put(
            &key("a"),
            Put::new(document.clone()).with_dropped(vec![cut]),
        )
        .unwrap();
    let record = fs::metadata(saved.truncation.kept_in.unwrap()).unwrap();
    assert_eq!(record.permissions().mode() & 0o777, 0o600);
}

/// The builder's active task changes; the dropped items of the task before belong to that task.
#[test]
fn what_was_cut_belongs_to_its_task_not_to_its_slot() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    fs::write(&host, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&host);
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let now = time("2026-03-02T08:00:00Z");
    for n in 0..12 {
        tasks
            .try_update(&key("active"), |task| {
                task.report_at(StepDone::new(format!("did {n}")), now)
            })
            .unwrap();
    }
    assert!(!tasks.earlier(&key("active")).unwrap().is_empty());
    let text = fs::read_to_string(&host).unwrap();
    fs::write(&host, text.replace("US-003\",\n", "US-004\",\n")).unwrap();
    assert!(tasks.earlier(&key("active")).unwrap().is_empty());
}

/// The broken rule: dropped items of a task that was archived in place counted for the next one, in all stores except
/// file stores.
#[test]
fn a_task_that_begins_anew_in_place_has_nothing_of_what_was_cut_before() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    fs::write(&host, EXAMPLE).unwrap();
    let (files, hosts) = (
        FileStore::open(folder.path().join("files")),
        BuilderStateStore::open(&host),
    );
    let memory = MemoryStore::new();
    let stores: [(&dyn CheckpointStore, &str); 3] =
        [(&files, "a"), (&memory, "a"), (&hosts, "active")];
    let piece = |n: u32| {
        let reason = DropReason::Elements(2);
        Dropped::new("/completedSteps/0", reason, serde_json::json!({"step": n}))
    };
    let now = time("2026-03-02T08:00:00Z");
    for (store, name) in stores {
        let save = |n: u32, why: Option<Archive>| {
            let document = Document::from_text(format!("{{\"n\":{n}}}")).unwrap();
            let put = Put::new(document)
                .with_dropped(vec![piece(n)])
                .with_archive(why.map(|why| (why, now)));
            store.put(&key(name), put).unwrap();
            store.beside().dropped(&key(name)).unwrap()
        };
        save(0, None);
        let taken_over = save(1, Some(Archive::Crashed));
        assert!(taken_over.ends_with(&[piece(0), piece(1)]), "{name}");
        assert_eq!(save(2, Some(Archive::Aborted)), [piece(2)], "{name}");
        assert_eq!(save(3, None), [piece(2), piece(3)], "{name}");
    }
    for store in [&files as &dyn CheckpointStore, &memory] {
        let ages: Vec<usize> = store
            .states(&key("a"))
            .unwrap()
            .iter()
            .map(|entry| entry.tasks_since)
            .collect();
        assert_eq!(ages[..3], [0, 0, 1]);
    }
}

/// A crash between the dropped log and the checkpoint leaves a record of a step that is still there.
#[test]
fn a_step_that_is_still_there_is_not_counted_as_cut() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let now = time("2026-03-02T08:00:00Z");
    tasks.create(&key("a"), &task(&[])).unwrap();
    for n in 0..10 {
        tasks
            .try_update(&key("a"), |task| {
                task.report_at(StepDone::new(format!("did {n}")), now)
            })
            .unwrap();
    }
    let before = fs::read(folder.path().join("a.json")).unwrap();
    tasks
        .try_update(&key("a"), |task| {
            task.report_at(StepDone::new("did 10"), now)
        })
        .unwrap();
    assert_eq!(tasks.earlier(&key("a")).unwrap().len(), 1);
    fs::write(folder.path().join("a.json"), before).unwrap();
    assert!(tasks.earlier(&key("a")).unwrap().is_empty());
}

#[test]
fn an_idle_host_has_no_checkpoint_and_that_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    fs::write(&host, "{\"activePrd\":null,\"adhocQueue\":[{\"id\":7,\"checkpoint\":{}},{\"id\":\"x\\n\",\"checkpoint\":{}}]}").unwrap();
    let store = BuilderStateStore::open(&host);
    for idle in ["active", "adhoc:gone"] {
        assert!(store.load(&key(idle)).unwrap().is_none());
        assert!(store.beside().dropped(&key(idle)).unwrap().is_empty());
        assert!(!store.delete(&key(idle), &DeleteOptions::new()).unwrap());
    }
    // Numbers are ids, too. An id that no key can have is named, and hides no other.
    let page = store.list(&Query::all()).unwrap();
    assert!(page.keys().eq(&[key("adhoc:7")]));
    assert_eq!(page.foreign, ["adhoc:x\n"]);
}

/// An orchestrator with other file names can switch without renaming them.
#[test]
fn a_file_of_another_name_is_found_by_the_id_inside() {
    use agent_checkpoint::formats::agent_session::AgentCheckpoint;
    let folder = tempfile::tempdir().unwrap();
    let agent = include_str!("../cases/agent-session/valid.json");
    let id = "Secondary-C";
    assert!(agent.contains(id));
    fs::write(folder.path().join("agent_secondary_c.json"), agent).unwrap();
    let layout = <AgentCheckpoint as agent_checkpoint::Checkpoint>::layout();
    let store = FileStore::open(folder.path()).with_layout(layout);
    let agents = store.checkpoints::<AgentCheckpoint>();
    assert!(store.list(&Query::all()).unwrap().keys().eq(&[key(id)]));
    let saved = agents
        .update(&key(id), |agent| {
            agent.current_step = Some("Section 5".into())
        })
        .unwrap();
    assert_eq!(saved.outcome, agent_checkpoint::store::Outcome::Replaced);
    assert!(!folder.path().join("secondary_c.json").exists());
    // If the id's own file exists, the other no longer counts, and is named.
    fs::write(folder.path().join("secondary_c.json"), agent).unwrap();
    let page = store.list(&Query::all()).unwrap();
    assert!(page.keys().eq(&[key(id)]));
    assert_eq!(page.foreign, ["agent_secondary_c.json"]);
    // If there are two others, none is guessed.
    fs::rename(
        folder.path().join("secondary_c.json"),
        folder.path().join("third.json"),
    )
    .unwrap();
    let error = store.load(&key(id)).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Ambiguous { .. }),
        "{error}"
    );
    let page = store.list(&Query::all()).unwrap();
    assert_eq!(page.foreign.len() + page.entries.len(), 2);
}

#[test]
fn a_store_of_one_file_keeps_the_protocols_backups_and_archives() {
    use agent_checkpoint::formats::agent_session::AgentCheckpoint;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("of-mine.json");
    fs::write(&path, include_str!("../cases/agent-session/valid.json")).unwrap();
    let layout = <AgentCheckpoint as agent_checkpoint::Checkpoint>::layout();
    let store = FileStore::single(&path, FileOptions::default())
        .unwrap()
        .with_layout(layout);
    let only = store.key().unwrap().clone();
    store
        .checkpoints::<AgentCheckpoint>()
        .update(&only, |agent| agent.current_step = Some("Section 5".into()))
        .unwrap();
    assert_eq!(
        fs::read_dir(folder.path().join("backups")).unwrap().count(),
        1
    );
    let now = time("2026-03-02T08:00:00Z");
    let aside = store
        .archive(&only, Archive::Crashed, now, &DeleteOptions::new())
        .unwrap();
    assert_eq!(
        aside.file_name().unwrap(),
        "of-mine_crashed_1772438400.json"
    );
}

/// Counts the reads of dropped logs and of checkpoints.
#[derive(Default)]
struct Reads {
    logs: usize,
    checkpoints: usize,
}

impl Watch for Reads {
    fn after(&mut self, call: &Call<'_>) {
        if call.operation == Operation::Read {
            let path = call.path.to_string_lossy();
            self.logs += usize::from(path.ends_with(".jsonl"));
            let is_ours = path.contains(".agent-checkpoint");
            self.checkpoints += usize::from(path.ends_with(".json") && !is_ours);
        }
    }
}

fn reads(run: impl FnOnce()) -> Reads {
    let reads = Rc::new(RefCell::new(Reads::default()));
    watched(reads.clone(), run);
    Rc::try_unwrap(reads).ok().unwrap().into_inner()
}

/// The broken rule: each save read the whole log, and beyond some megabytes its oldest part was lost.
#[test]
fn nothing_of_the_dropped_log_goes_by_itself_and_a_save_reads_none_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::default().with_durability(Durability::None);
    let store = FileStore::with_options(folder.path(), options);
    let piece = |n: usize| {
        let text = format!("{n}:{}", "x".repeat(500_000));
        Dropped::new(
            format!("/notes/{n}"),
            DropReason::Characters(300),
            text.into(),
        )
    };
    let save = |n: usize| {
        let document = Document::from_text(format!("{{\"n\":{n}}}")).unwrap();
        store
            .put(
                &key("a"),
                Put::new(document.clone()).with_dropped(vec![piece(n)]),
            )
            .unwrap();
    };
    for n in 0..30 {
        // It only checks whether the log ends with a line end.
        let read = reads(|| save(n));
        assert!(read.logs <= 1, "{} of {n}", read.logs);
    }
    let all: Vec<Dropped> = (0..30).map(piece).collect();
    assert_eq!(store.beside().dropped(&key("a")).unwrap(), all);
    for most in [0, 1, 3, 30, 100] {
        let newest = store.beside().newest_dropped(&key("a"), most).unwrap();
        assert_eq!(newest, all[all.len() - most.min(30)..], "{most}");
    }
    // An item of a writer that died before its save is there once.
    save(29);
    assert_eq!(store.beside().dropped(&key("a")).unwrap(), all);
    // A copy of the log can be read alone: each line names the task.
    let log = folder
        .path()
        .join(".agent-checkpoint/overflow/a.json.jsonl");
    let lines = fs::read_to_string(&log).unwrap();
    assert!(lines.lines().all(|line| line.contains(r#""task":"a""#)));
    // It is shortened on request.
    let mut keep = Keep::newest(10);
    keep.bytes = Some(2_000_000);
    store.prune(&key("a"), &keep).unwrap();
    assert_eq!(store.beside().dropped(&key("a")).unwrap(), all[27..]);
    store.delete(&key("a"), &DeleteOptions::new()).unwrap();
    put(&store, "a", "{\"anew\":1}");
    assert!(store.beside().dropped(&key("a")).unwrap().is_empty());
    assert!(fs::metadata(&log).unwrap().len() > 1_000_000);
    store.prune(&key("a"), &Keep::default()).unwrap();
    assert_eq!(fs::metadata(&log).unwrap().len(), 0);
}

/// The broken rule: a prune took a task's item for a repetition of the same item of the task before, and removed it.
#[test]
fn an_item_that_two_tasks_dropped_stays_that_of_the_second() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let item = Dropped::new("/steps/0", DropReason::Characters(300), "done".into());
    let save = |text: &str| {
        let document = Document::from_text(text).unwrap();
        let put = Put::new(document).with_dropped(vec![item.clone()]);
        store.put(&key("a"), put).unwrap();
    };
    save("{\"n\":1}");
    store.delete(&key("a"), &DeleteOptions::new()).unwrap();
    put(&store, "a", "{\"n\":2}");
    save("{\"n\":3}");
    for _ in 0..2 {
        assert_eq!(
            store.beside().dropped(&key("a")).unwrap(),
            std::slice::from_ref(&item)
        );
        store.prune(&key("a"), &Keep::newest(10)).unwrap();
    }
}

/// The broken rule: a checkpoint that was deleted and restored had lost the dropped steps.
#[test]
fn a_restored_checkpoint_goes_on_with_its_dropped_log_and_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let files = FileStore::open(folder.path());
    let memory = MemoryStore::new();
    let stores: [&dyn CheckpointStore; 2] = [&files, &memory];
    for store in stores {
        let piece = |n: u32| {
            let reason = DropReason::Elements(2);
            Dropped::new("/completedSteps/0", reason, serde_json::json!({"step": n}))
        };
        for n in 0..3 {
            let document = Document::from_text(format!("{{\"n\":{n}}}")).unwrap();
            store
                .put(
                    &key("a"),
                    Put::new(document.clone()).with_dropped(vec![piece(n)]),
                )
                .unwrap();
        }
        let kept = store.beside().dropped(&key("a")).unwrap();
        assert_eq!(kept, [piece(0), piece(1), piece(2)]);
        store.delete(&key("a"), &DeleteOptions::new()).unwrap();
        let newest = store.states(&key("a")).unwrap()[0].id.clone();
        store
            .restore(&key("a"), &newest, Expect::Any, None)
            .unwrap();
        assert_eq!(store.beside().dropped(&key("a")).unwrap(), kept);
        let since = store.states(&key("a")).unwrap();
        assert!(
            since.iter().all(|entry| entry.tasks_since == 0),
            "{since:?}"
        );
        // A new document is another task.
        store.delete(&key("a"), &DeleteOptions::new()).unwrap();
        let document = Document::from_text("{\"anew\":1}").unwrap();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        assert!(store.beside().dropped(&key("a")).unwrap().is_empty());
    }
}

/// The broken rule: for a new key, a change ran twice, and the named files were read twice.
#[test]
fn the_first_save_of_a_key_runs_the_change_once_and_outside_of_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let mut runs = 0;
    store
        .transact(&key("a"), |present| {
            assert!(present.is_none());
            runs += 1;
            Ok(Some(Put::new(Document::from_text("{}").unwrap())))
        })
        .unwrap();
    assert_eq!(runs, 1);

    let tracking = agent_checkpoint::staleness::Tracking::new(folder.path());
    let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone()).tracking(tracking);
    tasks.create(&key("b"), &task(&["one"])).unwrap();
    let lock = folder.path().join(".agent-checkpoint/locks/b.json.lock");
    let mut runs = 0;
    tasks
        .update(&key("b"), |task| {
            runs += 1;
            assert!(
                sidecar(&lock).try_lock().is_ok(),
                "the lock is held while files are read"
            );
            task.blockers.push("x".into());
        })
        .unwrap();
    assert_eq!(runs, 1);
}

/// The broken rule: each create read every file of a folder whose ids are in the files.
#[test]
fn where_ids_are_in_files_each_file_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::default().with_durability(Durability::None);
    let store =
        FileStore::with_options(folder.path(), options).with_layout(AgentCheckpoint::layout());
    let create = |n: usize| {
        let text = format!(r#"{{"agent_id":"Agent-{n}"}}"#);
        put(&store, &format!("Agent-{n}"), &text);
    };
    for n in 0..20 {
        create(n);
    }
    // A file that was written just now may change again without a visible difference.
    std::thread::sleep(Duration::from_millis(50));
    create(20);
    std::thread::sleep(Duration::from_millis(50));
    create(21);
    let read = reads(|| create(22));
    assert!(read.checkpoints <= 3, "{}", read.checkpoints);
    // A file that was changed by hand is read again.
    fs::write(folder.path().join("0.json"), r#"{"agent_id":"Agent-new"}"#).unwrap();
    assert!(store.path(&key("Agent-new")).unwrap().ends_with("0.json"));
}

/// The broken rule: after the clock was set back, or files got other times, the newest backups were removed first.
#[test]
fn the_order_of_backups_is_that_in_which_they_were_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = || FileStore::open(folder.path()).with_layout(AgentCheckpoint::layout());
    let save = |n: usize| {
        let text =
            format!(r#"{{"agent_id":"Agent-A","last_checkpoint":"2026-03-02T08:{n:02}:00Z"}}"#);
        put(&store(), "Agent-A", &text);
    };
    let backups = folder.path().join("backups");
    let ahead = SystemTime::now() + Duration::from_secs(3600);
    let set_ahead = |path: &Path| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(ahead).unwrap();
    };
    for n in 1..=6 {
        save(n);
    }
    set_ahead(&folder.path().join("a.json"));
    for backup in fs::read_dir(&backups).unwrap() {
        set_ahead(&backup.unwrap().path());
    }
    for n in 7..=30 {
        save(n);
    }
    let states = || -> Vec<usize> {
        let history = store().states(&key("Agent-A")).unwrap();
        let texts = history.iter().map(|entry| {
            let stored = store().load_revision(&key("Agent-A"), &entry.id).unwrap();
            let text = stored.document.text().to_owned();
            let minute = text.split("T08:").nth(1).unwrap();
            minute[..2].parse().unwrap()
        });
        texts.collect()
    };
    assert_eq!(states(), (20..=30).rev().collect::<Vec<_>>());
    // A backup of the protocol's own script, in local time, is ordered by its own stamp.
    let scripts = backups.join("a_20990101_000000.json");
    let text = r#"{"agent_id":"Agent-A","last_checkpoint":"2026-03-02T08:25:30Z"}"#;
    fs::write(&scripts, text).unwrap();
    let order = [30, 29, 28, 27, 26, 25, 25, 24, 23, 22, 21, 20];
    assert_eq!(states(), order);
    save(31);
    assert_eq!(states()[..7], [31, 30, 29, 28, 27, 26, 25]);
    // Without the record of the order, all are ordered by their own stamps.
    fs::remove_dir_all(folder.path().join(".agent-checkpoint/order")).unwrap();
    assert_eq!(states()[..7], [31, 30, 29, 28, 27, 26, 25]);
}

/// The broken rule: an archived task came back in place of the next one under its name.
#[test]
fn a_task_that_was_archived_is_not_recovered_in_place_of_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let file = folder.path().join("a.json");
    let newest = RecoverOptions::new(Recovery::Newest);
    let refused = || {
        let error = store.recover(&key("a"), &newest).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::NotRecoverable { .. }),
            "{error}"
        );
        error.to_string()
    };
    put(&store, "a", "{\"n\":1}");
    put(&store, "a", "{\"n\":2}");
    let now = time("2026-03-02T08:00:00Z");
    let any = DeleteOptions::new();
    store
        .archive(&key("a"), Archive::Complete, now, &any)
        .unwrap();
    assert!(refused().contains("1 and older states are of earlier tasks"));
    put(&store, "a", "{\"n\":3}");
    fs::write(&file, "").unwrap();
    refused();
    fs::write(&file, "{\"n\":3}").unwrap();
    put(&store, "a", "{\"n\":4}");
    fs::write(&file, "").unwrap();
    let recovered = store.recover(&key("a"), &newest).unwrap();
    assert_eq!(recovered.document.unwrap().text(), "{\"n\":3}");
    // Removed by hand and begun anew: this is another task, too.
    fs::remove_file(&file).unwrap();
    put(&store, "a", "{\"n\":5}");
    let since = store.states(&key("a")).unwrap();
    let since: Vec<_> = since.iter().map(|entry| entry.tasks_since).collect();
    assert_eq!(since, [0, 1, 2]);
    // Without the store's own folder earlier tasks are unknown, and numbers begin anew.
    fs::remove_dir_all(folder.path().join(".agent-checkpoint/history")).unwrap();
    put(&store, "a", "{\"n\":6}");
    fs::write(&file, "").unwrap();
    let recovered = store.recover(&key("a"), &newest).unwrap();
    assert_eq!(recovered.document.unwrap().text(), "{\"n\":5}");
}

/// The broken rule: temporary files of killed writers were committed by an agent's `git add -A`.
#[test]
fn a_folder_that_the_store_made_has_temporary_files_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("checkpoints");
    put(&FileStore::open(&ours), "a", "{}");
    let rules = fs::read_to_string(ours.join(".gitignore")).unwrap();
    assert_eq!(rules, ".agent-checkpoint-*.tmp\n");
    // It is written once: a user may change or remove it.
    fs::remove_file(ours.join(".gitignore")).unwrap();
    put(&FileStore::open(&ours), "b", "{}");
    assert!(!ours.join(".gitignore").exists());
    let page = FileStore::open(&ours).list(&Query::all()).unwrap();
    assert!(page.foreign.is_empty());
    // A folder that existed before belongs to its owner.
    put(&FileStore::open(folder.path()), "a", "{}");
    assert!(!folder.path().join(".gitignore").exists());
}

fn rolled_back(store: &dyn CheckpointStore, name: &str) -> Option<RolledBack> {
    let present = store.load(&key(name)).unwrap().unwrap().revision;
    store
        .history()
        .unwrap()
        .rolled_back(&key(name), &present)
        .unwrap()
}

/// Writes a new file with an old text, as `git checkout` does.
fn check_out(path: &Path, text: &str) {
    fs::remove_file(path).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn an_older_state_that_came_back_without_the_store_is_told_until_the_next_save() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let path = folder.path().join("a.json");
    let states = ["{}", r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#];
    for state in states {
        put(&store, "a", state);
        assert_eq!(rolled_back(&store, "a"), None, "a save of ours");
    }
    let saved = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, r#"{"n":4}"#).unwrap();
    assert_eq!(rolled_back(&store, "a"), None, "a new state of another's");

    check_out(&path, states[1]);
    // Another process reports it as well.
    let store = FileStore::open(folder.path());
    let found = rolled_back(&store, "a").unwrap();
    assert_eq!(found.present.as_str(), "2");
    assert_eq!(found.later.as_ref().map(|id| id.as_str()), Some("3"));
    assert_eq!(found.saved, saved);
    assert!(!found.last_is_kept, "{found:?}");
    // Pointers to a store forward the call.
    assert_eq!(rolled_back(&&store, "a"), Some(found.clone()));
    assert_eq!(rolled_back(&Box::new(store), "a"), Some(found));

    let store = FileStore::open(folder.path());
    check_out(&path, states[2]);
    let found = rolled_back(&store, "a").unwrap();
    assert_eq!((found.later, found.last_is_kept), (None, false));

    // The state that was saved last stays if it is pinned.
    check_out(&path, states[3]);
    assert_eq!(rolled_back(&store, "a"), None, "it is what was saved last");
    let pinned = store.pin(&key("a"), &EntryId::current(), true).unwrap();
    check_out(&path, states[0]);
    let found = rolled_back(&store, "a").unwrap();
    assert_eq!((found.later, found.last_is_kept), (Some(pinned), true));

    // A restore is a save, so its old state is intended.
    put(&store, "a", states[1]);
    assert_eq!(rolled_back(&store, "a"), None);
    let note = folder.path().join(".agent-checkpoint/locks/a.json.note");
    check_out(&path, states[2]);
    assert!(rolled_back(&store, "a").is_some());
    fs::write(&note, "damaged").unwrap();
    assert_eq!(rolled_back(&store, "a"), None, "nobody can tell");
    fs::remove_file(&note).unwrap();
    assert_eq!(rolled_back(&store, "a"), None, "nobody can tell");
}

/// States that a deletion left in the history, or that a recovery brings back, are our own.
#[test]
fn a_state_that_comes_back_after_a_deletion_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    for state in ["{}", r#"{"n":1}"#] {
        put(&store, "a", state);
    }
    store.delete(&key("a"), &DeleteOptions::new()).unwrap();
    let path = folder.path().join("a.json");
    fs::write(&path, "{}").unwrap();
    let found = rolled_back(&store, "a").unwrap();
    assert_eq!(found.later.as_ref().map(|id| id.as_str()), Some("2"));
    assert!(found.last_is_kept);
    fs::write(&path, r#"{"n":"#).unwrap();
    let recovered = store.recover(&key("a"), &RecoverOptions::new(Recovery::Newest));
    assert_eq!(recovered.unwrap().entry.unwrap().as_str(), "2");
    assert_eq!(rolled_back(&store, "a"), None, "a recovery is a save");
}

#[test]
fn a_slot_of_a_host_file_that_came_back_is_told_and_its_neighbour_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    fs::write(&host, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&host);
    put(&store, "active", r#"{"n":1}"#);
    let first = fs::read_to_string(&host).unwrap();
    put(&store, "active", r#"{"n":2}"#);
    put(&store, "top", r#"{"of":"top"}"#);
    let now = time("2026-03-02T08:00:00Z");
    store.beat(&key("active"), now, None).unwrap();
    for slot in ["active", "top"] {
        assert_eq!(rolled_back(&store, slot), None, "{slot}");
    }
    let second = fs::read_to_string(&host).unwrap();
    // The builder's own writes do not change a slot.
    check_out(&host, &second.replace("builder-abc123", "builder-other"));
    assert_eq!(rolled_back(&store, "active"), None);
    // Only the active slot goes back.
    put(&store, "active", r#"{"n":3}"#);
    check_out(&host, &second);
    assert!(rolled_back(&store, "active").is_some());
    assert_eq!(rolled_back(&store, "top"), None);
    check_out(&host, &first);
    assert!(rolled_back(&store, "active").is_some());
}

#[test]
fn the_fence_of_one_slot_gives_no_other_slot_to_another_task() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    let text = r#"{"activeWork":{"currentStory":"US-1","checkpoint":{}},"adhocQueue":[{"id":"a","checkpoint":{}}]}"#;
    fs::write(&host, text).unwrap();
    // Even for two slots that are claimed at the same time.
    let now = agent_checkpoint::FixedClock(chrono::Utc::now());
    let slots = BuilderStateStore::with_options(&host, FileOptions::default().with_clock(now));
    let whole = FileStore::single(&host, FileOptions::default()).unwrap();
    let of_whole = whole.key().unwrap().clone();
    let claimed = |slot: &str| {
        let request = ClaimRequest::new(slot, Duration::from_secs(600));
        slots.claim(&key(slot), &request).unwrap().fence
    };
    let fences = ["active", "adhoc:a"].map(claimed);
    let write = |text: &str, fence| {
        let put = Put::new(Document::from_text(text).unwrap());
        whole.put(&of_whole, put.with_fence(fence))
    };
    let next_story = text.replace("US-1", "US-2");
    let error = write(&next_story, Some(fences[1])).unwrap_err();
    assert_eq!(error.code(), "claimed", "{error}");
    assert_eq!(error.key(), Some(&key("active")), "{error}");
    write(&next_story, Some(fences[0])).unwrap();
    write(
        &next_story.replace(r#""a","#, r#""a","n":1,"#),
        Some(fences[1]),
    )
    .unwrap();
    // A damaged or missing host file is recovered as a whole, by any of its owners and by no other agent.
    for damage in [Some("{"), None] {
        for fence in fences {
            match damage {
                Some(text) => fs::write(&host, text).unwrap(),
                None => fs::remove_file(&host).unwrap(),
            }
            let recover = |slot, fence| {
                let options = RecoverOptions::new(Recovery::Newest).with_fence(fence);
                slots.recover(&key(slot), &options)
            };
            let error = recover("adhoc:a", None).unwrap_err();
            assert_eq!(
                (error.code(), error.key()),
                ("claimed", Some(&key("active")))
            );
            assert!(recover("active", Some(fence)).unwrap().entry.is_some());
        }
    }
}

/// The protocol's own agents write with `cat >`, in place, which changes all hard links of the file.
#[test]
fn a_pin_is_a_copy_that_no_write_in_place_changes() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let path = folder.path().join("a.json");
    let texts = [r#"{"n":1}"#, r#"{"n":2}"#];
    put(&store, "a", texts[0]);
    let held = fs::File::options().write(true).open(&path).unwrap();
    put(&store, "a", texts[1]);
    let pins = [EntryId::current(), "1".parse().unwrap()];
    let pins = pins.map(|id| store.pin(&key("a"), &id, true).unwrap());
    fs::write(&path, r#"{"written":"in place"}"#).unwrap();
    held.set_len(0).unwrap();
    let kept = pins.map(|id| store.load_revision(&key("a"), &id).unwrap());
    assert_eq!(kept[0].document.text(), texts[1]);
    assert_eq!(kept[1].document.text(), texts[0]);
}

#[test]
fn a_record_of_claims_that_is_damaged_is_begun_anew_only_by_who_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    // The clock stands still, so a first fence from the time alone would be the same one again.
    let clock = agent_checkpoint::FixedClock(chrono::Utc::now());
    let store = FileStore::with_options(folder.path(), FileOptions::default().with_clock(clock));
    put(&store, "a", "{}");
    let request = |owner| ClaimRequest::new(owner, Duration::from_secs(600));
    let owned = store.claim(&key("a"), &request("one")).unwrap();
    let claims = folder.path().join(".agent-checkpoint/claims");
    let record = fs::read_dir(claims)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::write(&record, "{\"\": {").unwrap();
    let unreadable = |error: agent_checkpoint::Error| {
        assert!(
            matches!(error.kind(), ErrorKind::Unreadable { .. }),
            "{error}"
        );
    };
    for owner in ["one", "two"] {
        unreadable(store.claim(&key("a"), &request(owner)).unwrap_err());
    }
    let minute = Duration::from_secs(60);
    unreadable(store.renew(&key("a"), owned.fence, minute).unwrap_err());
    unreadable(store.release(&key("a"), owned.fence).unwrap_err());
    let taken = store.claim(&key("a"), &request("two").taking_over());
    assert!(taken.unwrap().fence > owned.fence);
}

#[test]
fn a_stray_file_with_a_huge_number_stops_no_save() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    put(&store, "a", "{}");
    put(&store, "a", r#"{"n":1}"#);
    let history = folder.path().join(".agent-checkpoint/history/a.json");
    for number in [u64::MAX.to_string(), i64::MAX.to_string(), "9".repeat(40)] {
        fs::write(history.join(format!("{number}.json")), "{}").unwrap();
    }
    let store = FileStore::open(folder.path());
    for n in 2..5 {
        put(&store, "a", &format!("{{\"n\":{n}}}"));
    }
    let entries = store.states(&key("a")).unwrap();
    let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["current", "4", "3", "2", "1"]);
}

#[test]
fn a_damaged_text_is_kept_although_its_name_is_taken_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let path = folder.path().join("a.json");
    let damage = || fs::write(&path, r#"{"half":"#).unwrap();
    let fresh = || {
        let options = RecoverOptions::new(Recovery::Fresh);
        store
            .recover(&key("a"), &options)
            .unwrap()
            .put_aside
            .unwrap()
    };
    damage();
    let aside = fresh();
    damage();
    assert_eq!(fresh(), aside, "the same damage is kept once");
    fs::write(&aside, "").unwrap();
    damage();
    let other = fresh();
    assert_ne!(other, aside);
    assert_eq!(fs::read_to_string(other).unwrap(), r#"{"half":"#);
}

/// A writer holds the lock, and its temporary file looks old, as after the clock was set forward.
#[test]
fn a_temporary_file_of_a_writer_that_holds_the_lock_stays() {
    let folder = tempfile::tempdir().unwrap();
    put(&FileStore::open(folder.path()), "a", "{}");
    let temp = folder.path().join(".agent-checkpoint-abcdefghijkl.tmp");
    fs::write(&temp, "x").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(7200);
    let file = fs::File::options().write(true).open(&temp).unwrap();
    file.set_modified(old).unwrap();
    let sidecar = folder.path().join(".agent-checkpoint/locks/a.json.lock");
    let lock = locked(&sidecar);
    let options = FileOptions::default().with_lock_timeout(Duration::from_millis(10));
    let document = Document::from_text(r#"{"n":1}"#).unwrap();
    let put = |options: FileOptions| {
        let store = FileStore::with_options(folder.path(), options);
        store.put(&key("a"), Put::new(document.clone()))
    };
    an_hour_passes_since_the_sweep(folder.path());
    assert!(put(options.clone()).is_err());
    assert!(temp.exists());
    drop(lock);
    put(options.clone()).unwrap();
    assert!(!temp.exists());

    // Once an hour is enough, by any process.
    fs::write(&temp, "x").unwrap();
    let file = fs::File::options().write(true).open(&temp).unwrap();
    file.set_modified(old).unwrap();
    put(options.clone()).unwrap();
    assert!(temp.exists());
    an_hour_passes_since_the_sweep(folder.path());
    put(options).unwrap();
    assert!(!temp.exists());
}

#[test]
fn a_save_whose_new_contents_another_takes_for_abandoned_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    put(&store, "a", r#"{"n":1}"#);
    let swept = folder.path().to_path_buf();
    // After a jump of the clock all files being written look old.
    let sweep = move || {
        let files = fs::read_dir(&swept)
            .unwrap()
            .map(|file| file.unwrap().path());
        let temps: Vec<_> = files
            .filter(|path| path.extension() == Some("tmp".as_ref()))
            .collect();
        assert_eq!(temps.len(), 1, "{temps:?}");
        fs::remove_file(&temps[0]).unwrap();
        Verdict::Go
    };
    let save = || put(&store, "a", r#"{"n":2}"#);
    between(
        (Operation::Rename, &folder.path().join("a.json")),
        sweep,
        save,
    );
    let text = |stored: agent_checkpoint::store::Stored| stored.document.text().to_owned();
    let now = store.load(&key("a")).unwrap().unwrap();
    assert_eq!(text(now), r#"{"n":2}"#);
    let history = store.states(&key("a")).unwrap();
    assert_eq!(history.len(), 2, "what it replaced, once: {history:?}");

    // If the folder with its files is gone, it is not tried again.
    let gone = folder.path().to_path_buf();
    let remove = move || {
        fs::remove_dir_all(gone).unwrap();
        Verdict::Go
    };
    let document = Document::from_text("{}").unwrap();
    let save = || store.put(&key("a"), Put::new(document.clone()));
    let (failed, _) = between(
        (Operation::Rename, &folder.path().join("a.json")),
        remove,
        save,
    );
    assert_eq!(*failed.unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_file_that_is_too_large_to_be_read_is_put_aside_unread_and_synced() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::default().with_max_bytes(8);
    let store = FileStore::with_options(folder.path(), options);
    let path = folder.path().join("a.json");
    fs::write(&path, "{ \"n\": 100000 }").unwrap();
    let synced = Rc::new(std::cell::Cell::new(false));
    let seen = synced.clone();
    let is_synced = move || {
        seen.set(true);
        Verdict::Go
    };
    let archive = || {
        let any = DeleteOptions::new();
        store.archive(
            &key("a"),
            Archive::Crashed,
            time("2026-03-02T08:00:00Z"),
            &any,
        )
    };
    let (aside, _) = between((Operation::Sync, &path), is_synced, archive);
    assert!(synced.get() && aside.unwrap().is_file() && !path.exists());
}

/// Runs an action before the first call of a kind, and records whether a folder was synced after it.
struct Between<'a> {
    operation: Operation,
    path: &'a Path,
    act: Option<Box<dyn FnOnce() -> Verdict>>,
    folders_synced: usize,
}

impl Watch for Between<'static> {
    fn before(&mut self, call: &Call<'_>) -> Verdict {
        if call.operation == self.operation
            && call.path.starts_with(self.path)
            && let Some(act) = self.act.take()
        {
            return act();
        }
        Verdict::Go
    }

    fn after(&mut self, call: &Call<'_>) {
        let is_after = self.act.is_none() && call.operation == Operation::SyncFolder;
        self.folders_synced += usize::from(is_after);
    }
}

/// Runs `run` with an action before the first such call on the path or below it. Returns how many folders were synced
/// after it.
fn between<T>(
    (operation, path): (Operation, &Path),
    act: impl FnOnce() -> Verdict + 'static,
    run: impl FnOnce() -> T,
) -> (T, usize) {
    let watch = Rc::new(RefCell::new(Between {
        operation,
        path: Box::leak(path.to_path_buf().into_boxed_path()),
        act: Some(Box::new(act)),
        folders_synced: 0,
    }));
    let done = watched(watch.clone(), run);
    let watch = watch.borrow();
    assert!(watch.act.is_none(), "nothing came between");
    (done, watch.folders_synced)
}

#[test]
fn a_state_that_was_loaded_before_a_save_did_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let files = FileStore::open(folder.path());
    let host = folder.path().join("host.json");
    fs::write(&host, EXAMPLE).unwrap();
    let hosted = BuilderStateStore::open(&host);
    let stores: [(&dyn CheckpointStore, &str); 2] = [(&files, "a"), (&hosted, "active")];
    for (store, name) in stores {
        put(store, name, r#"{"n":1}"#);
        put(store, name, r#"{"n":2}"#);
        let loaded = store.load(&key(name)).unwrap().unwrap().revision;
        put(store, name, r#"{"n":3}"#);
        assert_eq!(
            store
                .history()
                .unwrap()
                .rolled_back(&key(name), &loaded)
                .unwrap(),
            None
        );
        put(store, name, r#"{"n":4}"#);
        assert_eq!(
            store
                .history()
                .unwrap()
                .rolled_back(&key(name), &loaded)
                .unwrap(),
            None
        );
    }
}

#[test]
fn what_another_deletes_while_we_wait_is_gone_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    put(&store, "a", "{}");
    let path = folder.path().join("a.json");
    let own = folder.path().join(".agent-checkpoint");
    let delete = || store.delete(&key("a"), &DeleteOptions::new()).unwrap();
    let remove = move || {
        fs::remove_file(path).unwrap();
        Verdict::Go
    };
    let (deleted, synced) = between((Operation::Lock, &own), remove, delete);
    assert!(!deleted);
    let is_synced = synced > 0 || cfg!(windows);
    assert!(is_synced, "who removed it may not have lived to sync it");
}

#[test]
fn a_slot_that_another_empties_while_it_is_archived_leaves_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.json");
    fs::write(&host, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&host);
    put(&store, "active", r#"{"n":1}"#);
    let archives = folder.path().join(".agent-checkpoint/archive");
    let archive = || {
        let now = time("2026-03-02T08:00:00Z");
        store.archive(&key("active"), Archive::Crashed, now, &DeleteOptions::new())
    };
    let empty = move || {
        let mut document = Document::from_text(fs::read_to_string(&host).unwrap()).unwrap();
        document.set("/activePrd/checkpoint", &()).unwrap();
        fs::write(&host, document.text()).unwrap();
        Verdict::Go
    };
    let (archived, _) = between((Operation::SyncFolder, &archives), empty, archive);
    assert_eq!(*archived.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fs::read_dir(&archives).unwrap().count(), 0);
}

#[test]
fn a_healthy_file_is_found_healthy_under_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::default().with_lock_timeout(Duration::ZERO);
    let store = FileStore::with_options(folder.path(), options);
    put(&store, "a", "{}");
    let newest = RecoverOptions::new(Recovery::Newest);
    let sidecar = folder.path().join(".agent-checkpoint/locks/a.json.lock");
    let held = locked(&sidecar);
    // Making it durable may write it anew.
    let error = store.recover(&key("a"), &newest).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Locked { .. }), "{error}");
    drop(held);
    store.recover(&key("a"), &newest).unwrap();
}

/// The folder of the checkpoint that a child of the test below saves.
const CHILD: &str = "AGENT_CHECKPOINT_SAVE_AGAIN";

#[test]
fn child_saves_again() {
    if let Some(folder) = std::env::var_os(CHILD) {
        put(&FileStore::open(folder), "a", r#"{"n":2}"#);
    }
}

/// After a failed sync a system may drop the data and report the next sync as a success.
#[cfg(unix)]
#[test]
fn what_could_not_be_synced_is_written_anew_also_by_the_next_process() {
    use std::os::unix::fs::MetadataExt;
    for failing in [Operation::SyncFolder, Operation::Sync] {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path());
        put(&store, "a", r#"{"n":1}"#);
        let path = folder.path().join("a.json");
        let at = match failing {
            Operation::Sync => {
                fs::write(&path, r#"{"n":2}"#).unwrap();
                path.as_path()
            }
            _ => folder.path(),
        };
        let save = || {
            let document = Document::from_text(r#"{"n":2}"#).unwrap();
            store.put(&key("a"), Put::new(document.clone()))
        };
        let fail = || Verdict::Fail(std::io::Error::from_raw_os_error(5));
        let (saved, _) = between((failing, at), fail, save);
        assert_eq!(*saved.unwrap_err().kind(), ErrorKind::NotDurable);
        assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"n":2}"#);
        let before = fs::metadata(&path).unwrap();
        let child = || {
            let program = std::env::current_exe().unwrap();
            let mut child = std::process::Command::new(program);
            child.args(["--exact", "file_store::child_saves_again"]);
            let done = child.env(CHILD, folder.path()).output().unwrap();
            let text = String::from_utf8_lossy(&done.stdout);
            assert!(text.contains("running 1 test"), "no such test: {text}");
            assert!(done.status.success(), "{done:?}");
            fs::metadata(&path).unwrap()
        };
        let anew = child();
        assert_ne!(before.ino(), anew.ino(), "{failing:?}");
        assert_eq!(anew.ino(), child().ino(), "once is enough");
    }
}

#[cfg(unix)]
#[test]
fn a_log_that_is_written_anew_is_no_wider_open_than_the_checkpoint() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    put(&store, "a", "{}");
    let closed = || fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.path().join("a.json"), closed()).unwrap();
    let logs = folder.path().join(".agent-checkpoint/overflow");
    fs::create_dir(&logs).unwrap();
    for kept in ["unsynced", "1"] {
        let older = logs.join(format!("a.json.{kept}.jsonl"));
        fs::write(&older, "{}\nsecret\n").unwrap();
        fs::set_permissions(&older, closed()).unwrap();
        if kept == "unsynced" {
            let cut = vec![Dropped::new("/x", DropReason::Elements(1), 1.into())];
            let document = Document::from_text(r#"{"n":1}"#).unwrap();
            store
                .put(&key("a"), Put::new(document.clone()).with_dropped(cut))
                .unwrap();
        } else {
            let mut keep = Keep::default();
            keep.bytes = Some(1);
            store.prune(&key("a"), &keep).unwrap();
        }
        let log = logs.join("a.json.jsonl");
        let mode = fs::metadata(&log).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{kept}");
        fs::remove_file(log).unwrap();
    }
}

/// Our own files are never links: a link in a cloned repository would make us write into a user's file.
#[cfg(unix)]
#[test]
fn a_link_among_our_own_files_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    put(&store, "a", "{}");
    let victim = folder.path().join("victim");
    let claims = folder.path().join(".agent-checkpoint/claims");
    fs::create_dir_all(&claims).unwrap();
    fs::write(&victim, "{}").unwrap();
    std::os::unix::fs::symlink("../../victim", claims.join("a.json.json")).unwrap();
    let claim = ClaimRequest::new("one", Duration::from_secs(60));
    assert!(store.claim(&key("a"), &claim).is_err());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "{}");
}

#[test]
fn a_backup_that_was_taken_back_has_no_place_in_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path()).with_layout(AgentCheckpoint::layout());
    let text =
        |n: usize| format!(r#"{{"agent_id":"A","last_checkpoint":"2026-03-02T08:{n:02}:00Z"}}"#);
    put(&store, "A", &text(1));
    put(&store, "A", &text(2));
    let path = store.path(&key("A")).unwrap();
    let orders = folder.path().join(".agent-checkpoint/order");
    let order = || {
        fs::read_dir(&orders)
            .unwrap()
            .map(|note| fs::read_to_string(note.unwrap().path()).unwrap())
            .collect::<Vec<_>>()
    };
    let before = order();
    assert_eq!(before.len(), 1);
    let save = || {
        let document = Document::from_text(text(3)).unwrap();
        store.put(&key("A"), Put::new(document.clone()))
    };
    let fail = || Verdict::Fail(std::io::Error::from_raw_os_error(5));
    let (saved, _) = between((Operation::Rename, &path), fail, save);
    saved.unwrap_err();
    assert_eq!(order(), before);
}
