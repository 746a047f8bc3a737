//! Reads the checkpoints of a store, a page of keys at a time.

use std::collections::BTreeMap;
use std::path::Path;

use super::inspect::Found;
use super::kept::Version;
use super::scan::Scan;
use super::{Place, Row, SkipReason};
use crate::checkpoint::{Error, ErrorKind, Inputs, Key, Layout};
use crate::registry::Format;
use crate::store::{CheckpointStore, Listed, ListedLedger, Page, Query, Stored};

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
        let mut query = Query::all().with_limit(PAGE).with_ledgers();
        let mut is_first = true;
        loop {
            let (page, again) = match self.page(store, &query) {
                Ok(page) => page,
                Err(error) => return self.skip(name, SkipReason::Unreadable(error.to_string())),
            };
            // Every page names all foreign files, so they are taken from the first.
            for foreign in page.foreign.iter().filter(|_| is_first) {
                let what = format!("{name}: {}", foreign.to_string_lossy());
                self.skip(what, SkipReason::Foreign);
            }
            is_first = false;
            for (listed, again) in page.entries.into_iter().zip(again) {
                let rows = self.rows.len();
                match again {
                    Some(row) => self.complete(row),
                    None => self.listed(name, store, listed, format),
                }
                (rows..self.rows.len()).for_each(|row| on_row(row + 1));
            }
            match page.next {
                Some(next) => query = query.after(next),
                None => break,
            }
        }
        let rows = self.rows.len();
        self.claimed_in(name, store);
        (rows..self.rows.len()).for_each(|row| on_row(row + 1));
    }

    /// Adds the tasks that are claimed and have no checkpoint.
    fn claimed_in(&mut self, name: &str, store: &dyn CheckpointStore) {
        let alone = store.claims().map(|it| it.claimed_without_document());
        let keys = match alone.unwrap_or(Ok(Vec::new())) {
            Ok(keys) => keys,
            Err(error) => return self.skip(name, SkipReason::Unreadable(error.to_string())),
        };
        for key in keys {
            let place = Place {
                store: Some(name.to_owned()),
                key: Some(key.to_string()),
                ..Place::default()
            };
            self.claim_of_key(place, (store, &key), None, None, &|_| false);
        }
    }

    /// Reads a page, with the rows of the keys that did not change since the earlier scan. For all others the page
    /// holds the documents, if the store provides them.
    fn page(
        &self,
        store: &dyn CheckpointStore,
        query: &Query,
    ) -> Result<(Page, Vec<Option<Row>>), Error> {
        if self.before.is_none() {
            let page = store.list(&query.clone().with_documents())?;
            let rows = page.entries.iter().map(|_| None).collect();
            return Ok((page, rows));
        }
        let mut page = store.list(query)?;
        let again = page.entries.iter().map(|listed| self.key_again(listed));
        let rows: Vec<Option<Row>> = again.collect();
        let mut to_read = BTreeMap::new();
        for (listed, row) in page.entries.iter_mut().zip(&rows) {
            if row.is_none() && listed.version.is_some() {
                to_read.insert(listed.key.clone(), listed);
            }
        }
        if !to_read.is_empty() {
            let keys = to_read.keys().cloned();
            let read = store.list(&Query::all().with_keys(keys).with_documents())?;
            for read in read.entries {
                if let Some(listed) = to_read.get_mut(&read.key) {
                    // The ledger of the first listing stays: a line added since then is found by the next scan.
                    let ledger = std::mem::take(&mut listed.ledger);
                    **listed = read.with_ledger(ledger);
                }
            }
        }
        Ok((page, rows))
    }

    fn listed(
        &mut self,
        name: &str,
        store: &dyn CheckpointStore,
        listed: Listed,
        format: Option<&str>,
    ) {
        let key = &listed.key;
        let place = Place {
            store: Some(name.to_owned()),
            key: Some(key.to_string()),
            ..Place::default()
        };
        let (stored, claim) = match listed.content {
            Some(content) => (content.stored, Some(content.claim)),
            None => match store.load(key) {
                Ok(Some(stored)) => (stored, None),
                // Deleted since the list was made.
                Ok(None) => return,
                Err(error) => return self.push_unreadable(place, None, &error),
            },
        };
        let format = match self.format_of_key(key, &stored, format) {
            Ok(format) => format,
            Err(error) if matches!(error.kind(), ErrorKind::UnknownFormat { name: None, .. }) => {
                return self.skip(place, SkipReason::Foreign);
            }
            Err(error) => return self.push_unreadable(place, None, &error),
        };
        let layout = format.layout();
        let ledger = listed.ledger.clone();
        let has_ledger = ledger != ListedLedger::Empty;
        // In a host file a key is a slot and no id.
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
                version: listed
                    .version
                    .map(|version| Version::Store(version, ledger)),
                claim,
                has_ledger,
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
