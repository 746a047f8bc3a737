//! What is installed beside the command: completions and manual pages.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::project::Project;

#[test]
fn each_shell_gets_a_script_that_completes_every_verb() {
    let project = Project::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = project.expect(0, &["completions", shell]).out;
        for word in ["rate-limit", "doctor", "until", "workstream"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // Those of these shells that are here read it.
        let read = Command::new(shell)
            .arg("-n")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        if let (Ok(mut child), true) = (read, ["bash", "fish", "zsh"].contains(&shell)) {
            let mut input = child.stdin.take().unwrap();
            input.write_all(script.as_bytes()).unwrap();
            drop(input);
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{shell}: {output:?}");
        }
    }
    let unknown = project.expect(2, &["completions", "tcsh"]);
    assert!(unknown.error().contains("bash"), "{unknown:?}");
}

#[test]
fn the_command_and_every_verb_have_a_manual_page() {
    let project = Project::new();
    let page = project.expect(0, &["man"]).out;
    assert!(page.contains(".TH ckpt 1"), "{page}");
    let written = project
        .expect(0, &["man", "--out", "man1", "--json"])
        .json();
    let written: Vec<String> = serde_json::from_value(written).unwrap();
    for name in [
        "ckpt.1",
        "ckpt-start.1",
        "ckpt-step-done.1",
        "ckpt-rate-limit.1",
    ] {
        let file = written.iter().find(|file| file.ends_with(name)).unwrap();
        let title = name.trim_end_matches(".1");
        let heading = format!(".TH {title} 1  \"ckpt {}\"", env!("CARGO_PKG_VERSION"));
        let page = project.read(file);
        assert!(page.contains(&heading), "{name}: {page}");
    }
    assert!(written.len() > 60, "{}", written.len());
}
