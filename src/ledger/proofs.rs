//! The proofs of finished work, judged by the present files.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::{Proof, ProofRecord};
use crate::checkpoint::{DoneItem, Handoff};
use crate::shown;
use crate::staleness::{TrackedFile, Tracking};

/// The most files that a sentence names.
const MOST_NAMED: usize = 3;

/// How the protocols spell a passed result of a verification.
const MET: [&str; 3] = ["passed", "pass", "met"];

/// The finished steps, criteria and gates of a task, and all others with a proof, each with the state of its proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[must_use]
#[serde(transparent)]
pub struct Proofs {
    items: Vec<ProvenItem>,
}

/// A step, a criterion or a gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProvenItem {
    /// Its text, name or id.
    pub item: String,
    /// Whether it is a criterion or a gate, not a step.
    pub is_criterion: bool,
    /// Whether the checkpoint reports it as done, passed or met.
    pub is_finished: bool,
    /// The state of its newest proof.
    #[serde(flatten)]
    pub status: ProofStatus,
    /// Its newest proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
}

/// The state of the newest proof of a piece of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProofStatus {
    /// Its agent reports it as done; there is no proof.
    Reported,
    /// Its newest proof passed, and the files that it covered did not change since.
    Proven,
    /// Its newest proof did not pass.
    Failed {
        /// The files that it covered and that changed since.
        changed: Vec<TrackedFile>,
    },
    /// Its newest proof passed, and files that it covered changed since.
    Outdated {
        /// The changed files.
        changed: Vec<TrackedFile>,
    },
}

/// A proof to run again, for all the work that it shows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rerun {
    /// The steps, criteria and gates that it proves.
    pub of: Vec<String>,
    /// The proof.
    pub proof: Proof,
}

impl Proofs {
    /// Judges the proofs of a task by the files of its project. `earlier` is finished work that was dropped from the
    /// checkpoint.
    pub(crate) fn judge(
        handoff: &Handoff,
        earlier: &[DoneItem],
        records: &[ProofRecord],
        tracking: &Tracking,
    ) -> Proofs {
        // Each proof is compared with the files once.
        let known: Vec<(&ProofRecord, ProofStatus)> = records
            .iter()
            .map(|record| (record, ProofStatus::of(record, tracking)))
            .collect();
        let mut items = Vec::new();
        let mut add = |item: &str, is_criterion: bool, is_finished: bool| {
            let of =
                |(record, _): &&(&ProofRecord, ProofStatus)| record.of.iter().any(|it| it == item);
            let found = known.iter().find(of);
            if is_finished || found.is_some() {
                items.push(ProvenItem {
                    item: item.to_owned(),
                    is_criterion,
                    is_finished,
                    status: found.map_or(ProofStatus::Reported, |(_, status)| status.clone()),
                    proof: found.map(|(record, _)| (*record).clone()),
                });
            }
        };
        let mut steps = BTreeSet::new();
        let done = earlier.iter().filter(|step| {
            // Dropped work without a proof is not listed.
            records.iter().any(|record| record.of.contains(&step.text))
        });
        for step in done.chain(&handoff.done) {
            if steps.insert(&step.text) {
                add(&step.text, false, true);
            }
        }
        let begun = handoff.in_progress.iter().map(|begun| &begun.text);
        for step in begun.chain(&handoff.pending) {
            if steps.insert(step) {
                add(step, false, false);
            }
        }
        for (name, state) in handoff.verification.iter().flat_map(|shown| &shown.results) {
            let state = state.trim();
            let is_met = MET.iter().any(|met| met.eq_ignore_ascii_case(state));
            add(name, true, is_met);
        }
        Proofs { items }
    }

    /// All items: steps first, then criteria and gates.
    #[must_use]
    pub fn items(&self) -> &[ProvenItem] {
        &self.items
    }

    /// The items that have a proof.
    pub fn with_proof(&self) -> impl Iterator<Item = &ProvenItem> {
        self.items.iter().filter(|item| item.proof.is_some())
    }

    /// Whether the newest proof of any item is failed or outdated.
    #[must_use]
    pub fn is_any_unproven(&self) -> bool {
        let mut items = self.with_proof();
        items.any(|item| item.status != ProofStatus::Proven)
    }

    /// The fewest proofs to run again: the outdated ones, and failed ones whose result may have changed. A failed proof
    /// whose files are unchanged would fail again.
    #[must_use]
    pub fn reruns(&self) -> Vec<Rerun> {
        let mut reruns: Vec<Rerun> = Vec::new();
        for item in self.items.iter().filter(|item| item.needs_rerun()) {
            let Some(record) = &item.proof else { continue };
            let proof = Proof::new(record.command.clone()).with_inputs(record.inputs.clone());
            match reruns.iter_mut().find(|rerun| rerun.proof == proof) {
                Some(rerun) if rerun.of.contains(&item.item) => {}
                Some(rerun) => rerun.of.push(item.item.clone()),
                None => reruns.push(Rerun {
                    of: vec![item.item.clone()],
                    proof,
                }),
            }
        }
        reruns
    }
}

impl ProvenItem {
    /// Whether its proof must be run again.
    #[must_use]
    pub fn needs_rerun(&self) -> bool {
        match (&self.status, &self.proof) {
            (ProofStatus::Outdated { .. }, _) => true,
            (ProofStatus::Failed { changed }, Some(proof)) => {
                !changed.is_empty() || proof.covers_nothing()
            }
            _ => false,
        }
    }
}

impl ProofStatus {
    fn of(record: &ProofRecord, tracking: &Tracking) -> ProofStatus {
        let changed = record.covered.changed(tracking);
        match (record.passed(), changed.is_empty()) {
            (false, _) => ProofStatus::Failed { changed },
            (true, true) => ProofStatus::Proven,
            (true, false) => ProofStatus::Outdated { changed },
        }
    }

    /// The status in a word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            ProofStatus::Reported => "reported",
            ProofStatus::Proven => "proven",
            ProofStatus::Failed { .. } => "failed",
            ProofStatus::Outdated { .. } => "outdated",
        }
    }
}

impl fmt::Display for ProvenItem {
    /// The status and its reason, on one line: `outdated: src/x.rs changed since; cargo test`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.status.as_str())?;
        let Some(proof) = &self.proof else {
            return Ok(());
        };
        let mut separator = ": ";
        if !proof.passed() {
            write!(f, "{separator}{}", proof.end)?;
            separator = ", ";
        }
        if let ProofStatus::Failed { changed } | ProofStatus::Outdated { changed } = &self.status
            && !changed.is_empty()
        {
            let named = changed.iter().take(MOST_NAMED);
            let named: Vec<String> = named.map(|file| shown::path(&file.path)).collect();
            write!(f, "{separator}{}", named.join(", "))?;
            if changed.len() > MOST_NAMED {
                write!(f, " and {} more", changed.len() - MOST_NAMED)?;
            }
            f.write_str(" changed since")?;
        }
        let command = shown::line(&proof.command_line());
        match self.status {
            ProofStatus::Proven => write!(f, " by {command}")?,
            _ => write!(f, "; {command}")?,
        }
        if proof.covers_nothing() {
            f.write_str(", which covers no file")?;
        }
        Ok(())
    }
}
