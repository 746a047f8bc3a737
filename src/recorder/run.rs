//! The usual loop of an agent: begin or carry on, do one step after the other, give the claim back.

use std::error::Error as StdError;
use std::fmt;

use super::{Broken, Found, Opened, Recorder, RecorderOptions};
use crate::checkpoint::StepDone;
use crate::checkpoint::{Checkpoint, ContextLevel, Error, Interruption, Key, Operation, Result};
use crate::checkpoints::Checkpoints;
use crate::resume::Resume;

/// The step that the work of [`Recorder::run`] is called for.
#[derive(Debug)]
pub struct Step<'r, C: Checkpoint> {
    text: &'r str,
    recorder: &'r Recorder<C>,
    resume: Option<&'r Resume>,
}

impl<'r, C: Checkpoint> Step<'r, C> {
    /// The text of the step in the plan.
    #[must_use]
    pub fn text(&self) -> &'r str {
        self.text
    }

    /// The recorder, for decisions and notes. [`Recorder::run`] reports the step as started and as done.
    #[must_use]
    pub fn recorder(&self) -> &'r Recorder<C> {
        self.recorder
    }

    /// The plan of the resume, with the files to check and the prompt: only at the first step of a run that carries on.
    #[must_use]
    pub fn resume(&self) -> Option<&'r Resume> {
        self.resume
    }

    /// Whether an earlier agent had begun the step, so that it may have taken effect, in part or whole.
    #[must_use]
    pub fn may_have_taken_effect(&self) -> bool {
        let begun = self
            .resume
            .iter()
            .flat_map(|resume| &resume.handoff.in_progress);
        begun.into_iter().any(|item| item.text == self.text)
    }
}

/// The end of a [run](Recorder::run).
#[derive(Debug)]
#[must_use]
pub enum Ran<C: Checkpoint> {
    /// No step is left.
    Finished,
    /// Steps are left, or may be: the work stopped, the context is full, or parts of the checkpoint could not be read.
    Stopped,
    /// The caller must decide whether and how to go on. Nothing was changed.
    Left(Box<Found<C>>),
}

impl<C: Checkpoint> Ran<C> {
    /// The end of a run without a further step.
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
    /// The task could not be begun or carried on, or a report was not saved. The failed call changed nothing.
    Record(Error),
    /// The work failed. The failure is in the checkpoint.
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

/// The beginning of a run.
pub(super) enum Entered<C: Checkpoint> {
    /// The owner has the task; with the resume plan, if it carries on.
    Task(Box<Recorder<C>>, Option<Box<Resume>>),
    /// There is nothing to do.
    Over(Ran<C>),
}

impl<C: Checkpoint> Recorder<C> {
    /// Works on a task until no step is left: begins it with its first checkpoint, or carries on from an existing one,
    /// and calls `work` for one step after the other. At the end it gives the claim back.
    ///
    /// Each step is reported as started before `work` is called, and as done with what `work` returns; `Ok(None)` leaves
    /// the step in progress and ends the run. `work` runs in a [scope](Recorder::scope): its error or panic is in the
    /// checkpoint before this call returns it. A run also ends after the step in which the context was
    /// [reached](Recorder::context_used).
    ///
    /// The run carries on by itself if the plan says to continue or to verify, or if its only question is how far the
    /// step in progress came: [`Step::resume`] has what to check. Otherwise, as at a blocker or another agent's claim, it
    /// changes nothing and returns the plan.
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
        let (recorder, mut resume) = match Self::enter(checkpoints, key, options.into(), first)? {
            Entered::Task(recorder, resume) => (recorder, resume),
            Entered::Over(ran) => return Ok(ran),
        };
        while let Some(text) = recorder.start_next_step()? {
            let resume = resume.take();
            let step = || Step {
                text: &text,
                recorder: &recorder,
                resume: resume.as_deref(),
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
            // Agents report a task as complete too early: work may be left.
            Opened::Complete(found) if found.resume.handoff.count_left() == 0 => {
                Entered::Over(Ran::Finished)
            }
            Opened::Found(found) | Opened::Complete(found) => Entered::Over(Ran::Left(found)),
        })
    }

    /// Reports the next step as started; `None` if no step is left.
    pub(super) fn start_next_step(&self) -> Result<Option<String>> {
        let next = self.next_step()?;
        if let Some(text) = &next {
            self.step_started(text)?;
        }
        Ok(next)
    }

    /// Reports a step as done; `false` ends the run.
    pub(super) fn end_step(&self, text: &str, done: Option<StepDone>) -> Result<bool> {
        let is_full = || self.state().level == ContextLevel::Reached;
        match done {
            Some(mut done) => {
                if done.pending().is_none() {
                    done = done.with_pending(text);
                }
                if !self.step_done(&done)?.is_written() {
                    // The next step would be the same one again, forever.
                    let why = "the report of a finished step changed nothing";
                    return Err(Error::refused(why).with_key(&self.key));
                }
                Ok(!is_full())
            }
            None => {
                // A full context already has its checkpoint, and so has a report of why the work stops.
                // Replacing that reason would also end the time that it named.
                let says_why = || -> Result<bool> {
                    let handoff = self.checkpoints.stored_handoff(&self.key)?;
                    Ok(handoff.was_left_in_order())
                };
                if !is_full() && !says_why()? {
                    let stopped = "the work stopped before the step was done";
                    self.interrupted(&Interruption::Stopped(stopped.to_owned()))?;
                }
                Ok(false)
            }
        }
    }

    /// Whether parts of the checkpoint could not be read. They may hold further steps.
    pub(super) fn is_partial(&self) -> Result<bool> {
        Ok(self.checkpoints.get(&self.key)?.is_partial)
    }
}
