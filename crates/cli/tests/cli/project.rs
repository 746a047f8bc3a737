//! A temporary project, in which tests run `ckpt`.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use agent_checkpoint::Timestamp;
use serde_json::Value;

/// The example of the builder-state protocol.
pub(crate) const EXAMPLE: &str = include_str!("../fixtures/builder-state.json");

/// A task that is half done.
pub(crate) const TASK: &str = r#"{
  "schemaVersion": 1,
  "phase": "implementation",
  "completedSteps": [
    { "step": "Made a", "filesCreated": ["src/a.rs"], "timestamp": "2026-03-02T08:00:00Z" }
  ],
  "pendingSteps": ["Make b", "Make c"],
  "currentStep": { "description": "Make b", "startedAt": "2026-03-02T08:05:00Z" },
  "decisions": [],
  "blockers": [],
  "x-mine": {"weight": 1.50},
  "metadata": { "createdBy": "dev", "lastUpdatedAt": "2026-03-02T08:05:00Z", "reason": "periodic" }
}
"#;

/// A temporary project.
pub(crate) struct Project {
    folder: tempfile::TempDir,
    /// The environment of each run.
    environment: Vec<(&'static str, String)>,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Project {
    pub(crate) fn new() -> Project {
        Project {
            folder: tempfile::tempdir().unwrap(),
            environment: Vec::new(),
        }
    }

    /// Sets environment variables for all later runs.
    pub(crate) fn set(&mut self, environment: &[(&'static str, String)]) {
        self.environment.extend_from_slice(environment);
    }

    /// A project with one file.
    pub(crate) fn with(name: &str, text: impl AsRef<[u8]>) -> Project {
        let project = Project::new();
        project.write(name, text);
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a file with this modification time.
    pub(crate) fn write_at(&self, name: &str, time: &str) {
        self.write(name, "x");
        let time: SystemTime = Timestamp::parse(time).system_time().unwrap();
        let file = File::options().write(true).open(self.path(name)).unwrap();
        file.set_modified(time).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of all files in the project's folder, including hidden ones.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ckpt"));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.envs(self.environment.iter().cloned());
        command
    }

    pub(crate) fn ckpt(&self, arguments: &[&str]) -> Run {
        self.ckpt_given(arguments, "")
    }

    /// A run with this standard input.
    pub(crate) fn ckpt_given(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A verb that reads no input may have ended before it is written.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        let output = child.wait_with_output().unwrap();
        let run = Run {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        };
        let both = format!("{}{}", run.out, run.err);
        assert!(!both.contains("panicked"), "{arguments:?}: {run:?}");
        run
    }

    /// A run that must end with this code.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, arguments: &[&str]) -> Run {
        let run = self.ckpt(arguments);
        assert_eq!(run.code, code, "{arguments:?}: {run:?}");
        run
    }
}

impl Run {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }

    /// The one line of error, after its `ckpt: `.
    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        let line = self.err.strip_suffix('\n').unwrap_or_default();
        assert!(!line.contains('\n'), "{self:?}");
        line.strip_prefix("ckpt: ")
            .unwrap_or_else(|| panic!("no error line: {self:?}"))
    }
}

/// The search path of a shell that finds `ckpt`.
#[cfg(unix)]
pub(crate) fn path_with_ckpt() -> std::ffi::OsString {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_ckpt")).parent();
    let old = std::env::var_os("PATH").unwrap_or_default();
    let folders = folder.map(PathBuf::from).into_iter();
    std::env::join_paths(folders.chain(std::env::split_paths(&old))).unwrap()
}

/// The lines that differ between two texts: those that went, and those that came.
pub(crate) fn line_diff(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    // The longest common subsequence, counted from the end.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let (mut went, mut came) = (Vec::new(), Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            went.push(old[i].trim_end_matches('\n').to_owned());
            i += 1;
        } else {
            came.push(new[j].trim_end_matches('\n').to_owned());
            j += 1;
        }
    }
    (went, came)
}
