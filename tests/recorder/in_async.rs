//! A recorder in async programs.

use std::time::{Duration, Instant};

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::{Reason, TaskCheckpoint};
use agent_checkpoint::recorder::{AsyncRecorder, Opened, Ran, RunError};
use agent_checkpoint::store::{CheckpointStore, FileOptions, FileStore, MemoryStore};
use agent_checkpoint::{CheckpointStoreExt, ErrorKind, Key};

use crate::common::key;
use crate::scenes::{Scene, begun};

fn in_tokio<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap().block_on(work)
}

fn is_free(store: &impl CheckpointStore, key: &Key) -> bool {
    store.claimed(key).unwrap().is_none_or(|it| it.released)
}

/// Waits until a queued action is done.
async fn until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "it never came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn an_async_run_does_every_step_and_can_be_spawned() {
    let scene = Scene::new();
    let (view, first) = (scene.view(), scene.first(&["a", "b"]));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let task = runtime.spawn(async move {
        let name = String::from("did ");
        AsyncRecorder::run(&view, &key("US-003"), "dev", &first, async |step| {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let decided =
                |recorder: &_| agent_checkpoint::recorder::Recorder::decide(recorder, "x", None);
            step.recorder
                .call(decided)
                .await
                .map_err(|e| e.to_string())?;
            Ok::<_, String>(StepDone::new(name.clone() + &step.text))
        })
        .await
    });
    let ran = runtime.block_on(task).unwrap();
    assert!(matches!(ran.unwrap(), Ran::Finished));
    let end = scene.view::<TaskCheckpoint>().get(&key("US-003")).unwrap();
    let done = end.checkpoint.completed_steps.iter();
    let done: Vec<_> = done.filter_map(|it| it.step.as_deref()).collect();
    assert_eq!(done, ["did a", "did b"]);
    assert!(is_free(&scene.store, &key("US-003")));
}

#[test]
fn an_error_and_a_panic_of_async_work_are_in_the_checkpoint() {
    let scene = Scene::new();
    in_tokio(async {
        let first = scene.first(&["a"]);
        let work = async |_| Err::<StepDone, _>("no network".to_owned());
        let failed = AsyncRecorder::run(&scene.view(), &key("x"), "dev", &first, work).await;
        assert!(matches!(failed, Err(RunError::Work(broken)) if broken.error == "no network"));
        let recorder = begun(&scene.view(), "y", "dev", &first);
        let recorder = AsyncRecorder::from(recorder);
        let panicking = tokio::spawn({
            let recorder = recorder.clone();
            async move {
                let work = async { panic!("index {} is gone", std::hint::black_box(3)) };
                let _ = recorder.scope::<(), String>(work).await;
            }
        });
        assert!(panicking.await.unwrap_err().is_panic());
        recorder.leave().await.unwrap();
    });
    for (name, blocker) in [("x", "no network"), ("y", "panicked: index 3 is gone")] {
        let task = scene.view::<TaskCheckpoint>().get(&key(name)).unwrap();
        assert_eq!(task.checkpoint.blockers, [blocker]);
        assert!(is_free(&scene.store, &key(name)));
    }
}

#[test]
fn a_timeout_leaves_the_step_as_stopped_and_the_task_free() {
    let scene = Scene::new();
    let view = scene.view::<TaskCheckpoint>();
    in_tokio(async {
        let first = scene.first(&["a", "b"]);
        let key = key("x");
        let run = AsyncRecorder::run(&view, &key, "dev", &first, async |_| {
            std::future::pending::<Result<StepDone, String>>().await
        });
        let timed_out = tokio::time::timeout(Duration::from_millis(50), run).await;
        assert!(timed_out.is_err());
        // If it is retried at once, it waits for the rest of the first run.
        let again = AsyncRecorder::run(&view, &key, "dev", &first, async |_| Ok::<_, String>(None));
        assert!(matches!(again.await.unwrap(), Ran::Stopped));
        assert!(is_free(&scene.store, &key));
    });
    let task = view.get(&key("x")).unwrap().checkpoint;
    assert_eq!(task.metadata.reason, Some(Reason::Manual));
    assert!(task.current_step.is_some() && task.blockers.is_empty());
    // The next agent continues without questions.
    let ran = in_tokio(async {
        let first = scene.first(&["never"]);
        AsyncRecorder::run(&view, &key("x"), "dev", &first, async |_| {
            Ok::<_, String>(StepDone::current())
        })
        .await
    });
    assert!(matches!(ran.unwrap(), Ran::Finished));
}

/// Dropped at any point: while it begins, in a report or in its work.
#[test]
fn a_run_that_is_dropped_anywhere_can_be_tried_again_at_once() {
    let scene = Scene::new();
    let view = scene.view::<TaskCheckpoint>();
    in_tokio(async {
        let first = scene.first(&["a", "b"]);
        for polls in 1..24 {
            let key = key(&format!("x{polls}"));
            let run = || {
                AsyncRecorder::run(&view, &key, "dev", &first, async |_| {
                    tokio::task::yield_now().await;
                    Ok::<_, String>(StepDone::current())
                })
            };
            let mut dropped = Box::pin(run());
            for _ in 0..polls {
                let poll = std::future::poll_fn(|context| {
                    std::task::Poll::Ready(dropped.as_mut().poll(context))
                });
                if poll.await.is_ready() {
                    break;
                }
                tokio::time::sleep(Duration::from_micros(300)).await;
            }
            drop(dropped);
            let again = run().await.unwrap();
            assert!(matches!(again, Ran::Finished), "{polls}: {again:?}");
            let end = view.get(&key).unwrap().checkpoint;
            assert_eq!(end.completed_steps.len(), 2, "{polls}");
        }
    });
}

/// One worker, whose lock another process holds: the runtime continues meanwhile, and the dropped call is completed.
#[test]
fn a_call_that_waits_for_a_lock_holds_up_no_other_task_and_is_made_whole_when_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::with_options(folder.path(), FileOptions::default());
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let first = TaskCheckpoint::begin("dev", ["a", "b"], tasks.now());
    in_tokio(async {
        let key = key("x");
        let opened = AsyncRecorder::begin(&tasks, &key, "dev", &first).await;
        let Opened::Begun(recorder) = opened.unwrap() else {
            panic!("it was there")
        };
        let recorder = AsyncRecorder::from(recorder);
        let (locked, is_locked) = std::sync::mpsc::channel();
        let (free, is_freed) = std::sync::mpsc::channel::<()>();
        let holder = std::thread::spawn({
            let (store, key) = (store.clone(), key.clone());
            move || {
                let hold = |_: Option<&agent_checkpoint::store::Stored>| {
                    locked.send(()).unwrap();
                    is_freed.recv().unwrap();
                    Ok(None)
                };
                store.transact(&key, hold).unwrap();
            }
        });
        is_locked.recv().unwrap();
        let done = recorder.call(|recorder| recorder.step_done(&StepDone::new("a")));
        let waited = tokio::time::timeout(Duration::from_millis(100), done).await;
        assert!(waited.is_err(), "the runtime's timer went on meanwhile");
        free.send(()).unwrap();
        holder.join().unwrap();
        // The next call waits for the dropped one.
        let next = recorder
            .call(agent_checkpoint::recorder::Recorder::next_step)
            .await;
        assert_eq!(next.unwrap().as_deref(), Some("b"));
        // A clone that outlives the release of the claim cannot write any more.
        let late = recorder.clone();
        recorder.leave().await.unwrap();
        let refused = late.call(|late| late.step_started("b")).await.unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::Fenced { .. }),
            "{refused}"
        );
    });
    assert!(is_free(&store, &key("x")));
}

#[test]
fn outside_of_a_runtime_an_async_call_says_what_to_do_and_inside_the_blocking_one_works() {
    let tasks = MemoryStore::new().checkpoints::<TaskCheckpoint>();
    let first = TaskCheckpoint::begin("dev", ["a"], tasks.now());
    let mut call = Box::pin(tasks.unblocked(|tasks| tasks.load(&key("x"))));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(refused) = call.as_mut().poll(&mut context) else {
        panic!("it waits for nothing")
    };
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("needs a tokio runtime"), "{refused}");
    drop(call);
    in_tokio(async {
        let recorder = begun(&tasks, "x", "dev", &first);
        recorder.step_started("a").unwrap();
        drop(AsyncRecorder::from(recorder));
        let store = tasks.store();
        until(|| store.claimed(&key("x")).unwrap().unwrap().released).await;
    });
}
