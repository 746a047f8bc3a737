//! `ckpt list`: the keys of a store.

use std::path::Path;

use agent_checkpoint::fleet::{Fleet, Row, RowState};
use agent_checkpoint::formats::{FileRole, Format, Layout};
use agent_checkpoint::store::read_document;
use serde::Serialize;

use super::scan::{self, Opened};
use crate::backend::Access;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::{Outcome, harmless};

#[derive(Serialize)]
struct Entry {
    key: Option<String>,
    /// For a host file, in place of a key.
    slot: Option<String>,
    /// Absent if the format is unknown.
    format: Option<&'static str>,
    /// Absent in a store without files.
    file: Option<String>,
}

pub(super) fn run(store: Option<&Path>, global: &Global) -> Result<Outcome, Failure> {
    if global.key.is_some() || global.slot.is_some() {
        return Err(Failure::usage(
            "list shows all checkpoints of a store; omit --key and --slot",
        ));
    }
    let store = match (store, &global.store) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage("STORE and --store are both given; omit one"));
        }
        (None, None) => {
            return Err(Failure::usage(
                "which store? Name it, such as `ckpt list checkpoints`, or with --store PATH (or CKPT_STORE)",
            ));
        }
        (Some(store), None) => store,
        (None, Some(store)) => store,
    };
    let mut outcome = Outcome::new();
    let opened = Opened::new(store, Access::Read, global)?.or_not_begun(global, &mut outcome);
    // Sub-folders are separate stores.
    let options = scan::options(global)?.with_depth(0);
    let fleet = Fleet::scan(&[opened.source()], &options, global.now());
    scan::tell_skipped(&fleet, &mut outcome);
    let is_corrupt = |row: &Row| matches!(row.state, RowState::Corrupt { .. });
    if fleet.rows().iter().any(is_corrupt) {
        outcome.exit = outcome.exit.and(Exit::Corrupt);
    }
    // A claim alone is no checkpoint.
    let rows = fleet.rows().iter();
    let rows = rows.filter(|row| row.state != RowState::Claimed);
    let mut entries: Vec<Entry> = rows.map(|row| entry(row, global)).collect();
    entries.sort_by(|one, other| (&one.key, &one.file).cmp(&(&other.key, &other.file)));
    if global.json {
        outcome.json(&entries);
        return Ok(outcome);
    }
    for entry in entries {
        let key = entry.key.or(entry.slot);
        let columns = [key.as_deref(), entry.format, entry.file.as_deref()];
        // Scripts use the key, so its spaces stay.
        let columns = columns.map(|text| harmless(text.unwrap_or("-")).replace(['\t', '\n'], "?"));
        outcome.styled(columns.join("\t").trim_end_matches("\t-"));
    }
    Ok(outcome)
}

fn entry(row: &Row, global: &Global) -> Entry {
    let place = &row.place;
    Entry {
        key: match place.slot {
            Some(_) => None,
            None => key(row, global),
        },
        slot: place.slot.clone(),
        format: row.format,
        file: place.file.as_ref().map(|file| file.display().to_string()),
    }
}

/// The key of a row in a store that is no host file.
pub(super) fn key(row: &Row, global: &Global) -> Option<String> {
    let format = row.format.and_then(|name| global.formats.get(name).ok());
    let of_file = || key_of(row.place.file.as_deref()?, format, global);
    row.place.key.clone().or_else(of_file)
}

/// The key of a file in its folder: from its name, or from its text if the protocol keeps it there.
fn key_of(file: &Path, format: Option<&Format>, global: &Global) -> Option<String> {
    let layout = format.map_or_else(Layout::default, Format::layout);
    let key = match (layout.role)(file.file_name()?.to_str()?) {
        FileRole::Current(Some(key)) => Some(key),
        _ => {
            let document = read_document(file, global.max_bytes).ok()??;
            layout.key_in.and_then(|key_in| key_in(&document))
        }
    };
    key.map(|key| key.to_string())
}
