//! A session of the Python SDK's client.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::client::{PROGRAM, place};

/// The Python that has the SDK: the one of the test command or of the system.
fn python() -> Option<PathBuf> {
    let own = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/tools/mcp/bin/python"
    );
    let all = [PathBuf::from(own), PathBuf::from("python3")];
    all.into_iter().find(|python| {
        let mut import = Command::new(python);
        import
            .args(["-c", "from mcp import Client"])
            .stderr(Stdio::null());
        import.status().is_ok_and(|status| status.success())
    })
}

#[test]
fn a_session_of_the_python_sdk() {
    let Some(python) = python() else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "no Python SDK of MCP is installed, which CI needs"
        );
        // Written directly, because the test harness hides the output of passing tests.
        let line = "SKIPPED a session of the Python SDK (no package: `pip install 'mcp==2.3.0'`)\n";
        let _seen = std::io::stderr().write_all(line.as_bytes());
        return;
    };
    let (_folder, store) = place();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/session.py");
    let output = Command::new(python)
        .arg(script)
        .arg(PROGRAM)
        .arg(&store)
        .output()
        .unwrap();
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}{error}");
    assert!(
        out.ends_with("the session went as it should\n"),
        "{out}{error}"
    );
}
