//! A PostgreSQL server for the tests: in a temporary folder, on a Unix socket, ended with the program that started it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The user that the server runs as if the tests run as root, because it refuses to run as root.
const USER: &str = "postgres";

/// The folder of the server's programs, searched besides the search path.
const PLACES: &str = "/usr/lib/postgresql";

/// A server. It ends when this is dropped or when this program ends, in whatever way.
pub(crate) struct Cluster {
    folder: PathBuf,
    port: u16,
    /// Ends the server and removes the folder when it gets no more lines.
    keeper: Child,
}

/// The server of all tests that do not end theirs.
pub(crate) fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(Cluster::start)
}

/// A schema that no other test has.
pub(crate) fn fresh_schema() -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("test_{}_{number}", std::process::id())
}

/// Returns from a test, with a message, if no PostgreSQL is installed. In CI it must be installed.
macro_rules! need_server {
    () => {
        if !crate::cluster::is_installed() {
            return;
        }
    };
}
pub(crate) use need_server;

pub(crate) fn is_installed() -> bool {
    if programs().is_some() {
        return true;
    }
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "no PostgreSQL server is installed, which CI needs"
    );
    // Written directly, because the test harness hides the output of passing tests.
    let line = "SKIPPED tests of PostgresStore (no PostgreSQL server is installed)\n";
    let _seen = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    false
}

impl Cluster {
    pub(crate) fn start() -> Cluster {
        Cluster::start_with("fsync=on")
    }

    /// Starts a server with this setting.
    pub(crate) fn start_with(setting: &str) -> Cluster {
        Cluster::start_at(5432, setting)
    }

    /// Starts a server that also listens on 127.0.0.1.
    pub(crate) fn start_on_network() -> Cluster {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        Cluster::start_at(port, "listen_addresses=127.0.0.1")
    }

    fn start_at(port: u16, setting: &str) -> Cluster {
        // A short path, because socket paths are limited.
        let folder = tempfile::Builder::new()
            .prefix("pg")
            .tempdir_in("/tmp")
            .unwrap()
            .keep();
        let is_root = is_root();
        if is_root {
            let given = Command::new("chown").arg(USER).arg(&folder).status();
            assert!(given.unwrap().success(), "is there a user {USER}?");
        }
        let script = include_str!("cluster.sh");
        let mut command = match is_root {
            true => {
                let mut command = Command::new("setpriv");
                let user = [format!("--reuid={USER}"), format!("--regid={USER}")];
                command.args(user).args(["--clear-groups", "bash"]);
                command
            }
            false => Command::new("bash"),
        };
        let keeper = command
            .args(["-c", script, "keeper"])
            .args([&programs().unwrap(), &folder])
            .args([setting, &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let cluster = Cluster {
            folder,
            port,
            keeper,
        };
        cluster.wait_until_ready();
        cluster
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn address(&self) -> String {
        self.address_at(self.port)
    }

    /// The address with another port, at which a test may run a proxy.
    pub(crate) fn address_at(&self, port: u16) -> String {
        let folder = self.folder.display();
        format!("postgres://postgres@/postgres?host={folder}&port={port}")
    }

    /// Creates an empty database, and returns its name and its address.
    pub(crate) fn fresh_database(&self) -> (String, String) {
        let name = fresh_schema();
        let create = format!("CREATE DATABASE {name}");
        self.client().batch_execute(&create).unwrap();
        let address = self.address().replace("/postgres?", &format!("/{name}?"));
        (name, address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Writes a file that only the server may read.
    pub(crate) fn write_secret(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            let given = Command::new("chown").arg(USER).arg(&path).status();
            assert!(given.unwrap().success());
        }
    }

    pub(crate) fn client(&self) -> postgres::Client {
        postgres::Client::connect(&self.address(), postgres::NoTls).unwrap()
    }

    /// Kills all processes of the server at once and starts it again. Does not wait until it is back.
    pub(crate) fn kill_and_restart(&mut self) {
        use std::io::Write;
        self.keeper
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"kill\n")
            .unwrap();
    }

    pub(crate) fn wait_until_ready(&self) {
        let began = Instant::now();
        while postgres::Client::connect(&self.address(), postgres::NoTls).is_err() {
            let log = || std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(60), "{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ended = self.keeper.wait();
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

/// The folder of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(PLACES).into_iter().flatten();
    let of_debian = versions.map(|version| version.unwrap().path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all: Vec<PathBuf> = std::env::split_paths(&path).chain(of_debian).collect();
    all.reverse();
    all.into_iter()
        .find(|folder| folder.join("initdb").exists())
}
