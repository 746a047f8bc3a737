//! The command that proves work, and one run of it.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use chrono::{DateTime, Utc};

use super::line::Line;
use super::proof::{EndedProof, OutputBuffer, OutputTail, ProofEnd, ProofRecord};
use super::record::Entries;
use super::{Forwarding, Ledger, TRIES};
use crate::checkpoint::{Error, Handoff, Operation, Result};
use crate::shown::{quoted, quoted_all};
use crate::staleness::{Covered, Tracking};

/// The most names that an error lists.
const MOST_LISTED: usize = 20;

/// A command that shows that work is done, and the files whose change outdates it.
///
/// It runs in the project's folder without a shell. Exit code 0 means that the work is done.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::ledger::Proof;
///
/// let tests = Proof::new(["cargo", "test"]).with_inputs(["src", "Cargo.toml"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Proof {
    pub(super) command: Vec<String>,
    pub(super) inputs: Vec<String>,
}

impl Proof {
    /// The proof by this program with these arguments. It covers the files that the checkpoint names, as they are when
    /// the proof begins.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Proof {
        Proof {
            command: command.into_iter().map(Into::into).collect(),
            inputs: Vec::new(),
        }
    }

    /// Covers these instead: files, and folders with all source files below them, as paths from the project's folder.
    pub fn with_inputs(mut self, inputs: impl IntoIterator<Item = impl Into<String>>) -> Proof {
        self.inputs = inputs.into_iter().map(Into::into).collect();
        self
    }

    /// The program and its arguments.
    #[must_use]
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// The inputs that it covers, if named.
    #[must_use]
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Runs the command, with `run`, as a proof of this work. `named` are the files that the checkpoint names, and
    /// `earlier` the recorded proofs.
    pub(crate) fn run(
        &self,
        of: &[String],
        (named, earlier): (&[String], &[ProofRecord]),
        tracking: &Tracking,
        began: DateTime<Utc>,
        run: &mut ProofRunner<'_>,
    ) -> Result<EndedProof> {
        let command = self.in_folder(&tracking.root)?;
        // Before the run: the command may not have seen a file that changes meanwhile.
        let known: Vec<&Covered> = earlier.iter().rev().map(ProofRecord::covered).collect();
        let covered = match self.inputs.as_slice() {
            [] => Covered::of_files(named.iter().map(String::as_str), tracking, &known),
            inputs => Covered::of_inputs(inputs, tracking, &known),
        }?;
        let clock = Instant::now();
        let (end, output) = run(command).map_err(|error| {
            let name = self.command.first().map(|name| quoted(name));
            let name = name.unwrap_or_default();
            Error::other("command", format!("cannot run {name}: {error}"))
        })?;
        let took = clock.elapsed().as_millis();
        let took = u64::try_from(took).unwrap_or(u64::MAX);
        Ok(EndedProof::new(
            self,
            of,
            began,
            covered,
            (end, output, took),
        ))
    }

    fn in_folder(&self, root: &Path) -> Result<Command> {
        let name = self.command.first().filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Err(Error::refused("a proof needs a command"));
        };
        let name = Path::new(name);
        let root = std::path::absolute(match root.as_os_str().is_empty() {
            true => Path::new("."),
            false => root,
        });
        let root = root.map_err(|error| Error::other("command", error.to_string()))?;
        // Some systems resolve `./test` from the folder of this process.
        let is_path = name.components().count() > 1 || name.starts_with(".");
        let mut command = match is_path {
            true => Command::new(root.join(name)),
            false => Command::new(name),
        };
        command.args(&self.command[1..]).current_dir(root);
        // No person answers it.
        command.stdin(Stdio::null());
        Ok(command)
    }
}

/// The task whose work a command proves, as it was before the command began.
pub(crate) struct ProvenTask {
    entries: Arc<Entries>,
    /// The revision of its checkpoint; empty if there is none.
    document: String,
}

impl ProvenTask {
    /// The recorded proofs of the task.
    pub(crate) fn proofs(&self) -> &[ProofRecord] {
        &self.entries.state.proofs
    }
}

impl Ledger {
    /// The present task, for a proof that is about to run.
    pub(crate) fn task_to_prove(&self) -> Result<ProvenTask> {
        let stored = self.store.load(&self.key)?;
        let document = stored.map(|stored| stored.revision.to_string());
        Ok(ProvenTask {
            entries: self.read()?,
            document: document.unwrap_or_default(),
        })
    }

    /// Records a proof whose command ended, unless its task ended meanwhile: it proves nothing of the next one.
    pub(crate) fn record_proof(&self, proof: &EndedProof, of: &ProvenTask) -> Result<ProofRecord> {
        for _ in 0..TRIES {
            let entries = self.read()?;
            if !entries.is_same_task(&of.entries) || self.is_archived(&of.document)? {
                return Err(self.refused(
                    "the task ended while the command of its proof ran, so the proof is not recorded; prove the work of the present task"
                        .to_owned(),
                ));
            }
            // The agents of the other tasks of a slot do not read each other's lists, so a proof for none in particular
            // has its own.
            let is_of_any = entries.task.is_none() && self.store.capabilities().embedded;
            let known = match is_of_any {
                true => &[],
                false => entries.state.proofs.as_slice(),
            };
            let at = self.now();
            let line = Line::proved(at, &self.by, proof.stored(known));
            let record = proof.record(at, &self.by, line.name());
            if self.of_task(&entries).append(line, &entries, self.fence)? {
                return Ok(record);
            }
        }
        Err(self.changed_meanwhile())
    }
}

/// Runs the command of a proof, and returns how it ended and its output.
pub type ProofRunner<'r> = dyn FnMut(Command) -> io::Result<(ProofEnd, OutputTail)> + 'r;

/// Runs a command, and records the end of its output.
pub(crate) fn run_quietly(mut command: Command) -> io::Result<(ProofEnd, OutputTail)> {
    // One pipe for both streams, so that their order is preserved.
    let (written, write) = io::pipe()?;
    command.stdout(write.try_clone()?).stderr(write);
    let mut child = command.spawn()?;
    // It holds the write ends of the pipe.
    drop(command);
    let output = Arc::<Mutex<OutputBuffer>>::default();
    let output = Forwarding::on(Some(written), io::sink(), &output);
    let status = child.wait()?;
    Ok((status.into(), output.end().finish()))
}

/// Refuses a proof of an item that the task does not have.
pub(crate) fn require_item(item: &str, handoff: &Handoff) -> Result<()> {
    let begun = handoff.in_progress.iter().map(|begun| begun.text.as_str());
    let pending = handoff.pending.iter().map(String::as_str);
    let done = handoff.done.iter().map(|done| done.text.as_str());
    let steps = done.chain(begun).chain(pending);
    let results = handoff.verification.iter().flat_map(|shown| &shown.results);
    let results = results.map(|(name, _)| name.as_str());
    if steps.clone().chain(results.clone()).any(|it| it == item) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{} is nothing of this task that could be proven; it has {} and {}",
        quoted(item),
        listed("steps", steps),
        listed("criteria or gates", results)
    )))
}

/// Names in a sentence, each once: only the last ones if there are too many.
fn listed<'n>(what: &str, names: impl Iterator<Item = &'n str>) -> String {
    let mut seen = BTreeSet::new();
    let names: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
    let more = names.len().saturating_sub(MOST_LISTED);
    match (names.is_empty(), more) {
        (true, _) => format!("no {what}"),
        (_, 0) => format!("the {what} {}", quoted_all(&names)),
        _ => format!("{more} more {what} than {}", quoted_all(&names[more..])),
    }
}

/// The reports that record a proof in a checkpoint; the protocol takes the first that it can. None if the item is
/// neither a criterion nor a gate of it.
pub(crate) fn reports(
    proof: &super::ProofRecord,
    item: &str,
    handoff: &Handoff,
    operations: &[&str],
) -> Vec<Operation> {
    let mut results = handoff.verification.iter().flat_map(|shown| &shown.results);
    if !results.any(|(name, _)| name == item) {
        return Vec::new();
    }
    let because = format!("{} ended with {}", proof.command_line(), proof.end);
    let verify = |status: String| Operation::Verify {
        activity: item.to_owned(),
        status,
    };
    let gate = match proof.passed() {
        true => Operation::GatePass {
            name: item.to_owned(),
            phase: None,
        },
        false => Operation::GateFail {
            name: item.to_owned(),
            because: because.clone(),
            workstream: None,
            file: None,
            line: None,
        },
    };
    // The spellings of the protocols.
    let statuses = match proof.passed() {
        true => ["passed".to_owned(), "pass".to_owned()],
        false => ["failed".to_owned(), format!("fail:{because}")],
    };
    let all = std::iter::once(gate).chain(statuses.map(verify));
    all.filter(|it| operations.contains(&it.name())).collect()
}

/// The outcome of the [reports](crate::Checkpoints::proof_reports) of a proof.
#[derive(Debug)]
#[must_use]
pub enum ProofReport<T, E> {
    /// The format took a report.
    Taken(T),
    /// The format took none. The proof still counts.
    NotTaken(E),
    /// A report failed, whether or not the format would have taken it.
    Failed(E),
    /// There is no report.
    None,
}

impl<T, E> ProofReport<T, E> {
    /// Makes the reports in turn until one is taken; `code` returns the code of an error.
    pub fn make(
        reports: impl IntoIterator<Item = Operation>,
        mut report: impl FnMut(Operation) -> Result<T, E>,
        code: impl Fn(&E) -> &str,
    ) -> ProofReport<T, E> {
        let mut made = ProofReport::None;
        for operation in reports {
            match report(operation) {
                Ok(taken) => return ProofReport::Taken(taken),
                Err(error) if ["refused", "transition", "unsupported"].contains(&code(&error)) => {
                    made = ProofReport::NotTaken(error);
                }
                Err(error) => return ProofReport::Failed(error),
            }
        }
        made
    }
}
