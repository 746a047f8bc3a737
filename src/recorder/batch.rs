//! Several reports for one write.

use crate::checkpoint::{Archive, Checkpoint, Operation, OperationContext, Result};
use crate::staleness::Tracking;

/// Reports that are made together, in their order.
///
/// Has every call of the [`Recorder`](super::Recorder) that reports something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    reports: Vec<(Operation, bool)>,
}

impl Batch {
    pub(super) fn new() -> Self {
        Batch::default()
    }

    /// Adds a report in the words that all formats share.
    pub fn report(&mut self, operation: Operation) {
        self.reports.push((operation, false));
    }

    /// Adds a report that is made although the protocol has no way there.
    pub fn force(&mut self, operation: Operation) {
        self.reports.push((operation, true));
    }

    /// Takes the files that are no sources of the project out of finished steps, and hands them back.
    pub(super) fn leave_out(&mut self, project: &Tracking) -> Vec<String> {
        let mut left_out = Vec::new();
        for (operation, _) in &mut self.reports {
            let Operation::StepDone {
                files_created,
                files_modified,
                ..
            } = operation
            else {
                continue;
            };
            for files in [files_created, files_modified] {
                let (taken, rest) = project.sort(files.iter().map(String::as_str));
                *files = taken;
                left_out.extend(rest);
            }
        }
        left_out
    }

    /// What becomes of the state before: a task that begins anew leaves an archive.
    pub(super) fn archive(&self) -> Option<Archive> {
        let mut reports = self.reports.iter();
        reports.find_map(|(operation, _)| operation.archives())
    }

    pub(super) fn apply<C: Checkpoint>(
        &self,
        checkpoint: &mut C,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        for (operation, force) in &self.reports {
            checkpoint.apply(operation, &context.with_force(*force))?;
        }
        Ok(())
    }
}
