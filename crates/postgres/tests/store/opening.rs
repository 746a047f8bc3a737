//! How the store finds its server and its tables, and the errors if it does not.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use agent_checkpoint::store::{CheckpointStore, Query};
use agent_checkpoint::{CheckpointStoreExt, ErrorKind};
use agent_checkpoint_postgres::PostgresStore;

use crate::cluster::{Cluster, fresh_schema, need_server, shared};
use crate::{hour, key, number_at, numbered};

#[test]
fn a_schema_that_many_open_at_once_is_made_once() {
    need_server!();
    let (schema, start) = (fresh_schema(), Barrier::new(12));
    std::thread::scope(|scope| {
        for number in 0..12 {
            let (schema, start) = (&schema, &start);
            scope.spawn(move || {
                start.wait();
                let store = PostgresStore::open_in(&shared().address(), schema).unwrap();
                store.put(&key(&format!("k{number}")), numbered(1)).unwrap();
            });
        }
    });
    let store = PostgresStore::open_in(&shared().address(), &schema).unwrap();
    assert_eq!(store.list(&Query::all()).unwrap().entries.len(), 12);
    let layouts = format!("SELECT number FROM {schema}.layout");
    assert_eq!(shared().client().query(&layouts, &[]).unwrap().len(), 2);
}

#[test]
fn a_database_of_a_newer_program_is_read_and_not_written() {
    need_server!();
    let (address, schema) = (shared().address(), fresh_schema());
    let before = PostgresStore::open_in(&address, &schema).unwrap();
    before.put(&key("a"), numbered(1)).unwrap();
    let newer = format!("INSERT INTO {schema}.layout (number) VALUES (99)");
    shared().client().batch_execute(&newer).unwrap();
    let after = PostgresStore::open_in(&address, &schema).unwrap();
    for store in [before, after] {
        assert_eq!(number_at(&store, "a"), Some(1));
        let put = store.put(&key("a"), numbered(2)).unwrap_err();
        let claimed = store.claim(&key("a"), &hour("one")).unwrap_err();
        for error in [put, claimed] {
            let kind = error.kind();
            assert!(
                matches!(kind, ErrorKind::NewerLayout { found: 99, .. }),
                "{error}"
            );
        }
        assert_eq!(number_at(&store, "a"), Some(1));
    }
}

/// The first layout had no ledgers.
#[test]
fn the_tables_of_an_earlier_version_are_read_as_before_and_taken_over_by_a_writer() {
    need_server!();
    let (address, schema) = (shared().address(), fresh_schema());
    let mut client = shared().client();
    let laid_out = format!(
        "CREATE SCHEMA {schema}; SET search_path TO {schema}; \
         CREATE TABLE layout (number integer PRIMARY KEY, made timestamptz NOT NULL DEFAULT now()); \
         INSERT INTO layout (number) VALUES (1); {}",
        include_str!("../../src/layout.sql")
    );
    client.batch_execute(&laid_out).unwrap();
    let reader = PostgresStore::read_only_in(&address, &schema).unwrap();
    let ledger = |store: &PostgresStore| store.beside().ledger(&key("a")).unwrap();
    assert_eq!(number_at(&reader, "a"), None);
    assert_eq!(ledger(&reader), [""; 0]);
    let writer = PostgresStore::open_in(&address, &schema).unwrap();
    writer.put(&key("a"), numbered(1)).unwrap();
    assert!(
        writer
            .beside()
            .append_to_ledger(&key("a"), "{}", 0, None)
            .unwrap()
    );
    for store in [&writer, &reader] {
        assert_eq!(number_at(store, "a"), Some(1));
        assert_eq!(ledger(store), ["{}"]);
    }
}

#[test]
fn tables_of_another_program_are_left_alone() {
    need_server!();
    let schema = fresh_schema();
    let make = format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.checkpoints (x integer)");
    let mut client = shared().client();
    client.batch_execute(&make).unwrap();
    let error = PostgresStore::open_in(&shared().address(), &schema).unwrap_err();
    assert_eq!(error.code(), "not-a-store", "{error}");
    let tables = "SELECT 1 FROM pg_tables WHERE schemaname = $1";
    assert_eq!(client.query(tables, &[&schema]).unwrap().len(), 1);
}

#[test]
fn a_store_for_reading_makes_nothing_and_writes_nothing() {
    need_server!();
    let (address, schema) = (shared().address(), fresh_schema());
    let reader = PostgresStore::read_only_in(&address, &schema).unwrap();
    assert_eq!(number_at(&reader, "a"), None);
    assert!(reader.list(&Query::all()).unwrap().entries.is_empty());
    let schemas = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    let mut client = shared().client();
    assert!(client.query(schemas, &[&schema]).unwrap().is_empty());
    let writer = PostgresStore::open_in(&address, &schema).unwrap();
    writer.put(&key("a"), numbered(1)).unwrap();
    assert_eq!(number_at(&reader, "a"), Some(1));
    for error in [
        reader.put(&key("a"), numbered(2)).unwrap_err(),
        reader.claim(&key("a"), &hour("one")).unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::ReadOnly), "{error}");
    }
}

#[test]
fn where_there_is_no_store_only_some_ways_to_open_make_one() {
    need_server!();
    let (name, address) = shared().fresh_database();
    for _ in 0..2 {
        let error = PostgresStore::open_existing(&address).unwrap_err();
        assert_eq!(error.code(), "no-store", "{error}");
        assert!(error.to_string().contains(&name), "{error}");
    }
    let made = PostgresStore::open(&address).unwrap();
    made.put(&key("a"), numbered(1)).unwrap();
    let found = PostgresStore::open_existing(&address).unwrap();
    found.put(&key("a"), numbered(2)).unwrap();
    assert_eq!(number_at(&made, "a"), Some(2));
}

#[test]
fn a_user_without_rights_is_told_so_and_one_with_some_can_use_what_is_there() {
    need_server!();
    let (schema, mut client) = (fresh_schema(), shared().client());
    let user = format!("user_{schema}");
    client
        .batch_execute(&format!("CREATE ROLE {user} LOGIN"))
        .unwrap();
    let address = shared().address().replace("postgres@", &format!("{user}@"));
    let error = PostgresStore::open_in(&address, &schema).unwrap_err();
    assert_eq!(error.code(), "write-protected", "{error}");
    drop(PostgresStore::open_in(&shared().address(), &schema).unwrap());
    let grant = format!(
        "GRANT USAGE ON SCHEMA {schema} TO {user}; GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {user}"
    );
    client.batch_execute(&grant).unwrap();
    let store = PostgresStore::open_in(&address, &schema).unwrap();
    store.put(&key("a"), numbered(1)).unwrap();
    assert_eq!(number_at(&store, "a"), Some(1));
}

#[test]
fn what_cannot_be_opened_is_named_with_the_next_step_and_without_the_password() {
    need_server!();
    let folder = shared().folder().display();
    let down = "postgres://me:s3cret@127.0.0.1:1/agents?connect_timeout=5".to_owned();
    let cases = [
        (down, "unreachable", "postgres://me@127.0.0.1:1/agents: "),
        (
            format!("host={folder} user=postgres password=s3cret dbname=nowhere"),
            "no-database",
            "createdb",
        ),
        (
            format!("host={folder} user=nobody password=s3cret"),
            "login-refused",
            "`pg_hba.conf` admits it",
        ),
        (
            "postgres://me:s3cret@db.example/agents?sslmode=verify-ca".to_owned(),
            "connection-string",
            "sslmode",
        ),
        (
            "postgres://me:a@s3cret@db.example/agents".to_owned(),
            "connection-string",
            "%40",
        ),
        (
            "host=here password='s3cret unclosed".to_owned(),
            "connection-string",
            "postgres://USER@HOST/DATABASE",
        ),
        (
            "host=here password=a s3cret=b".to_owned(),
            "connection-string",
            "postgres://USER@HOST/DATABASE",
        ),
    ];
    for (connection, code, part) in cases {
        let began = Instant::now();
        let error = PostgresStore::open(&connection).unwrap_err();
        let told = format!("{error:?}\n{error:#?}");
        assert_eq!(error.code(), code, "{told}");
        assert!(told.contains(part), "{told}");
        assert!(!told.contains("s3cret"), "{told}");
        assert!(began.elapsed() < Duration::from_secs(5), "{told}");
    }
    let upper = PostgresStore::open_in(&shared().address(), "2_Upper").unwrap();
    upper.put(&key("a"), numbered(1)).unwrap();
    assert_eq!(number_at(&upper, "a"), Some(1));
    let name = PostgresStore::open_in(&shared().address(), "a; DROP").unwrap_err();
    assert_eq!(name.code(), "schema-name");

    let with_password = shared().address().replace("postgres@", "postgres:s3cret@");
    let store = PostgresStore::open_in(&with_password, &fresh_schema()).unwrap();
    assert!(!format!("{store:?} {}", store.address()).contains("s3cret"));
    assert!(store.address().contains("postgres@"), "{}", store.address());
}

#[test]
fn a_database_that_cannot_hold_every_key_is_refused() {
    need_server!();
    let make = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    shared().client().batch_execute(make).unwrap();
    let address = shared().address().replace("/postgres?", "/latin?");
    let error = PostgresStore::open(&address).unwrap_err();
    assert_eq!(error.code(), "encoding", "{error}");
}

#[test]
fn what_a_store_promises_is_what_its_server_does() {
    need_server!();
    let store = PostgresStore::open_in(&shared().address(), &fresh_schema()).unwrap();
    let offered = store.capabilities();
    assert!(offered.survives_power_loss && offered.excludes_processes && offered.excludes_machines);

    // A role whose commits do not wait is made to wait. A server that never syncs promises nothing.
    let lazy = "CREATE ROLE lazy LOGIN SUPERUSER; ALTER ROLE lazy SET synchronous_commit TO off";
    shared().client().batch_execute(lazy).unwrap();
    let address = shared().address().replace("postgres@", "lazy@");
    let store = PostgresStore::open_in(&address, &fresh_schema()).unwrap();
    assert!(store.capabilities().survives_power_loss);
    let unsynced = Cluster::start_with("fsync=off");
    let store = PostgresStore::open(&unsynced.address()).unwrap();
    assert!(!store.capabilities().survives_power_loss);
}
