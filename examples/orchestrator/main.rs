//! Several agents work on several tasks. Some are killed or suspended at random, and every task is still finished.
//!
//! `cargo run --example orchestrator` is an orchestrator: it starts a process for each task, a few at a time, watches
//! their checkpoints as a [`Fleet`], and handles their failures:
//!
//! * a worker that **died** is replaced at once; the new one gets the prompt from its predecessor's checkpoint;
//! * a worker that **hangs** becomes stalled in the fleet; its task is given to a new one in the same way. If the old
//!   one continues after all, its next report is refused, and it ends. If it hangs in the middle of a save, it holds
//!   the lock: it is killed when its successor is blocked by that.
//!
//! The orchestrator causes the failures itself: it kills running workers, and suspends some as a debugger does (on
//! Unix), nine in all. The exit status is 0 only if in the end every task is complete, every step took effect, and no
//! step was begun again after a worker was told that it is saved.

// An example prints for a person.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod misfortune;
mod tasks;
mod worker;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use agent_checkpoint::fleet::{Fleet, FleetOptions, Row, Source};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::liveness::Thresholds;
use agent_checkpoint::{Checkpoints, Key, Status};
use chrono::{TimeDelta, Utc};

use misfortune::Misfortune;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How many workers run at the same time.
const AT_ONCE: usize = 3;

/// How often the orchestrator scans the fleet.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// After how long a silence a worker is late, and after how long it is stalled. Real agents take minutes for a step.
const LATE: Duration = Duration::from_millis(1500);
const STALLED: Duration = Duration::from_millis(3000);

fn main() -> ExitCode {
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(begin()),
        Err(error) => failed(&error),
    }
}

async fn begin() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        // The arguments with which the example starts itself as a worker.
        ["worker", name, task, root] => return worker::work(name, task, Path::new(root)).await,
        [] => orchestrate().await,
        _ => Err("usage: orchestrator".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&*error),
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("failed: {error}");
    ExitCode::FAILURE
}

/// A worker's process.
struct Worker {
    name: String,
    process: Child,
    began: Instant,
    /// After how long it is killed or suspended, while there are failures left to cause.
    luck: Duration,
    is_stopped: bool,
}

/// A failed orchestrator leaves no worker behind: a suspended one would stay forever.
impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The orchestrator's own state. The progress of a task is read from its checkpoint.
struct Orchestrator<'r> {
    root: &'r Path,
    tasks: Checkpoints<TaskCheckpoint>,
    /// The workers by their tasks.
    working: BTreeMap<Key, Worker>,
    /// Workers that hang, with their tasks, which other workers have by now.
    replaced: Vec<(Key, Worker)>,
    started: usize,
    misfortune: Misfortune,
}

async fn orchestrate() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut orchestrator = Orchestrator {
        root: folder.path(),
        tasks: tasks::in_project(folder.path(), "orchestrator"),
        working: BTreeMap::new(),
        replaced: Vec::new(),
        started: 0,
        misfortune: Misfortune::default(),
    };
    for folder in [tasks::EFFECTS, tasks::PROMPTS] {
        fs::create_dir_all(orchestrator.root.join(folder))?;
    }
    let thresholds = Thresholds::at(TimeDelta::from_std(LATE)?, TimeDelta::from_std(STALLED)?);
    let watch = FleetOptions::new().with_thresholds_of_all(thresholds);
    let sources = [Source::folder(folder.path().join(tasks::CHECKPOINTS))];
    let mut fleet = Fleet::scan(&sources, &watch, Utc::now());
    loop {
        orchestrator.look_after_workers(&fleet)?;
        if !orchestrator.start_workers().await? && orchestrator.working.is_empty() {
            break;
        }
        orchestrator.misfortune.strike(&mut orchestrator.working)?;
        tokio::time::sleep(LOOK_EVERY).await;
        fleet = fleet.rescan(&sources, Utc::now());
    }
    orchestrator.end_replaced()?;
    orchestrator.verify().await
}

impl Orchestrator<'_> {
    /// Frees the tasks of workers that ended or are silent.
    fn look_after_workers(&mut self, fleet: &Fleet) -> Result<()> {
        let mut free = Vec::new();
        for (task, worker) in &mut self.working {
            let is_of_task = |row: &&Row| row.task.as_deref() == Some(task.as_str());
            let row = fleet.rows().iter().find(is_of_task);
            if let Some(status) = worker.process.try_wait()? {
                match status.code() {
                    Some(0) => println!("{task}: {} is done", worker.name),
                    // It was killed.
                    None => println!("{task}: {} died", worker.name),
                    Some(worker::LOCKED) => {
                        println!("{task}: {} finds the checkpoint locked", worker.name);
                        // Its predecessor hangs in the middle of a save and must be killed.
                        for (_, hanging) in self.replaced.iter_mut().filter(|(of, _)| of == task) {
                            hanging.process.kill()?;
                        }
                    }
                    Some(code) => return Err(format!("{} ended with {code}", worker.name).into()),
                }
                free.push(task.clone());
            } else if worker.began.elapsed() > STALLED
                && row.is_none_or(|row| matches!(row.result(), "stalled" | "finished"))
            {
                println!("{task}: {} hangs", worker.name);
                free.push(task.clone());
            }
        }
        for task in free {
            if let Some(mut worker) = self.working.remove(&task)
                && worker.process.try_wait()?.is_none()
            {
                self.replaced.push((task, worker));
            }
        }
        Ok(())
    }

    /// Starts workers for tasks that have none and are not complete. Returns `false` if there is no such task.
    async fn start_workers(&mut self) -> Result<bool> {
        let mut is_work_left = false;
        for number in 1..=tasks::COUNT {
            let task = tasks::key(number)?;
            if self.working.contains_key(&task) {
                continue;
            }
            // Only the checkpoint is left of the worker before. This one call reads it and decides how to continue.
            let (key, options) = (task.clone(), tasks::resuming(self.root));
            let tasks = &self.tasks;
            let found = tasks.unblocked(move |tasks| tasks.load(&key)).await?;
            let prompt = match found {
                None => format!("Do {task}: {}", tasks::plan().join(", ")),
                Some(_) => {
                    let key = task.clone();
                    let resume = tasks
                        .unblocked(move |tasks| tasks.resume(&key, &options))
                        .await?;
                    if resume.handoff.status == Status::Complete {
                        continue;
                    }
                    resume.prompt()?
                }
            };
            is_work_left = true;
            if self.working.len() < AT_ONCE {
                self.start(task, &prompt)?;
            }
        }
        Ok(is_work_left)
    }

    fn start(&mut self, task: Key, prompt: &str) -> Result<()> {
        self.started += 1;
        let name = format!("worker-{}", self.started);
        fs::write(tasks::prompt_of(self.root, &name), prompt)?;
        let process = Command::new(std::env::current_exe()?)
            .args(["worker", &name, task.as_str()])
            .arg(self.root)
            .spawn()?;
        println!("{task}: {name} begins");
        let worker = Worker {
            name,
            process,
            began: Instant::now(),
            luck: misfortune::luck(),
            is_stopped: false,
        };
        self.working.insert(task, worker);
        Ok(())
    }

    /// Lets the replaced workers continue. Each holds an old fence, so its reports are refused.
    fn end_replaced(&mut self) -> Result<()> {
        for (task, mut worker) in self.replaced.drain(..) {
            misfortune::signal("CONT", &worker.process)?;
            let status = worker.process.wait()?;
            match status.code() {
                Some(worker::TAKEN_OVER) => println!("{task}: {} is refused", worker.name),
                // It found its task complete, or held the lock.
                Some(0) | None => {}
                Some(_) => return Err(format!("{} ended with {status}", worker.name).into()),
            }
        }
        Ok(())
    }

    async fn verify(&self) -> Result<()> {
        for number in 1..=tasks::COUNT {
            let task = tasks::key(number)?;
            let key = task.clone();
            let found = self.tasks.unblocked(move |tasks| tasks.get(&key)).await?;
            let done = found.checkpoint.completed_steps.iter();
            let done: Vec<&str> = done.filter_map(|step| step.step.as_deref()).collect();
            if done != tasks::plan() {
                return Err(format!("{task}: these steps are done: {done:?}").into());
            }
            for step in tasks::plan() {
                if !tasks::effect_of(self.root, &task, step).exists() {
                    return Err(format!("{task}: {step} is done, and took no effect").into());
                }
            }
        }
        let Misfortune { killed, stopped } = self.misfortune;
        println!(
            "\n{} tasks complete, by {} workers: {killed} killed, {stopped} stopped; no finished step was begun again",
            tasks::COUNT,
            self.started
        );
        match self.misfortune.is_over() {
            true => Ok(()),
            false => Err("too few workers were killed or stopped, so this shows nothing".into()),
        }
    }
}
