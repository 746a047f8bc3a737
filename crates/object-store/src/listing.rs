//! Listings of keys: what the service's listing reports of each, and what has to be read.

use std::collections::BTreeSet;
use std::ffi::OsString;

use agent_checkpoint::store::{Listed, Page, Query};
use agent_checkpoint::{Key, Result};
use object_store::ObjectMeta;
use object_store::path::Path;

use crate::failure::{Failure, unordered_listing};
use crate::head::{Head, has_document};
use crate::keys::{before, key_of, name_of};
use crate::remote::{Got, Time};
use crate::store::ObjectCheckpointStore;

impl ObjectCheckpointStore {
    /// The keys after the start of the query, at least one more than it asks for if there are so many, and the names
    /// that no key has.
    pub(crate) fn listed(&self, query: &Query, time: Time) -> Result<(Vec<Listed>, Vec<OsString>)> {
        let beginning = name_of(query.prefix.as_deref().unwrap_or_default());
        let after = query.after.as_ref().map(|key| name_of(key.as_str()));
        let mut after = after.max(before(&beginning));
        // Ask for one more than is wanted, to see whether there is another page.
        let enough = query
            .limit
            .map_or(usize::MAX, |limit| limit.saturating_add(1));
        let (mut all, mut foreign) = (Vec::new(), Vec::new());
        while all.len() < enough {
            let some = enough - all.len();
            let listed = self.objects_after(after.as_deref(), &beginning, some, time)?;
            let is_end = listed.len() < some;
            after = listed.last().map(|(name, _)| name.clone());
            let are_there = self.have_documents(&listed, time)?;
            for ((name, object), is_there) in listed.into_iter().zip(are_there) {
                match key_of(&name) {
                    Some(key) if is_there => all.push(listed_as(key, object.e_tag)),
                    Some(_) => {}
                    None => foreign.push(name.into()),
                }
            }
            if is_end {
                break;
            }
        }
        Ok((all, foreign))
    }

    /// The keys without a document whose claim was not released.
    pub(crate) fn held_alone(&self, time: Time) -> Result<Vec<Key>> {
        let listed = self.objects_after(None, "", usize::MAX, time)?;
        // The size of most objects shows that they have a document.
        let listed = listed
            .into_iter()
            .filter(|(_, object)| !has_document(object.size));
        let keys: Vec<Key> = listed.filter_map(|(name, _)| key_of(&name)).collect();
        let paths = keys
            .iter()
            .map(|key| self.place.document(&name_of(key.as_str())));
        let read = self.read(paths.collect::<Result<_>>()?, time)?;
        let is_held = |head: &Head| {
            let claim = head.header.claim.as_ref();
            !head.is_there() && claim.is_some_and(|claim| !claim.released)
        };
        let held = keys.into_iter().zip(read);
        let held = held.filter(|(_, head)| {
            head.as_ref()
                .is_some_and(|it| it.as_ref().is_some_and(is_held))
        });
        Ok(held.map(|(key, _)| key).collect())
    }

    /// Those of these keys that have a document. Each is read by itself, because a listing would include all other
    /// keys.
    pub(crate) fn listed_keys(
        &self,
        keys: &BTreeSet<Key>,
        query: &Query,
        time: Time,
    ) -> Result<Vec<Listed>> {
        let prefix = query.prefix.as_deref().unwrap_or_default();
        let is_wanted = |key: &&Key| {
            key.as_str().starts_with(prefix)
                && query.after.as_ref().is_none_or(|after| *key > after)
        };
        let keys: Vec<&Key> = keys.iter().filter(is_wanted).collect();
        let paths = keys
            .iter()
            .map(|key| self.place.document(&name_of(key.as_str())));
        let read = self.read(paths.collect::<Result<_>>()?, time)?;
        let mut room = if query.documents { self.max_bytes } else { 0 };
        let mut all = Vec::new();
        for (key, got) in keys.into_iter().zip(read) {
            let Some(got) = got else { continue };
            let e_tag = got.as_ref().and_then(|head| head.e_tag());
            let mut listed = listed_as(key.clone(), e_tag.map(str::to_owned));
            match got {
                Some(head) if !head.is_there() => continue,
                Some(head) => self.give(&mut listed, &head, &mut room),
                None => {}
            }
            all.push(listed);
        }
        Ok(all)
    }

    /// Adds the documents and claims to the keys of a page, in one round of reads, as far as there is room.
    pub(crate) fn fill(&self, page: &mut Page, time: Time) -> Result<()> {
        let paths = page
            .entries
            .iter()
            .map(|listed| self.place.document(&name_of(listed.key.as_str())));
        let mut read = self.read(paths.collect::<Result<_>>()?, time)?.into_iter();
        let mut room = self.max_bytes;
        for listed in &mut page.entries {
            // Only of the version that was listed; the next listing reports a later one.
            if let Some(Some(Some(head))) = read.next()
                && head.e_tag() == listed.version.as_deref()
            {
                self.give(listed, &head, &mut room);
            }
        }
        Ok(())
    }

    fn give(&self, listed: &mut Listed, head: &Head, room: &mut u64) {
        let bytes = head.text.len() as u64;
        if bytes <= *room
            && let Ok(Some(stored)) = head.stored(self.max_bytes)
        {
            *room -= bytes;
            *listed = listed
                .clone()
                .with_content(stored, head.header.claim.clone());
        }
    }

    /// Reads the objects of keys: `None` if there is none, `Some(None)` if it cannot be read.
    fn read(&self, paths: Vec<Path>, time: Time) -> Result<Vec<Option<Option<Head>>>> {
        let read = self.remote.get_all(paths, self.most_bytes(), time);
        let read = read.map_err(Failure::into_error)?;
        let head = |got| match got {
            Ok(Got::Whole(object)) => Ok(Some(Head::of(object).ok())),
            Ok(Got::TooLarge(_)) => Ok(Some(None)),
            Err(Failure::Absent) => Ok(None),
            Err(failure) => Err(failure.into_error()),
        };
        read.into_iter().map(head).collect()
    }

    /// The next objects of keys by name, at most `most`.
    fn objects_after(
        &self,
        after: Option<&str>,
        beginning: &str,
        most: usize,
        time: Time,
    ) -> Result<Vec<(String, ObjectMeta)>> {
        let folder = self.place.document("")?;
        let offset = after.map(|name| self.place.document(name)).transpose()?;
        let start = format!("{folder}/{beginning}");
        let take = move |found: usize, object: &ObjectMeta| {
            found < most && object.location.as_ref().starts_with(&start)
        };
        let listed = self.remote.list(&folder, offset, take, time);
        let listed = listed.map_err(Failure::into_error)?;
        let name = |object: ObjectMeta| {
            let name = &object.location.as_ref()[folder.as_ref().len() + 1..];
            (name.to_owned(), object)
        };
        let listed: Vec<_> = listed.into_iter().map(name).collect();
        let is_behind = |name: &str| after.is_none_or(|after| after < name);
        if listed.is_sorted_by(|(one, _), (two, _)| one < two)
            && listed.first().is_none_or(|(first, _)| is_behind(first))
        {
            return Ok(listed);
        }
        Err(unordered_listing())
    }

    /// Which of these objects have a document. The size of most shows it; the others are read once for each e-tag.
    fn have_documents(&self, listed: &[(String, ObjectMeta)], time: Time) -> Result<Vec<bool>> {
        let known = &self.shared.known;
        let look = |(name, object): &(String, ObjectMeta)| {
            if has_document(object.size) || key_of(name).is_none() {
                return Some(true);
            }
            known.find(name, object)
        };
        let mut found: Vec<Option<bool>> = listed.iter().map(look).collect();
        let unclear = found.iter().zip(listed).filter(|(has, _)| has.is_none());
        let paths: Vec<Path> = unclear
            .map(|(_, (_, object))| object.location.clone())
            .collect();
        let mut read = self.read(paths, time)?.into_iter();
        for (has, (name, object)) in found.iter_mut().zip(listed) {
            if has.is_none() {
                // An object that cannot be read counts as a document.
                let is_there = read.next().flatten();
                let is_there = is_there.is_some_and(|head| head.is_none_or(|head| head.is_there()));
                known.note(name, object, is_there);
                *has = Some(is_there);
            }
        }
        Ok(found.into_iter().map(Option::unwrap_or_default).collect())
    }
}

fn listed_as(key: Key, e_tag: Option<String>) -> Listed {
    let listed = Listed::from(key);
    match e_tag {
        Some(e_tag) => listed.with_version(e_tag),
        None => listed,
    }
}
