//! The folders and stores that a command line names, and the messages of all verbs that scan.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_checkpoint::fleet::{Fleet, FleetOptions, SkipReason, Source};
use agent_checkpoint::store::{CheckpointStore, MemoryStore};

use crate::backend::{self, Access};
use crate::failure::Failure;
use crate::global::Global;
use crate::global::Origin;
use crate::output::Outcome;

/// A folder, or a store with its address.
pub(super) enum Opened {
    Folder(PathBuf),
    Store(String, Arc<dyn CheckpointStore>),
}

impl Opened {
    pub(super) fn new(path: &Path, access: Access, global: &Global) -> Result<Opened, Failure> {
        if !backend::is_address(path) {
            return Ok(Opened::Folder(path.to_path_buf()));
        }
        let store = backend::open(path, access, global)?;
        let address = backend::shown(path).display().to_string();
        Ok(Opened::Store(address, store))
    }

    /// An empty store instead of the folder of `ckpt.toml` if there is no such folder yet. A folder that the command line or
    /// the environment names must exist: its name may be misspelled.
    pub(super) fn or_not_begun(self, global: &Global, outcome: &mut Outcome) -> Opened {
        match self {
            Opened::Folder(path)
                if matches!(global.origin("store"), Origin::File(_))
                    && global.store.as_deref() == Some(&*path)
                    && !path.is_symlink()
                    && matches!(path.try_exists(), Ok(false)) =>
            {
                let name = path.display().to_string();
                outcome.note(format!(
                    "{name} does not exist yet; `ckpt start` creates it"
                ));
                Opened::Store(name, Arc::new(MemoryStore::new()))
            }
            opened => opened,
        }
    }

    pub(super) fn store(&self) -> Option<&Arc<dyn CheckpointStore>> {
        match self {
            Opened::Folder(_) => None,
            Opened::Store(_, store) => Some(store),
        }
    }

    pub(super) fn source(&self) -> Source<'_> {
        match self {
            Opened::Folder(path) => Source::folder(path),
            Opened::Store(address, store) => Source::store(address, store),
        }
    }
}

/// The scan options of all verbs.
pub(super) fn options(global: &Global) -> Result<FleetOptions, Failure> {
    let options = FleetOptions::new()
        .with_max_bytes(global.max_bytes)
        .with_formats(global.formats.clone());
    Ok(match &global.format {
        None => options,
        Some(name) => {
            global.formats.get(name)?;
            options.with_format(name)
        }
    })
}

/// Reports the places that were skipped.
pub(super) fn tell_skipped(fleet: &Fleet, outcome: &mut Outcome) {
    for skipped in fleet.skipped() {
        match &skipped.why {
            SkipReason::Unreadable(reason) => outcome.fail(&Failure::new(format!(
                "{}: {reason}; check the path and its rights",
                skipped.what
            ))),
            SkipReason::NotAFile => outcome.note(format!(
                "{} is a pipe, a socket or a device, and was skipped; move it away if a checkpoint belongs there",
                skipped.what
            )),
            _ => {}
        }
    }
}
