//! Proofs that work is done, recorded by the owner of the task.

use std::io;
use std::process::Command;

use super::{Recorded, Recorder};
use crate::checkpoint::{Checkpoint, Error, Result};
use crate::ledger::{
    Ledger, OutputTail, Proof, ProofEnd, ProofRecord, ProofReport, ProofRunner, Proofs, run_quietly,
};

/// The outcome of a proof.
#[derive(Debug)]
#[must_use = "a proof that failed is no error"]
#[non_exhaustive]
pub struct Proved {
    /// The proof, which may have failed.
    pub record: ProofRecord,
    /// The reports that filled a member of the protocol: one for each criterion or gate.
    pub reported: Vec<Recorded>,
    /// The reports that the protocol refused. The proof still counts.
    pub refused: Vec<Error>,
}

impl Proved {
    /// Whether the command proved the work.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.record.passed()
    }
}

impl<C: Checkpoint> Recorder<C> {
    /// Runs the command of a proof of a step, a criterion or a gate in the project's folder, as set in
    /// [`RecorderOptions::resume`](super::RecorderOptions::resume). Records how it ended and the files that it covers.
    ///
    /// A criterion or gate is also reported as passed or failed, if the format takes that. While the command runs,
    /// other calls of the recorder continue; the calls of an `AsyncRecorder` take turns, so they wait.
    ///
    /// # Errors
    ///
    /// [`Refused`](crate::ErrorKind::Refused) if the task has no such item, or ended while the command ran; the code
    /// `input` for an input that is missing, outside the project or unreadable, and `command` for a command that cannot
    /// be run: then nothing is recorded. [`TakenOver`](crate::ErrorKind::TakenOver), [`Claimed`](crate::ErrorKind::Claimed) and
    /// [`Fenced`](crate::ErrorKind::Fenced) once another owner has the task; the errors of
    /// [`Ledger::state`](crate::ledger::Ledger::state).
    pub fn prove(&self, item: &str, proof: &Proof) -> Result<Proved> {
        self.prove_by(item, proof, run_quietly)
    }

    /// The same, with a function that runs the command, for example in a container, and takes its output with an
    /// [`OutputBuffer`](crate::ledger::OutputBuffer).
    ///
    /// # Errors
    ///
    /// Those of [`prove`](Recorder::prove).
    pub fn prove_by(
        &self,
        item: &str,
        proof: &Proof,
        mut run: impl FnMut(Command) -> io::Result<(ProofEnd, OutputTail)>,
    ) -> Result<Proved> {
        self.prove_all(&[item.to_owned()], proof, &mut run)
    }

    /// The finished steps, criteria and gates of the task, each with the state of its newest proof, judged by the
    /// present files.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoints::proofs`](crate::Checkpoints::proofs).
    pub fn proofs(&self) -> Result<Proofs> {
        self.checkpoints
            .proofs(&self.key, &self.options.resume.root)
    }

    /// Runs the fewest proofs that must be run again: [`Proofs::reruns`].
    ///
    /// # Errors
    ///
    /// Those of [`prove`](Recorder::prove) and of [`proofs`](Recorder::proofs). After an error no more are run.
    pub fn rerun_proofs(&self) -> Result<Vec<Proved>> {
        let reruns = self.proofs()?.reruns();
        let prove = |rerun: &crate::ledger::Rerun| {
            self.prove_all(&rerun.of, &rerun.proof, &mut run_quietly)
        };
        reruns.iter().map(prove).collect()
    }

    fn prove_all(&self, of: &[String], proof: &Proof, run: &mut ProofRunner<'_>) -> Result<Proved> {
        // Run nothing for an owner that lost the task.
        let task = self.in_ledger(Ledger::task_to_prove)?;
        let root = &self.options.resume.root;
        let ran = self
            .checkpoints
            .run_proof(&self.key, of, (proof, task.proofs()), root, run)?;
        let record = self.in_ledger(|ledger| ledger.record_proof(&ran, &task))?;
        let mut proved = Proved {
            record,
            reported: Vec::new(),
            refused: Vec::new(),
        };
        for item in of {
            self.report_proof(item, &mut proved)?;
        }
        Ok(proved)
    }

    /// Reports a criterion or gate, if the protocol has a member for it.
    fn report_proof(&self, item: &str, proved: &mut Proved) -> Result<()> {
        let reports = self
            .checkpoints
            .proof_reports(&self.key, item, &proved.record)?;
        match ProofReport::make(reports, |report| self.report(report), |error| error.code()) {
            ProofReport::Taken(recorded) => proved.reported.push(recorded),
            ProofReport::NotTaken(error) => proved.refused.push(error),
            ProofReport::Failed(error) => return Err(error),
            ProofReport::None => {}
        }
        Ok(())
    }
}
