//! The contract of `CheckpointStore`, checked by the testkit on an S3 server.

use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::testkit::{MovableClock, Place};
use agent_checkpoint::{Key, Result, store_conformance};

use crate::client::driver_at;
use crate::memory::{MAX_BYTES, damage, open, raw, runtime};
use crate::server::{fresh_root, shared};

struct S3 {
    root: String,
    clock: MovableClock,
}

impl S3 {
    fn new() -> S3 {
        S3 {
            root: fresh_root(),
            clock: MovableClock::default(),
        }
    }
}

impl Place for S3 {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        open(driver_at(shared().port), &self.root, self.clock.clone())
    }

    fn address(&self) -> Option<String> {
        Some(format!("{} {}", shared().port, self.root))
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        let (port, root) = address.split_once(' ')?;
        let driver = driver_at(port.parse().unwrap());
        Some(open(driver, root, MovableClock::default()))
    }

    fn damage(&self, key: &Key) -> Result<bool> {
        let driver = driver_at(shared().port);
        Ok(runtime().block_on(damage(&*driver, &self.root, key)))
    }

    fn raw(&self) -> Option<Vec<u8>> {
        Some(runtime().block_on(raw(&*driver_at(shared().port), &self.root)))
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
}

store_conformance!(s3, {
    need_server!();
    S3::new()
});
