//! The recorder for async programs: the same calls, made on threads where blocking is allowed.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use tokio::runtime::Handle as Runtime;
use tokio::sync::{Mutex, Notify};

use super::run::Entered;
use super::scope::words_of;
use super::{Broken, Opened, Ran, Recorded, Recorder, RecorderOptions, RunError};
use crate::checkpoint::StepDone;
use crate::checkpoint::{Checkpoint, Error, ErrorKind, Interruption, Key, Result};
use crate::checkpoints::Checkpoints;
use crate::resume::Resume;

/// A [`Recorder`] for async programs.
///
/// Calls run one after the other on a thread where blocking is allowed, because a save waits for the disk and
/// may wait for a lock. The futures are `Send`. All clones share one recorder.
///
/// # Cancellation
///
/// Dropping a future never leaves half a change. A call that is still waiting for its turn is not made. A call
/// that has begun is completed in the background, and the next call waits for it; only a runtime that shuts
/// down may drop it before it begins. Work in a [scope](AsyncRecorder::scope) or a [run](AsyncRecorder::run)
/// that is dropped before its end, for example by a timeout, is recorded as stopped.
///
/// When the last clone is dropped, giving the claim back is only queued. [`leave`](AsyncRecorder::leave) waits for
/// it, and so do [`begin`](AsyncRecorder::begin) and [`run`](AsyncRecorder::run) of the same task in this process. If
/// the runtime ends after a run, let the work stop by returning `Ok(None)` instead of dropping the run.
pub struct AsyncRecorder<C: Checkpoint + Send + 'static>(Arc<Handle<C>>);

/// The state that all clones share. Dropping the last clone drops the recorder.
struct Handle<C: Checkpoint + Send + 'static> {
    key: Key,
    /// `None` only while the handle is being dropped.
    held: Option<Arc<Mutex<Held<C>>>>,
    leaving: Arc<OnceLock<Leaving>>,
}

/// The recorder itself. A running call holds it too, so it may outlive the clones.
struct Held<C: Checkpoint + Send + 'static> {
    recorder: Recorder<C>,
    /// Declared after the recorder so that it is dropped later: dropping the recorder gives the claim back first.
    _leaving: Arc<OnceLock<Leaving>>,
}

/// How many drops still have background work to do, by the key of the task. A begin of the same task in this
/// process waits until there is none.
static LEFT_BEHIND: std::sync::Mutex<BTreeMap<Key, usize>> = std::sync::Mutex::new(BTreeMap::new());
static ONE_IS_DONE: Notify = Notify::const_new();

/// One piece of background work, counted from the drop that causes it to its end.
struct Leaving(Key);

impl Leaving {
    fn begin(key: &Key) -> Leaving {
        *Leaving::all().entry(key.clone()).or_default() += 1;
        Leaving(key.clone())
    }

    fn all() -> MutexGuard<'static, BTreeMap<Key, usize>> {
        LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no background work is left for a task.
    async fn ended(key: &Key) {
        loop {
            let one_is_done = ONE_IS_DONE.notified();
            if !Leaving::all().contains_key(key) {
                return;
            }
            one_is_done.await;
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut all = Leaving::all();
        if let Some(count) = all.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.0);
            }
        }
        drop(all);
        ONE_IS_DONE.notify_waiters();
    }
}

/// A planned step, as [`AsyncRecorder::run`] passes it to the work.
#[derive(Debug)]
#[non_exhaustive]
pub struct AsyncStep<C: Checkpoint + Send + 'static> {
    /// The text of the step in the plan.
    pub text: String,
    /// The recorder, for decisions and notes.
    pub recorder: AsyncRecorder<C>,
    /// The plan of the resume: at the first step of a run that carries on, else `None`.
    pub resume: Option<Resume>,
}

impl<C: Checkpoint + Send + 'static> fmt::Debug for AsyncRecorder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncRecorder")
            .field("format", &C::FORMAT)
            .finish_non_exhaustive()
    }
}

impl<C: Checkpoint + Send + 'static> Clone for AsyncRecorder<C> {
    fn clone(&self) -> Self {
        AsyncRecorder(Arc::clone(&self.0))
    }
}

impl<C: Checkpoint + Send + 'static> Drop for Handle<C> {
    fn drop(&mut self) {
        self.leaving.get_or_init(|| Leaving::begin(&self.key));
        // Giving the claim back may wait for a lock, so it must not run on an async thread.
        if let (Some(held), Ok(runtime)) = (self.held.take(), Runtime::try_current()) {
            runtime.spawn_blocking(move || drop(held));
        }
    }
}

impl<C: Checkpoint + Send + 'static> From<Recorder<C>> for AsyncRecorder<C> {
    fn from(recorder: Recorder<C>) -> Self {
        let leaving = Arc::default();
        AsyncRecorder(Arc::new(Handle {
            key: recorder.key().clone(),
            held: Some(Arc::new(Mutex::new(Held {
                recorder,
                _leaving: Arc::clone(&leaving),
            }))),
            leaving,
        }))
    }
}

/// Makes a blocking call on a thread where blocking is allowed.
///
/// # Errors
///
/// Those of `work`; [`ErrorKind::Refused`] outside of a tokio runtime, and [`ErrorKind::Io`] if the runtime
/// shuts down before the call is made.
///
/// # Panics
///
/// As `work` does.
async fn unblocked<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    let runtime = Runtime::try_current().map_err(|_| {
        Error::refused(
            "an async call needs a tokio runtime: make it in one, or make the blocking call",
        )
    })?;
    match runtime.spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(cancelled) => {
                let source = std::io::Error::other(cancelled);
                Err(Error::new(ErrorKind::Io).with_source(source))
            }
        },
    }
}

impl<C: Checkpoint + Send + 'static> Checkpoints<C> {
    /// Makes calls of this view from an async program, on a thread where blocking is allowed.
    ///
    /// Dropping the future after its first poll does not cancel the call: it is still completed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use agent_checkpoint::prelude::*;
    /// # async fn load(tasks: Checkpoints<TaskCheckpoint>, key: Key) -> agent_checkpoint::Result<()> {
    /// let loaded = tasks.unblocked(move |tasks| tasks.get(&key)).await?;
    /// # Ok(())
    /// # }
    /// # use agent_checkpoint::Checkpoints;
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `work`; [`ErrorKind::Refused`] outside of a tokio runtime, and [`ErrorKind::Io`] if the runtime
    /// shuts down before the call is made.
    pub async fn unblocked<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Checkpoints<C>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let view = self.clone();
        unblocked(move || work(&view)).await
    }
}

impl<C: Checkpoint + Send + 'static> AsyncRecorder<C> {
    /// Makes one or several calls of the recorder:
    /// `recorder.call(|recorder| recorder.step_started("Test it")).await`.
    ///
    /// # Errors
    ///
    /// Those of `work`; [`ErrorKind::Refused`] outside of a tokio runtime, and [`ErrorKind::Io`] if the runtime
    /// shuts down before the call is made.
    pub async fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Recorder<C>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let Some(held) = self.0.held.clone() else {
            return Err(Error::refused("the recorder is gone"));
        };
        let held = held.lock_owned().await;
        unblocked(move || work(&held.recorder)).await
    }

    /// As [`Recorder::begin`]. Turn the recorder in the result into an `AsyncRecorder` with `From`.
    ///
    /// # Errors
    ///
    /// Those of [`Recorder::begin`].
    pub async fn begin(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        options: impl Into<RecorderOptions>,
        first: &C,
    ) -> Result<Opened<C>> {
        let (of, options, first) = (key.clone(), options.into(), first.clone());
        let begin = move |view: &Checkpoints<C>| Recorder::begin(view, &of, options, &first);
        Self::enter_with(checkpoints, key, begin).await
    }

    /// Runs `enter` once no background work is left for the task. If this future is dropped, its result is
    /// dropped in the background, which counts as background work too.
    async fn enter_with<R: Send + 'static>(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        enter: impl FnOnce(&Checkpoints<C>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        Leaving::ended(key).await;
        let leaving = Leaving::begin(key);
        let entered = checkpoints.unblocked(move |view| Ok((enter(view), leaving)));
        let (entered, _leaving) = entered.await?;
        entered
    }

    /// As [`Recorder::scope`], for async work.
    ///
    /// # Panics
    ///
    /// As `work` does.
    ///
    /// # Errors
    ///
    /// Those of `work`, with the checkpoint that was made of the failure, or why there is none.
    pub async fn scope<T, E: fmt::Display>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Broken<E>> {
        let mut unfinished = Unfinished(Some(self.clone()));
        let mut work = pin!(work);
        // As without the scope, the caller must check state that the work shares with others after a panic.
        let ended = poll_fn(|context| {
            let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
            match polled {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(ended)) => Poll::Ready(Ok(ended)),
                Err(panic) => Poll::Ready(Err(panic)),
            }
        })
        .await;
        unfinished.0 = None;
        match ended {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                let failed = Interruption::Failed(error.to_string());
                let checkpoint = self.interrupted(failed).await.map(Box::new);
                Err(Broken { error, checkpoint })
            }
            Err(panic) => {
                let because = format!("panicked: {}", words_of(panic.as_ref()));
                if let Err(error) = self.interrupted(Interruption::Failed(because)).await {
                    tracing::error!(%error, "no checkpoint could be made of a panic");
                }
                resume_unwind(panic)
            }
        }
    }

    async fn interrupted(&self, interruption: Interruption) -> Result<Recorded> {
        self.call(move |recorder| recorder.interrupted(&interruption))
            .await
    }

    /// As [`Recorder::run`], for async work: `async |step| …`.
    ///
    /// # Panics
    ///
    /// As `work` does.
    ///
    /// # Errors
    ///
    /// Those of [`Recorder::run`].
    pub async fn run<D: Into<Option<StepDone>>, E: fmt::Display, W>(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        options: impl Into<RecorderOptions>,
        first: &C,
        mut work: impl FnMut(AsyncStep<C>) -> W,
    ) -> Result<Ran<C>, RunError<E>>
    where
        W: Future<Output = Result<D, E>>,
    {
        let (of, options, first) = (key.clone(), options.into(), first.clone());
        let enter = move |view: &Checkpoints<C>| Recorder::enter(view, &of, options, &first);
        let (recorder, mut resume) = match Self::enter_with(checkpoints, key, enter).await? {
            Entered::Task(recorder, resume) => (AsyncRecorder::from(*recorder), resume),
            Entered::Over(ran) => return Ok(ran),
        };
        while let Some(text) = recorder.call(Recorder::start_next_step).await? {
            let step = AsyncStep {
                text: text.clone(),
                recorder: recorder.clone(),
                resume: resume.take().map(|resume| *resume),
            };
            let done = recorder.scope(work(step)).await.map_err(RunError::Work)?;
            let done = done.into();
            let end = move |recorder: &Recorder<C>| recorder.end_step(&text, done);
            if !recorder.call(end).await? {
                recorder.leave().await?;
                return Ok(Ran::Stopped);
            }
        }
        let is_partial = recorder.call(Recorder::is_partial).await?;
        recorder.leave().await?;
        Ok(Ran::of_the_end(is_partial))
    }

    /// As [`Recorder::leave`]: gives the claim back, and waits until that is done.
    ///
    /// # Errors
    ///
    /// Those of [`Recorder::leave`].
    pub async fn leave(self) -> Result<()> {
        self.call(Recorder::give_back).await
    }
}

/// Records work as stopped if it is dropped before its end.
struct Unfinished<C: Checkpoint + Send + 'static>(Option<AsyncRecorder<C>>);

impl<C: Checkpoint + Send + 'static> Drop for Unfinished<C> {
    fn drop(&mut self) {
        let Some((recorder, runtime)) = self.0.take().zip(Runtime::try_current().ok()) else {
            return;
        };
        let leaving = Leaving::begin(&recorder.0.key);
        runtime.spawn(async move {
            let stopped = Interruption::Stopped("cancelled before it was done".to_owned());
            if let Err(error) = recorder.interrupted(stopped).await {
                tracing::error!(%error, "no checkpoint could be made of cancelled work");
            }
            // This may also give the claim back, so it comes before the background work counts as done.
            drop(recorder);
            drop(leaving);
        });
    }
}
