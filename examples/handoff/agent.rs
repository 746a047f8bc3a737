//! An agent. The same code begins a task and continues one.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::ledger::{Effect, EffectDecision, EffectRecord, Settlement};
use agent_checkpoint::recorder::{ContextAdvice, Ran, Recorder, RecorderOptions};
use agent_checkpoint::resume::ResumeOptions;
use agent_checkpoint::store::{FileOptions, FileStore};
use agent_checkpoint::{CheckpointStoreExt, ContextLevel, ContextUse, Precision};

use super::Result;
use super::effects::Effects;
use super::project::{self, Step};
use super::screen::{dim, green, yellow};

/// Makes the agent die after its third step took effect, before the checkpoint says so.
pub(super) const IN_THE_WINDOW: &str = "--in-the-window";

/// How long the model behind a real agent takes for a line.
const PER_LINE: Duration = Duration::from_millis(100);

/// How many messages the context of an agent holds. The begin of a step, each line, and its end are one message each.
const MOST_MESSAGES: u64 = 40;

struct Agent<'s> {
    name: &'s str,
    root: &'s Path,
    recorder: &'s Recorder<TaskCheckpoint>,
    effects: Effects,
    dies_in_the_window: bool,
}

/// The memory of an agent. Only the agent knows how full its context is.
struct Context {
    messages: u64,
}

/// Works on the task until it is complete or the context is full.
pub(super) fn work(name: &str, root: &Path, dies_in_the_window: bool) -> Result<()> {
    // A process that waits for this agent's lock sees its name.
    let options = FileOptions::default().with_holder(name);
    let store = FileStore::with_options(root.join(project::CHECKPOINTS), options);
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let plan = project::PLAN.iter().map(|step| step.name);
    // Stamps in milliseconds: a file that was written in the same unit of time as a checkpoint cannot be told from a
    // changed one, and this agent is too quick for whole seconds.
    let first =
        TaskCheckpoint::begin(name, plan, tasks.now()).with_precision(Precision::MILLISECONDS);
    let options = RecorderOptions::new(name)
        .resuming_with(ResumeOptions::new(root))
        // The orchestrator starts one agent after another, so the earlier process is gone.
        .taking_over();
    let mut context = Context { messages: 0 };
    // Begins the task, or continues after another agent. The next step is decided from the checkpoint, never from
    // memory, so it does not matter who did the earlier steps. If a step fails or panics, the checkpoint says so before
    // the process ends.
    let ran = Recorder::run(&tasks, &project::key()?, options, &first, |step| {
        let agent = Agent {
            name,
            root,
            recorder: step.recorder(),
            effects: Effects::of(root),
            dies_in_the_window,
        };
        agent.step(project::step(step.text())?, &mut context)
    })?;
    match ran {
        Ran::Finished | Ran::Stopped => Ok(()),
        Ran::Left(found) => {
            let plan = found.resume.plan;
            Err([vec![plan.message], plan.questions]
                .concat()
                .join(". ")
                .into())
        }
    }
}

impl Agent<'_> {
    /// Does a step; `None` if the context was full before it was done.
    fn step(&self, step: &Step, context: &mut Context) -> Result<Option<StepDone>> {
        if let Some((decision, rationale)) = step.decides {
            self.recorder.decide(decision, Some(rationale))?;
        }
        context.messages += 1;

        // A step may have taken effect without a record: its agent can have died in between. The ledger lets it be done
        // only once. If it is in doubt, the check finds out: here from a log, elsewhere from a commit, a ticket or an
        // idempotency key.
        let effect = Effect::with_id(step.name)?.with_check("look for the step in effects.log");
        let check = |_: &EffectRecord| {
            let is_done = !self.effects.done(step.name).ok()?.is_empty();
            let settlement = if is_done {
                Settlement::done(step.file).ok()?
            } else {
                Settlement::NotDone
            };
            let found = if is_done { "was done" } else { "was not done" };
            say(
                step,
                &yellow(&format!("in doubt; effects.log says that it {found}")),
            );
            Some(settlement)
        };
        match self.recorder.effect_or_check(&effect, check)? {
            EffectDecision::Do(mut guard) => {
                self.effects.note_begun(step.name, self.name)?;
                if !self.write(step, context)? {
                    guard.not_done()?;
                    return Ok(None);
                }
                self.effects.note_done(step.name, self.name)?;
                if self.dies_in_the_window && step.name == project::PLAN[2].name {
                    std::process::abort();
                }
                guard.done(step.file)?;
            }
            EffectDecision::AlreadyDone(_) => say(step, &green("is not done again")),
            other => return Err(format!("{}: {other:?}", step.name).into()),
        }

        context.messages += 1;
        println!("   {} {}", green("✓"), step.name);
        Ok(Some(if step.creates {
            StepDone::current().with_created(step.file)
        } else {
            StepDone::current().with_modified(step.file)
        }))
    }

    /// Writes the step's lines at the pace of a model. Half-way through a long step it notes its progress, which is all
    /// that the next agent will know of it.
    fn write(&self, step: &Step, context: &mut Context) -> Result<bool> {
        let mut file = self.open_without_leftovers(step)?;
        writeln!(file, "{}", step.marker())?;
        let half = step.lines.len() / 2;
        for (at, line) in step.lines.iter().enumerate() {
            std::thread::sleep(PER_LINE);
            writeln!(file, "{line}")?;
            context.messages += 1;
            if step.is_long() && at + 1 == half {
                self.note(step, at + 1)?;
            }
            if self.is_full(step, at + 1, context)? {
                return Ok(false);
            }
        }
        // On disk before the checkpoint says that it is done.
        file.sync_all()?;
        Ok(true)
    }

    /// Acts on a filling context: a checkpoint at 75 %, the last one at 90 %.
    fn is_full(&self, step: &Step, lines: usize, context: &Context) -> Result<bool> {
        // The dying agents of this example end before their contexts are full.
        if self.dies_in_the_window {
            return Ok(false);
        }
        let used = ContextUse::of(context.messages, MOST_MESSAGES).unwrap_or(ContextUse::NONE);
        // The note must be saved before the last checkpoint is made.
        if used.level() == ContextLevel::Reached {
            self.note(step, lines)?;
        }
        let advice = self.recorder.context_used(used.fraction())?;
        if let Some(message) = advice.message() {
            say(step, &yellow(message));
        }
        Ok(matches!(advice, ContextAdvice::Stop(_)))
    }

    fn note(&self, step: &Step, lines: usize) -> Result<()> {
        let note = format!(
            "wrote {lines} of {} lines to {}",
            step.lines.len(),
            step.file
        );
        say(step, &dim(&note));
        self.recorder.note_partial(&note)?;
        Ok(())
    }

    /// Opens the step's file at its end, after removing the lines of an interrupted try of this step, so that the step
    /// can be done again from its start.
    fn open_without_leftovers(&self, step: &Step) -> Result<File> {
        let path = self.root.join(step.file);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let text = fs::read_to_string(&path)?;
        if let Some(at) = text.find(&step.marker()) {
            let lines = text[at..].lines().count();
            say(
                step,
                &yellow(&format!(
                    "removed {lines} half-done lines from {}",
                    step.file
                )),
            );
            file.set_len(u64::try_from(at)?)?;
        }
        Ok(file)
    }
}

fn say(step: &Step, what: &str) {
    println!("   … {:<32} {what}", step.name);
}
