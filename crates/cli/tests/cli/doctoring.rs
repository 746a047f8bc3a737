//! `ckpt doctor`.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use agent_checkpoint::store::FileStore;
use agent_checkpoint::{CheckpointStoreExt, Key};
use serde_json::Value;

use crate::project::{Project, Run, TASK, path_with_ckpt};

const FILE: &str = "checkpoints/US-003.json";

fn project() -> Project {
    Project::with(FILE, TASK)
}

/// The findings of a run: kind, place, next.
fn findings(run: &Run) -> Vec<(String, String, Option<String>)> {
    let report = run.json();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let all = report["findings"].as_array().unwrap().iter();
    all.map(|found| {
        let kind = text(&found["kind"]).unwrap();
        (kind, text(&found["place"]).unwrap(), text(&found["next"]))
    })
    .collect()
}

/// The only finding in a project.
#[track_caller]
fn only(project: &Project, code: i32) -> (String, String, Option<String>) {
    let run = project.expect(code, &["doctor", ".", "--json"]);
    let mut all = findings(&run);
    assert_eq!(all.len(), 1, "{run:?}");
    all.remove(0)
}

/// Runs a command exactly as it was printed.
fn run(project: &Project, command: &str) -> Run {
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(project.path(""))
        .env("PATH", path_with_ckpt())
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .output()
        .unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Checks that the finding is reported, that its command works, and that the finding is gone afterwards.
#[track_caller]
fn is_mended(project: &Project, code: i32, kind: &str, place: &str, command: &str) {
    let found = only(project, code);
    let expected = (kind.to_owned(), place.to_owned(), Some(command.to_owned()));
    assert_eq!(found, expected);
    let done = run(project, command);
    assert!(done.code < 2, "{done:?}");
    healthy(project);
}

#[track_caller]
fn healthy(project: &Project) {
    let run = project.expect(0, &["doctor", "."]);
    assert!(run.out.ends_with("; nothing is wrong\n"), "{run:?}");
}

#[test]
fn what_is_well_is_said_to_be() {
    let project = project();
    let run = project.expect(0, &["doctor", "checkpoints"]);
    assert_eq!(run.out, "1 checkpoint; nothing is wrong\n");
    project.expect(
        0,
        &["note", "half", "--store", "checkpoints", "--key", "US-003"],
    );
    healthy(&project);
    project.expect(2, &["doctor"]);
    project.expect(2, &["doctor", "checkpoints", "--store", "checkpoints"]);
    project.expect(2, &["doctor", "checkpoints", "--key", "US-003"]);
    let run = project.expect(2, &["doctor", "nowhere"]);
    assert_eq!(run.out, "0 checkpoints; not all could be read\n");
}

#[test]
fn a_checkpoint_is_judged_as_validate_judges_it() {
    let project = project();
    let future = TASK.replace("2026-03-02T08:05:00Z", "2999-01-01T00:00:00Z");
    project.write(FILE, future.replace("\"implementation\"", "\"x\""));
    let run = project.expect(
        1,
        &["doctor", ".", "--json", "--now", "2026-03-02T09:00:00Z"],
    );
    let kinds: BTreeSet<String> = findings(&run).into_iter().map(|found| found.0).collect();
    assert_eq!(kinds, ["clock", "violation"].map(str::to_owned).into());
    for (_, place, next) in findings(&run) {
        assert_eq!(place, "./checkpoints/US-003.json");
        let listed = self::run(&project, &next.unwrap());
        assert_eq!(listed.code, 1, "{listed:?}");
        assert!(listed.out.contains("violation"), "{listed:?}");
    }
}

#[test]
fn a_corrupt_checkpoint_goes_on_with_what_is_kept() {
    let project = project();
    project.write(FILE, &TASK[..TASK.len() - 2]);
    let place = "./checkpoints/US-003.json";
    is_mended(
        &project,
        3,
        "corrupt",
        place,
        "ckpt recover ./checkpoints/US-003.json --salvage",
    );
    let project = self::project();
    project.expect(
        0,
        &["note", "half", "--store", "checkpoints", "--key", "US-003"],
    );
    project.write(FILE, &TASK[..300]);
    is_mended(
        &project,
        3,
        "corrupt",
        place,
        "ckpt recover ./checkpoints/US-003.json",
    );
}

#[test]
fn what_lies_beside_checkpoints_that_are_gone_is_found() {
    let project = project();
    project.expect(
        0,
        &["note", "half", "--store", "checkpoints", "--key", "US-003"],
    );
    fs::remove_file(project.path(FILE)).unwrap();
    let (kind, place, next) = only(&project, 1);
    assert_eq!(
        (kind.as_str(), place.as_str()),
        ("orphan", "./checkpoints/US-003.json")
    );
    let listed = run(&project, &next.unwrap());
    assert_eq!(listed.code, 0, "{listed:?}");
    let forgotten = run(&project, "ckpt forget ./checkpoints/US-003.json --apply");
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    healthy(&project);

    // An archived checkpoint keeps its states on purpose.
    let project = self::project();
    project.expect(
        0,
        &["note", "half", "--store", "checkpoints", "--key", "US-003"],
    );
    project.expect(0, &["archive", FILE, "--as", "aborted"]);
    healthy(&project);
}

#[test]
fn a_claim_without_a_checkpoint_is_found_once_it_ran_out() {
    let project = project();
    let claim = [
        "claim",
        "--store",
        "checkpoints",
        "--key",
        "US-004",
        "--agent",
        "a",
        "--for",
        "1s",
    ];
    project.expect(
        0,
        &[&claim[..], &["--now", "2026-03-02T08:00:00Z"]].concat(),
    );
    let command = "ckpt forget ./checkpoints/US-004.json --apply";
    is_mended(
        &project,
        1,
        "never_begun",
        "./checkpoints/US-004.json",
        command,
    );
}

#[test]
fn files_of_killed_writers_are_removed_by_fix_and_no_others() {
    let project = project();
    project.expect(
        0,
        &["note", "half", "--store", "checkpoints", "--key", "US-003"],
    );
    let old = SystemTime::now() - Duration::from_secs(2 * 3600);
    let names = [
        ("checkpoints/.agent-checkpoint-abcdefghijk1.tmp", true),
        (
            "checkpoints/.agent-checkpoint/history/US-003.json/.agent-checkpoint-abcdefghijk2.tmp",
            true,
        ),
        (
            "checkpoints/.agent-checkpoint/ledger/.agent-checkpoint-abcdefghijk4.tmp",
            true,
        ),
        ("checkpoints/.agent-checkpoint-abcdefghijk3.tmp", false),
        ("checkpoints/.agent-checkpoint-short.tmp", true),
        ("checkpoints/other.tmp", true),
    ];
    for (name, is_old) in names {
        project.write(name, "x");
        if is_old {
            let file = File::options()
                .write(true)
                .open(project.path(name))
                .unwrap();
            file.set_modified(old).unwrap();
        }
    }
    // Anything behind a link is not ours.
    let name = ".agent-checkpoint-abcdefghijk5.tmp";
    let elsewhere = Project::with(name, "x");
    let file = File::options()
        .write(true)
        .open(elsewhere.path(name))
        .unwrap();
    file.set_modified(old).unwrap();

    let (kind, place, next) = only(&project, 1);
    assert_eq!(
        (kind.as_str(), place.as_str()),
        ("temporary", "./checkpoints")
    );
    let fixed = run(&project, &next.unwrap());
    assert_eq!(fixed.code, 0, "{fixed:?}");
    assert!(
        fixed
            .out
            .starts_with("temporary: ./checkpoints: 3 temporary files of killed writers (fixed)\n"),
        "{fixed:?}"
    );
    let left: Vec<bool> = names
        .iter()
        .map(|(name, _)| project.path(name).exists())
        .collect();
    assert_eq!(left, [false, false, false, true, true, true]);
    let link = project.path("checkpoints/.agent-checkpoint/archive");
    symlink(elsewhere.path(""), &link).unwrap();
    let linked = project.expect(1, &["doctor", "checkpoints", "--fix"]);
    assert!(linked.out.contains("leads out of its folder"), "{linked:?}");
    assert_eq!(elsewhere.names(), [name]);
    fs::remove_file(link).unwrap();
    healthy(&project);

    // Beside a file that is named without its folder.
    let one = Project::with("US-003.json", TASK);
    one.write(name, "x");
    let file = File::options().write(true).open(one.path(name)).unwrap();
    file.set_modified(old).unwrap();
    let run = one.expect(1, &["doctor", "US-003.json", "--json"]);
    let (kind, place, _) = findings(&run).remove(0);
    assert_eq!((kind.as_str(), place.as_str()), ("temporary", "."));
}

#[test]
fn nothing_is_removed_while_a_save_is_under_way() {
    let project = project();
    let store = FileStore::open(project.path("checkpoints"));
    let key = Key::new("US-003").unwrap();
    let name = "checkpoints/.agent-checkpoint-abcdefghijk1.tmp";
    project.write(name, "x");
    let path = project.path(name);
    let fix = || project.ckpt(&["doctor", "checkpoints", "--fix"]);
    // That of a save that was stopped in the middle with its lock: it grows old, as any.
    let save = |held: &mut dyn FnMut()| {
        let saved = store.transact(&key, |_| {
            project.write(name, "x");
            let file = File::options().write(true).open(&path).unwrap();
            let old = SystemTime::now() - Duration::from_secs(7200);
            file.set_modified(old).unwrap();
            held();
            Ok::<_, agent_checkpoint::Error>(None)
        });
        saved.unwrap();
    };
    save(&mut || {
        let held = fix();
        let lock =
            "checkpoints/.agent-checkpoint/locks/us-003.json.lock is locked; nothing was removed";
        assert!(held.code == 1 && held.out.contains(lock), "{held:?}");
        assert!(path.exists());
    });
    // One that ends is waited for.
    thread::scope(|scope| {
        let mut fixing = None;
        save(&mut || {
            fixing = Some(scope.spawn(fix));
            thread::sleep(Duration::from_millis(700));
            assert!(path.exists());
        });
        let fixed = fixing.unwrap().join().unwrap();
        let expected = "1 temporary file of killed writers (fixed)";
        assert!(fixed.code == 0 && fixed.out.contains(expected), "{fixed:?}");
    });
    assert!(!path.exists());
}

#[test]
fn write_protection_is_found() {
    let project = project();
    let set = |name: &str, mode| {
        fs::set_permissions(project.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set(FILE, 0o444);
    let command = "chmod u+w ./checkpoints/US-003.json";
    is_mended(
        &project,
        1,
        "read-only",
        "./checkpoints/US-003.json",
        command,
    );
    set("checkpoints", 0o555);
    is_mended(
        &project,
        1,
        "read-only",
        "./checkpoints",
        "chmod u+w ./checkpoints",
    );
}

#[test]
fn a_file_that_was_written_in_the_future_is_found() {
    let project = project();
    project.write_at(FILE, "2999-01-01T00:00:00Z");
    project.write(FILE, TASK);
    let file = File::options()
        .write(true)
        .open(project.path(FILE))
        .unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(3600))
        .unwrap();
    let (kind, place, next) = only(&project, 1);
    assert_eq!(
        (kind.as_str(), place.as_str(), next),
        ("clock", "./checkpoints/US-003.json", None)
    );
}

#[test]
fn our_folder_in_git_is_found() {
    let project = project();
    project.expect(
        0,
        &["note", "half", "--store", "checkpoints", "--key", "US-003"],
    );
    let git = "git init -q . && git add -A";
    assert_eq!(run(&project, git).code, 0);
    healthy(&project);
    // By mistake, including files that our folder ignores.
    assert_eq!(
        run(&project, "git add -f checkpoints/.agent-checkpoint").code,
        0
    );
    let command = "git -C ./checkpoints rm -r -q --cached -- .agent-checkpoint ':!.agent-checkpoint/overflow' ':!.agent-checkpoint/.gitignore'";
    is_mended(
        &project,
        1,
        "committed",
        "./checkpoints/.agent-checkpoint",
        command,
    );
}

/// Each input of the project's cases is judged as expected, and each printed command works unchanged.
#[test]
fn every_case_has_the_findings_that_are_expected() {
    let cases = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let expected = fs::read(cases.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let all = expected.as_array().unwrap();
    assert!(!all.is_empty());
    let each = all.len().div_ceil(4);
    thread::scope(|scope| {
        for part in all.chunks(each) {
            let cases = &cases;
            scope.spawn(move || judge(cases, part));
        }
    });
}

fn judge(cases: &Path, expected: &[Value]) {
    for case in expected {
        let file = case["file"].as_str().unwrap();
        let format = case["format"].as_str().unwrap();
        let outcome = case["outcome"].as_str().unwrap();
        let project = Project::with(file, fs::read(cases.join(file)).unwrap());
        let words = [
            "doctor",
            ".",
            "--json",
            "--format",
            format,
            "--now",
            "2099-01-01T00:00:00Z",
        ];
        let judged = project.ckpt(&words);
        let found = findings(&judged);
        let of_document = |kind: &str| found.iter().filter(|found| found.0 == kind).count();
        let codes = case["violations"].as_array().unwrap().iter();
        let codes: BTreeSet<&str> = codes.map(|found| found["code"].as_str().unwrap()).collect();
        let codes = if outcome == "violations" {
            codes.len()
        } else {
            0
        };
        let corrupt = usize::from(outcome == "corrupt");
        assert_eq!(
            (of_document("violation"), of_document("corrupt")),
            (codes, corrupt),
            "{file}: {judged:?}"
        );
        let exit = match (outcome, found.is_empty()) {
            ("corrupt", _) => 3,
            (_, true) => 0,
            (_, false) => 1,
        };
        assert_eq!(judged.code, exit, "{file}: {judged:?}");
        for (kind, _, next) in &found {
            let Some(next) = next else { continue };
            let done = run(&project, next);
            assert!(done.code < 2, "{file}: {next}: {done:?}");
            if kind == "corrupt" {
                assert_ne!(project.ckpt(&words).code, 3, "{file}: {next}");
            }
        }
    }
}
