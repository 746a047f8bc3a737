//! How one goes on from a document that cannot be read, or was deleted.

use std::time::Instant;

use agent_checkpoint::json::{Corrupt, CorruptCode, Document, salvage};
use agent_checkpoint::store::{Outcome, Recover, RecoverOptions, Recovered, Recovery, Saved};
use agent_checkpoint::{Error, ErrorKind, Key, Result, Revision};

use crate::head::Head;
use crate::history::id_of;
use crate::keys::name_of;
use crate::remote::Time;
use crate::store::{Next, ObjectCheckpointStore};

impl Recover for ObjectCheckpointStore {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let recovered = self.change(key, |head, time| {
            let damage = match head.stored(self.max_bytes) {
                Ok(Some(_)) => return Ok((None, Recovered::healthy(options.with))),
                Ok(None) => None,
                Err(error) => Some(damage_in(error)?),
            };
            self.check_fence(head, options.fence)?;
            let mut recovered = Recovered::healthy(options.with);
            recovered.damage = damage;
            let next = self.go_on(key, head, &mut recovered, time)?;
            Ok((next, recovered))
        })?;
        if recovered.saved.is_some() || recovered.damage.is_some() {
            recovered.report(key, began);
        }
        Ok(recovered)
    }
}

impl ObjectCheckpointStore {
    fn go_on(
        &self,
        key: &Key,
        head: &Head,
        recovered: &mut Recovered,
        time: Time,
    ) -> Result<Option<Next>> {
        if head.is_there()
            && let Some(salvage) = salvage(&head.text)
        {
            recovered.salvaged = Some(salvage.document);
            recovered.left_out = salvage.left_out;
        }
        let document = match recovered.with {
            Recovery::Newest => Some(self.newest(key, head, recovered, time)?),
            Recovery::Salvage => Some(salvaged(recovered)?),
            _ => None,
        };
        let mut next = Next::after(head);
        if head.is_there() {
            let name = name_of(key.as_str());
            let part = format!("damaged-{}", Revision::of(&head.text));
            recovered.put_aside = Some(self.place.beside(&name, &part)?.to_string());
            next.set(part, head.text.clone());
        }
        let Some(document) = document else {
            next.head.end_task();
            next.head.set_absent();
            return Ok(Some(next));
        };
        let text = document.text();
        self.refuse_too_large(text)?;
        let outcome = match head.is_there() {
            true => Outcome::Replaced,
            false => Outcome::Created,
        };
        next.head.set_text(text, self.now());
        let revision = Revision::of(text.as_bytes());
        recovered.saved = Some(Saved::new(outcome, revision, None));
        recovered.document = Some(document);
        Ok(Some(next))
    }

    /// The newest state of the present task that can be read.
    fn newest(
        &self,
        key: &Key,
        head: &Head,
        recovered: &mut Recovered,
        time: Time,
    ) -> Result<Document> {
        let mut earlier = None;
        for entry in head.past().rev() {
            if entry.task != head.header.task {
                earlier = Some(entry.number);
                break;
            }
            match self.load_entry(key, entry, time) {
                Ok(Some(stored)) => {
                    recovered.entry = Some(id_of(entry.number)?);
                    recovered.written = stored.modified;
                    // A state joins the history when the next one replaces it; the damaged one had no next one.
                    recovered.may_lack = head.is_there();
                    return Ok(stored.document);
                }
                Ok(None) => recovered.passed_over.push(id_of(entry.number)?),
                Err(error) if matches!(error.kind(), ErrorKind::Corrupt(_)) => {
                    recovered.passed_over.push(id_of(entry.number)?);
                }
                Err(error) => return Err(error),
            }
        }
        let what = match earlier {
            None => "there is no earlier state that can be read".to_owned(),
            Some(number) => format!(
                "no earlier state of this task can be read, and those from {number} on back are of tasks that ended before"
            ),
        };
        let next = match (head.is_there(), &recovered.salvaged, earlier) {
            (false, _, None) => "and no damaged text either: there is nothing to recover",
            (false, _, Some(_)) => "restore one of them by its name, or begin a new one",
            (true, Some(_), _) => "salvage the good part of the damaged text, or go on fresh",
            (true, None, _) => "and nothing of the damaged text can be read: go on fresh",
        };
        Err(not_recoverable(format!("{what}; {next}")))
    }
}

/// What is wrong with a text that a recovery replaces. One that is only beyond the limits stays.
fn damage_in(error: Error) -> Result<Corrupt> {
    match error.kind() {
        ErrorKind::Corrupt(corrupt) if corrupt.code != CorruptCode::TooDeep => Ok(corrupt.clone()),
        _ => Err(error),
    }
}

fn salvaged(recovered: &Recovered) -> Result<Document> {
    let detail = match (&recovered.damage, &recovered.salvaged) {
        (Some(_), Some(salvaged)) => return Ok(salvaged.clone()),
        (None, _) => "there is nothing here to salvage",
        (Some(_), None) => {
            "nothing of the damaged text can be read; go on with the newest earlier state, or go on fresh"
        }
    };
    Err(not_recoverable(detail))
}

fn not_recoverable(detail: impl Into<String>) -> Error {
    let detail = detail.into();
    Error::new(ErrorKind::NotRecoverable { detail })
}
