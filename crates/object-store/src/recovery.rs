//! Recovery of a document that cannot be read or was deleted.

use std::time::Instant;

use agent_checkpoint::store::{EntryId, Recover, RecoverOptions, Recovered, check_size};
use agent_checkpoint::{ErrorKind, Key, Result, Revision};

use crate::head::{Entry, Head};
use crate::keys::name_of;
use crate::store::{Next, ObjectCheckpointStore};

impl Recover for ObjectCheckpointStore {
    fn recover(&self, key: &Key, options: &RecoverOptions) -> Result<Recovered> {
        let began = Instant::now();
        let recovered = self.change(key, |head, time| {
            let past = head.past().rev();
            let past =
                past.map(|entry| (EntryId::from(entry.number), head.tasks_since(entry), entry));
            let read = |entry: &Entry| match self.load_entry(key, entry, time) {
                Err(error) if matches!(error.kind(), ErrorKind::Corrupt(_)) => Ok(None),
                read => read,
            };
            let present = head.stored(self.max_bytes);
            let decided = Recovered::decide(options.with, present, &head.text, past, read)?;
            let Some(mut recovered) = decided else {
                return Ok((None, Recovered::healthy(options.with)));
            };
            self.check_fence(head, options.fence)?;
            let next = self.go_on(key, head, &mut recovered)?;
            Ok((Some(next), recovered))
        })?;
        recovered.report(key, began);
        Ok(recovered)
    }
}

impl ObjectCheckpointStore {
    fn go_on(&self, key: &Key, head: &Head, recovered: &mut Recovered) -> Result<Next> {
        let mut next = Next::after(head);
        if head.is_there() {
            let name = name_of(key.as_str());
            let part = format!("damaged-{}", Revision::of(&head.text));
            recovered.put_aside = Some(self.place.beside(&name, &part)?.to_string());
            next.set(part, head.text.clone());
        }
        let Some(document) = &recovered.document else {
            next.head.end_task();
            next.head.set_absent();
            return Ok(next);
        };
        check_size(document.text(), self.max_bytes)?;
        next.head.set_text(document.text(), self.now());
        Ok(next)
    }
}
