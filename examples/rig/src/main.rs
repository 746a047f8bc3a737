//! An agent of the framework [rig](https://docs.rs/rig-agent) dies at each entry and exit of its hook, and another
//! agent continues its task from the prompt.
//!
//! `cargo run` in this folder runs two agents for each entry and exit of the hook: the first one dies there, and the
//! second one gets only the prompt from the checkpoint. Rig's mock model stands in for a real one: it calls the tool
//! for each step that its prompt lists as pending. The exit status is 0 only if every time each step took effect once,
//! no step was called again that the checkpoint listed as done, and the task is complete.

mod hook;
mod tool;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::{AsyncRecorder, Opened, RecorderOptions};
use agent_checkpoint::resume::ResumeOptions;
use agent_checkpoint::store::FileStore;
use agent_checkpoint::{CheckpointStoreExt, Checkpoints, Key, Status};
use rig_agent::AgentBuilder;
use rig_agent::tool::Tool;
use rig_core::test_utils::{MockCompletionModel, MockTurn};

use hook::Checkpointing;
use tool::{Arguments, PerformStep};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const PLAN: [&str; 3] = ["fetch", "transform", "publish"];

/// The heading of the pending steps in the prompts of the format.
const PENDING: &str = "## Pending Steps\n";

/// A number that no boundary has.
const NEVER: usize = usize::MAX;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        // The arguments with which the example starts itself as an agent.
        ["agent", name, root, dies_at] => match dies_at.parse() {
            Ok(dies_at) => agent(name, Path::new(root), dies_at).await,
            Err(error) => Err(error.into()),
        },
        [] => every_boundary(),
        _ => Err("usage: cargo run".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn checkpoints(root: &Path) -> Checkpoints<TaskCheckpoint> {
    FileStore::open(root.join("checkpoints")).checkpoints()
}

fn key() -> Result<Key> {
    Ok(Key::new("import")?)
}

/// Works on the task, from its beginning or from another agent's checkpoint.
async fn agent(name: &str, root: &Path, dies_at: usize) -> Result<()> {
    let tasks = checkpoints(root);
    let first = TaskCheckpoint::begin(name, PLAN, tasks.now());
    let options = RecorderOptions::new(name)
        .resuming_with(ResumeOptions::new(root))
        // The agent before is dead: the process that starts this one has seen it end.
        .taking_over();
    let (recorder, prompt) = match AsyncRecorder::begin(&tasks, &key()?, options, &first).await? {
        Opened::Begun(recorder) => {
            let steps = PLAN.iter().enumerate();
            let steps = steps.map(|(at, step)| format!("{}. {step}\n", at + 1));
            let steps: String = steps.collect();
            (recorder, format!("Import the data.\n\n{PENDING}{steps}"))
        }
        Opened::Found(found) => {
            let prompt = found.resume.prompt()?;
            (found.carry_on()?, prompt)
        }
        Opened::Complete(_) => return Ok(()),
    };
    let recorder = AsyncRecorder::from(recorder);
    let tool = PerformStep {
        agent: name.to_owned(),
        root: root.to_path_buf(),
    };
    let agent = AgentBuilder::new(model_for(&prompt))
        .tool(tool)
        .add_hook(Checkpointing::new(recorder.clone(), dies_at))
        .build();
    agent.prompt(prompt).max_turns(PLAN.len() + 1).run().await?;
    recorder.leave().await?;
    Ok(())
}

/// A model that does the pending steps of its prompt, one in each turn.
fn model_for(prompt: &str) -> MockCompletionModel {
    let pending = prompt.split_once(PENDING).map_or("", |(_, rest)| rest);
    let pending = pending.split("\n\n").next().unwrap_or_default();
    let steps = pending.lines().filter_map(|line| line.split_once(". "));
    let turns = steps.enumerate().map(|(at, (_, step))| {
        let step = step.to_owned();
        let arguments = serde_json::json!(Arguments { step });
        MockTurn::tool_call(format!("call-{at}"), PerformStep::NAME, arguments)
    });
    MockCompletionModel::from_turns(turns.chain([MockTurn::text("All is done.")]))
}

fn every_boundary() -> Result<()> {
    for boundary in 0.. {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        let has_died = !run("one", root, boundary)?;
        let tasks = checkpoints(root);
        let found = tasks.load(&key()?)?;
        let done = found.map_or_else(Vec::new, |found| done(&found.checkpoint));
        if has_died {
            println!(
                "boundary {boundary}: one died with {} of {} steps done",
                done.len(),
                PLAN.len()
            );
            if !run("two", root, NEVER)? {
                return Err("the second agent failed".into());
            }
        }
        verify(root, &done)?;
        if !has_died {
            println!("{boundary} boundaries, and each time the task was carried on");
            return Ok(());
        }
    }
    Ok(())
}

/// Runs an agent; `false` if it died.
fn run(name: &str, root: &Path, dies_at: usize) -> Result<bool> {
    let status = Command::new(std::env::current_exe()?)
        .args(["agent", name])
        .arg(root)
        .arg(dies_at.to_string())
        .status()?;
    match status.code() {
        Some(0) => Ok(true),
        // On systems without signals an aborted process has an exit code.
        code if dies_at != NEVER && code != Some(1) => Ok(false),
        _ => Err(format!("{name}: {status}").into()),
    }
}

fn done(checkpoint: &TaskCheckpoint) -> Vec<String> {
    let steps = checkpoint.completed_steps.iter();
    steps.filter_map(|step| step.step.clone()).collect()
}

fn verify(root: &Path, done_by_one: &[String]) -> Result<()> {
    let resume = checkpoints(root).resume(&key()?, &ResumeOptions::new(root))?;
    if resume.handoff.status != Status::Complete {
        return Err(format!("the task is not complete: {}", resume.plan.message).into());
    }
    let saved = checkpoints(root).get(&key()?)?;
    if done(&saved.checkpoint) != PLAN {
        return Err(format!(
            "these steps are done: {:?}",
            saved.checkpoint.completed_steps
        )
        .into());
    }
    let calls = fs::read_to_string(PerformStep::calls(root))?;
    for step in PLAN {
        if !PerformStep::effect(root, step).exists() {
            return Err(format!("{step} is done, and took no effect").into());
        }
        let again = format!("two\t{step}");
        if done_by_one.iter().any(|done| done == step) && calls.lines().any(|call| call == again) {
            return Err(format!("{step} was done, and was called again").into());
        }
    }
    Ok(())
}
