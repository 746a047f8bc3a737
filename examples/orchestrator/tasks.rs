//! The tasks and their places on disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::resume::ResumeOptions;
use agent_checkpoint::store::{FileOptions, FileStore};
use agent_checkpoint::{CheckpointStoreExt, Checkpoints, Key};

/// How many tasks there are.
pub(super) const COUNT: usize = 6;

/// Folders of the project.
pub(super) const CHECKPOINTS: &str = "checkpoints";
pub(super) const EFFECTS: &str = "effects";
pub(super) const PROMPTS: &str = "prompts";

/// The steps that workers were told are saved, one per line.
const SAVED: &str = "saved.log";

pub(super) fn key(number: usize) -> agent_checkpoint::Result<Key> {
    Key::new(format!("task-{number}"))
}

/// How long a process waits for a checkpoint that another one is saving.
const PATIENCE: Duration = Duration::from_secs(2);

/// The steps of every task.
pub(super) fn plan() -> [&'static str; 6] {
    ["read", "sketch", "write", "test", "review", "merge"]
}

/// The checkpoints of the project, for the process with this name.
pub(super) fn in_project(root: &Path, name: &str) -> Checkpoints<TaskCheckpoint> {
    let options = FileOptions::default()
        .with_holder(name)
        .with_lock_timeout(PATIENCE);
    FileStore::with_options(root.join(CHECKPOINTS), options).checkpoints()
}

/// How a task is resumed. The orchestrator itself causes the failures, so no number of them says that the task cannot
/// be done.
pub(super) fn resuming(root: &Path) -> ResumeOptions {
    ResumeOptions::new(root).with_most_attempts(usize::MAX)
}

/// The effect of a step: a file, which exists or not, however often the step was tried. A real effect would be a
/// commit, or a request with an idempotency key.
pub(super) fn effect_of(root: &Path, task: &Key, step: &str) -> PathBuf {
    root.join(EFFECTS).join(format!("{task} {step}"))
}

/// The prompt that a worker reads before it begins.
pub(super) fn prompt_of(root: &Path, worker: &str) -> PathBuf {
    root.join(PROMPTS).join(format!("{worker}.md"))
}

/// Records that a worker was told that a step is saved as done.
pub(super) fn note_saved(root: &Path, task: &Key, step: &str) -> io::Result<()> {
    let line = format!("{task}\t{step}\n");
    let mut log = File::options()
        .create(true)
        .append(true)
        .open(root.join(SAVED))?;
    log.write_all(line.as_bytes())
}

/// Whether a worker was told that.
pub(super) fn is_saved(root: &Path, task: &Key, step: &str) -> io::Result<bool> {
    match fs::read_to_string(root.join(SAVED)) {
        Ok(text) => Ok(text.lines().any(|line| line == format!("{task}\t{step}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
