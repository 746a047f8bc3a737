//! What an agent does: the same code begins a task and carries one on.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use agent_checkpoint::formats::task::{StepDone, TaskCheckpoint};
use agent_checkpoint::{
    Begun, Checkpoint, CheckpointStoreExt, Checkpoints, FileOptions, FileStore, Key, Precision,
};

use super::Result;
use super::effects::Effects;
use super::project::{self, Step};
use super::screen::{dim, green, yellow};

/// Lets the agent die after its third step took effect, before the checkpoint says so.
pub(super) const IN_THE_WINDOW: &str = "--in-the-window";

/// How long the model behind a real agent takes for a line.
const PER_LINE: Duration = Duration::from_millis(25);

struct Agent<'s> {
    name: &'s str,
    root: &'s Path,
    tasks: Checkpoints<'s, TaskCheckpoint>,
    key: Key,
    effects: Effects,
    dies_in_the_window: bool,
}

/// Works on the task until nothing is left of it.
pub(super) fn work(name: &str, root: &Path, dies_in_the_window: bool) -> Result<()> {
    // Whoever has to wait for this agent's lock is told its name.
    let options = FileOptions::default().with_holder(name);
    let store = FileStore::with_options(root.join(project::CHECKPOINTS), options);
    let agent = Agent {
        name,
        root,
        tasks: store.checkpoints(),
        key: project::key()?,
        effects: Effects::of(root),
        dies_in_the_window,
    };
    agent.begin_or_resume()?;
    loop {
        // Decided from the checkpoint, never from memory: so it makes no difference who did the
        // steps before.
        let task = agent.tasks.get(&agent.key)?.checkpoint;
        let Some(next) = task.handoff().start_at().map(str::to_owned) else {
            return Ok(());
        };
        agent.step(project::step(&next)?)?;
    }
}

impl Agent<'_> {
    fn begin_or_resume(&self) -> Result<()> {
        let plan = project::PLAN.iter().map(|step| step.name);
        // Files that were written in the same unit of time as a checkpoint cannot be told from changed
        // ones, and this agent is quick: whole seconds, which are usual, would be too coarse for it.
        let task = TaskCheckpoint::begin(self.name, plan, self.tasks.now())
            .with_precision(Precision::MILLISECONDS);
        match self.tasks.begin(&self.key, &task)? {
            Begun::Created(_) => {}
            // Another agent began it and is gone: from here on this one has it.
            _ => {
                self.tasks
                    .update(&self.key, |task| task.take_over(self.name))?;
            }
        }
        Ok(())
    }

    fn step(&self, step: &Step) -> Result<()> {
        let now = self.tasks.now();
        self.tasks.update(&self.key, |task| {
            // Nothing is written when it is already the current step: then this agent goes on with
            // what another began.
            task.start_step(step.name, now);
            if let Some((decision, rationale)) = step.decides {
                task.decide(decision, Some(rationale.to_owned()), now);
            }
        })?;

        // The step that is in progress may have taken effect although the checkpoint does not say so:
        // its agent can have died between the two. Only the agent can know how to find out; here
        // a log tells, elsewhere a commit, a ticket or an idempotency key.
        if self.effects.done(step.name)?.is_empty() {
            self.effects.note_begun(step.name, self.name)?;
            self.write(step)?;
            self.effects.note_done(step.name, self.name)?;
            if self.dies_in_the_window && step.name == project::PLAN[2].name {
                std::process::abort();
            }
        } else {
            say(
                step,
                &yellow("had taken effect; only its checkpoint was missing"),
            );
        }

        let now = self.tasks.now();
        let done = if step.creates {
            StepDone::current().creating(step.file)
        } else {
            StepDone::current().modifying(step.file)
        };
        self.tasks
            .try_update(&self.key, |task| task.finish_step(&done, now))?;
        println!("   {} {}", green("✓"), step.name);
        Ok(())
    }

    /// Writes the step's lines as a model gives them. Half-way through a long step it notes how far it
    /// is: that is all a next agent will know of it.
    fn write(&self, step: &Step) -> Result<()> {
        let mut file = self.open_without_leftovers(step)?;
        writeln!(file, "{}", step.marker())?;
        let half = step.lines.len() / 2;
        for (at, line) in step.lines.iter().enumerate() {
            std::thread::sleep(PER_LINE);
            writeln!(file, "{line}")?;
            if step.is_long() && at + 1 == half {
                let note = format!(
                    "wrote {half} of {} lines to {}",
                    step.lines.len(),
                    step.file
                );
                say(step, &dim(&note));
                self.tasks
                    .try_update(&self.key, |task| task.note_progress(note.as_str()))?;
            }
        }
        // On disk before anything says that it is done.
        file.sync_all()?;
        Ok(())
    }

    /// Opens the step's file at its end, after removing what an interrupted try of this same step
    /// left in it: so the step can be done again from its start.
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
