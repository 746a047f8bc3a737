//! `ckpt prove` and `ckpt check`: proofs that finished work is done.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use agent_checkpoint::Operation;
use agent_checkpoint::ledger::{
    Forwarding, OutputBuffer, OutputTail, Proof, ProofEnd, ProofRecord, ProofReport, ProofStatus,
    Proofs, ProvenItem, Rerun,
};
use serde_json::json;

use super::operate;
use crate::address::Target;
use crate::args::Prove;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::named::shell_word;
use crate::output::{Outcome, harmless, is_quiet, one_line};
use crate::report::ledger;

/// How many lines of output are shown of a failed proof.
const LAST_LINES: usize = 5;

/// `ckpt prove`.
pub(super) fn run(prove: &Prove, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_write(global)?;
    target.require_file()?;
    let proof = Proof::new(prove.command.clone()).with_inputs(prove.inputs.clone());
    let mut outcome = Outcome::new();
    let of = std::slice::from_ref(&prove.item);
    let record = prove_all(of, &proof, &target, global, &mut outcome)?;
    let proofs = proofs(&target, global)?;
    let mut items = proofs.items().iter();
    let item = items.find(|known| known.item == prove.item);
    let said = item.map(ToString::to_string);
    let said = format!("{}: {}", prove.item, said.unwrap_or_default());
    match record.passed() {
        true => outcome.note(said),
        false => outcome.warn(said),
    }
    // With `--json` this value is the only output.
    if global.json {
        outcome.out.clear();
        outcome.json(&item.map(ledger::proof_json));
    }
    let is_proven = item.is_some_and(|item| item.status == ProofStatus::Proven);
    outcome.exit = outcome.exit.and(Exit::findings_if(!is_proven));
    outcome.is_done = true;
    Ok(outcome)
}

/// `ckpt check`.
pub(super) fn check(file: Option<&Path>, rerun: bool, global: &Global) -> Result<Outcome, Failure> {
    let target = match rerun {
        true => Target::to_change(file, global)?,
        false => Target::to_read(file, global)?,
    };
    target.require_file()?;
    let mut outcome = Outcome::new();
    let mut now = proofs(&target, global)?;
    if rerun {
        for Rerun { of, proof, .. } in now.reruns() {
            // A proof that cannot be run does not stop the others.
            match prove_all(&of, &proof, &target, global, &mut outcome) {
                Ok(_) => outcome.is_done = true,
                Err(failure) => outcome.fail(&failure),
            }
        }
        now = proofs(&target, global)?;
        for item in now.items() {
            if matches!(&item.status, ProofStatus::Failed { changed } if changed.is_empty()) {
                outcome.note(format!(
                    "{}: no file changed since it failed; `ckpt prove` runs it all the same",
                    item.item
                ));
            }
        }
    }
    let reruns = now.reruns();
    if global.json {
        outcome.out.clear();
        outcome.json(&json!({
            "items": ledger::proofs_json(&now),
            "rerun": reruns.iter().map(|rerun| json!({
                "of": rerun.of,
                "command": rerun.proof.command(),
                "inputs": rerun.proof.inputs(),
            })).collect::<Vec<_>>(),
        }));
    } else {
        now.items()
            .iter()
            .for_each(|item| print(item, &mut outcome));
        for Rerun { of, proof, .. } in &reruns {
            let words: Vec<String> = proof.command().iter().map(|it| shell_word(it)).collect();
            outcome.line(one_line(&format!(
                "to run again: {} ({})",
                words.join(" "),
                of.join(", ")
            )));
        }
        if now.items().is_empty() {
            outcome.note("nothing is finished that could be proven");
        }
    }
    if !reruns.is_empty() {
        outcome.note(format!(
            "`ckpt check {} --rerun` runs what is to be run again",
            target.words()
        ));
    }
    outcome.exit = outcome.exit.and(Exit::findings_if(now.is_any_unproven()));
    Ok(outcome)
}

/// The proofs of a checkpoint, judged by the present files.
pub(super) fn proofs(target: &Target, global: &Global) -> Result<Proofs, Failure> {
    target
        .any_checkpoints(global)
        .proofs(&target.key, &global.root)
        .map_err(|error| target.error(error))
}

/// Runs a proof, records it, and reports it to the format if that has a member for it.
fn prove_all(
    of: &[String],
    proof: &Proof,
    target: &Target,
    global: &Global,
    outcome: &mut Outcome,
) -> Result<ProofRecord, Failure> {
    let by = global.author();
    let checkpoints = target.any_checkpoints(global);
    let at = |error| target.error(error);
    let mut run = |command| forward(command, global.json);
    let record = checkpoints
        .prove(&target.key, &by, of, proof, &global.root, &mut run)
        .map_err(at)?;
    for item in of {
        let reports = checkpoints.proof_reports(&target.key, item, &record);
        let report = |operation: Operation| operate::change(target, &[operation.into()], global);
        match ProofReport::make(reports.map_err(at)?, report, |failure| failure.code) {
            ProofReport::Taken(reported) => {
                outcome.out.push_str(&reported.out);
                outcome.notes.extend(reported.notes);
                outcome.exit = outcome.exit.and(reported.exit);
            }
            ProofReport::NotTaken(failure) => outcome.note(format!(
                "the proof of {item} is recorded, and the checkpoint did not take it: {}",
                failure.message
            )),
            ProofReport::Failed(failure) => outcome.fail(&failure),
            ProofReport::None => {}
        }
    }
    Ok(record)
}

/// Runs the command of a proof and forwards its output as it comes: to standard error if standard output is JSON.
fn forward(mut command: Command, json: bool) -> io::Result<(ProofEnd, OutputTail)> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let to: [Box<dyn io::Write + Send>; 2] = match (is_quiet(), json) {
        (true, _) => [Box::new(io::sink()), Box::new(io::sink())],
        (_, true) => [Box::new(io::stderr()), Box::new(io::stderr())],
        _ => [Box::new(io::stdout()), Box::new(io::stderr())],
    };
    let [out, err] = to;
    let kept = Arc::<Mutex<OutputBuffer>>::default();
    let stdout = Forwarding::on(child.stdout.take(), out, &kept);
    let stderr = Forwarding::on(child.stderr.take(), err, &kept);
    let status = child.wait()?;
    drop(stdout.end());
    Ok((status.into(), stderr.end().finish()))
}

fn print(item: &ProvenItem, outcome: &mut Outcome) {
    outcome.line(ledger::proof(item));
    let Some(proof) = item.proof.as_ref().filter(|proof| !proof.passed()) else {
        return;
    };
    // A secret may span more lines than are shown.
    let output = harmless(proof.output.text());
    let lines: Vec<&str> = output.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n    ");
    if !last.trim().is_empty() {
        outcome.line(format!("    {last}"));
    }
}
