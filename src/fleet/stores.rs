//! The checkpoints of a store, a page of keys at a time.

use std::path::Path;

use super::inspect::Found;
use super::scan::Scan;
use super::{Place, SkipReason};
use crate::checkpoint::{Error, ErrorKind, Inputs, Key, Layout};
use crate::registry::Format;
use crate::store::{CheckpointStore, Query, Stored};

/// How many keys a page has.
const PAGE: usize = 256;

impl Scan<'_> {
    pub(super) fn store(
        &mut self,
        name: &str,
        store: &dyn CheckpointStore,
        format: Option<&str>,
        on_row: &mut dyn FnMut(usize),
    ) {
        let mut query = Query::all().with_limit(PAGE);
        let mut is_first = true;
        loop {
            let page = match store.list(&query) {
                Ok(page) => page,
                Err(error) => return self.skip(name, SkipReason::Unreadable(error.to_string())),
            };
            // Every page names all foreign files.
            for foreign in page.foreign.iter().filter(|_| is_first) {
                let what = format!("{name}: {}", foreign.to_string_lossy());
                self.skip(what, SkipReason::Foreign);
            }
            is_first = false;
            for key in &page.keys {
                let rows = self.rows.len();
                self.stored(name, store, key, format);
                (rows..self.rows.len()).for_each(|row| on_row(row + 1));
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
            // Deleted since the list was made.
            Ok(None) => return,
            Err(error) => return self.push_unreadable(place, None, &error),
        };
        let format = match self.format_of_key(key, &stored, format) {
            Ok(format) => format,
            Err(error) if matches!(error.kind(), ErrorKind::UnknownFormat { name: None, .. }) => {
                return self.skip(place, SkipReason::Foreign);
            }
            Err(error) => return self.push_unreadable(place, None, &error),
        };
        let layout = format.layout();
        // In a host file a key is a place, and no id.
        let is_id = !store.capabilities().embedded;
        self.checkpoint(
            Found {
                place,
                document: &stored.document,
                format,
                id: layout.key_in.and_then(|key_in| key_in(&stored.document)),
                key: is_id.then(|| key.clone()),
                names: None,
                context: stored.context.clone(),
                checkout: None,
                read: None,
                is_unclaimed: false,
                store: Some((store, key.clone())),
            },
            &Inputs::default(),
        );
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
                self.format_of(Path::new(&name), Some(&stored.document))
            }
        }
    }
}
