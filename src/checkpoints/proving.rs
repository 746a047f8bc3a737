//! Whether proofs show that finished work is done.

use std::path::Path;

use super::Checkpoints;
use crate::checkpoint::{Checkpoint, Claim, DoneItem, Handoff, Key, Result};
use crate::ledger::{
    EndedProof, LedgerState, Proof, ProofRecord, ProofRunner, Proofs, require_item,
};
use crate::staleness::Tracking;

impl<C: Checkpoint> Checkpoints<C> {
    /// The finished steps, criteria and gates of a task, each with the state of its newest proof, judged by the
    /// files at `root`.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Checkpoints::get) and of [`Ledger::state`](crate::ledger::Ledger::state); the code
    /// `not-a-folder` when `root` is not a folder.
    pub fn proofs(&self, key: &Key, root: impl AsRef<Path>) -> Result<Proofs> {
        let handoff = self.get(key)?.checkpoint.handoff();
        let state = self.ledger(key, String::new()).state()?;
        let tracking = self.ground(key, root.as_ref())?;
        let earlier = self.earlier_with_proofs(key, &state)?;
        Ok(Proofs::judge(&handoff, &earlier, &state.proofs, &tracking))
    }

    /// Runs a proof of these steps, criteria or gates in the project at `root`, and records the result in the
    /// ledger, whether it passed or failed. `by` names the owner; `run` runs the command.
    ///
    /// The checkpoint does not change: [`proof_reports`](Checkpoints::proof_reports) has the reports that a
    /// protocol takes of it. A [`Recorder`](crate::recorder::Recorder) does both.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) for an item that the task does not have, and if the
    /// task ended while the command ran; the code `input` for an input that is missing, outside the project or
    /// unreadable, and `command` for a command that cannot be run; nothing is recorded in these cases. Those of
    /// [`proofs`](Checkpoints::proofs), and of every write to the ledger.
    pub fn prove(
        &self,
        key: &Key,
        by: &str,
        of: &[String],
        proof: &Proof,
        root: impl AsRef<Path>,
        run: &mut ProofRunner<'_>,
    ) -> Result<ProofRecord> {
        // Run nothing for an owner that lost the task.
        if let Some(claims) = self.store.claims() {
            let claim = claims.claimed(key)?;
            Claim::check(claim.as_ref(), self.fence, self.now())
                .map_err(|error| error.with_key(key))?;
        }
        let ledger = self.ledger(key, by);
        let task = ledger.task_to_prove()?;
        let proof = self.run_proof(key, of, (proof, task.proofs()), root.as_ref(), run)?;
        ledger.record_proof(&proof, &task)
    }

    /// The reports by which the format may learn of a proof; it takes the first that it can. Empty if the item
    /// is neither a criterion nor a gate of the format.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Checkpoints::get).
    pub fn proof_reports(
        &self,
        key: &Key,
        item: &str,
        proof: &ProofRecord,
    ) -> Result<Vec<crate::Operation>> {
        let handoff = self.get(key)?.checkpoint.handoff();
        Ok(crate::ledger::reports(proof, item, &handoff, C::OPERATIONS))
    }

    /// Runs a proof without recording it. `earlier` are the recorded proofs of the task.
    pub(crate) fn run_proof(
        &self,
        key: &Key,
        of: &[String],
        (proof, earlier): (&Proof, &[ProofRecord]),
        root: &Path,
        run: &mut ProofRunner<'_>,
    ) -> Result<EndedProof> {
        let handoff = self.get(key)?.checkpoint.handoff();
        let tracking = self.ground(key, root)?;
        let at = |error: crate::Error| error.with_key(key);
        let unknown: Vec<_> = of
            .iter()
            .filter_map(|item| Some((item, require_item(item, &handoff).err()?)))
            .collect();
        if !unknown.is_empty() {
            // Work that was finished long ago and dropped may be proven again.
            let long_ago = self.earlier(key)?;
            for (item, error) in unknown {
                if !long_ago.iter().any(|step| step.text == *item) {
                    return Err(at(error));
                }
            }
        }
        proof
            .run(of, (&handoff.files, earlier), &tracking, self.now(), run)
            .map_err(at)
    }

    /// The project at `root`, with the tracking rules for this checkpoint.
    pub(super) fn ground(&self, key: &Key, root: &Path) -> Result<Tracking> {
        // With a wrong root every file would be missing, and its work would seem to be undone.
        if !root.as_os_str().is_empty() && !root.is_dir() {
            return Err(crate::Error::not_a_folder().with_path(root));
        }
        let tracking = self.tracking.clone().unwrap_or_else(|| Tracking::new(root));
        let mut tracking =
            tracking.of_checkpoint(self.store.beside().document_file(key), C::layout());
        if !self.store.capabilities().embedded {
            tracking = tracking.in_store();
        }
        tracking.root = root.to_path_buf();
        Ok(tracking)
    }

    /// The proofs for a plan; empty if the ledger has none or cannot be read.
    pub(super) fn proofs_for_plan(
        &self,
        key: &Key,
        root: &Path,
        (handoff, earlier): (&Handoff, &[DoneItem]),
        ledger: &Result<LedgerState, String>,
    ) -> Result<Proofs> {
        match ledger {
            Ok(state) if !state.proofs.is_empty() => {
                let tracking = self.ground(key, root)?;
                Ok(Proofs::judge(handoff, earlier, &state.proofs, &tracking))
            }
            _ => Ok(Proofs::default()),
        }
    }

    /// The finished work that was dropped from the checkpoint, if there are proofs that may concern it.
    fn earlier_with_proofs(&self, key: &Key, state: &LedgerState) -> Result<Vec<DoneItem>> {
        match state.proofs.is_empty() {
            true => Ok(Vec::new()),
            false => self.earlier(key),
        }
    }
}
