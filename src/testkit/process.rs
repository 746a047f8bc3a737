//! Another process that opens the same place: the test program, started again for one of its tests.
//!
//! Parent and child exchange lines over the child's standard input and output. The parent sends commands. The child
//! answers each, or ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::checkpoint::{Expect, Fence, Key};
use crate::store::CheckpointStore;

use super::Place;
use super::fixture::{
    Fixture, add_line, count_up, is_conflict, is_fenced, line_of, lines, put, put_fenced, put_over,
};
use super::store::bring_about;

const ADDRESS: &str = "AGENT_CHECKPOINT_TESTKIT_ADDRESS";
const KEY: &str = "AGENT_CHECKPOINT_TESTKIT_KEY";

/// The beginning of each answer, since the test harness prints other lines.
const ANSWER: &str = "CHILD ";

/// Longer than any single step of a child takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Works for the parent process if a rule has started this program as another process; otherwise does nothing. The test
/// whose name is passed to the rules for [processes](super::store) consists of this call.
///
/// # Panics
///
/// When the store fails in this process; the rule in the parent reports it.
pub fn serve(place: &dyn Place) {
    let Ok(address) = std::env::var(ADDRESS) else {
        return;
    };
    let key = &Key::new(std::env::var(KEY).unwrap()).unwrap();
    let Some(store) = place.connect(&address) else {
        panic!("the place has an address, but `Place::connect` opens no store");
    };
    let store: Arc<dyn CheckpointStore> = store.unwrap().into();
    answer("ready");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        match *line.split(' ').collect::<Vec<_>>() {
            ["count", times] => {
                for _ in 0..times.parse::<u64>().unwrap() {
                    count_up(&*store, key);
                    answer("counted");
                }
            }
            ["replace", revision, number] => {
                let expect = Expect::Revision(revision.parse().unwrap());
                match put_over(&*store, key, number.parse().unwrap(), expect) {
                    Err(error) if is_conflict(error.kind()) => answer("conflict"),
                    saved => answer(saved.map(|_| "won").unwrap()),
                }
            }
            ["put-from", first] => {
                for number in first.parse::<u64>().unwrap().. {
                    put(&*store, key, number);
                    answer(&number.to_string());
                }
            }
            ["put-with", fence] => {
                let fence: Fence = fence.parse().unwrap();
                match put_fenced(&*store, key, 9, fence) {
                    Err(error) if is_fenced(error.kind()) => answer("fenced"),
                    saved => answer(saved.map(|_| "saved").unwrap()),
                }
            }
            ["add-lines"] => {
                for at in lines(&*store, key).len().. {
                    let added = add_line(&*store, key, &line_of(at), at, None);
                    assert!(added.unwrap(), "a line was not added behind {at} others");
                    answer(&(at + 1).to_string());
                }
            }
            ["bring-about", outside] => {
                bring_about(Arc::clone(&store), key, Path::new(outside), &answer);
            }
            _ => panic!("no such command: {line}"),
        }
    }
}

/// Writes an answer at once, so that a killed child has answered completely or not at all.
fn answer(text: &str) {
    let mut out = std::io::stdout();
    let line = format!("\n{ANSWER}{text}\n");
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// A child process; it is killed if the rule fails.
pub(super) struct Process {
    child: Child,
    commands: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Process {
    /// Starts a child that opens the store and waits for commands. `test` is the test that calls [`serve`].
    #[track_caller]
    pub(super) fn start(fixture: &Fixture<'_>, test: &str) -> Process {
        // Otherwise a program that runs rules instead of `serve` would start children without end.
        assert!(
            std::env::var_os(ADDRESS).is_none(),
            "this process is a child, and must call `serve`"
        );
        let address = fixture.place.address().unwrap_or_else(|| {
            panic!("the store supports `excludes_processes`, but its place has no address")
        });
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(ADDRESS, address)
            .env(KEY, fixture.key.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = channel();
        // The thread ends with the child.
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(answer) = line.strip_prefix(ANSWER) {
                    let _parent_is_gone = sender.send(answer.to_owned());
                }
            }
        });
        let mut process = Process {
            commands: child.stdin.take(),
            child,
            answers,
        };
        let first = process.next_answer();
        assert_eq!(first, "ready", "is `{test}` the test that calls `serve`?");
        process
    }

    #[track_caller]
    pub(super) fn send(&mut self, command: &str) {
        let commands = self.commands.as_mut();
        let sent = commands.map(|commands| writeln!(commands, "{command}"));
        if !matches!(sent, Some(Ok(()))) {
            self.fail("ended");
        }
    }

    #[track_caller]
    pub(super) fn next_answer(&mut self) -> String {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => self.fail("ended"),
            Err(RecvTimeoutError::Timeout) => self.fail("did not answer for a minute"),
        }
    }

    /// Kills the child, and returns its answers that were not yet read.
    pub(super) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.answers.iter().collect()
    }

    /// Ends the child and checks that it did not fail.
    #[track_caller]
    pub(super) fn finish(mut self) {
        self.commands = None;
        if !self.child.wait().unwrap().success() {
            self.fail("failed");
        }
    }

    #[track_caller]
    fn fail(&mut self, how: &str) -> ! {
        let _already_ended = self.child.kill();
        let mut errors = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _unreadable = stderr.read_to_string(&mut errors);
        }
        if errors.is_empty() {
            errors.push_str("it printed no error; is its test the one that calls `serve`?");
        }
        panic!("another process {how}: {errors}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _already_ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
