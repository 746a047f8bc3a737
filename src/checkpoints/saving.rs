//! From a changed checkpoint to the text that is saved.

use super::Checkpoints;
use crate::checkpoint::{Checkpoint, Error, ErrorKind, Knowledge, Result, Truncation, violations};
use crate::json::{Document, Reading, Rewrite, Violation};
use crate::store::Saved;

/// What a whole checkpoint does to the text that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Write {
    /// Changes what differs; what the type does not know stays.
    #[default]
    Edit,
    /// Writes a new text; what the type does not know is gone.
    Replace,
}

/// A text that is ready to be saved.
pub(super) struct Prepared {
    pub(super) document: Document,
    pub(super) truncation: Truncation,
    violations: Vec<Violation>,
}

/// Adds what the typed view knows to what the store says.
pub(super) fn complete(mut saved: Saved, prepared: Option<Prepared>) -> Saved {
    if let Some(prepared) = prepared {
        let kept_in = saved.truncation.kept_in.take();
        saved.truncation = prepared.truncation;
        saved.truncation.kept_in = kept_in;
        saved.violations = prepared.violations;
    }
    saved
}

impl<C: Checkpoint> Checkpoints<'_, C> {
    /// The text after a change, or `None` when it changed nothing.
    pub(super) fn changed(
        &self,
        document: &Document,
        change: &mut dyn FnMut(&mut C) -> Result<()>,
    ) -> Result<Option<Prepared>> {
        let reading = document.read::<C>()?;
        refuse_newer(&reading.value)?;
        let mut wanted = reading.value.clone();
        change(&mut wanted)?;
        if wanted == reading.value {
            return Ok(None);
        }
        self.edited(document, &reading, wanted).map(Some)
    }

    /// The text of a whole checkpoint, over the text that is there.
    pub(super) fn whole(
        &self,
        present: Option<&Document>,
        mut wanted: C,
        write: Write,
        standalone: bool,
    ) -> Result<Prepared> {
        if standalone
            && wanted.schema_version().is_none()
            && let Some(version) = C::SCHEMA_VERSION
        {
            wanted.set_schema_version(version);
        }
        let reading = present.map(|present| present.read::<C>()).transpose()?;
        if let Some(reading) = &reading {
            refuse_newer(&reading.value)?;
        }
        refuse_newer(&wanted)?;
        if let (Some(present), Some(reading), Write::Edit) = (present, &reading, write) {
            if wanted == reading.value {
                return Ok(Prepared {
                    document: present.clone(),
                    truncation: Truncation::default(),
                    violations: Vec::new(),
                });
            }
            return self.edited(present, reading, wanted);
        }
        let truncation =
            self.finish(&mut wanted, reading.as_ref().map(|reading| &reading.value))?;
        let document = match present {
            Some(present) => present.replace_with(&wanted)?,
            None => Document::new(&wanted)?,
        };
        let read_back = document.read::<C>()?;
        if read_back.value != wanted || !read_back.violations.is_empty() {
            return Err(Error::new(ErrorKind::NotFaithful {
                detail: read_back.violations.first().map_or_else(
                    || "it reads back as another value".to_owned(),
                    ToString::to_string,
                ),
            }));
        }
        let violations = violations(&document, &read_back, &Knowledge::none());
        Ok(Prepared {
            document,
            truncation,
            violations,
        })
    }

    fn edited(&self, document: &Document, reading: &Reading<C>, mut wanted: C) -> Result<Prepared> {
        let truncation = self.finish(&mut wanted, Some(&reading.value))?;
        let rewrite = Rewrite::new()
            .identities(C::IDENTITIES)
            .allow_loss(self.allow_loss);
        let rewritten = document.rewrite(reading, &wanted, &rewrite)?;
        let before = violations(document, reading, &Knowledge::none());
        let mut new = violations(&rewritten.document, &rewritten.reading, &Knowledge::none());
        new.retain(|violation| !before.contains(violation));
        Ok(Prepared {
            document: rewritten.document,
            truncation,
            violations: new,
        })
    }

    /// Redaction, stamp and limits, in this order: a secret must not survive in the record of what
    /// was cut, and the stamp counts for the size.
    fn finish(&self, wanted: &mut C, before: Option<&C>) -> Result<Truncation> {
        if let Some(redaction) = &self.redaction {
            let mut text = Document::new(wanted)?;
            let old = before.map(Document::new).transpose()?;
            if redaction.apply(&mut text, old.as_ref())? {
                *wanted = text.read::<C>()?.value;
            }
        }
        wanted.stamp_change(before, self.clock.now());
        let truncation = wanted.shrink(&self.limits, before);
        if let Some(over) = truncation.over_budget {
            tracing::warn!(bytes = over.bytes, limit = over.limit, "over the size");
        }
        Ok(truncation)
    }
}

fn refuse_newer<C: Checkpoint>(checkpoint: &C) -> Result<()> {
    match (checkpoint.schema_version(), C::SCHEMA_VERSION) {
        (Some(found), Some(known)) if found > known => {
            Err(Error::new(ErrorKind::NewerSchema { found, known }))
        }
        _ => Ok(()),
    }
}
