//! Encrypted connections: each `sslmode` with servers with and without TLS.

use std::path::PathBuf;
use std::sync::OnceLock;

use agent_checkpoint::Error;
use agent_checkpoint_postgres::PostgresStore;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::cluster::{Cluster, fresh_schema, need_server};
use crate::{key, number_at, numbered};

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Authority { pem, issuer }
    }
}

/// A server whose certificate is for `localhost` alone.
struct Secure {
    cluster: Cluster,
    /// The certificates of its authority, and of another.
    root: PathBuf,
    stranger: PathBuf,
}

fn secure() -> &'static Secure {
    static SECURE: OnceLock<Secure> = OnceLock::new();
    SECURE.get_or_init(|| {
        let cluster = Cluster::start_on_network();
        let authority = Authority::new("authority");
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority.issuer).unwrap();
        cluster.write_secret("server.crt", &certificate.pem());
        cluster.write_secret("server.key", &key.serialize_pem());
        let rules = "local all all trust\n\
                     hostssl all scrambled 127.0.0.1/32 scram-sha-256\n\
                     hostssl all only_tls 127.0.0.1/32 trust\n\
                     hostnossl all only_plain 127.0.0.1/32 trust\n\
                     host all postgres 127.0.0.1/32 trust\n";
        cluster.write_secret("data/pg_hba.conf", rules);
        let folder = cluster.folder().display();
        for sql in [
            format!("ALTER SYSTEM SET ssl_cert_file = '{folder}/server.crt'"),
            format!("ALTER SYSTEM SET ssl_key_file = '{folder}/server.key'"),
            "ALTER SYSTEM SET ssl = on".to_owned(),
            "SELECT pg_reload_conf()".to_owned(),
            "CREATE ROLE scrambled LOGIN SUPERUSER PASSWORD 's3cret'".to_owned(),
            "CREATE ROLE only_tls LOGIN SUPERUSER; CREATE ROLE only_plain LOGIN SUPERUSER"
                .to_owned(),
        ] {
            cluster.client().batch_execute(&sql).unwrap();
        }
        let write = |name: &str, pem: &str| {
            let path = cluster.folder().join(name);
            std::fs::write(&path, pem).unwrap();
            path
        };
        let root = write("root.crt", &authority.pem);
        let stranger = write("stranger.crt", &Authority::new("stranger").pem);
        let secure = Secure {
            cluster,
            root,
            stranger,
        };
        // The server reloads its settings a little later.
        let began = std::time::Instant::now();
        while secure
            .open("localhost", "postgres", "sslmode=require")
            .is_err()
        {
            assert!(began.elapsed().as_secs() < 60);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        secure
    })
}

impl Secure {
    fn open(&self, host: &str, user: &str, settings: &str) -> Result<PostgresStore, Error> {
        let settings = settings
            .replace("ROOT", &self.root.display().to_string())
            .replace("STRANGER", &self.stranger.display().to_string());
        open(
            &self.cluster,
            &format!("host={host} user={user} {settings}"),
        )
    }
}

fn open(cluster: &Cluster, settings: &str) -> Result<PostgresStore, Error> {
    let (port, name) = (cluster.port(), fresh_schema());
    let connection = format!(
        "hostaddr=127.0.0.1 port={port} dbname=postgres application_name={name} {settings}"
    );
    PostgresStore::open_in(&connection, &name)
}

/// Whether the connections of a store are encrypted; all of them are, or none.
fn is_encrypted(cluster: &Cluster, store: &PostgresStore) -> bool {
    store.clone().put_numbered();
    let schema = format!("{store:?}");
    let schema = schema
        .split("schema: \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let sql =
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = $1";
    let rows = cluster.client().query(sql, &[&schema]).unwrap();
    let all: Vec<bool> = rows.iter().map(|row| row.get(0)).collect();
    assert!(
        !all.is_empty() && all.iter().all(|one| *one == all[0]),
        "{all:?}"
    );
    all[0]
}

trait Works {
    fn put_numbered(self);
}

impl Works for PostgresStore {
    fn put_numbered(self) {
        use agent_checkpoint::store::CheckpointStore;
        self.put(&key("a"), numbered(1)).unwrap();
        assert_eq!(number_at(&self, "a"), Some(1));
    }
}

#[test]
fn each_mode_encrypts_and_checks_as_libpq_does() {
    need_server!();
    let secure = secure();
    for (host, user, settings, encrypts) in [
        ("localhost", "postgres", "", true),
        ("localhost", "postgres", "sslmode=disable", false),
        ("localhost", "postgres", "sslmode=allow", false),
        ("localhost", "postgres", "sslmode=prefer", true),
        ("localhost", "postgres", "sslmode=require", true),
        (
            "localhost",
            "postgres",
            "sslmode=require sslrootcert=ROOT",
            true,
        ),
        (
            "localhost",
            "postgres",
            "sslmode=verify-ca sslrootcert=ROOT",
            true,
        ),
        (
            "127.0.0.1",
            "postgres",
            "sslmode=verify-ca sslrootcert=ROOT",
            true,
        ),
        ("elsewhere.example", "postgres", "sslmode=require", true),
        (
            "localhost",
            "postgres",
            "sslmode=verify-full sslrootcert=ROOT",
            true,
        ),
        // The server accepts some users only one way, which is the second one tried.
        ("localhost", "only_tls", "sslmode=allow", true),
        ("localhost", "only_plain", "sslmode=prefer", false),
        // Even if the reported failure is that of the second address, at which no server listens.
        (
            "localhost",
            "only_tls",
            "sslmode=allow host=localhost hostaddr=127.0.0.1 port=1",
            true,
        ),
        // The fallback of a mode that allows plain connections.
        (
            "localhost",
            "postgres",
            "sslmode=prefer sslrootcert=STRANGER",
            false,
        ),
        (
            "localhost",
            "scrambled",
            "password=s3cret sslmode=verify-full sslrootcert=ROOT",
            true,
        ),
        (
            "localhost",
            "scrambled",
            "password=s3cret channel_binding=require",
            true,
        ),
    ] {
        let store = secure.open(host, user, settings);
        let store = store.unwrap_or_else(|error| panic!("{host} {user} {settings}: {error:?}"));
        let is = is_encrypted(&secure.cluster, &store);
        assert_eq!(is, encrypts, "{host} {user} {settings}");
    }
}

#[test]
fn what_cannot_be_trusted_is_refused_with_the_next_step() {
    need_server!();
    let secure = secure();
    for (host, user, settings, code, part) in [
        (
            "127.0.0.1",
            "postgres",
            "sslmode=verify-full sslrootcert=ROOT",
            "no-tls",
            "not valid for name",
        ),
        (
            "elsewhere.example",
            "postgres",
            "sslmode=verify-full sslrootcert=ROOT",
            "no-tls",
            "not valid for name",
        ),
        (
            "localhost",
            "postgres",
            "sslmode=verify-full sslrootcert=STRANGER",
            "no-tls",
            "UnknownIssuer",
        ),
        (
            "localhost",
            "postgres",
            "sslmode=verify-ca sslrootcert=STRANGER",
            "no-tls",
            "UnknownIssuer",
        ),
        (
            "localhost",
            "postgres",
            "sslmode=require sslrootcert=STRANGER",
            "no-tls",
            "UnknownIssuer",
        ),
        (
            "localhost",
            "only_plain",
            "sslmode=require",
            "login-refused",
            "SSL encryption",
        ),
        (
            "localhost",
            "only_tls",
            "sslmode=disable",
            "login-refused",
            "no encryption",
        ),
        // If both ways fail, the error is that of the allowed one.
        (
            "localhost",
            "only_plain",
            "dbname=nowhere",
            "no-database",
            "createdb",
        ),
        ("localhost", "nobody", "", "login-refused", "SSL encryption"),
        (
            "localhost",
            "scrambled",
            "password=wr0ng",
            "login-refused",
            "check the user and the password",
        ),
        (
            "localhost",
            "postgres",
            "sslmode=verify-ca",
            "connection-string",
            "PGSSLROOTCERT",
        ),
        (
            "localhost",
            "postgres",
            "sslmode=require sslrootcert=system",
            "connection-string",
            "verify-full",
        ),
        (
            "localhost",
            "postgres",
            "sslmode=require sslrootcert=/nowhere",
            "no-certificates",
            "/nowhere",
        ),
        (
            "localhost",
            "postgres",
            "sslmode=full",
            "connection-string",
            "verify-ca and verify-full",
        ),
    ] {
        let error = secure.open(host, user, settings).unwrap_err();
        let told = format!("{error}: {error:?}");
        assert_eq!(error.code(), code, "{host} {user} {settings}: {told}");
        assert!(told.contains(part), "{host} {user} {settings}: {told}");
    }
}

#[test]
fn a_server_without_tls_is_refused_unless_the_mode_may_be_plain() {
    need_server!();
    let cluster = Cluster::start_on_network();
    for settings in ["", "sslmode=allow", "sslmode=prefer"] {
        let store = open(&cluster, &format!("user=postgres {settings}")).unwrap();
        assert!(!is_encrypted(&cluster, &store), "{settings}");
    }
    let root = secure().root.display();
    for mode in ["require", "verify-ca", "verify-full"] {
        let settings = format!("user=postgres sslmode={mode} sslrootcert={root}");
        let error = open(&cluster, &settings).unwrap_err();
        assert_eq!(error.code(), "no-tls", "{mode}: {error:?}");
        let message = "does not support TLS";
        assert!(format!("{error:?}").contains(message), "{mode}: {error:?}");
    }
}
