//! The contract of `CheckpointStore`, checked by the testkit on the in-memory driver.

use std::sync::Arc;
use std::time::Duration;

use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::testkit::{MovableClock, Place, store};
use agent_checkpoint::{Key, Result, store_conformance};
use agent_checkpoint_object_store::ObjectCheckpointStore;
use agent_checkpoint_object_store::object_store::memory::InMemory;
use agent_checkpoint_object_store::object_store::path::Path;
use agent_checkpoint_object_store::object_store::{ObjectStore, ObjectStoreExt};
use futures_util::StreamExt;

use crate::driver::{Cut, Planned};

pub(crate) const MAX_BYTES: u64 = 6 << 20;

struct Memory {
    objects: Planned,
    clock: MovableClock,
    /// How requests fail.
    how: Cut,
}

impl Memory {
    fn new(how: Cut) -> Memory {
        Memory {
            objects: Planned::new(Arc::new(InMemory::new())),
            clock: MovableClock::default(),
            how,
        }
    }
}

/// Opens a store as the rules of the testkit need it: a claim expires for all at its stated time.
pub(crate) fn open(
    objects: Arc<dyn ObjectStore>,
    root: &str,
    clock: MovableClock,
) -> Result<Box<dyn CheckpointStore>> {
    let store = ObjectCheckpointStore::open(objects, root)?.with_clock(clock);
    let store = store.with_clock_skew(Duration::ZERO);
    Ok(Box::new(store.with_max_bytes(MAX_BYTES)))
}

/// Replaces a document with a text that is none.
pub(crate) async fn damage(objects: &dyn ObjectStore, root: &str, key: &Key) -> bool {
    let place = format!("{root}/documents/{key}").as_str().into();
    let Ok(there) = objects.get(&place).await else {
        return false;
    };
    let there = there.bytes().await.unwrap();
    let end = there.iter().position(|byte| *byte == b'\n').unwrap();
    let mut damaged = there[..=end].to_vec();
    damaged.extend_from_slice(b"{\"n\": [1, 2");
    objects.put(&place, damaged.into()).await.unwrap();
    true
}

/// The text of an object.
pub(crate) fn read(objects: &dyn ObjectStore, path: &str) -> String {
    let path = Path::parse(path).unwrap();
    let text = runtime().block_on(async {
        let got = objects.get(&path).await.unwrap();
        got.bytes().await.unwrap()
    });
    String::from_utf8(text.to_vec()).unwrap()
}

/// Writes an object behind the store's back.
pub(crate) fn write(objects: &dyn ObjectStore, path: &str, text: &str) {
    let path = Path::parse(path).unwrap();
    let put = objects.put(&path, text.as_bytes().to_vec().into());
    runtime().block_on(put).unwrap();
}

/// All objects below a path, with their names.
pub(crate) async fn all(objects: &dyn ObjectStore, root: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::parse(root).unwrap();
    let listed: Vec<_> = objects.list(Some(&root)).collect().await;
    let mut all = Vec::new();
    for object in listed {
        let place = object.unwrap().location;
        let bytes = objects.get(&place).await.unwrap().bytes().await.unwrap();
        all.push((place.to_string(), bytes.to_vec()));
    }
    all
}

/// The names and contents of all objects in one piece.
pub(crate) async fn raw(objects: &dyn ObjectStore, root: &str) -> Vec<u8> {
    let all = all(objects, root).await.into_iter();
    all.flat_map(|(name, bytes)| [name.into_bytes(), bytes].concat())
        .collect()
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

impl Place for Memory {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        open(Arc::new(self.objects.clone()), "", self.clock.clone())
    }

    fn damage(&self, key: &Key) -> Result<bool> {
        Ok(runtime().block_on(damage(&*self.objects.objects, "", key)))
    }

    fn raw(&self) -> Option<Vec<u8>> {
        Some(runtime().block_on(raw(&*self.objects.objects, "")))
    }

    fn clock(&self) -> Option<MovableClock> {
        Some(self.clock.clone())
    }

    fn keeps(&self) -> Option<usize> {
        Some(10)
    }

    fn max_bytes(&self) -> Option<u64> {
        Some(MAX_BYTES)
    }

    fn fail(&self, number: usize, run: &mut dyn FnMut()) -> Option<bool> {
        self.objects.plan.lock().unwrap().next = Some((number, self.how));
        run();
        let left = self.objects.plan.lock().unwrap().next.take();
        Some(left.is_none())
    }
}

store_conformance!(memory, Memory::new(Cut::Before));

/// A request that is never answered is given up in time and made again.
#[test]
fn an_answer_that_never_comes_is_not_waited_for_without_end() {
    let memory = Memory::new(Cut::Never);
    let store = ObjectCheckpointStore::open(Arc::new(memory.objects.clone()), "").unwrap();
    let store = store.with_timeout(Duration::from_millis(300));
    for later in 0.. {
        let before = crate::number_at(&store, "one").unwrap_or_default();
        let was_made = memory.fail(later, &mut || crate::count(&store, "one"));
        assert_eq!(crate::number_at(&store, "one"), Some(before + 1), "{later}");
        if was_made == Some(false) {
            assert!(later > 2, "{later} requests");
            return;
        }
    }
}

#[test]
fn a_lost_answer_leaves_the_old_or_the_new_document() {
    let place = || Memory::new(Cut::After);
    store::a_failed_put_leaves_the_old_or_the_new_document(&place()).unwrap();
    store::a_failed_delete_is_complete_or_does_nothing(&place()).unwrap();
    store::a_failed_read_is_an_error(&place()).unwrap();
    store::a_put_works_after_a_failed_one(&place()).unwrap();
}
