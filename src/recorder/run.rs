//! The usual loop of an agent: begin or carry on, do one step after the other, give the task back.

use std::error::Error as StdError;
use std::fmt;

use super::{Broken, Found, Opened, Recorder, RecorderOptions};
use crate::checkpoint::StepDone;
use crate::checkpoint::{Checkpoint, ContextLevel, Error, Interruption, Key, Operation, Result};
use crate::checkpoints::Checkpoints;
use crate::resume::Resume;

/// A step of the plan that is to be done, as [`Recorder::run`] hands it to the work.
#[derive(Debug)]
pub struct Step<'r, C: Checkpoint> {
    text: &'r str,
    recorder: &'r Recorder<C>,
    found: Option<&'r Resume>,
}

impl<'r, C: Checkpoint> Step<'r, C> {
    /// What is to be done, as the plan has it.
    #[must_use]
    pub fn text(&self) -> &'r str {
        self.text
    }

    /// The recorder, for decisions and notes. The step is reported as started, and [`Recorder::run`] reports it as done.
    #[must_use]
    pub fn recorder(&self) -> &'r Recorder<C> {
        self.recorder
    }

    /// What was found of the agent before, with the files to check and the prompt: at the first step of a run that
    /// carries on, else `None`.
    #[must_use]
    pub fn found(&self) -> Option<&'r Resume> {
        self.found
    }

    /// Whether an agent had begun the step before: it may have taken effect, in part or whole.
    #[must_use]
    pub fn may_have_taken_effect(&self) -> bool {
        let begun = self
            .found
            .iter()
            .flat_map(|found| &found.handoff.in_progress);
        begun.into_iter().any(|item| item.text == self.text)
    }
}

/// How a [run](Recorder::run) ended.
#[derive(Debug)]
#[must_use]
pub enum Ran<C: Checkpoint> {
    /// No step is left.
    Finished,
    /// Steps are left, or may be: the work stopped, the context is full, or parts of the checkpoint could not be read.
    Stopped,
    /// The plan leaves it to somebody else whether and how to go on. Nothing was touched.
    Left(Box<Found<C>>),
}

impl<C: Checkpoint> Ran<C> {
    /// How a run ends that found no further step.
    pub(super) fn of_the_end(is_partial: bool) -> Self {
        match is_partial {
            true => Ran::Stopped,
            false => Ran::Finished,
        }
    }
}

/// Why a [run](Recorder::run) failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError<E> {
    /// The task could not be begun or carried on, or a report was not saved. The checkpoint is as it was before that.
    Record(Error),
    /// The work failed; a checkpoint was made of it first.
    Work(Broken<E>),
}

impl<E> RunError<E> {
    /// Whether another owner has the task.
    #[must_use]
    pub fn is_taken_over(&self) -> bool {
        match self {
            RunError::Record(error) => error.is_taken_over(),
            RunError::Work(broken) => broken.is_taken_over(),
        }
    }
}

impl<E> From<Error> for RunError<E> {
    fn from(error: Error) -> Self {
        RunError::Record(error)
    }
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Record(error) => error.fmt(f),
            RunError::Work(broken) => broken.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> StdError for RunError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            RunError::Record(error) => error.source(),
            RunError::Work(_) => None,
        }
    }
}

/// What a run begins with.
pub(super) enum Entered<C: Checkpoint> {
    /// The task is the owner's; of one that was carried on, what was found.
    Task(Box<Recorder<C>>, Option<Box<Resume>>),
    /// There is nothing to do.
    Over(Ran<C>),
}

impl<C: Checkpoint> Recorder<C> {
    /// Works on a task until no step is left: begins it with its first checkpoint, or carries on from the one that is
    /// there, and has `work` do one step after the other. In the end the claim is given back.
    ///
    /// Each step is reported as started before `work` is called, and as done with what `work` returns; `Ok(None)` leaves
    /// the step in progress and ends the run. `work` runs in a [scope](Recorder::scope): its error or panic is in the
    /// checkpoint before it goes on. A run also ends after the step in which the context was
    /// [reached](Recorder::context_used).
    ///
    /// It carries on by itself where the plan says to continue or to verify, and where the only question is how far the
    /// step came that was in progress: [`Step::found`] has what to look at. At everything else, as a blocker or another
    /// agent's claim, it touches nothing and returns the plan.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::StepDone;
    /// use agent_checkpoint::formats::task::TaskCheckpoint;
    /// use agent_checkpoint::recorder::{Ran, Recorder};
    /// use agent_checkpoint::store::MemoryStore;
    /// use agent_checkpoint::{CheckpointStoreExt, Key};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tasks = MemoryStore::new().checkpoints::<TaskCheckpoint>();
    /// let first = TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], tasks.now());
    /// let mut done = Vec::new();
    /// let ran = Recorder::run(&tasks, &Key::new("US-003")?, "ui-dev", &first, |step| {
    ///     done.push(step.text().to_owned());
    ///     Ok::<_, std::io::Error>(StepDone::current())
    /// })?;
    /// assert!(matches!(ran, Ran::Finished));
    /// assert_eq!(done, ["Wire toggle", "Test it"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// As `work` does.
    ///
    /// # Errors
    ///
    /// [`RunError::Work`] with the error of `work`; [`RunError::Record`] with those of [`begin`](Recorder::begin), of
    /// [`Found::carry_on`] and of every call, and [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a format
    /// whose plan is not made of steps.
    pub fn run<D: Into<Option<StepDone>>, E: fmt::Display>(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        options: impl Into<RecorderOptions>,
        first: &C,
        mut work: impl FnMut(Step<'_, C>) -> Result<D, E>,
    ) -> Result<Ran<C>, RunError<E>> {
        let (recorder, mut found) = match Self::enter(checkpoints, key, options.into(), first)? {
            Entered::Task(recorder, found) => (recorder, found),
            Entered::Over(ran) => return Ok(ran),
        };
        while let Some(text) = recorder.start_next_step()? {
            let found = found.take();
            let step = || Step {
                text: &text,
                recorder: &recorder,
                found: found.as_deref(),
            };
            let done = recorder.scope(|_| work(step()));
            let done = done.map_err(RunError::Work)?.into();
            if !recorder.end_step(&text, done)? {
                recorder.leave()?;
                return Ok(Ran::Stopped);
            }
        }
        let is_partial = recorder.is_partial()?;
        recorder.leave()?;
        Ok(Ran::of_the_end(is_partial))
    }

    pub(super) fn enter(
        checkpoints: &Checkpoints<C>,
        key: &Key,
        options: RecorderOptions,
        first: &C,
    ) -> Result<Entered<C>> {
        let start = Operation::StepStart {
            text: String::new(),
        };
        if !C::OPERATIONS.contains(&start.name()) {
            return Err(Error::unsupported(&start, C::OPERATIONS).with_key(key));
        }
        Ok(match Recorder::begin(checkpoints, key, options, first)? {
            Opened::Begun(recorder) => Entered::Task(Box::new(recorder), None),
            Opened::Found(found) if found.resume.is_for_the_agent_alone() => {
                let resume = Box::new(found.resume.clone());
                Entered::Task(Box::new(found.carry_on()?), Some(resume))
            }
            // Agents call their work complete too early.
            Opened::Complete(found) if found.resume.handoff.count_left() == 0 => {
                Entered::Over(Ran::Finished)
            }
            Opened::Found(found) | Opened::Complete(found) => Entered::Over(Ran::Left(found)),
        })
    }

    /// Reports the next step as started; `None` where none is left.
    pub(super) fn start_next_step(&self) -> Result<Option<String>> {
        let next = self.next_step()?;
        if let Some(text) = &next {
            self.step_started(text)?;
        }
        Ok(next)
    }

    /// Reports a step as done; `false` where the run ends.
    pub(super) fn end_step(&self, text: &str, done: Option<StepDone>) -> Result<bool> {
        let is_full = || self.state().level == ContextLevel::Reached;
        match done {
            Some(mut done) => {
                if done.pending().is_none() {
                    done = done.with_pending(text);
                }
                if !self.step_done(&done)?.is_written() {
                    // Its next step would be the same for ever.
                    let why = "the report of a finished step changed nothing";
                    return Err(Error::refused(why).with_key(&self.key));
                }
                Ok(!is_full())
            }
            None => {
                // A full context has made its checkpoint.
                if !is_full() {
                    let stopped = "the work stopped before the step was done";
                    self.interrupted(&Interruption::Stopped(stopped.to_owned()))?;
                }
                Ok(false)
            }
        }
    }

    /// Whether parts of the checkpoint could not be read, so that steps may be left that nobody sees.
    pub(super) fn is_partial(&self) -> Result<bool> {
        Ok(self.checkpoints.get(&self.key)?.is_partial)
    }
}
