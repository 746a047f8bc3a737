//! An S3 server of the tests' own, which ends with the program that began it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use agent_checkpoint_object_store::object_store::aws::{AmazonS3, AmazonS3Builder};
use agent_checkpoint_object_store::object_store::{ClientOptions, RetryConfig};

/// What the tests give as the secret, which nothing may tell.
pub(crate) const SECRET: &str = "hush-hush-hush";

pub(crate) const BUCKET: &str = "checkpoints";

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    /// It ends when it gets no more input.
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
    // Past the capture of passing tests.
    let line =
        "SKIPPED tests of ObjectCheckpointStore (no S3 server: `pip install 'moto[server,s3]'`)\n";
    let _seen = std::io::stderr().write_all(line.as_bytes());
    false
}

/// The Python that has moto: that of the test command, or the one of the system.
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
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/s3_server.py");
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
    /// A request about a bucket, past all drivers.
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

/// The driver for the server at this port; it repeats no request by itself.
pub(crate) fn driver_at(port: u16) -> Arc<AmazonS3> {
    let retry = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    Arc::new(builder_at(port).with_retry(retry).build().unwrap())
}

pub(crate) fn builder_at(port: u16) -> AmazonS3Builder {
    // The program chooses what HTTPS is made of, also where there is none.
    let _was_chosen = rustls::crypto::ring::default_provider().install_default();
    // There is none to look certificates up for, which takes a tenth of a second.
    let options = ClientOptions::new()
        .with_allow_http(true)
        .with_no_system_certificates(true);
    AmazonS3Builder::new()
        .with_endpoint(format!("http://127.0.0.1:{port}"))
        .with_client_options(options)
        .with_region("us-east-1")
        .with_bucket_name(BUCKET)
        .with_access_key_id("AKIATHEID")
        .with_secret_access_key(SECRET)
}
