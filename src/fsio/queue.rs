//! Whose turn it is among those who wait for a lock.
//!
//! The lock of the system wakes nobody in order: whoever tries most often gets it, and the one that just gave
//! it back tries first. So those who have to wait line up: each makes an empty file in a folder beside the
//! lock, named by the time it came, and only the first tries. Nothing hangs on it: the lock alone says who has
//! it, so whatever goes wrong here only costs the order. A file of a process that was killed or is suspended
//! keeps the others for an instant, then who comes after it takes the lock if that is free, and removes it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::{Operation, seam, system};

/// After how long whoever is before may be dead: then the lock is tried, and taken only if it is free.
const DOUBTFUL: Duration = Duration::from_millis(20);

/// A place among those who wait for one lock.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    /// Our file; `None` before we had to wait, and where none can be made.
    ticket: Option<PathBuf>,
    /// The file of the one that comes before, and since when it does.
    before: Option<(PathBuf, Instant)>,
    pauses: Pauses,
}

impl Place {
    pub(super) fn beside(sidecar: &Path) -> Self {
        let mut name = sidecar.as_os_str().to_owned();
        name.push(".queue");
        Place {
            folder: name.into(),
            ticket: None,
            before: None,
            pauses: Pauses::new(),
        }
    }

    /// Whether nobody waits, so that whoever comes may try at once.
    pub(super) fn is_free(&self) -> bool {
        !self
            .waiting()
            .any(|name| is_ticket(&self.folder.join(name)))
    }

    /// Who waits, by the names. A link in place of the folder leads to somebody's files: then nobody does.
    fn waiting(&self) -> impl Iterator<Item = OsString> + use<> {
        let is_real = system::symlink_metadata(&self.folder).is_ok_and(|found| found.is_dir());
        let folder = is_real
            .then(|| system::read_dir(&self.folder).ok())
            .flatten();
        let entries = folder.into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        names.filter(|name| is_named_as_ticket(name))
    }

    /// Waits a little, in line, but not for longer than `most`. Says whether it is our turn to try.
    pub(super) fn wait(&mut self, most: Duration) -> bool {
        if self.ticket.is_none() {
            self.line_up();
        }
        std::thread::sleep(self.pauses.next().min(most));
        // The line is as it was as long as we are in it, and the one before us: no listing is needed for that. Others may
        // have taken us for dead, also where we were first, and whoever is in no line gets the lock by chance only.
        let before = self.before.as_ref().map(|(before, _)| before);
        let mut ours = self.ticket.iter().chain(before);
        if ours.any(|ticket| system::symlink_metadata(ticket).is_err()) {
            self.look();
        }
        let Some((_, since)) = &mut self.before else {
            return true;
        };
        let is_doubtful = since.elapsed() >= DOUBTFUL;
        if is_doubtful {
            *since = Instant::now();
        }
        is_doubtful
    }

    /// We have the lock. Whoever was before us and did not take it is out of the line.
    pub(super) fn leave(mut self) {
        if let Some((before, _)) = self.before.take()
            && is_ticket(&before)
        {
            let _ = system::remove_file(&before);
        }
    }

    fn line_up(&mut self) {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let name = format!(
            "{:020}-{}-{}",
            now.map_or(0, |now| now.as_nanos()),
            process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let ticket = self.folder.join(name);
        if self.make(&ticket) {
            self.ticket = Some(ticket);
            self.look();
        }
    }

    /// Makes our file. The last to leave removes the folder, perhaps just now.
    fn make(&self, ticket: &Path) -> bool {
        let is_strange = |found: Metadata| !found.is_dir();
        if system::symlink_metadata(&self.folder).is_ok_and(is_strange) {
            return false;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        for _ in 0..3 {
            match system::open_with(&options, Operation::Create, ticket) {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let _ = system::create_dir(&self.folder);
                }
                Err(error) => return error.kind() == io::ErrorKind::AlreadyExists,
            }
        }
        false
    }

    /// Finds who is before us now.
    fn look(&mut self) {
        let Some(ticket) = self.ticket.clone() else {
            return;
        };
        let Some(own) = ticket.file_name() else {
            return;
        };
        let waiting: Vec<OsString> = self.waiting().collect();
        if !waiting.iter().any(|name| name == own) {
            // Somebody took us for dead.
            self.make(&ticket);
        }
        let mut earlier: Vec<&OsString> = waiting.iter().filter(|name| *name < own).collect();
        earlier.sort();
        let ahead = earlier.len();
        let mut earlier = earlier.iter().rev().map(|name| self.folder.join(name));
        let before = earlier.find(|ticket| is_ticket(ticket));
        if self.before.as_ref().map(|(before, _)| before) != before.as_ref() {
            self.before = before.map(|before| (before, Instant::now()));
        }
        self.pauses.begin(ahead);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let _ = system::remove_file(&ticket);
            // It stays where others wait.
            let _ = seam::call(Operation::Remove, &self.folder, || {
                fs::remove_dir(&self.folder)
            });
        }
    }
}

/// Whether a file is one that a waiter made: whatever else is in the folder is not ours to remove or wait for.
fn is_ticket(path: &Path) -> bool {
    is_named_as_ticket(path.file_name().unwrap_or_default())
        && system::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
}

fn is_named_as_ticket(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let numbers: Vec<&str> = name.split('-').collect();
    let is_number =
        |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.len() == 3 && numbers[0].len() == 20 && numbers.iter().all(is_number)
}

/// How long to wait between tries: longer with each, and the longer the more are before us. Each is shortened
/// by up to a quarter at random, so that waiters do not march in step.
#[derive(Debug)]
struct Pauses {
    ahead: Option<usize>,
    next: Duration,
    longest: Duration,
    random: RandomState,
    count: u64,
}

impl Pauses {
    const FIRST: Duration = Duration::from_micros(50);
    const LONGEST: Duration = Duration::from_millis(20);
    /// For the one whose turn it is: with each of these the lock may lie idle.
    const LONGEST_OF_FIRST: Duration = Duration::from_millis(2);

    fn new() -> Self {
        Self {
            ahead: None,
            next: Self::FIRST,
            longest: Self::LONGEST,
            random: RandomState::new(),
            count: 0,
        }
    }

    /// Begins anew, if another number is before us than at the last look: whoever is slow to see that the line moved
    /// keeps all behind it waiting while the lock lies idle.
    fn begin(&mut self, ahead: usize) {
        if self.ahead.replace(ahead) == Some(ahead) {
            return;
        }
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.next = Self::FIRST.saturating_mul(ahead.max(1));
        self.longest = match ahead {
            0 => Self::LONGEST_OF_FIRST,
            _ => Self::LONGEST,
        };
    }

    fn next(&mut self) -> Duration {
        let pause = self.next.min(self.longest);
        self.next = (pause + pause / 8).min(self.longest);
        self.count += 1;
        // 0 to 255 of 1024 parts.
        let cut = (self.random.hash_one(self.count) % 256) as u32;
        pause - pause * cut / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &Path) -> Place {
        Place::beside(&folder.join("a.lock"))
    }

    #[test]
    fn who_came_first_is_first_and_the_folder_goes_with_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let mut places: Vec<Place> = (0..3)
            .map(|_| {
                let mut place = place(folder.path());
                place.line_up();
                place
            })
            .collect();
        assert!(!place(folder.path()).is_free());
        assert!(places[0].before.is_none());
        let second = places[1].ticket.clone().unwrap();
        assert_eq!(places[2].before.as_ref().unwrap().0, second);
        places.remove(0).leave();
        places[0].look();
        assert!(places[0].before.is_none());
        assert_eq!(places[1].before.as_ref().unwrap().0, second);
        drop(places);
        assert!(place(folder.path()).is_free());
        assert!(!folder.path().join("a.lock.queue").exists());
    }

    #[test]
    fn a_dead_waiter_keeps_the_others_for_an_instant_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut dead = place(folder.path());
        dead.line_up();
        let stale = dead.ticket.clone().unwrap();
        std::mem::forget(dead);
        let started = Instant::now();
        let mut next = place(folder.path());
        let mut last = place(folder.path());
        next.line_up();
        last.line_up();
        while !next.wait(Duration::from_millis(1)) {
            assert!(started.elapsed() < Duration::from_secs(10));
        }
        assert!(started.elapsed() >= DOUBTFUL);
        next.leave();
        assert!(!stale.exists());
        last.look();
        assert!(last.before.is_none());
    }

    /// What may be in the folder of somebody to whom a queue leads.
    fn strangers(folder: &Path) -> Vec<PathBuf> {
        fs::create_dir_all(folder).unwrap();
        let files = [
            (".profile", ""),
            ("0-1-1", ""),
            ("00000000000000000000-1-1", "not empty"),
            ("00000000000000000000-1-1-1", ""),
        ];
        let made = files.map(|(name, text)| {
            fs::write(folder.join(name), text).unwrap();
            folder.join(name)
        });
        made.into()
    }

    fn wait_in_vain(mut place: Place) {
        assert!(place.is_free());
        for _ in 0..3 {
            assert!(place.wait(Duration::from_millis(1)));
            std::thread::sleep(DOUBTFUL);
        }
        place.leave();
    }

    #[test]
    fn what_is_no_place_in_line_is_neither_waited_for_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let strangers = strangers(&folder.path().join("a.lock.queue"));
        wait_in_vain(place(folder.path()));
        assert!(strangers.iter().all(|file| file.is_file()));
    }

    #[cfg(unix)]
    #[test]
    fn a_queue_that_is_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("home");
        let strangers = strangers(&elsewhere);
        let ticket = elsewhere.join("00000000000000000000-2-2");
        fs::write(&ticket, "").unwrap();
        std::os::unix::fs::symlink("home", folder.path().join("a.lock.queue")).unwrap();
        wait_in_vain(place(folder.path()));
        assert!(ticket.is_file() && strangers.iter().all(|file| file.is_file()));
        assert_eq!(
            fs::read_dir(elsewhere).unwrap().count(),
            strangers.len() + 1
        );
    }

    #[test]
    fn who_was_taken_for_dead_has_its_place_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (place(folder.path()), place(folder.path()));
        first.line_up();
        second.line_up();
        fs::remove_file(first.ticket.as_ref().unwrap()).unwrap();
        assert!(first.wait(Duration::ZERO));
        second.look();
        assert_eq!(
            second.before.as_ref().unwrap().0,
            *first.ticket.as_ref().unwrap()
        );
    }

    #[test]
    fn where_nobody_can_line_up_waiters_try_now_and_then() {
        let folder = tempfile::tempdir().unwrap();
        let mut place = place(&folder.path().join("missing"));
        assert!(place.is_free());
        assert!(place.wait(Duration::from_millis(1)));
        assert!(place.ticket.is_none());
        for _ in 0..60 {
            place.pauses.next();
        }
        let last = place.pauses.next();
        assert!(
            last <= Pauses::LONGEST && last >= Pauses::LONGEST * 3 / 4,
            "{last:?}"
        );
    }
}
