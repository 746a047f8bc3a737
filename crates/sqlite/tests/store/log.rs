//! What a power loss may leave of the log: everything behind the last sync is lost, cut or garbled.

use std::fs;
use std::path::{Path, PathBuf};

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Keep, Put};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest};
use agent_checkpoint_sqlite::SqliteStore;
use tempfile::tempdir;

use crate::{key, number_at, numbered};

const HEADER: usize = 32;
const FRAME: usize = 24 + 4096;
const SAVES: usize = 6;

/// The files at the time when a save was acknowledged. The index (`-shm`) is never synced; SQLite rebuilds it.
struct Image {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Image {
    fn of(path: &Path) -> Image {
        Image {
            database: bytes_of(path),
            log: bytes_of(&log_of(path)),
        }
    }

    fn open(&self, folder: &Path, log: &[u8]) -> SqliteStore {
        let path = folder.join("cut.db");
        let _none_yet = fs::remove_file(folder.join("cut.db-shm"));
        fs::write(&path, &self.database).unwrap();
        fs::write(log_of(&path), log).unwrap();
        SqliteStore::open(&path).unwrap()
    }
}

fn log_of(path: &Path) -> PathBuf {
    format!("{}-wal", path.display()).into()
}

/// Read by another process: SQLite's locks on a file end when its own process closes that file anywhere.
fn bytes_of(path: &Path) -> Vec<u8> {
    let read = std::process::Command::new("cat")
        .arg(path)
        .output()
        .unwrap();
    assert!(read.status.success());
    read.stdout
}

#[cfg(unix)]
#[test]
fn whatever_is_lost_behind_the_last_sync_no_acknowledged_save_is() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut images = Vec::new();
    let mut fence = None;
    for number in 0..SAVES {
        // A claim is acknowledged like a save.
        if number == 3 {
            let request = ClaimRequest::new("one", std::time::Duration::from_secs(3600));
            fence = Some(store.claim(&key("a"), &request).unwrap().fence);
        }
        let put = numbered(number as u64).with_fence(fence);
        store.put(&key("a"), put).unwrap();
        images.push(Image::of(&path));
    }
    let elsewhere = tempdir().unwrap();
    let mut tried = 0;
    for (number, pair) in images.windows(2).enumerate() {
        let [acknowledged, next] = pair else { continue };
        let (begin, end) = (acknowledged.log.len(), next.log.len());
        assert_eq!(&next.log[..begin], acknowledged.log, "a log only grows");
        assert_eq!((begin - HEADER) % FRAME, 0);
        let holds = |log: &[u8]| {
            let store = acknowledged.open(elsewhere.path(), log);
            let found = number_at(&store, "a");
            if number >= 3 {
                assert_eq!(
                    store.claimed(&key("a")).unwrap().map(|claim| claim.fence),
                    fence
                );
            }
            let past = store.states(&key("a")).unwrap().len() as u64;
            assert_eq!(found.map(|found| found + 1), Some(past), "the history");
            found == Some(number as u64) || found == Some(number as u64 + 1)
        };
        for border in (begin..=end).step_by(FRAME) {
            let cut = &next.log[..border];
            let mut torn = next.log.clone();
            torn.truncate((border + FRAME / 2).min(end));
            let mut garbled = next.log.clone();
            garbled[border..].iter_mut().for_each(|byte| *byte ^= 0x5a);
            let mut zeroed = next.log.clone();
            let upto = (border + FRAME).min(end);
            zeroed[border..upto].fill(0);
            for log in [cut, &torn, &garbled, &zeroed] {
                assert!(
                    holds(log),
                    "save {number}, with the log whole up to {border} of {end}"
                );
                tried += 1;
            }
        }
        // Counter-check: without its last frame an acknowledged save is lost.
        if number > 0 && fence.is_none() {
            let store = acknowledged.open(elsewhere.path(), &next.log[..begin - FRAME]);
            assert_eq!(number_at(&store, "a"), Some(number as u64 - 1));
        }
    }
    assert!(tried >= 4 * (SAVES - 1), "{tried}");
}

#[test]
fn a_large_save_is_written_once_although_it_overwrites_an_older_state() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path).unwrap();
    let store = store.with_history(Keep::newest(2));
    let filling = "x".repeat(200_000);
    let mut lengths = Vec::new();
    for number in 0..6 {
        let text = format!("{{\"n\":{number},\"x\":\"{filling}\"}}");
        let document = Document::from_text(text).unwrap();
        store.put(&key("a"), Put::new(document)).unwrap();
        lengths.push(fs::metadata(log_of(&path)).unwrap().len());
    }
    let written = lengths[5] - lengths[4];
    assert!((200_000..300_000).contains(&written), "{lengths:?}");
}
