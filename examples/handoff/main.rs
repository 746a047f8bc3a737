//! One agent is killed in the middle of a step; another finishes its task from the checkpoint.
//!
//! `cargo run --example handoff` plays four parts, each in its own process:
//!
//! * the **orchestrator** (this file) starts agents, judges the checkpoint of a dead one, and starts its successor;
//! * **agent-one** works through a plan until the orchestrator kills it;
//! * **agent-two** continues from the checkpoint, until its context is full;
//! * **agent-three** does the rest.
//!
//! With `-- --in-the-window` agent-one dies by itself at the worst moment: after a step took effect and before the
//! checkpoint says so. `agent.rs` shows how that is handled.
//!
//! The exit status is 0 only if every step took effect exactly once and no finished step was begun
//! again.

// An example prints for a person.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod effects;
mod project;
mod screen;

use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::resume::{Resume, ResumeOptions};
use agent_checkpoint::staleness::Staleness;
use agent_checkpoint::store::FileStore;
use agent_checkpoint::{CheckpointStoreExt, Checkpoints, Status};

use effects::Effects;
use screen::{bold, dim, green, red, yellow};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        // The arguments with which the example starts itself as an agent.
        ["agent", name, root] => agent::work(name, Path::new(root), false),
        ["agent", name, root, agent::IN_THE_WINDOW] => agent::work(name, Path::new(root), true),
        [] => orchestrate(false),
        [agent::IN_THE_WINDOW] => orchestrate(true),
        _ => Err(format!("usage: handoff [{}]", agent::IN_THE_WINDOW).into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{} {error}", red("failed:"));
            ExitCode::FAILURE
        }
    }
}

fn orchestrate(in_the_window: bool) -> Result<()> {
    let begun = Instant::now();
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    let store = FileStore::open(root.join(project::CHECKPOINTS));
    let tasks = store.checkpoints::<TaskCheckpoint>();
    let key = project::key()?;

    println!("{}", bold("1  agent-one works through its plan"));
    let first = start_agent("agent-one", root, in_the_window)?;
    if in_the_window {
        let status = first.wait_for_end()?;
        println!("   {} ({status})", red("✗ died"));
        println!("     after the step took effect, before the checkpoint could say so");
    } else {
        let status = first.kill_when(|| is_ahead_of_its_checkpoint(&tasks, root))?;
        println!("   {} ({status})", red("✗ killed"));
        println!("     in the middle of that step, with work on disk that no checkpoint tells of");
    }

    // All that is known now is on disk. This one call reads the checkpoint, compares the files that it names with it,
    // and decides whether and how another agent can continue.
    println!("\n{}", bold("2  What it left behind"));
    // Its agent is known to be dead, so its claim is ignored.
    let options = ResumeOptions::new(root)
        .with_description(project::DESCRIPTION)
        .ignoring_claims();
    let resume = tasks.resume(&key, &options)?;
    show_verdict(&resume, store.path(&key)?.as_path())?;
    show_prompt(&resume)?;
    if !resume.violations.is_empty() || !matches!(resume.staleness, Staleness::Stale(_)) {
        return Err("the checkpoint is not what a dead agent leaves".into());
    }
    let finished_before: Vec<String> = resume
        .handoff
        .done
        .iter()
        .map(|step| step.text.clone())
        .collect();

    println!("\n{}", bold("3  agent-two carries on"));
    run("agent-two", root)?;
    let mut workers = vec!["agent-one"];
    let mut part = 4;
    let mut resume = tasks.resume(&key, &options)?;
    if resume.handoff.status != Status::Complete {
        // Its context was full: it saved a last checkpoint and ended. A new session has an empty context.
        workers.push("agent-two");
        part = 5;
        println!(
            "\n{}",
            bold("4  agent-three, with a fresh context, does the rest")
        );
        run("agent-three", root)?;
        resume = tasks.resume(&key, &options)?;
    }

    println!("\n{}", bold(&format!("{part}  What was done, counted")));
    let finished = tasks.get(&key)?;
    let handoff_is_recorded = finished.checkpoint.metadata.previous_agents == workers;
    if !handoff_is_recorded || !finished.violations.is_empty() {
        return Err("the checkpoint does not say who worked on the task".into());
    }
    if resume.handoff.status != Status::Complete {
        return Err("the task is not complete".into());
    }
    count(&Effects::of(root), &finished_before)?;
    let seconds = begun.elapsed().as_secs_f32();
    println!("   {}", dim(&format!("{seconds:.1} s in all")));
    Ok(())
}

/// Runs an agent to its end.
fn run(name: &str, root: &Path) -> Result<()> {
    let status = start_agent(name, root, false)?.wait_for_end()?;
    if !status.success() {
        return Err(format!("{name}: {status}").into());
    }
    Ok(())
}

/// Whether an agent is in its third step and has written more than its last checkpoint says.
///
/// The orchestrator sees only the disk, as with an agent on another machine. It uses the same verdict on the files as
/// after the kill.
fn is_ahead_of_its_checkpoint(tasks: &Checkpoints<TaskCheckpoint>, root: &Path) -> Result<bool> {
    let key = project::key()?;
    let Some(loaded) = tasks.load(&key)? else {
        return Ok(false);
    };
    let task = loaded.checkpoint;
    let has_note = task
        .current_step
        .is_some_and(|step| step.partial_work.is_some());
    Ok(task.completed_steps.len() == 2
        && has_note
        && matches!(tasks.stale(&key, root)?, Staleness::Stale(_)))
}

/// A running agent. If the orchestrator fails, its agent is killed.
struct Agent(Child);

fn start_agent(name: &str, root: &Path, in_the_window: bool) -> Result<Agent> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["agent", name]).arg(root);
    if in_the_window {
        command.arg(agent::IN_THE_WINDOW);
    }
    Ok(Agent(command.spawn()?))
}

impl Agent {
    fn wait_for_end(mut self) -> Result<std::process::ExitStatus> {
        Ok(self.0.wait()?)
    }

    /// Kills the agent as soon as `moment` returns `true`, with SIGKILL, which no process can catch.
    fn kill_when(
        mut self,
        mut moment: impl FnMut() -> Result<bool>,
    ) -> Result<std::process::ExitStatus> {
        while !moment()? {
            if let Some(status) = self.0.try_wait()? {
                return Err(format!("agent-one ended before it could be killed: {status}").into());
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        self.0.kill()?;
        Ok(self.0.wait()?)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // After the process has ended this does nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn show_verdict(resume: &Resume, file: &Path) -> Result<()> {
    let bytes = std::fs::metadata(file)?.len();
    let violations = match resume.violations.len() {
        0 => green("no violations"),
        some => red(&format!("{some} violations")),
    };
    println!("   checkpoint  whole, {bytes} bytes, {violations}");
    println!("   files       {}", yellow(resume.staleness.as_str()));
    for file in resume.staleness.changed() {
        println!("               {}: {}", file.path, file.state.as_str());
    }
    println!("   so          {}", yellow(resume.plan.decision.as_str()));
    Ok(())
}

/// Prints the prompt for the next agent, without its empty sections.
fn show_prompt(resume: &Resume) -> Result<()> {
    println!("\n   The prompt for the next agent, in part:\n");
    let prompt = resume.prompt()?;
    let left_out = [
        "Task Description",
        "Current Phase",
        "Verification Criteria",
        "Instructions",
    ];
    let mut shown = true;
    for line in prompt.trim_end().lines() {
        if let Some(title) = line.strip_prefix("## ") {
            shown = !left_out.contains(&title);
        }
        if shown {
            println!("   {} {line}", dim("│"));
        }
    }
    Ok(())
}

/// Counts the effects of every step. It is an error if a step took effect twice or never, or if a finished step was
/// begun again.
fn count(effects: &Effects, finished_before: &[String]) -> Result<()> {
    println!("   {:<32} begun  took effect", "");
    let mut wrong = Vec::new();
    for step in project::PLAN {
        let begun = effects.begun(step.name)?;
        let done = effects.done(step.name)?;
        let agents = done.join(", ");
        println!(
            "   {:<32} {:>3}×  {:>3}×  {}",
            step.name,
            begun.len(),
            done.len(),
            dim(&agents)
        );
        let was_finished = finished_before.iter().any(|name| name == step.name);
        if done.len() != 1 || (was_finished && begun.len() != 1) {
            wrong.push(step.name);
        }
    }
    if finished_before.is_empty() {
        return Err("agent-one finished no step, so this shows nothing".into());
    }
    if !wrong.is_empty() {
        return Err(format!("did not run exactly once: {}", wrong.join(", ")).into());
    }
    let kept = finished_before.len();
    println!(
        "\n   {}",
        green(&format!(
            "✓ all {} steps took effect exactly once",
            project::PLAN.len()
        ))
    );
    println!(
        "   {}",
        green(&format!("✓ none of the {kept} finished steps ran twice"))
    );
    println!();
    println!(
        "   The library promises: what a checkpoint says is done stays done, and the step that was"
    );
    println!(
        "   interrupted is known. Between a step's effect and the save of its checkpoint no library can"
    );
    println!(
        "   stand: there the agent looks whether the effect is already there (agent.rs shows how)."
    );
    Ok(())
}
