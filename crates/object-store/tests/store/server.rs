//! An S3 server for the tests. It ends with the program that started it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const ID: &str = "AKIATHEID";

/// The secret key of the tests, which no output may contain.
pub(crate) const SECRET: &str = "hush-hush-hush";

pub(crate) const BUCKET: &str = "checkpoints";

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    /// The server ends when its input is closed.
    _process: Child,
}

pub(crate) fn is_installed() -> bool {
    if python().is_some() {
        return true;
    }
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "no S3 server (moto) is installed, which CI needs"
    );
    // Written directly, because the test harness hides the output of passing tests.
    let line =
        "SKIPPED tests of ObjectCheckpointStore (no S3 server: `pip install 'moto[server,s3]'`)\n";
    let _seen = std::io::stderr().write_all(line.as_bytes());
    false
}

/// The Python that has moto: the one of the test command or of the system.
fn python() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let own = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../target/tools/moto/bin/python"
        );
        let all = [PathBuf::from(own), PathBuf::from("python3")];
        all.into_iter().find(|python| {
            let mut import = Command::new(python);
            import
                .args(["-c", "import flask, moto"])
                .stderr(Stdio::null());
            import.status().is_ok_and(|status| status.success())
        })
    });
    found.as_deref()
}

pub(crate) fn shared() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(|| {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../object-store/tests/s3_server.py"
        );
        let mut process = Command::new(python().unwrap())
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        let server = Server {
            port,
            _process: process,
        };
        server.ask("PUT", &format!("/{BUCKET}"));
        server
    })
}

impl Server {
    /// The environment of a program that opens the store by the URL of a bucket.
    pub(crate) fn environment(&self) -> [(&'static str, String); 5] {
        [
            (
                "AWS_ENDPOINT_URL",
                format!("http://127.0.0.1:{}", self.port),
            ),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", ID.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ]
    }

    /// A request about a bucket, made without a driver.
    pub(crate) fn ask(&self, method: &str, path: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    }
}

/// A path in the bucket that no other test has.
pub(crate) fn fresh_root() -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("test-{}-{number}", std::process::id())
}
