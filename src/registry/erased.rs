//! A format behind a trait object: what the rest of the library needs of a type that is not known at compile time.

use std::marker::PhantomData;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{AnyCheckpoints, Inspected, Messages};
use crate::checkpoint::{
    Checkpoint, CheckpointFile, Given, Handoff, Inputs, Judged, Report, Result, RuleContext, Start,
    Supervised, judge, read, violations,
};
use crate::checkpoints::Checkpoints;
use crate::formats::{Converted, convert};
use crate::json::{Document, Violation};
use crate::resume::{ForeignMember, foreign};

/// The operations on checkpoints of one format, in a document or in a store.
pub(super) trait Erased: Send + Sync {
    fn inspect(&self, document: &Document, context: &RuleContext<'_>) -> Result<Inspected>;
    fn foreign_members(&self, document: &Document) -> Result<Vec<ForeignMember>>;
    fn start(&self, start: &Start<'_>) -> Result<Document>;
    fn take_inputs(&self, given: &Given, file: &CheckpointFile<'_>) -> Result<Inputs>;
    fn inputs_beside(&self, file: &CheckpointFile<'_>, report: Option<&Report>) -> Result<Inputs>;
    fn check_place(&self, file: &CheckpointFile<'_>) -> Result<()>;
    fn check_change(&self, before: &Document, after: &Document) -> Result<()>;
    fn checkpoints(&self, view: &Checkpoints<()>) -> Box<dyn AnyCheckpoints>;
}

/// The format of a type.
pub(super) struct Typed<C>(PhantomData<fn() -> C>);

impl<C> Typed<C> {
    pub(super) const NEW: Typed<C> = Typed(PhantomData);
}

impl<C: Checkpoint> Typed<C> {
    pub(super) fn violations(
        document: &Document,
        context: &RuleContext<'_>,
    ) -> Result<Vec<Violation>> {
        let current = read::<C>(document)?;
        Ok(violations(&current.document, &current.reading, context))
    }

    pub(super) fn convert(handoff: &Handoff, now: DateTime<Utc>) -> Result<Converted<Document>> {
        convert::<C>(handoff, now)?.try_map(|mut checkpoint| {
            if let Some(version) = C::latest_version() {
                checkpoint.set_schema_version(version);
            }
            Ok(Document::new(&checkpoint)?)
        })
    }
}

impl<C: Checkpoint> Erased for Typed<C> {
    fn inspect(&self, document: &Document, context: &RuleContext<'_>) -> Result<Inspected> {
        let current = read::<C>(document)?;
        let checkpoint = &current.reading.value;
        let Judged {
            handoff,
            plan,
            violations,
            progress,
            goes_on,
        } = judge(&current.document, &current.reading, context);
        let mut pulse = checkpoint.pulse();
        if handoff.status != checkpoint.status() {
            pulse.activity = (&handoff.status).into();
        }
        let mut judged = Supervised {
            handoff,
            pulse,
            progress,
        };
        let supervised_in = checkpoint.supervised(context, &mut judged);
        let files = checkpoint.exclusive_files().into_iter();
        Ok(Inspected {
            updated_at: checkpoint.updated_at().cloned(),
            goes_on,
            pulse: judged.pulse,
            progress: judged.progress,
            exclusive_files: files.map(str::to_owned).collect(),
            plan,
            violations,
            supervised_in,
            handoff: judged.handoff,
            messages: Messages(Arc::new({
                let checkpoint = current.reading.value;
                move |notice, now| checkpoint.notice(notice, now)
            })),
        })
    }

    fn start(&self, start: &Start<'_>) -> Result<Document> {
        Ok(Document::new(&C::start(start)?)?)
    }

    fn take_inputs(&self, given: &Given, file: &CheckpointFile<'_>) -> Result<Inputs> {
        C::take_inputs(given, file)
    }

    fn inputs_beside(&self, file: &CheckpointFile<'_>, report: Option<&Report>) -> Result<Inputs> {
        C::inputs_beside(file, report)
    }

    fn check_place(&self, file: &CheckpointFile<'_>) -> Result<()> {
        C::check_place(file)
    }

    fn foreign_members(&self, document: &Document) -> Result<Vec<ForeignMember>> {
        let current = read::<C>(document)?;
        let reading = &current.reading;
        Ok(foreign::members(
            &current.document,
            &reading.value,
            reading.left_out(),
        ))
    }

    fn check_change(&self, before: &Document, after: &Document) -> Result<()> {
        let (before, after) = (before.read::<C>(), after.read::<C>());
        match (before, after) {
            (Ok(before), Ok(mut after)) => {
                let nothing_kept = &mut || Ok(Vec::new());
                after.value.complete_change(&before.value, nothing_kept)
            }
            // A value that cannot be read has its own violation.
            _ => Ok(()),
        }
    }

    fn checkpoints(&self, view: &Checkpoints<()>) -> Box<dyn AnyCheckpoints> {
        Box::new(view.of::<C>())
    }
}
