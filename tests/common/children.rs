//! Child processes of a test: this program, started again for one of its functions.
//!
//! A function for children returns at once when the test harness runs it as a test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The folder in which a child works.
pub(crate) const FOLDER: &str = "AGENT_CHECKPOINT_CHILD_FOLDER";

/// The arguments of a child.
const WORDS: &str = "AGENT_CHECKPOINT_CHILD_WORDS";

/// The beginning of a line from a child to its parent; the harness prints other lines.
const SAYS: &str = "CHILD ";

/// The arguments of a child; `None` if this program is no child.
pub(crate) struct Given {
    pub(crate) folder: PathBuf,
    pub(crate) words: Vec<String>,
}

impl Given {
    pub(crate) fn find() -> Option<Given> {
        let folder = std::env::var_os(FOLDER).map(PathBuf::from)?;
        let words = std::env::var(WORDS).unwrap_or_default();
        let words = words.split_whitespace().map(str::to_owned).collect();
        Some(Given { folder, words })
    }

    pub(crate) fn number(&self, at: usize) -> u64 {
        self.words[at].parse().unwrap()
    }
}

/// Sends the parent a line, in one write: even a killed child sends all of it or nothing. Does nothing in a program
/// that is no child.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    if std::env::var_os(FOLDER).is_none() {
        return;
    }
    let mut out = std::io::stdout();
    out.write_all(format!("\n{SAYS}{line}\n").as_bytes())
        .unwrap();
    out.flush().unwrap();
}

/// A running child, which is killed if the parent's test fails.
pub(crate) struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(function: &str, folder: &Path, words: &str) -> Running {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", function, "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder)
            .env(WORDS, words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Running { child, lines }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of the child; `None` if it has ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            // A killed child may leave half a line, which does not count.
            if self.lines.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
                return None;
            }
            if let Some(said) = line.trim_end().strip_prefix(SAYS) {
                return Some(said.to_owned());
            }
        }
    }

    /// The remaining lines of the child, which must end successfully.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(line) = self.hear() {
            said.push(line);
        }
        let status = self.child.wait().unwrap();
        assert!(
            status.success(),
            "a child failed: {status}; it said {said:?}"
        );
        said
    }

    /// The exit status of the child, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Kills the child, which must still be running, and returns its lines so far.
    #[cfg(unix)]
    #[track_caller]
    pub(crate) fn kill(mut self) -> Vec<String> {
        use std::os::unix::process::ExitStatusExt;
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        let mut said = Vec::new();
        while let Some(line) = self.hear() {
            said.push(line);
        }
        assert_eq!(
            status.signal(),
            Some(9),
            "the child ended by itself: {status}; it said {said:?}"
        );
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `done`, a minute at most.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no {what} in a minute"
        );
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A gate at which children wait, so that they start at the same time.
pub(crate) fn wait_at_gate(folder: &Path) {
    wait_until("opened gate", || folder.join("gate").exists());
}

pub(crate) fn open_gate(folder: &Path) {
    std::fs::write(folder.join("gate"), "").unwrap();
}
