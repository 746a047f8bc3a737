//! Really full disks and really write-protected folders, through the whole store.
//!
//! The tests start this program again as a child if needed; see `CHILD`.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::common::{key, time, tree};
use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::formats::Archive;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    CheckpointStore, DeleteOptions, EntryId, FileOptions, FileStore, Put, RecoverOptions, Recovery,
};
use agent_checkpoint::{ClaimRequest, ErrorKind, Result};

/// Makes this program the child of a test: the folder to work in.
const CHILD: &str = "AGENT_CHECKPOINT_REAL_FAULTS_CHILD";

fn child_folder() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Written past the test harness, so that a skipped test does not look like a passed one.
fn skipped(test: &str, why: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED {test} ({why})");
    assert!(
        std::env::var_os("CI").is_none(),
        "{test} must run in CI: {why}"
    );
}

fn document(text: &str) -> Document {
    Document::from_text(text).unwrap()
}

fn large(name: &str) -> Document {
    document(&format!("{{\"{name}\": \"{}\"}}", "x".repeat(20_000)))
}

fn request(owner: &str) -> ClaimRequest {
    ClaimRequest::new(owner, Duration::from_secs(600))
}

fn temps(folder: &Path) -> Vec<String> {
    let names = tree(folder).into_iter();
    names.filter(|name| name.ends_with(".tmp")).collect()
}

#[test]
fn a_full_disk_costs_no_state_no_history_and_no_claim() {
    let test = "a_full_disk_costs_no_state_no_history_and_no_claim";
    on_a_small_disk(test, "real_faults::child_fills_the_disk");
}

#[test]
fn a_delete_works_on_a_full_disk() {
    on_a_small_disk(
        "a_delete_works_on_a_full_disk",
        "real_faults::child_deletes_on_a_full_disk",
    );
}

/// Runs a child in a separate, small file system.
fn on_a_small_disk(test: &str, child: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mount =
        format!("mount -t tmpfs -o size=512k tmpfs \"${CHILD}\" || exit 77; exec \"$0\" \"$@\"");
    let as_root = ["unshare", "--mount", "sh", "-c", &mount];
    let as_user = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        &mount,
    ];
    for wrapper in [&as_root[..], &as_user[..]] {
        let output = Command::new(wrapper[0])
            .args(&wrapper[1..])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", child, "--nocapture"])
            .env(CHILD, folder.path())
            .stdin(Stdio::null())
            .output();
        if output.is_ok_and(|output| has_run(&output)) {
            return;
        }
    }
    skipped(test, "no file system may be mounted here");
}

/// Whether the child ran to its end. A child that began and did not finish fails the test.
fn has_run(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let began = text.contains("BEGUN");
    assert!(!text.contains("running 0 tests"), "no such test: {text}");
    assert!(
        !began || (output.status.success() && text.contains("DONE")),
        "{text}\n{errors}"
    );
    began
}

#[test]
fn child_fills_the_disk() {
    let Some(folder) = child_folder() else { return };
    println!("BEGUN");
    let store = FileStore::open(folder.join("store"));
    let a = key("a");
    store.put(&a, Put::new(document(r#"{"n": 1}"#))).unwrap();
    store.put(&a, Put::new(document(r#"{"n": 2}"#))).unwrap();
    let claim = store.claim(&a, &request("one")).unwrap();
    let before = store.states(&a).unwrap();

    let full = fill(&folder.join("filler"));
    assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");

    let refused = |what: &str, result: Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), "disk-full", "{what}: {error}");
        let text = error.to_string();
        assert!(text.starts_with("disk full: cannot "), "{text}");
        assert!(text.contains(&*folder.to_string_lossy()), "{text}");
        assert!(temps(&folder).is_empty(), "{what}: {:?}", temps(&folder));
        let seen = store.load(&a).unwrap().unwrap();
        assert_eq!(seen.document.text(), r#"{"n": 2}"#, "{what}");
        assert_eq!(store.states(&a).unwrap(), before, "{what}");
        let claimed = store.claimed(&a).unwrap().unwrap();
        assert_eq!(
            (claimed.fence, claimed.released),
            (claim.fence, false),
            "{what}"
        );
    };
    for round in 0..12 {
        let saved = store.put(&a, Put::new(large("more")).with_fence(Some(claim.fence)));
        refused(&format!("save {round}"), saved.map(drop));
    }
    refused(
        "new key",
        store.put(&key("b"), Put::new(large("b"))).map(drop),
    );
    let taken = store.claim(&a, &request("two").taking_over());
    refused("take-over", taken.map(drop));
    refused("release", store.release(&a, claim.fence).map(drop));
    assert!(store.load(&key("b")).unwrap().is_none());

    // With free space again, everything works.
    fs::remove_file(folder.join("filler")).unwrap();
    store
        .put(&a, Put::new(large("more")).with_fence(Some(claim.fence)))
        .unwrap();
    let taken = store.claim(&a, &request("two").taking_over()).unwrap();
    assert!(taken.fence > claim.fence);
    assert!(
        store
            .put(&a, Put::new(large("late")).with_fence(Some(claim.fence)))
            .is_err()
    );
    let kept = store.states(&a).unwrap();
    assert_eq!(kept.len(), before.len() + 1);
    println!("DONE");
}

#[test]
fn child_deletes_on_a_full_disk() {
    let Some(folder) = child_folder() else { return };
    println!("BEGUN");
    let store = FileStore::open(folder.join("store"));
    let a = key("a");
    for number in 0..2 {
        let text = format!("{{\"n\": {number}}}");
        store.put(&a, Put::new(document(&text))).unwrap();
    }
    fill(&folder.join("filler"));
    assert!(store.delete(&a, &DeleteOptions::new()).unwrap());
    assert!(store.load(&a).unwrap().is_none());
    assert_eq!(store.states(&a).unwrap().len(), 2);
    println!("DONE");
}

/// Fills the disk to the last page.
fn fill(path: &Path) -> io::Error {
    let mut file = fs::File::create(path).unwrap();
    loop {
        if let Err(error) = file.write_all(&[7; 4096]) {
            return error;
        }
    }
}

/// Everything below a folder, with modes, for comparisons.
fn snapshot(folder: &Path) -> Vec<(String, u64, u32, Vec<u8>)> {
    let names = tree(folder).into_iter();
    names
        .map(|name| {
            let path = folder.join(&name);
            let found = fs::metadata(&path).unwrap();
            let bytes = fs::read(&path).unwrap_or_default();
            (name, found.ino(), found.mode(), bytes)
        })
        .collect()
}

#[test]
fn a_folder_that_may_not_be_written_is_read_and_stays_as_it_is() {
    let test = "a_folder_that_may_not_be_written_is_read_and_stays_as_it_is";
    let folder = tempfile::tempdir().unwrap();
    let root = fs::metadata(folder.path()).unwrap().uid() == 0;
    let work = folder.path().join("work");
    let store = FileStore::open(&work);
    for number in 0..3 {
        let text = format!("{{\"n\": {number}}}");
        store.put(&key("a"), Put::new(document(&text))).unwrap();
    }
    store.claim(&key("a"), &request("one")).unwrap();
    store
        .put(&key("damaged"), Put::new(document("{}")))
        .unwrap();
    fs::write(work.join("damaged.json"), "{\"half\": ").unwrap();
    // A user who may not write may still read.
    for name in tree(folder.path()) {
        let path = folder.path().join(name);
        let mode = if path.is_dir() { 0o555 } else { 0o444 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let before = snapshot(&work);

    // Root may write everywhere, so another user tries. The copy of this program lies where that user can run it.
    let mut command = Command::new(std::env::current_exe().unwrap());
    if root {
        let program = folder.path().join("program");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        command = Command::new(program);
        command.uid(65534).gid(65534);
    }
    command
        .args(["--exact", "real_faults::child_may_only_read", "--nocapture"])
        .env(CHILD, &work)
        .current_dir(&work)
        .stdin(Stdio::null());
    let output = match retry_while_busy(|| command.output()) {
        Ok(output) => output,
        Err(error) => return skipped(test, &format!("no child as another user: {error}")),
    };
    assert!(has_run(&output), "{output:?}");
    assert_eq!(snapshot(&work), before);
    // Make the folder removable again.
    for name in tree(folder.path()) {
        let path = folder.path().join(name);
        if path.is_dir() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

/// A child that another test is just starting may still have the copy open for writing.
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

#[test]
fn child_may_only_read() {
    let Some(folder) = child_folder() else { return };
    println!("BEGUN");
    let store = FileStore::open(&folder);
    let (a, damaged) = (key("a"), key("damaged"));
    let loaded = store.load(&a).unwrap().unwrap();
    assert_eq!(loaded.document.text(), r#"{"n": 2}"#);
    let entries = store.states(&a).unwrap();
    assert_eq!(entries.len(), 3);
    store.load_revision(&a, &entries[2].id).unwrap();
    let claim = store.claimed(&a).unwrap().unwrap();
    let now = time("2026-03-02T08:00:00Z");
    let deletes = DeleteOptions::new().with_fence(Some(claim.fence));
    let attempts: [(&str, Result<()>); 9] = [
        (
            "put",
            store
                .put(&a, Put::new(document("{}")).with_fence(Some(claim.fence)))
                .map(drop),
        ),
        (
            "new",
            store
                .put(
                    &key("new"),
                    Put::new(document("{}")).with_fence(Some(claim.fence)),
                )
                .map(drop),
        ),
        ("delete", store.delete(&a, &deletes).map(drop)),
        (
            "archive",
            store.archive(&a, Archive::Crashed, now, &deletes).map(drop),
        ),
        (
            "claim",
            store.claim(&a, &request("two").taking_over()).map(drop),
        ),
        ("release", store.release(&a, claim.fence).map(drop)),
        ("pin", store.pin(&a, &entries[1].id, true).map(drop)),
        (
            "recover",
            store
                .recover(&damaged, &RecoverOptions::new(Recovery::Fresh))
                .map(drop),
        ),
        (
            "save over damage",
            store
                .put(
                    &damaged,
                    Put::new(document("{}")).with_fence(Some(claim.fence)),
                )
                .map(drop),
        ),
    ];
    for (what, result) in attempts {
        let error = result.unwrap_err();
        let text = error.to_string();
        let told = matches!(error.code(), "io" | "write-protected")
            || matches!(
                error.kind(),
                ErrorKind::Corrupt(_) | ErrorKind::Fenced { .. }
            );
        assert!(told, "{what}: {:?}: {text}", error.kind());
        let place = folder.to_string_lossy();
        assert!(
            text.contains(&*place) || text.contains("fence"),
            "{what}: {text}"
        );
    }
    println!("DONE");
}

/// Two users of one group share a folder, like members of a team: `umask 002`, and a folder with the set-group-id bit.
/// Each can claim, report on and recover what the other began.
#[test]
fn two_users_of_one_group_folder_claim_report_and_recover() {
    let test = "two_users_of_one_group_folder_claim_report_and_recover";
    let folder = tempfile::tempdir().unwrap();
    let root = fs::metadata(folder.path()).unwrap().uid() == 0;
    if !root {
        return skipped(test, "only root can start children as other users");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let work = folder.path().join("work");
    fs::create_dir(&work).unwrap();
    if let Err(error) = std::os::unix::fs::chown(&work, Some(65533), Some(65532)) {
        return skipped(test, &format!("no other owner here: {error}"));
    }
    fs::set_permissions(&work, fs::Permissions::from_mode(0o2775)).unwrap();
    for (user, child) in [
        (65533, "real_faults::child_begins"),
        (65534, "real_faults::child_goes_on"),
    ] {
        let mut command = Command::new("sh");
        command
            .args(["-c", "umask 002; exec \"$0\" \"$@\""])
            .arg(&program)
            .args(["--exact", child, "--nocapture"])
            .env(CHILD, &work)
            .current_dir(&work)
            .stdin(Stdio::null())
            .uid(user)
            .gid(65532);
        let output = match retry_while_busy(|| command.output()) {
            Ok(output) => output,
            Err(error) => return skipped(test, &format!("no child as another user: {error}")),
        };
        assert!(has_run(&output), "{output:?}");
    }
}

/// A store whose history links, and one whose history copies, each with its folder.
fn stores(folder: &Path) -> [(FileStore, PathBuf); 2] {
    let copying = FileOptions::default().copying_history();
    [("links", FileOptions::default()), ("copies", copying)].map(|(name, options)| {
        let place = folder.join(name);
        (FileStore::with_options(&place, options), place)
    })
}

#[test]
fn child_begins() {
    let Some(folder) = child_folder() else { return };
    println!("BEGUN");
    for (store, _) in stores(&folder) {
        for text in ["{}", r#"{"n": 1}"#] {
            store.put(&key("a"), Put::new(document(text))).unwrap();
        }
    }
    println!("DONE");
}

#[test]
fn child_goes_on() {
    let Some(folder) = child_folder() else { return };
    println!("BEGUN");
    for (store, place) in stores(&folder) {
        let (a, path) = (key("a"), place.join("a.json"));
        let claim = store.claim(&a, &request("two")).unwrap();
        store
            .put(
                &a,
                Put::new(document(r#"{"n": 2}"#)).with_fence(Some(claim.fence)),
            )
            .unwrap();
        let put = store.load(&a).unwrap().unwrap();
        let back = store
            .history()
            .unwrap()
            .rolled_back(&a, &put.revision)
            .unwrap();
        assert_eq!(back, None);
        store.pin(&a, &EntryId::current(), true).unwrap();
        fs::write(&path, "{\"half\": ").unwrap();
        for with in [Recovery::Newest, Recovery::Fresh] {
            let options = RecoverOptions::new(with).with_fence(Some(claim.fence));
            store.recover(&a, &options).unwrap();
            fs::write(&path, "{\"half\": ").unwrap();
        }
        store.release(&a, claim.fence).unwrap();
    }
    println!("DONE");
}
