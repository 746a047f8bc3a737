//! Tests across processes: kills, full disks, other users, and how often a save waits for the disk.
//!
//! Each test starts this program again as a child that runs one of the functions at the end of the file.
//! Without the environment variable that the parent sets, these functions do nothing.
//! variable that the parent sets, these functions do nothing.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{
    ABANDONED_AFTER, Durability, FileError, Lock, Present, Replace, create_folder_durably,
    read_limited, replace, sweep,
};

/// The folder that a child works in.
const FOLDER: &str = "FSIO_CHILD_FOLDER";

/// Prints past the capture of passing tests, so that a skipped test does not look like a passed one.
fn skipped(test: &str, why: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED {test} ({why})");
}

/// The name of a function of this module in the test harness.
fn full_name(function: &str) -> String {
    format!("fsio::durability_tests::{function}")
}

/// A command that runs one child function of this program in `folder`, under the command `wrapper`.
fn child_under(wrapper: &[&str], function: &str, folder: &Path) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = match wrapper {
        [] => Command::new(&program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(&program);
            command
        }
    };
    command
        .args([
            "--exact",
            &full_name(function),
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, folder)
        .stdin(Stdio::null());
    command
}

fn retry_while_busy(mut start: impl FnMut() -> io::Result<Output>) -> io::Result<Output> {
    for _ in 0..100 {
        match start() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            done => return done,
        }
    }
    start()
}

fn child(function: &str, folder: &Path) -> Command {
    child_under(&[], function, folder)
}

fn child_folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// The report that the child prints on a line of its own, or its whole output if there is none.
fn report(output: &Output) -> Result<String, String> {
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find_map(|line| line.split_once("REPORT ")) {
        Some((_, report)) if output.status.success() => Ok(report.to_owned()),
        _ => Err(format!(
            "{}\n{text}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no {what} in a minute"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A child that is killed when its parent's test fails.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        let status = self.0.wait().unwrap();
        assert_eq!(
            status.signal(),
            Some(9),
            "the child ended by itself: {status}"
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn temps(folder: &Path) -> usize {
    fs::read_dir(folder)
        .unwrap()
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with(".agent-checkpoint-")
        })
        .count()
}

fn root() -> bool {
    let folder = tempfile::tempdir().unwrap();
    fs::metadata(folder.path()).unwrap().uid() == 0
}

#[test]
fn a_pipe_does_not_hang_a_read_or_a_replace() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo");
    // Run in a thread, so that a hang fails the test instead of blocking the test run.
    let (send, receive) = std::sync::mpsc::channel();
    let path = pipe.clone();
    std::thread::spawn(move || {
        let read = read_limited(&path, 100).map(|_| ());
        let written = replace(&path, b"x", Present::Whatever).map(|_| ());
        send.send((read, written)).unwrap();
    });
    let (read, written) = receive
        .recv_timeout(Duration::from_secs(30))
        .expect("neither waits for the other end of the pipe");
    assert!(matches!(read, Err(FileError::NotAFile { .. })), "{read:?}");
    assert!(
        matches!(written, Err(FileError::NotAFile { .. })),
        "{written:?}"
    );
}

#[test]
fn a_device_is_no_file() {
    for device in ["/dev/full", "/dev/null"] {
        let error = replace(Path::new(device), b"x", Present::Whatever).unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
        let error = read_limited(Path::new(device), 10).unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
    }
}

#[test]
fn a_killed_writer_leaves_a_whole_file_and_temps_that_sweep_removes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut most_temps = 0;
    let mut seen = 0;
    for round in 0..40_u64 {
        let writer = Running::start(child("child_replaces_for_ever", folder.path()));
        let before = fs::metadata(&path).map(|found| found.ino()).ok();
        wait_for("save", || {
            fs::metadata(&path).map(|found| found.ino()).ok() != before
        });
        // Hit every part of a save, which takes about a millisecond here.
        std::thread::sleep(Duration::from_micros(round * 137 % 3000));
        writer.kill();

        let bytes = fs::read(&path).unwrap();
        assert!(
            bytes.len() == 100_000 && bytes.iter().all(|byte| *byte == bytes[0]),
            "torn after kill {round}: {} bytes",
            bytes.len()
        );
        seen += 1;
        most_temps = most_temps.max(temps(folder.path()));
    }
    assert_eq!(seen, 40);
    assert!(
        most_temps > 0,
        "no kill ever hit a save: this proved nothing"
    );
    assert_eq!(
        sweep(folder.path(), ABANDONED_AFTER),
        0,
        "these are not old yet"
    );
    assert_eq!(sweep(folder.path(), Duration::ZERO), most_temps);
    assert_eq!(temps(folder.path()), 0);
    assert!(path.is_file());
    // The files that a killed writer left do not prevent a save.
    replace(&path, b"next", Present::Whatever).unwrap();
}

#[test]
fn a_lock_is_free_again_when_its_holder_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let sidecar = folder.path().join("a.lock");
    let holder = Running::start(child("child_holds_the_lock", folder.path()));
    wait_for("lock", || folder.path().join("locked").exists());

    let error = Lock::acquire(&sidecar, Duration::from_millis(100), "parent").unwrap_err();
    match &error {
        FileError::Locked {
            holder: Some(name), ..
        } => {
            assert_eq!(name, &format!("pid {} agent child", holder.0.id()));
        }
        other => panic!("{other:?}"),
    }
    holder.kill();
    let started = Instant::now();
    let _lock = Lock::acquire(&sidecar, Duration::from_secs(30), "parent").unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn processes_exclude_each_other_and_no_update_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    fs::write(&count, "0").unwrap();
    let all: Vec<_> = (0..3)
        .map(|_| Running::start(child("child_counts_under_the_lock", folder.path())))
        .collect();
    for mut one in all {
        assert!(one.0.wait().unwrap().success());
    }
    assert_eq!(fs::read_to_string(&count).unwrap(), "150");
}

#[test]
fn a_write_that_does_not_fit_leaves_the_old_file_and_no_temp() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    fs::write(&path, "old").unwrap();
    // Ignoring the signal turns a write beyond the limit into an error, as on a full disk.
    let limited = ["sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""];
    let output = child_under(&limited, "child_saves_a_megabyte", folder.path())
        .output()
        .unwrap();
    let report = report(&output).unwrap();
    assert!(report.starts_with("Io Write "), "{report}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(temps(folder.path()), 0);
}

#[test]
fn a_full_disk_says_so_and_leaves_the_old_file_and_no_temp() {
    let test = "a_full_disk_says_so_and_leaves_the_old_file_and_no_temp";
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=64k tmpfs \"$FSIO_CHILD_FOLDER\" || exit 77; \
                 printf old > \"$FSIO_CHILD_FOLDER/state\"; \"$0\" \"$@\"; \
                 echo LEFT $(cat \"$FSIO_CHILD_FOLDER/state\") $(ls -A \"$FSIO_CHILD_FOLDER\")";
    let wrapper = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        mount,
    ];
    let as_root = ["unshare", "--mount", "sh", "-c", mount];
    for wrapper in [&as_root[..], &wrapper[..]] {
        let Ok(output) = child_under(wrapper, "child_saves_a_megabyte", folder.path()).output()
        else {
            continue;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !text.contains("LEFT") {
            continue;
        }
        let report = report(&output).unwrap();
        assert!(report.starts_with("DiskFull disk full"), "{report}");
        assert!(text.lines().any(|line| line == "LEFT old state"), "{text}");
        return;
    }
    skipped(test, "no file system may be mounted here");
}

#[test]
fn who_may_not_write_a_file_may_not_replace_it() {
    let test = "who_may_not_write_a_file_may_not_replace_it";
    if !root() {
        return skipped(test, "only root can start a child as another user");
    }
    let folder = tempfile::tempdir().unwrap();
    // The child runs a copy of this program that every user can run.
    let program = folder.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let work = folder.path().join("work");
    fs::create_dir(&work).unwrap();
    for open in [folder.path(), &work] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let path = work.join("state");
    for (mode, wanted) in [(0o644, "WriteProtected "), (0o666, "Ok")] {
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        // A child that another test is just starting may still have the copy open for writing.
        let output = retry_while_busy(|| {
            Command::new(&program)
                .args([
                    "--exact",
                    &full_name("child_saves_a_megabyte"),
                    "--nocapture",
                ])
                .env(FOLDER, &work)
                .current_dir(&work)
                .uid(65534)
                .gid(65534)
                .output()
        });
        let output = match output {
            Ok(output) => output,
            Err(error) => return skipped(test, &format!("no child as another user: {error}")),
        };
        let report = report(&output).unwrap();
        assert!(report.starts_with(wanted), "{mode:o}: {report}");
        assert_eq!(temps(&work), 0);
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), 1_000_000);
}

#[test]
fn the_owner_of_a_file_stays_its_owner_when_root_saves_it() {
    let test = "the_owner_of_a_file_stays_its_owner_when_root_saves_it";
    if !root() {
        return skipped(test, "only root can give files away");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    if let Err(error) = std::os::unix::fs::chown(&path, Some(65534), Some(65534)) {
        return skipped(test, &format!("no other owner here: {error}"));
    }
    replace(&path, b"new", Present::Whatever).unwrap();
    let found = fs::metadata(&path).unwrap();
    assert_eq!(
        (found.uid(), found.gid(), found.mode() & 0o7777),
        (65534, 65534, 0o600)
    );
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

/// The system calls of a child between its two marks; `None` without strace.
fn trace(test: &str, function: &str, folder: &Path) -> Option<Vec<String>> {
    let log = folder.join("trace");
    let log_text = log.to_str().unwrap();
    let wrapper = ["strace", "-f", "-o", log_text];
    let output = match child_under(&wrapper, function, folder).output() {
        Ok(output) => output,
        Err(error) => {
            assert!(
                std::env::var_os("CI").is_none(),
                "strace must be installed in CI: {error}"
            );
            skipped(test, "strace not installed");
            return None;
        }
    };
    report(&output).unwrap();
    let log = fs::read_to_string(&log).unwrap();
    let ours = log
        .lines()
        .find(|line| line.contains("/mark-begin"))
        .and_then(|line| line.split_whitespace().next());
    let lines = log
        .lines()
        .skip_while(|line| !line.contains("/mark-begin"))
        .skip(1)
        .take_while(|line| !line.contains("/mark-end"))
        // The line begins with the thread id. Calls of other threads are ignored.
        .filter_map(|line| line.split_once(char::is_whitespace))
        .filter(|(thread, _)| Some(*thread) == ours)
        .map(|(_, call)| call.trim_start());
    let mut calls: Vec<String> = Vec::new();
    for line in lines {
        let second_half = line
            .split_once(" resumed>")
            .filter(|_| line.starts_with("<..."));
        match (second_half, calls.last_mut()) {
            // A call of another thread came between the two halves of this one.
            (Some((_, rest)), Some(call)) => {
                call.truncate(call.find(" <unfinished").unwrap_or(call.len()));
                call.push_str(rest);
            }
            _ => calls.push(line.to_owned()),
        }
    }
    // The standard library checks the descriptor before each close, in debug builds only.
    calls.retain(|call| !call.contains("F_GETFD"));
    assert!(!calls.is_empty(), "no marks in the trace:\n{log}");
    Some(calls)
}

/// The position of the first call in the trace that contains all of `parts`.
fn position(calls: &[String], parts: &[&str]) -> usize {
    calls
        .iter()
        .position(|call| parts.iter().all(|part| call.contains(part)))
        .unwrap_or_else(|| panic!("no {parts:?} in\n{}", calls.join("\n")))
}

fn syncs(calls: &[String]) -> usize {
    calls
        .iter()
        .filter(|call| {
            call.split('(')
                .next()
                .is_some_and(|name| name.contains("sync"))
        })
        .count()
}

#[test]
fn a_replace_waits_for_the_disk_twice_and_in_the_right_order() {
    let test = "a_replace_waits_for_the_disk_twice_and_in_the_right_order";
    let folder = tempfile::tempdir().unwrap();
    let Some(calls) = trace(test, "child_replaces_once", folder.path()) else {
        return;
    };
    let all = calls.join("\n");
    assert_eq!(
        syncs(&calls),
        2,
        "file and folder, no more and no less:\n{all}"
    );

    let descriptor = |call: &str| call.rsplit("= ").next().unwrap().trim().to_owned();
    let create = position(&calls, &["open", ".agent-checkpoint-", "O_EXCL"]);
    let temp = descriptor(&calls[create]);
    let write = position(&calls, &["write(", &format!("({temp},")]);
    let sync_file = position(&calls, &["sync(", &format!("({temp})")]);
    let rename = position(&calls, &["rename"]);
    let sync_folder = calls
        .iter()
        .rposition(|call| call.contains("sync("))
        .unwrap();
    let last_look = calls[..rename]
        .iter()
        .rposition(|call| call.contains("stat") && call.contains("/state\""))
        .unwrap();
    let order = [create, write, sync_file, last_look, rename, sync_folder];
    assert!(order.is_sorted_by(|a, b| a < b), "{order:?} in\n{all}");
    assert_eq!(
        rename,
        last_look + 1,
        "nothing between the last look and the rename:\n{all}"
    );
    assert!(!calls[sync_folder].contains(&format!("({temp})")), "{all}");

    // Six calls that any durable replace needs, and four checks: what is there, how the new file was created,
    // whether the old one is still there, and what is there now.
    let counted = calls
        .iter()
        .filter(|call| !call.starts_with("close("))
        .count();
    assert!(counted <= 10, "{counted} system calls:\n{all}");
}

#[test]
fn the_present_file_is_compared_before_and_after_the_hook() {
    let test = "the_present_file_is_compared_before_and_after_the_hook";
    let folder = tempfile::tempdir().unwrap();
    let Some(calls) = trace(test, "child_replaces_once_with_a_hook", folder.path()) else {
        return;
    };
    let all = calls.join("\n");
    let look = |call: &String| call.contains("stat") && call.contains("/state\"");
    let hook = position(&calls, &["/mark-hook"]);
    let sync_file = position(&calls, &["sync("]);
    let rename = position(&calls, &["rename"]);
    assert!(sync_file < hook && hook < rename, "{all}");
    assert!(
        calls[sync_file..hook].iter().any(look),
        "before the hook:\n{all}"
    );
    assert!(
        calls[hook..rename].iter().any(look),
        "after the hook:\n{all}"
    );
    assert_eq!(syncs(&calls), 2, "{all}");
}

#[test]
fn a_replace_without_durability_never_waits_for_the_disk() {
    let test = "a_replace_without_durability_never_waits_for_the_disk";
    let folder = tempfile::tempdir().unwrap();
    let Some(calls) = trace(test, "child_replaces_once_without_syncs", folder.path()) else {
        return;
    };
    position(&calls, &["rename"]);
    assert_eq!(syncs(&calls), 0, "{}", calls.join("\n"));
}

#[test]
fn each_new_folder_is_made_to_last_and_an_old_one_costs_one_look() {
    let test = "each_new_folder_is_made_to_last_and_an_old_one_costs_one_look";
    let folder = tempfile::tempdir().unwrap();
    let Some(calls) = trace(test, "child_creates_folders", folder.path()) else {
        return;
    };
    let all = calls.join("\n");
    let made = calls
        .iter()
        .filter(|call| call.starts_with("mkdir"))
        .count();
    assert_eq!((made, syncs(&calls)), (2, 2), "{all}");
    let again = position(&calls, &["/mark-again"]);
    assert_eq!(calls.len() - again, 2, "{all}");
}

// ---- the functions that the children run ----

fn mark(folder: &Path, name: &str) {
    // The name does not exist; the failed open only marks the trace.
    let _ = fs::File::open(folder.join(name));
}

#[test]
fn child_replaces_for_ever() {
    let Some(folder) = child_folder() else { return };
    let path = folder.join("state");
    for n in 0_u64.. {
        replace(&path, &vec![n as u8; 100_000], Present::Whatever).unwrap();
    }
}

#[test]
fn child_holds_the_lock() {
    let Some(folder) = child_folder() else { return };
    let holder = format!("pid {} agent child", std::process::id());
    let _lock = Lock::acquire(&folder.join("a.lock"), Duration::ZERO, &holder).unwrap();
    fs::write(folder.join("locked"), "").unwrap();
    // This is longer than any parent waits, but ends if the parent died.
    std::thread::sleep(Duration::from_secs(120));
}

#[test]
fn child_counts_under_the_lock() {
    let Some(folder) = child_folder() else { return };
    let path = folder.join("count");
    for _ in 0..50 {
        let lock = Lock::acquire(&folder.join("a.lock"), Duration::from_secs(60), "child").unwrap();
        let read = read_limited(&path, 100).unwrap().unwrap();
        let count: u64 = String::from_utf8(read.bytes).unwrap().parse().unwrap();
        Replace::new(&path, Present::Same(&read.stamp))
            .durability(Durability::None)
            .write((count + 1).to_string().as_bytes())
            .unwrap();
        drop(lock);
    }
}

#[test]
fn child_saves_a_megabyte() {
    let Some(folder) = child_folder() else { return };
    let done = replace(
        &folder.join("state"),
        &vec![b'x'; 1_000_000],
        Present::Whatever,
    );
    match done {
        Ok(_) => println!("\nREPORT Ok"),
        Err(error @ FileError::DiskFull { .. }) => println!("\nREPORT DiskFull {error}"),
        Err(FileError::Io {
            operation, source, ..
        }) => {
            println!("\nREPORT Io {operation:?} {source}");
        }
        Err(error @ FileError::WriteProtected { .. }) => {
            println!("\nREPORT WriteProtected {error}")
        }
        Err(other) => println!("\nREPORT other {other:?}"),
    }
}

#[test]
fn child_replaces_once() {
    let Some(folder) = child_folder() else { return };
    let path = folder.join("state");
    fs::write(&path, "old").unwrap();
    let read = read_limited(&path, 100).unwrap().unwrap();
    mark(&folder, "mark-begin");
    replace(&path, b"new", Present::Same(&read.stamp)).unwrap();
    mark(&folder, "mark-end");
    println!("\nREPORT done");
}

#[test]
fn child_replaces_once_with_a_hook() {
    let Some(folder) = child_folder() else { return };
    let path = folder.join("state");
    fs::write(&path, "old").unwrap();
    let read = read_limited(&path, 100).unwrap().unwrap();
    let mut hook = || {
        mark(&folder, "mark-hook");
        Ok(())
    };
    mark(&folder, "mark-begin");
    Replace::new(&path, Present::Same(&read.stamp))
        .before_rename(&mut hook)
        .write(b"new")
        .unwrap();
    mark(&folder, "mark-end");
    println!("\nREPORT done");
}

#[test]
fn child_replaces_once_without_syncs() {
    let Some(folder) = child_folder() else { return };
    mark(&folder, "mark-begin");
    let mut hook = || Ok(());
    Replace::new(&folder.join("state"), Present::Absent)
        .durability(Durability::None)
        .before_rename(&mut hook)
        .write(b"new")
        .unwrap();
    mark(&folder, "mark-end");
    println!("\nREPORT done");
}

#[test]
fn child_creates_folders() {
    let Some(folder) = child_folder() else { return };
    // The test just created this folder, so it is synced once here.
    create_folder_durably(&folder).unwrap();
    mark(&folder, "mark-begin");
    create_folder_durably(&folder.join("a/b")).unwrap();
    mark(&folder, "mark-again");
    create_folder_durably(&folder.join("a/b")).unwrap();
    mark(&folder, "mark-end");
    println!("\nREPORT done");
}
