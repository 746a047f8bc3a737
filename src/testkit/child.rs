//! Other processes that open the same place: the test program, started again for one of its tests.
//!
//! Parent and child talk in lines over the child's standard input and output, so that nothing but the
//! address is needed to find the store.

use crate::CheckpointStoreExt;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::checkpoint::{ErrorKind, Expect, Fence, Key};
use crate::store::{CheckpointStore, Put};

use super::harness::Harness;
use super::rule::{Stop, ensure};
use super::scene::{is_conflict, is_fenced, is_for_now, number_of, numbered, put_over};

/// What a child is to do, and where.
const JOB: &str = "AGENT_CHECKPOINT_TESTKIT_JOB";
const ADDRESS: &str = "AGENT_CHECKPOINT_TESTKIT_ADDRESS";
const KEY: &str = "AGENT_CHECKPOINT_TESTKIT_KEY";

/// How a line begins that a child says to its parent; the test harness prints lines of its own.
const SAYS: &str = "CHILD ";

/// How what a child says begins when it could not do its part.
const FAILED: &str = "failed: ";

/// Longer than any step of a child takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts children at one address.
pub(super) struct Crew<'t> {
    pub(super) address: String,
    /// The test that is the children's main function.
    pub(super) test: &'t str,
}

/// What a child does.
#[derive(Clone, Copy)]
pub(super) enum Job {
    /// For each number it is told, adds that many in transactions, and says each that is done.
    CountUp,
    /// For each revision it is told, puts over it, and says whether it won.
    PutOver,
    /// Puts ever greater numbers, and says each that was acknowledged.
    PutOn,
    /// Tries to write with the fence that it is told.
    PutFenced,
}

impl Job {
    const ALL: [Job; 4] = [Job::CountUp, Job::PutOver, Job::PutOn, Job::PutFenced];

    fn name(self) -> &'static str {
        match self {
            Job::CountUp => "count-up",
            Job::PutOver => "put-over",
            Job::PutOn => "put-on",
            Job::PutFenced => "put-fenced",
        }
    }
}

impl Crew<'_> {
    /// A child that has opened the place and waits for its first line.
    pub(super) fn start(&self, job: Job, key: &Key) -> Result<Running, Stop> {
        // Else a program that runs the rules instead of its part would start others of its kind for ever.
        if std::env::var_os(JOB).is_some() {
            let why = "this program is a child; call `serve` first";
            say(&format!("{FAILED}{why}"))?;
            return Err(Stop::failed(why));
        }
        let failed = |error: std::io::Error| Stop::failed(format!("no child starts: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["--exact", self.test, "--nocapture", "--test-threads=1"])
            .env(JOB, job.name())
            .env(ADDRESS, &self.address)
            .env(KEY, key.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Stop::failed("a child has no pipes"));
        };
        let (said, hears) = channel();
        // Ends with the child.
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                if let Some(line) = line.strip_prefix(SAYS)
                    && said.send(line.to_owned()).is_err()
                {
                    break;
                }
            }
        });
        let mut running = Running {
            child,
            to: Some(to),
            hears,
        };
        let first = running.hear()?;
        ensure!(
            first.as_deref() == Some("ready"),
            "a child did not come to open the place ({first:?}); is `{}` the test of the children?",
            self.test
        );
        Ok(running)
    }
}

/// A child; it does not outlive a rule that fails.
pub(super) struct Running {
    child: Child,
    to: Option<ChildStdin>,
    hears: Receiver<String>,
}

impl Running {
    pub(super) fn tell(&mut self, line: &str) -> Result<(), Stop> {
        let told = self.to.as_mut().map(|to| {
            let whole = format!("{line}\n");
            to.write_all(whole.as_bytes()).and_then(|()| to.flush())
        });
        match told {
            Some(Ok(())) => Ok(()),
            _ => Err(Stop::failed(format!(
                "a child has ended: {:?}",
                self.hear()
            ))),
        }
    }

    /// The next line that the child says; `None` when it has ended.
    pub(super) fn hear(&mut self) -> Result<Option<String>, Stop> {
        match self.hears.recv_timeout(PATIENCE) {
            Ok(line) => match line.strip_prefix(FAILED) {
                Some(why) => Err(Stop::failed(format!("in another process, {why}"))),
                None => Ok(Some(line)),
            },
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                Err(Stop::failed("another process did nothing for a minute"))
            }
        }
    }

    /// Says that there is nothing more to do, and waits; the child must end well.
    pub(super) fn finish(mut self) -> Result<(), Stop> {
        self.to = None;
        while self.hear()?.is_some() {}
        let status = self.wait()?;
        ensure!(status.success(), "another process failed: {status}");
        Ok(())
    }

    /// Kills the child at once, and says what it had said till then.
    pub(super) fn kill(mut self) -> Result<Vec<String>, Stop> {
        let killed = self.child.kill();
        self.wait()?;
        let mut said = Vec::new();
        while let Some(line) = self.hear()? {
            said.push(line);
        }
        ensure!(killed.is_ok(), "a child cannot be killed: {killed:?}");
        Ok(said)
    }

    fn wait(&mut self) -> Result<ExitStatus, Stop> {
        let status = self.child.wait();
        status.map_err(|error| Stop::failed(format!("a child cannot be waited for: {error}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Tells the parent a line, in one write: a killed child has told it whole or not at all.
fn say(line: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout();
    let said = out.write_all(format!("\n{SAYS}{line}\n").as_bytes());
    said.and_then(|()| out.flush())
        .map_err(|error| Stop::failed(format!("nobody hears a child: {error}")))
}

/// Does the work of a child, in a program that was started as one; else nothing. `false` when it failed.
pub(super) fn run(harness: &dyn Harness) -> bool {
    let Ok(job) = std::env::var(JOB) else {
        return true;
    };
    let done = catch_unwind(AssertUnwindSafe(|| work(harness, &job))).unwrap_or_else(|panic| {
        let why = super::conformance::message(&*panic);
        Err(Stop::failed(format!("the store panicked: {why}")))
    });
    let Err(Stop::Failed(why) | Stop::Skipped(why)) = done else {
        return true;
    };
    // To a parent that is gone nothing can be said.
    let _said = say(&format!("{FAILED}{}", why.replace('\n', " ")));
    false
}

fn work(harness: &dyn Harness, job: &str) -> Result<(), Stop> {
    let given = |name: &str| {
        let value = std::env::var(name);
        value.map_err(|_| Stop::failed(format!("{name} is not set")))
    };
    let key = Key::new(given(KEY)?)?;
    let store = harness.connect(&given(ADDRESS)?).ok_or_else(|| {
        Stop::failed("the place has an address, and the harness does not connect to it")
    })??;
    let job = Job::ALL.into_iter().find(|known| known.name() == job);
    let job = job.ok_or_else(|| Stop::failed("the job is not known"))?;
    say("ready")?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Stop::failed(format!("no line can be read: {error}")))?;
        let word = || Stop::failed(format!("a child was told {line:?}"));
        match job {
            Job::CountUp => {
                for _ in 0..line.parse::<u64>().map_err(|_| word())? {
                    count_up(&*store, &key)?;
                    // Each alone: the parent's patience is for one step, not for all of them.
                    say("counted")?;
                }
            }
            Job::PutOver => {
                let (number, revision) = line.split_once(' ').ok_or_else(word)?;
                let number = number.parse().map_err(|_| word())?;
                let expect = Expect::Revision(revision.parse()?);
                match put_over(&*store, &key, number, expect)? {
                    Ok(_) => say("won")?,
                    Err(error) if is_conflict(error.kind()) => say("conflict")?,
                    Err(error) => return Err(error.into()),
                }
            }
            Job::PutOn => {
                let first: u64 = line.parse().map_err(|_| word())?;
                for number in first.. {
                    store.put(&key, Put::new(numbered(number)?))?;
                    say(&number.to_string())?;
                }
            }
            Job::PutFenced => {
                let fence: Fence = line.parse().map_err(|_| word())?;
                match store.put(&key, Put::new(numbered(9)?).with_fence(Some(fence))) {
                    Ok(_) => say("in")?,
                    Err(error) if is_fenced(error.kind()) => say("fenced")?,
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    Ok(())
}

/// Adds one in a transaction.
pub(super) fn count_up(store: &dyn CheckpointStore, key: &Key) -> Result<(), Stop> {
    // A store that compares and swaps gives up when others were faster again and again: then it is tried again.
    for _ in 0..1000 {
        let counted = store.transact(key, |stored| {
            let number = stored.and_then(number_of).unwrap_or_default();
            let text = format!("{{\"n\":{}}}", number + 1);
            let next = crate::json::Document::from_text(text)
                .map_err(|corrupt| crate::Error::new(ErrorKind::Corrupt(corrupt)))?;
            Ok(Some(Put::new(next)))
        });
        match counted {
            Err(error) if is_conflict(error.kind()) || is_for_now(error.kind()) => {}
            other => return Ok(other.map(drop)?),
        }
    }
    Err(Stop::failed(
        "a thousand transactions in a row were conflicts, or were to be tried again",
    ))
}
