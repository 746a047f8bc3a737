//! What an agent reports, as one change of its checkpoint: the path that the recorder and the command share.

use std::borrow::Cow;

use super::Checkpoints;
use crate::checkpoint::{
    Archive, Checkpoint, Handoff, Key, Operation, OperationContext, Report, Result, SourceFiles,
    sort_by,
};
use crate::store::{Outcome, Saved};

/// What came of reports that were saved as one change.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reported<T> {
    /// What was written, cut and violated.
    pub saved: Saved,
    /// Files of finished steps that are no sources, and so are not in the checkpoint.
    pub left_out: Vec<String>,
    /// What the caller made of the [`ReportEffect`] of each report, in order.
    pub effects: Vec<T>,
}

impl<T> Reported<T> {
    /// Collects what `observe` makes in the last run of `report`.
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

/// What one of several reports did to the checkpoint.
#[non_exhaustive]
pub struct ReportEffect<'e> {
    /// The place of the report among all of them, from 0.
    pub index: usize,
    /// The report.
    pub report: &'e Report,
    /// Whether it changed anything.
    pub is_changed: bool,
    /// The [outline](Checkpoint::outline) before it. What could not be read counts.
    pub before: &'e Handoff,
    /// The outline after it.
    pub after: &'e Handoff,
    had_finished: &'e dyn Fn(&str) -> bool,
}

impl ReportEffect<'_> {
    /// Whether a piece of work with this text was finished before the report.
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

/// Reports that become one change.
pub(crate) struct Batch<'r> {
    reports: Cow<'r, [Report]>,
    /// The files that are no sources, which no report has any more.
    pub(crate) left_out: Vec<String>,
    /// As what the checkpoint before is archived.
    pub(crate) archive: Option<Archive>,
}

impl<'r> Batch<'r> {
    /// Takes the files that are no `sources` out of the reports; without sources all of them stay.
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
            // Its folders are looked at once for all reports.
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

    /// Makes the changes of all reports. The error of one of them says which it was.
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

    /// As [`apply`](Batch::apply), and says of each report what it did.
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
                // The same once more costs less than a copy of the whole, which grows with each report.
                old.apply(&report.operation, &context)?;
            }
        }
        Ok(())
    }
}

impl<C: Checkpoint> Checkpoints<C> {
    /// Saves what an agent or a supervisor reports as one change: all of it or, when a report is refused, nothing.
    ///
    /// `observe` is called for each report with what it did, to tell the user; it may be called again, on what a faster
    /// writer left. With [`OperationContext::sources`], files of finished steps that are no sources, or that the
    /// [tracked](Checkpoints::tracking) project ignores, are not recorded.
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
    /// Those of [`Checkpoint::apply`], with the place of the report ([`Error::report`](crate::Error::report)), but where the
    /// view's fence, or that it has none, would let no write through, those of [`Claims`](crate::store::Claims); those of
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

    /// As [`report`](Checkpoints::report), for a caller behind a trait object.
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
        // An agent that was replaced must hear of it also by a report that changes nothing, or it works on beside its
        // successor.
        if saved.outcome == Outcome::Unchanged && self.fence.is_some() {
            self.check_fence(key)?;
        }
        self.complete_wait(key, &batch, context)?;
        Ok((saved, batch.left_out))
    }

    /// Makes the task that of the agent of this context, for a caller behind a trait object.
    pub(crate) fn take_up(&self, key: &Key, context: &OperationContext<'_>) -> Result<Saved> {
        self.update_by_report(key, |checkpoint, unreadable| {
            let context = context.with_rules(context.rules.with_unreadable(unreadable));
            checkpoint.take_up(&context)
        })
    }
}
