//! The mapping between keys and files.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::own_file::folders;
use super::{DurableFile, FileStore, Place};
use crate::checkpoint::{Error, ErrorKind, FileRole, Key, Layout, Result};
use crate::formats::builder_state::{Slot, SlotPlace};
use crate::fsio;
use crate::store::{Page, Query};

impl FileStore {
    /// The path of the file of a key, whether or not it exists.
    ///
    /// If the protocol keeps ids in its files, an existing file counts under the id inside it, whatever its
    /// name, unless the file named after the id exists too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`] when the key makes too long a name, and in a store of one file for any key but
    /// its own. [`ErrorKind::Ambiguous`] when two files with other names have the id.
    pub fn path(&self, key: &Key) -> Result<PathBuf> {
        match &*self.place {
            Place::Folder { path, layout } => {
                let usual = path.join((layout.file_name)(key)?);
                if layout.key_in.is_none() || fsio::look(&usual)?.is_some() {
                    return Ok(usual);
                }
                Ok(self.strange_file(path, layout, key)?.unwrap_or(usual))
            }
            Place::Host { path } => Ok(path.clone()),
            Place::Single {
                path, key: only, ..
            } if only == key => Ok(path.clone()),
            Place::Single { .. } => Err(Error::new(ErrorKind::InvalidKey {
                text: key.to_string(),
                reason: "this store has only one file, and it is under another key",
            })),
        }
    }

    /// The role of a file, by its name. A file named after the id inside it is no archive, even if the id looks
    /// like an archive name.
    pub(super) fn role(&self, folder: &Path, layout: &Layout, name: &str) -> FileRole {
        let role = (layout.role)(name);
        let bears_its_id = || {
            let id = self.key_inside(&folder.join(name), layout);
            id.is_some_and(|id| (Layout::default().file_name)(&id).is_ok_and(|own| own == name))
        };
        if role == FileRole::Archive && bears_its_id() {
            return FileRole::Current(None);
        }
        role
    }

    /// The file with another name that has this id inside.
    fn strange_file(&self, folder: &Path, layout: &Layout, key: &Key) -> Result<Option<PathBuf>> {
        let mut files: Vec<PathBuf> = Vec::new();
        for name in fsio::names(folder)? {
            let is_unnamed = name
                .to_str()
                .is_some_and(|name| self.role(folder, layout, name) == FileRole::Current(None));
            let path = folder.join(&name);
            if is_unnamed && self.key_inside(&path, layout).as_ref() == Some(key) {
                files.push(path);
            }
        }
        match files.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(only.clone())),
            several => Err(Error::new(ErrorKind::Ambiguous {
                what: "file with this id",
                candidates: several
                    .iter()
                    .map(|file| file.display().to_string())
                    .collect(),
            })
            .with_key(key)),
        }
    }

    /// The keys of files whose names do not determine them. The key is the id inside, if that id leads to this
    /// file; else the name, if that does. So a corrupt file is listed too, and loading it reports the damage. A
    /// file that no key leads to has none.
    fn keys_of(
        &self,
        folder: &Path,
        layout: &Layout,
        names: Vec<String>,
    ) -> Vec<(String, Option<Key>)> {
        let inside: Vec<Option<Key>> = names
            .iter()
            .map(|name| self.key_inside(&folder.join(name), layout))
            .collect();
        let mut holders: HashMap<&Key, usize> = HashMap::new();
        for key in inside.iter().flatten() {
            *holders.entry(key).or_default() += 1;
        }
        let usual = |key: &Key| (layout.file_name)(key).unwrap_or_default();
        let present: HashSet<&String> = names.iter().collect();
        let keys: Vec<Option<Key>> = names
            .iter()
            .zip(&inside)
            .map(|(name, inside)| {
                let leads_here = |key: &&Key| {
                    let usual = usual(key);
                    usual == *name || (!present.contains(&usual) && holders.get(*key) == Some(&1))
                };
                let by_name = || {
                    let stem = Path::new(name).file_stem()?.to_str()?;
                    Key::new(stem).ok().filter(|key| usual(key) == *name)
                };
                inside.as_ref().filter(leads_here).cloned().or_else(by_name)
            })
            .collect();
        names.into_iter().zip(keys).collect()
    }

    /// The key in the content of a file; `None` if the file cannot be read or has none.
    fn key_inside(&self, path: &Path, layout: &Layout) -> Option<Key> {
        let key_in = layout.key_in?;
        self.options.ids.of(path, || {
            let file = DurableFile::new(path.to_path_buf(), &self.options);
            key_in(&file.load().ok()??.document)
        })
    }

    /// The keys in the store.
    pub(super) fn keys(&self, query: &Query) -> Result<Page> {
        let (folder, layout) = match &*self.place {
            Place::Single { path, key, .. } => {
                let there = fsio::look(path)?.is_some();
                return Ok(query.page(there.then(|| key.clone())));
            }
            Place::Host { .. } => return self.slots(query),
            Place::Folder { path, layout } => (path, layout),
        };
        let mut keys = Vec::new();
        let mut foreign = Vec::new();
        let mut unnamed = Vec::new();
        for name in fsio::names(folder)? {
            let Some(text) = name.to_str() else {
                foreign.push(name);
                continue;
            };
            match self.role(folder, layout, text) {
                FileRole::Current(Some(key)) => keys.push(key),
                FileRole::Current(None) => unnamed.push(text.to_owned()),
                FileRole::Foreign if text.ends_with(".json") => foreign.push(name),
                FileRole::Archive | FileRole::Foreign => {}
            }
        }
        for (name, key) in self.keys_of(folder, layout, unnamed) {
            match key {
                Some(key) => keys.push(key),
                None => foreign.push(name.into()),
            }
        }
        let mut page = query.page(keys);
        foreign.sort();
        page.foreign = foreign;
        Ok(page)
    }

    /// The keys, in order, that may be claimed but have no document: empty slots, and names of claim records.
    pub(super) fn keys_without_file(&self) -> Result<Vec<Key>> {
        let (folder, layout) = match &*self.place {
            Place::Single { path, key, .. } => {
                let is_there = fsio::look(path)?.is_some();
                return Ok((!is_there).then(|| key.clone()).into_iter().collect());
            }
            Place::Host { .. } => {
                let places = self.places()?.into_iter();
                let empty = places.filter(|place| !place.occupied);
                let mut keys: Vec<Key> = empty.filter_map(|place| place.key().ok()).collect();
                keys.sort();
                return Ok(keys);
            }
            Place::Folder { path, layout } => (path, layout),
        };
        let mut keys = Vec::new();
        for record in fsio::names(&folder.join(fsio::OWN_FOLDER).join(folders::CLAIMS))? {
            let Some(name) = record.to_str().and_then(|it| it.strip_suffix(".json")) else {
                continue;
            };
            if fsio::look(&folder.join(name))?.is_some() {
                continue;
            }
            let by_stem = || Key::new(name.strip_suffix(".json")?).ok();
            let key = match (layout.role)(name) {
                FileRole::Current(key) => key.or_else(by_stem),
                FileRole::Archive | FileRole::Foreign => None,
            };
            keys.extend(key);
        }
        keys.sort();
        Ok(keys)
    }

    /// The slots of a host that have a checkpoint.
    fn slots(&self, query: &Query) -> Result<Page> {
        let mut keys = Vec::new();
        let mut foreign = Vec::new();
        for place in self.places()?.iter().filter(|place| place.occupied) {
            match place.key() {
                Ok(key) => keys.push(key),
                Err(_) => foreign.push(place.slot.to_string().into()),
            }
        }
        let mut page = query.page(keys);
        page.foreign = foreign;
        Ok(page)
    }

    /// The slots of a host as it is now; none if there is no file, or if this is no host file.
    pub(in crate::store) fn places(&self) -> Result<Vec<SlotPlace>> {
        let Place::Host { path } = &*self.place else {
            return Ok(Vec::new());
        };
        let host = DurableFile::new(path.clone(), &self.options).load()?;
        Ok(host.map_or_else(Vec::new, |host| Slot::places(&host.document)))
    }
}
