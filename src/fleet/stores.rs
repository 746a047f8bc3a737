//! A store of any kind, a page of keys at a time.

use std::path::Path;

use super::scan::Scan;
use super::survey::Found;
use super::{Place, Row, RowState, WhyLeftOut, WhyNotScanned, bounded, claims};
use crate::checkpoint::{Error, ErrorKind, Key, Layout};
use crate::formats::Format;
use crate::store::{CheckpointStore, Query, Stored};

/// How many keys are asked for at once.
const PAGE: usize = 256;

impl Scan<'_> {
    pub(super) fn store(&mut self, name: &str, store: &dyn CheckpointStore, format: Option<&str>) {
        let mut query = Query::all().with_limit(PAGE);
        let mut is_first = true;
        loop {
            let page = match store.list(&query) {
                Ok(page) => page,
                Err(error) => {
                    return self.skip(name, WhyNotScanned::Unreadable(error.to_string()));
                }
            };
            // Every page names all foreign files.
            for foreign in page.foreign.iter().filter(|_| is_first) {
                let what = format!("{name}: {}", foreign.to_string_lossy());
                self.leave_out(what, WhyLeftOut::Foreign);
            }
            is_first = false;
            for key in &page.keys {
                self.stored(name, store, key, format);
            }
            match page.next {
                Some(next) => query = query.after(next),
                None => return,
            }
        }
    }

    fn stored(&mut self, name: &str, store: &dyn CheckpointStore, key: &Key, format: Option<&str>) {
        let place = Place {
            store: Some(name.to_owned()),
            key: Some(key.to_string()),
            ..Place::default()
        };
        let stored = match store.load(key) {
            Ok(Some(stored)) => stored,
            // Gone since it was listed.
            Ok(None) => return,
            Err(error) => {
                self.push(Row::new(place, state(&error)));
                return;
            }
        };
        let format = match self.format_of_key(key, &stored, format) {
            Ok(format) => format,
            Err(error) if matches!(error.kind(), ErrorKind::UnknownFormat { name: None, .. }) => {
                return self.leave_out(place, WhyLeftOut::Foreign);
            }
            Err(error) => {
                self.push(Row::new(place, state(&error)));
                return;
            }
        };
        let layout = (format.layout)();
        let found = Found {
            place,
            document: &stored.document,
            format,
            id: layout.key_in.and_then(|key_in| key_in(&stored.document)),
            // In a host file a key is a place, and no id.
            key: (!store.capabilities().embedded).then(|| key.clone()),
            names: None,
            context: stored.context.clone(),
            copy: None,
        };
        let beside = |scan: &mut Self, _: &Key, present: &claims::Present<'_>| {
            claims::of_key(name, store, key, present, scan)
        };
        self.checkpoint(found, None, beside);
    }

    fn format_of_key(
        &self,
        key: &Key,
        stored: &Stored,
        format: Option<&str>,
    ) -> Result<Format, Error> {
        match format {
            Some(name) => self.options.formats.get(name).copied(),
            None => {
                let name = (Layout::default().file_name)(key)?;
                self.format_of(Path::new(&name), &stored.document)
            }
        }
    }
}

fn state(error: &Error) -> RowState {
    let reason = bounded::text(&error.to_string());
    match error.kind() {
        ErrorKind::Corrupt(_) | ErrorKind::TooLarge { .. } => RowState::Corrupt { reason },
        _ => RowState::Unreadable { reason },
    }
}
