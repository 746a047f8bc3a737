//! Which process holds a claim, and whether it is gone.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

use serde::{Deserialize, Serialize};

/// A process, distinguished from every other process that has or had the same pid.
///
/// Only Linux, through `/proc`, provides enough information for that. On other systems all fields but the pid
/// are unknown, and the process counts as alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProcessId {
    /// The pid.
    pub pid: u32,
    /// When it started, in clock ticks as in `/proc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// The id of the boot of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The namespaces in which pid and start time are valid: two containers may both have a process 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<String>,
}

impl ProcessId {
    /// This process.
    #[must_use]
    pub fn current() -> ProcessId {
        let pid = std::process::id();
        ProcessId::of(pid).unwrap_or(ProcessId {
            pid,
            started: None,
            boot: None,
            namespaces: None,
        })
    }

    /// The process with this pid; `None` if no such process is known to run.
    #[must_use]
    pub fn of(pid: u32) -> Option<ProcessId> {
        let place = Place::here();
        Some(ProcessId {
            pid,
            started: Some(started(pid).ok()?),
            boot: place.as_ref().map(|place| place.boot.clone()),
            namespaces: place.map(|place| place.namespaces),
        })
    }

    /// Whether the process has surely ended. A process of another boot, container or machine counts as alive,
    /// and so does one about which too little is known.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.runs() == Some(false)
    }

    /// Whether it is this process, as far as is known of both.
    pub(crate) fn is_this(&self) -> bool {
        self.pid == std::process::id() && *self == ProcessId::current()
    }

    /// Whether it is running; `None` if that cannot be known.
    pub(crate) fn runs(&self) -> Option<bool> {
        let (was, boot, namespaces) = (
            self.started?,
            self.boot.as_ref()?,
            self.namespaces.as_ref()?,
        );
        let here = Place::here()?;
        if *boot != here.boot || *namespaces != here.namespaces {
            return None;
        }
        match started(self.pid) {
            // If the start times differ, another process got the same pid.
            Ok(now) => Some(now == was),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(false),
            Err(_) => None,
        }
    }
}

/// 64 random bits as hex digits: a name that no other process has. The standard library seeds its hash maps
/// with random numbers of the system, so this needs no further crate.
pub(crate) fn random_name() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// The boot and namespaces in which this process sees others.
struct Place {
    boot: String,
    namespaces: String,
}

impl Place {
    /// `None` if `/proc` does not show every process of this namespace.
    fn here() -> Option<Place> {
        let read = |path| std::fs::read_to_string(path).ok();
        let link = |path| Some(std::fs::read_link(path).ok()?.display().to_string());
        // A `/proc` of another namespace shows another pid for this process.
        if link("/proc/self")? != std::process::id().to_string() {
            return None;
        }
        // With the mount option `hidepid`, it hides the processes of other users.
        let mut mounts = read("/proc/self/mountinfo")?;
        mounts.push('\n');
        let hides = |line: &str| line.contains(" /proc ") && line.contains("hidepid=");
        if mounts.lines().any(hides) {
            return None;
        }
        Some(Place {
            boot: read("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            namespaces: format!(
                "{} {}",
                link("/proc/self/ns/pid")?,
                link("/proc/self/ns/time").unwrap_or_default()
            ),
        })
    }
}

/// When a process was started: the 22nd field of its `stat`, whose second field is the name in parentheses. A
/// zombie, which has ended but was not reaped yet, counts as gone. Its state is the third field. The 20th field
/// is the number of its threads, because other threads may outlive the first.
fn started(pid: u32) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let strange = || io::Error::other("the line of a process is not as expected");
    let (_, after_name) = stat.rsplit_once(')').ok_or_else(strange)?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let [state, .., threads, _, started] = fields.get(..20).ok_or_else(strange)? else {
        return Err(strange());
    };
    if matches!(*state, "Z" | "X" | "x") && matches!(*threads, "0" | "1") {
        return Err(io::ErrorKind::NotFound.into());
    }
    started.parse().map_err(|_| strange())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot go on should say where"
    )]

    use std::process::{Command, Stdio};

    use super::ProcessId;

    #[test]
    fn a_process_is_gone_once_it_ended_and_not_before() {
        let mut sleep = Command::new("sleep");
        let mut child = sleep.arg("60").stdout(Stdio::null()).spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        assert!(!process.is_gone() && !ProcessId::current().is_gone());
        // Another process that got the same pid.
        let reused = ProcessId {
            started: process.started.map(|at| at - 1),
            ..process.clone()
        };
        assert!(reused.is_gone());
        child.kill().unwrap();
        // A zombie counts as gone, even before its parent reaps it.
        let begun = std::time::Instant::now();
        while !process.is_gone() {
            assert!(begun.elapsed().as_secs() < 10, "a zombie counts as alive");
            std::thread::yield_now();
        }
        assert_eq!(ProcessId::of(process.pid), None);
        child.wait().unwrap();
        assert!(process.is_gone());
        assert_eq!(ProcessId::of(process.pid), None);

        // None of these can be checked, so each counts as alive.
        let alive = |change: fn(&mut ProcessId)| {
            let mut process = process.clone();
            change(&mut process);
            assert!(!process.is_gone(), "{process:?}");
        };
        alive(|it| it.boot = Some("another".to_owned()));
        alive(|it| it.boot = None);
        alive(|it| it.namespaces = Some("pid:[1] time:[1]".to_owned()));
        alive(|it| it.namespaces = None);
        alive(|it| it.started = None);
    }
}
