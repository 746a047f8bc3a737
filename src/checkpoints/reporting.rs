//! Saves an agent's reports as one change of its checkpoint. The recorder and the command share this path.

use std::borrow::Cow;

use super::Checkpoints;
use crate::checkpoint::{
    Archive, Checkpoint, Handoff, Key, Operation, OperationContext, Report, Result, SourceFiles,
    sort_by,
};
use crate::store::{Outcome, Saved};

/// The result of reports that were saved as one change.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reported<T> {
    /// What was written, dropped and violated.
    pub saved: Saved,
    /// Files of finished steps that are not source files and therefore are not in the checkpoint.
    pub left_out: Vec<String>,
    /// The value that the caller made of each [`ReportEffect`], in the order of the reports.
    pub effects: Vec<T>,
}

impl<T> Reported<T> {
    /// Collects the values that `observe` returns during the last run of `report`.
    pub(crate) fn collect(
        mut observe: impl FnMut(&ReportEffect<'_>) -> T,
        report: impl FnOnce(&mut dyn FnMut(&ReportEffect<'_>)) -> Result<(Saved, Vec<String>)>,
    ) -> Result<Self> {
        let mut effects = Vec::new();
        let (saved, left_out) = report(&mut |effect| {
            effects.truncate(effect.index);
            effects.push(observe(effect));
        })?;
        Ok(Reported {
            saved,
            left_out,
            effects,
        })
    }
}

/// The effect of one of several reports on the checkpoint.
#[non_exhaustive]
pub struct ReportEffect<'e> {
    /// The position of the report, from 0.
    pub index: usize,
    /// The report.
    pub report: &'e Report,
    /// Whether it changed anything.
    pub is_changed: bool,
    /// The [outline](Checkpoint::outline) before it, including unreadable items.
    pub before: &'e Handoff,
    /// The outline after it, including unreadable items.
    pub after: &'e Handoff,
    had_finished: &'e dyn Fn(&str) -> bool,
}

impl ReportEffect<'_> {
    /// Whether an item with this text was finished before the report.
    #[must_use]
    pub fn was_done(&self, text: &str) -> bool {
        (self.had_finished)(text)
    }
}

impl std::fmt::Debug for ReportEffect<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReportEffect")
            .field("index", &self.index)
            .field("report", &self.report)
            .field("is_changed", &self.is_changed)
            .finish_non_exhaustive()
    }
}

/// Reports that are saved as one change.
pub(crate) struct Batch<'r> {
    reports: Cow<'r, [Report]>,
    /// The files that were removed from the reports because they are not source files.
    pub(crate) left_out: Vec<String>,
    /// The reason for which the previous checkpoint is archived, if any.
    pub(crate) archive: Option<Archive>,
}

impl<'r> Batch<'r> {
    /// Removes the files that are not `sources` from the reports; without `sources` all of them stay.
    pub(crate) fn new<C>(
        view: &Checkpoints<C>,
        reports: impl Into<Cow<'r, [Report]>>,
        sources: Option<&SourceFiles>,
    ) -> Self {
        let mut reports = reports.into();
        let mut left_out = Vec::new();
        if let Some(sources) = sources {
            let project = view.tracking.clone();
            let project = project.map(|project| project.with_sources(sources.clone()));
            // The folders of the project are inspected once for all reports.
            let mut tracks = project.as_ref().map(|project| project.tracks());
            let mut takes = |file: &str| match &mut tracks {
                Some(tracks) => tracks(file),
                None => sources.takes(file),
            };
            for report in reports.to_mut() {
                if let Operation::StepDone(done) = &mut report.operation {
                    let sort =
                        |files: &[String]| sort_by(files.iter().map(String::as_str), &mut takes);
                    left_out.extend(done.leave_out(sort));
                }
            }
        }
        let mut archives = reports.iter().map(|report| report.operation.archives());
        Batch {
            archive: archives.find_map(|archive| archive),
            reports,
            left_out,
        }
    }

    /// The last report after which the task waits.
    pub(crate) fn wait(&self) -> Option<&Operation> {
        let mut operations = self.reports.iter().rev().map(|report| &report.operation);
        operations.find(|operation| operation.waits())
    }

    /// Applies all reports. An error names the report that caused it.
    pub(crate) fn apply<C: Checkpoint>(
        &self,
        checkpoint: &mut C,
        context: &OperationContext<'_>,
    ) -> Result<()> {
        for (index, report) in self.reports.iter().enumerate() {
            let context = context.with_force(report.force);
            let applied = checkpoint.apply(&report.operation, &context);
            applied.map_err(|error| error.with_report(index))?;
        }
        Ok(())
    }

    /// As [`apply`](Batch::apply), and reports the effect of each report to `observe`.
    fn apply_observed<C: Checkpoint>(
        &self,
        checkpoint: &mut C,
        context: &OperationContext<'_>,
        observe: &mut dyn FnMut(&ReportEffect<'_>),
    ) -> Result<()> {
        let counting = |mut handoff: Handoff| {
            handoff.count_in(context.rules.unreadable.to_vec(), C::STATUS_IS_DERIVED);
            handoff
        };
        let mut old = checkpoint.clone();
        let mut before = counting(old.outline());
        for (index, report) in self.reports.iter().enumerate() {
            let context = context.with_force(report.force);
            let applied = checkpoint.apply(&report.operation, &context);
            applied.map_err(|error| error.with_report(index))?;
            let is_changed = *checkpoint != old;
            let after = is_changed.then(|| counting(checkpoint.outline()));
            observe(&ReportEffect {
                index,
                report,
                is_changed,
                before: &before,
                after: after.as_ref().unwrap_or(&before),
                had_finished: &|text| old.has_finished(text),
            });
            if let Some(after) = after {
                before = after;
                // Applying the report again costs less than a copy of the whole checkpoint, which grows with
                // each report.
                old.apply(&report.operation, &context)?;
            }
        }
        Ok(())
    }
}

impl<C: Checkpoint> Checkpoints<C> {
    /// Saves the reports of an agent or a supervisor as one change: all of them or, if one is refused, none.
    ///
    /// `observe` is called for each report with its effect, for example to tell the user. It may be called again if a
    /// faster writer made the change run again. With [`OperationContext::sources`], files of finished steps that are
    /// not source files, or that the [tracked](Checkpoints::tracking) project ignores, are not recorded.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::formats::task::TaskCheckpoint;
    /// use agent_checkpoint::store::MemoryStore;
    /// use agent_checkpoint::{CheckpointStoreExt, Key, OperationContext, StepDone};
    ///
    /// # fn main() -> agent_checkpoint::Result<()> {
    /// let tasks = MemoryStore::new().checkpoints::<TaskCheckpoint>();
    /// let key = Key::new("US-003")?;
    /// let first = TaskCheckpoint::begin("ui-dev", ["Wire toggle", "Test it"], tasks.now());
    /// tasks.create(&key, &first)?;
    ///
    /// let context = OperationContext::at(tasks.now());
    /// let reports = [StepDone::new("Wire toggle").into()];
    /// let reported = tasks.report(&key, &reports, &context, |effect| effect.after.pending.clone())?;
    /// assert_eq!(reported.effects, [["Test it"]]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::apply`], with the position of the report
    /// ([`Error::report`](crate::Error::report)). If the view's fence, or its lack of one, permits no write
    /// anyway, the errors of [`Claims`](crate::store::Claims) take their place. Those of
    /// [`try_update`](Checkpoints::try_update).
    pub fn report<T>(
        &self,
        key: &Key,
        reports: &[Report],
        context: &OperationContext<'_>,
        observe: impl FnMut(&ReportEffect<'_>) -> T,
    ) -> Result<Reported<T>> {
        Reported::collect(observe, |observe| {
            self.report_observed(key, reports, context, observe)
        })
    }

    /// As [`report`](Checkpoints::report), for use behind a trait object.
    pub(crate) fn report_observed(
        &self,
        key: &Key,
        reports: &[Report],
        context: &OperationContext<'_>,
        observe: &mut dyn FnMut(&ReportEffect<'_>),
    ) -> Result<(Saved, Vec<String>)> {
        let batch = Batch::new(self, reports, context.sources);
        self.record_wait(key, &batch, context)?;
        let view = self.clone().archiving(batch.archive.or(self.archive));
        let saved = view.update_by_report(key, |checkpoint, unreadable| {
            let context = context.with_rules(context.rules.with_unreadable(unreadable));
            batch.apply_observed(checkpoint, &context, observe)
        })?;
        // The store checks the fence only when it writes. An agent that was replaced must learn of it even from
        // a report that changes nothing, or it would work on beside its successor.
        if saved.outcome == Outcome::Unchanged && self.fence.is_some() {
            self.check_fence(key)?;
        }
        self.complete_wait(key, &batch, context)?;
        Ok((saved, batch.left_out))
    }

    /// Makes the agent of this context the owner of the task, for use behind a trait object.
    pub(crate) fn take_up(&self, key: &Key, context: &OperationContext<'_>) -> Result<Saved> {
        self.update_by_report(key, |checkpoint, unreadable| {
            let context = context.with_rules(context.rules.with_unreadable(unreadable));
            checkpoint.take_up(&context)
        })
    }
}
