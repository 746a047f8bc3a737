//! The order of those who wait for a lock.
//!
//! The system's lock has no order: the process that tries most often gets it, and the one that just released it
//! tries first. So waiters form a queue. Each creates an empty file in a folder beside the lock, named by its
//! time of arrival, and only the first one tries. The queue decides nothing but the order: only the lock says
//! who holds it. If a waiter is killed or suspended, its file delays the others only briefly: the next one then
//! takes the lock if it is free, and removes that file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::{Operation, seam, system};

/// How long to wait for the waiter ahead before it may count as dead. The lock is then tried, and taken only if
/// it is free.
const DOUBTFUL: Duration = Duration::from_millis(20);

/// A position in the queue for one lock.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    /// Our file; `None` before we had to wait, and if none can be created.
    ticket: Option<PathBuf>,
    /// The file of the waiter ahead of us, and since when it is ahead.
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

    /// Whether the queue is empty, so that a new caller may try at once.
    pub(super) fn is_free(&self) -> bool {
        !self
            .waiting()
            .any(|name| is_ticket(&self.folder.join(name)))
    }

    /// The file names in the queue. If the folder is a link, its files are not ours, so the queue counts as empty.
    fn waiting(&self) -> impl Iterator<Item = OsString> + use<> {
        let is_real = system::symlink_metadata(&self.folder).is_ok_and(|found| found.is_dir());
        let folder = is_real
            .then(|| system::read_dir(&self.folder).ok())
            .flatten();
        let entries = folder.into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        names.filter(|name| is_named_as_ticket(name))
    }

    /// Waits a little in the queue, but no longer than `most`. Returns whether it is our turn to try.
    pub(super) fn wait(&mut self, most: Duration) -> bool {
        if self.ticket.is_none() {
            self.line_up();
        }
        std::thread::sleep(self.pauses.next().min(most));
        // As long as our file and the one ahead of us exist, the queue did not change for us, so the folder
        // need not be listed. Others may have taken us for dead and removed our file, even if we were first. We
        // must then join again, because without a place in the queue we get the lock only by chance.
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

    /// Leaves the queue because we have the lock. A waiter ahead of us that did not take it is removed from the
    /// queue.
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

    /// Creates our file. The last waiter to leave removes the folder, which may happen at any time.
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

    /// Finds the waiter ahead of us.
    fn look(&mut self) {
        let Some(ticket) = self.ticket.clone() else {
            return;
        };
        let Some(own) = ticket.file_name() else {
            return;
        };
        let waiting: Vec<OsString> = self.waiting().collect();
        if !waiting.iter().any(|name| name == own) {
            // Another waiter took us for dead and removed our file.
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
            // This fails while others wait, because the folder is not empty.
            let _ = seam::call(Operation::Remove, &self.folder, || {
                fs::remove_dir(&self.folder)
            });
        }
    }
}

/// Whether a file was made by a waiter. Other files in the folder are not ours to remove or to wait for.
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

/// The pauses between tries. They get longer with each try, and start longer the more waiters are ahead. Each
/// is shortened by up to a quarter at random, so that waiters do not try in step.
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
    /// The longest pause of the first in the queue, during which the lock may be idle.
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

    /// Restarts the pauses if the number of waiters ahead changed. A waiter that is slow to notice that keeps
    /// all behind it waiting while the lock is idle.
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
        // 0 to 255 of 1024 parts, which is up to a quarter.
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

    /// Files that may be in another user's folder to which a queue leads.
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
