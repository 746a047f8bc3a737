//! `ckpt status --watch`: a line for each event.
//!
//! Notices of changed files (from the system) and of changed keys (from their store) only trigger a scan. The events
//! come from comparing two scans. So without notices the periodic scans give the same lines a little later.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use agent_checkpoint::fleet::{Event, Fleet, FleetOptions, Source};
use agent_checkpoint::store::CheckpointStore;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use super::judged::{judge, scanned, shown};
use super::tables;
use crate::args::Status;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::{self, Outcome, one_line};

/// How long to wait for more notices after one, because a save causes several.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// How soon it ends after its reader is gone.
const UNREAD_WITHIN: Duration = Duration::from_secs(1);

pub(super) fn run<'s>(
    sources: &[Source<'_>],
    stores: impl Iterator<Item = &'s Arc<dyn CheckpointStore>>,
    options: &FleetOptions,
    how: &Status,
    global: &Global,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::new();
    let mut fleet = scanned(sources, options, global, &mut outcome);
    judge(&fleet, &mut outcome);
    if fleet.rows().is_empty() && outcome.exit == crate::exit::Exit::Failed {
        // None of the named places exists.
        return Ok(outcome);
    }
    let first = if global.json {
        compact(&fleet)?
    } else {
        tables::table(&shown(fleet.clone(), how))
    };
    let mut notices = Notices::new(&mut outcome);
    stores.for_each(|store| notices.listen(store, how.every));
    output::notes_now(&mut outcome);
    let mut goes_on = output::print_now(&first)?;
    while goes_on {
        notices.follow(sources, &fleet);
        notices.wait(how.every);
        if output::is_unread() {
            break;
        }
        let next = fleet.rescan(sources, global.now());
        for event in next.changes_since(&fleet) {
            goes_on &= output::print_now(&line(&event, &next, global)?)?;
        }
        fleet = next;
    }
    Ok(Outcome::new())
}

fn line(event: &Event, fleet: &Fleet, global: &Global) -> Result<String, Failure> {
    if global.json {
        return compact(event);
    }
    let time = fleet.now().format("%H:%M:%SZ");
    let text = format!("{time}  {:<9}  {}", event.event.as_str(), event.text);
    Ok(format!("{}\n", keep_columns(&text)))
}

/// One line that keeps the spaces of its columns.
fn keep_columns(text: &str) -> String {
    let (columns, rest) = text.split_at_checked(22).unwrap_or((text, ""));
    format!("{}{}", output::harmless(columns), one_line(rest))
}

fn compact(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value);
    let text = text.map_err(|error| Failure::new(format!("cannot be written as JSON: {error}")))?;
    let text = output::harmless_json(&text, output::redaction().as_ref());
    Ok(format!("{text}\n"))
}

/// The sources of notices about changed files and keys.
struct Notices {
    watcher: Option<RecommendedWatcher>,
    tell: Sender<()>,
    heard: Receiver<()>,
    followed: BTreeSet<PathBuf>,
}

impl Notices {
    fn new(outcome: &mut Outcome) -> Notices {
        let (tell, heard) = channel();
        let by_system = tell.clone();
        let made = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Ignore reads: a scan reads, too.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = by_system.send(());
            }
        });
        let watcher = match made {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                outcome.note(format!(
                    "the system does not report changes ({error}), so the folder is scanned again and again"
                ));
                None
            }
        };
        Notices {
            watcher,
            tell,
            heard,
            followed: BTreeSet::new(),
        }
    }

    /// Listens for the writes of a store, if it supports that. If this fails, it is tried again after each interval.
    fn listen(&self, store: &Arc<dyn CheckpointStore>, every: Duration) {
        let (tell, store) = (self.tell.clone(), Arc::clone(store));
        thread::spawn(move || {
            while let Some(changes) = store.changes() {
                if let Ok(mut listener) = changes.listen() {
                    // There may have been writes before the listener started.
                    let mut heard = Ok(true);
                    while let Ok(is_change) = heard {
                        if is_change && tell.send(()).is_err() {
                            return;
                        }
                        heard = listener.next(every).map(|key| key.is_some());
                    }
                }
                thread::sleep(every);
            }
        });
    }

    /// Watches the named folders and those with checkpoints, not every folder of a project.
    fn follow(&mut self, sources: &[Source<'_>], fleet: &Fleet) {
        let named = sources.iter().filter_map(|source| match source {
            Source::Folder(path) => Some(path.as_path()),
            _ => None,
        });
        let files = fleet
            .rows()
            .iter()
            .filter_map(|row| row.place.file.as_deref());
        let folders = named.chain(files).map(|path| {
            let folder = if path.is_dir() {
                Some(path)
            } else {
                path.parent()
            };
            let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
            folder.unwrap_or(Path::new(".")).to_path_buf()
        });
        let folders: BTreeSet<PathBuf> = folders.collect();
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        for folder in folders {
            if !self.followed.contains(&folder)
                && watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok()
            {
                self.followed.insert(folder);
            }
        }
        // A folder that was removed and created again must be watched anew.
        self.followed.retain(|folder| folder.is_dir());
    }

    /// Waits until something changes, the interval is over, or the reader is gone.
    fn wait(&self, every: Duration) {
        let until = Instant::now() + every;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.heard.recv_timeout(left.min(UNREAD_WITHIN)).is_ok() {
                break;
            }
            if left <= UNREAD_WITHIN || output::is_unread() {
                return;
            }
        }
        while self.heard.recv_timeout(SETTLED_AFTER).is_ok() && Instant::now() < until {}
    }
}
