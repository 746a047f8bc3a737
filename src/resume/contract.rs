//! Verification contracts: what success looks like.

use std::fmt;
use std::sync::Arc;

use crate::checkpoint::{Handoff, ResumePlan};

/// Looks up the criteria of a verification contract by the reference in a checkpoint, such as
/// `US-003.verificationContract`.
#[derive(Clone)]
pub struct ContractReader(Arc<Read>);

type Read = dyn Fn(&str) -> Option<Vec<String>> + Send + Sync;

impl ContractReader {
    /// Creates a reader that calls `read(reference)`: one text for each criterion, `None` if there is no such contract.
    pub fn new(read: impl Fn(&str) -> Option<Vec<String>> + Send + Sync + 'static) -> Self {
        ContractReader(Arc::new(read))
    }
}

impl fmt::Debug for ContractReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContractReader")
    }
}

/// The criteria of the contract that the checkpoint names; adds a warning if it is not found.
pub(super) fn criteria(
    reader: Option<&ContractReader>,
    handoff: &Handoff,
    plan: &mut ResumePlan,
) -> Vec<String> {
    let contract = handoff.verification.as_ref();
    let reference = contract.and_then(|shown| shown.contract.as_deref());
    let (Some(reader), Some(reference)) = (reader, reference) else {
        return Vec::new();
    };
    (reader.0)(reference).unwrap_or_else(|| {
        plan.warn(format!(
            "The verification contract {} cannot be found; ask what success looks like.",
            crate::shown::line(reference)
        ));
        Vec::new()
    })
}
