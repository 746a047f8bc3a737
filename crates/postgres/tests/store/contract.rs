//! The contract of `CheckpointStore`, checked by the testkit.

use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::testkit::{MovableClock, Place};
use agent_checkpoint::{Error, Key, Result, store_conformance};
use agent_checkpoint_postgres::PostgresStore;

use crate::cluster::{fresh_schema, need_server, shared};

const MAX_BYTES: u64 = 6 << 20;

struct Database {
    schema: String,
    clock: MovableClock,
}

impl Database {
    fn new() -> Self {
        Database {
            schema: fresh_schema(),
            clock: MovableClock::default(),
        }
    }

    fn open_at(address: &str, clock: MovableClock) -> Result<Box<dyn CheckpointStore>> {
        let (schema, server) = address.split_once(' ').unwrap();
        let store = PostgresStore::open_in(server, schema)?.with_clock(clock);
        Ok(Box::new(store.with_max_bytes(MAX_BYTES)))
    }
}

impl Place for Database {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Database::open_at(&self.address().unwrap(), self.clock.clone())
    }

    fn address(&self) -> Option<String> {
        Some(format!("{} {}", self.schema, shared().address()))
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        Some(Database::open_at(address, MovableClock::default()))
    }

    fn damage(&self, key: &Key) -> Result<bool> {
        let sql = format!(
            "UPDATE {schema}.states SET text = '{{\"n\": [1, 2' FROM {schema}.checkpoints \
             WHERE name = $1 AND key = name AND number = present",
            schema = self.schema
        );
        let mut client = shared().client();
        let damaged = client.execute(&sql, &[&key.as_str()]);
        let damaged = damaged.map_err(|error| Error::refused("no damage").with_source(error))?;
        Ok(damaged == 1)
    }

    /// The content of the tables. What PostgreSQL keeps besides, until it vacuums them and recycles its log, is not
    /// looked at.
    fn raw(&self) -> Option<Vec<u8>> {
        let tables = [
            ("checkpoints", "fingerprints"),
            ("states", "text"),
            ("dropped", "text"),
            ("quarantine", "text"),
            ("ledger", "convert_to(line, 'UTF8')"),
        ];
        let mut client = shared().client();
        let mut all = Vec::new();
        for (table, bytes) in tables {
            // The text of a row shows bytes in another spelling.
            let sql = format!(
                "SELECT concat(t::text, convert_from({bytes}, 'UTF8')) FROM {}.{table} AS t",
                self.schema
            );
            for row in client.query(&sql, &[]).unwrap() {
                all.extend_from_slice(row.get::<_, &str>(0).as_bytes());
            }
        }
        Some(all)
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

store_conformance!(postgres, {
    need_server!();
    Database::new()
});
