//! Proofs: results of commands about finished work, and their value after the files change.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use agent_checkpoint::formats::build_pipeline::{BuildCheckpoint, ExecutionSpec, SpecPhase};
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::ledger::{OutputBuffer, OutputTail, Proof, ProofEnd, ProofStatus};
use agent_checkpoint::recorder::{Recorder, RecorderOptions};
use agent_checkpoint::resume::{ResumeDecision, ResumeOptions, ResumeReason};
use agent_checkpoint::staleness::FileState;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, CopyOptions, DeleteOptions, FileStore, Query, copy,
};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, Checkpoints, Clock, ErrorKind, Key, Limits, Operation,
    OperationContext, Status, StepDone,
};

use crate::common::{EXAMPLE, key};
use crate::scenes::{Scene, begun};

/// A project, and a task of it that `dev` records.
struct Work {
    scene: Scene,
    folder: tempfile::TempDir,
}

impl Work {
    fn new() -> Work {
        let folder = tempfile::tempdir().unwrap();
        let work = Work {
            scene: Scene::new(),
            folder,
        };
        for file in ["src/a.rs", "src/b.rs", "src/deep/c.rs", "docs/d.md"] {
            work.write(file, file);
        }
        work
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn options(&self, owner: &str) -> RecorderOptions {
        RecorderOptions::new(owner).resuming_with(ResumeOptions::new(self.root()))
    }

    /// A task with two finished steps, which name no files, and a criterion.
    fn task(&self) -> Recorder<TaskCheckpoint> {
        let first = self.scene.first(&["Make a", "Make b", "Make c"]);
        let recorder = begun(&self.scene.view(), "US-003", self.options("dev"), &first);
        for step in ["Make a", "Make b"] {
            recorder.step_done(&StepDone::new(step)).unwrap();
        }
        recorder.verification("unit tests", "pending").unwrap();
        recorder
    }

    /// A command that counts how often it ran, and ends with the code in the file `code`.
    fn counted(&self) -> Proof {
        sh("echo x >> ../runs; exit $(cat ../code 2>/dev/null || echo 0)")
    }

    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.folder.path().join("runs"));
        runs.map_or(0, |text| text.lines().count())
    }

    fn ends_with(&self, code: u8) {
        fs::write(self.folder.path().join("code"), code.to_string()).unwrap();
    }
}

fn sh(script: &str) -> Proof {
    Proof::new(["sh", "-c", script])
}

/// The status of an item in a word, with the files that changed.
fn status<C: Checkpoint>(recorder: &Recorder<C>, item: &str) -> String {
    let proofs = recorder.proofs().unwrap();
    let mut items = proofs.items().iter();
    let Some(found) = items.find(|it| it.item == item) else {
        return "not listed".to_owned();
    };
    let changed = match &found.status {
        ProofStatus::Failed { changed } | ProofStatus::Outdated { changed } => changed.as_slice(),
        _ => &[],
    };
    let paths = changed.iter().map(|file| format!(" {}", file.path));
    format!("{}{}", found.status.as_str(), paths.collect::<String>())
}

/// The number of proofs that a rerun runs.
fn reran(work: &Work, recorder: &Recorder<TaskCheckpoint>) -> usize {
    let before = work.runs();
    recorder.rerun_proofs().unwrap();
    work.runs() - before
}

#[test]
fn the_newest_proof_of_an_item_counts_for_the_files_that_it_covered() {
    let work = Work::new();
    let recorder = work.task();
    let proof = || work.counted().with_inputs(["src"]);
    let prove = |code: u8| {
        work.ends_with(code);
        let proved = recorder.prove("Make a", &proof()).unwrap();
        assert_eq!(proved.passed(), code == 0);
        assert_eq!(proved.record.end, ProofEnd::Exit(code.into()));
    };
    // The action before, the status then, and how many proofs a rerun runs.
    type Row<'r> = (&'r str, &'r dyn Fn(), &'r str, usize);
    let rows: &[Row<'_>] = &[
        ("nothing", &|| {}, "reported", 0),
        ("passed", &|| prove(0), "proven", 0),
        ("other file", &|| work.write("docs/d.md", "x"), "proven", 0),
        ("failed", &|| prove(3), "failed", 0),
        (
            "failed, changed",
            &|| work.write("src/a.rs", "mended"),
            "failed src/a.rs",
            1,
        ),
        ("it failed again", &|| {}, "failed", 0),
        ("passed after that", &|| prove(0), "proven", 0),
        (
            "changed",
            &|| work.write("src/a.rs", "changed"),
            "outdated src/a.rs",
            1,
        ),
        ("it passed again", &|| {}, "proven", 0),
        (
            "changed and back",
            &|| {
                work.write("src/a.rs", "other");
                work.write("src/a.rs", "changed");
            },
            "proven",
            0,
        ),
    ];
    for (name, change, expected, reruns) in rows {
        change();
        assert_eq!(status(&recorder, "Make a"), *expected, "{name}");
        assert_eq!(status(&recorder, "Make b"), "reported", "{name}");
        assert_eq!(reran(&work, &recorder), *reruns, "{name}");
    }
    // Unfinished work is listed once it has a proof.
    assert_eq!(status(&recorder, "Make c"), "not listed");
    let _ = recorder.prove("Make c", &proof()).unwrap();
    assert_eq!(status(&recorder, "Make c"), "proven");
}

#[test]
fn what_changes_while_the_command_runs_outdates_its_proof() {
    let work = Work::new();
    let recorder = work.task();
    let changes = sh("printf changed > src/b.rs").with_inputs(["src"]);
    assert!(recorder.prove("Make a", &changes).unwrap().passed());
    assert_eq!(status(&recorder, "Make a"), "outdated src/b.rs");
}

#[test]
fn without_inputs_a_proof_covers_the_files_that_the_checkpoint_names() {
    let work = Work::new();
    let recorder = work.task();
    let record = recorder.prove("Make a", &work.counted()).unwrap().record;
    assert!(record.covers_nothing());
    work.write("src/a.rs", "changed");
    assert_eq!(status(&recorder, "Make a"), "proven");
    let said = recorder.proofs().unwrap().items()[0].to_string();
    assert!(said.ends_with(", which covers no file"), "{said}");
    // A failed proof may pass now, and no file shows it.
    work.ends_with(1);
    let _ = recorder.prove("Make a", &work.counted()).unwrap();
    assert_eq!(reran(&work, &recorder), 1);

    work.ends_with(0);
    let done = StepDone::new("Make c")
        .with_modified("src/a.rs")
        .with_created("src/later.rs")
        .with_modified("../elsewhere.rs");
    recorder.step_done(&done).unwrap();
    let record = recorder.prove("Make c", &work.counted()).unwrap().record;
    assert_eq!(
        record.files().collect::<Vec<_>>(),
        ["src/a.rs", "src/later.rs"]
    );
    assert_eq!(status(&recorder, "Make c"), "proven");
    work.write("src/later.rs", "it is there now");
    assert_eq!(status(&recorder, "Make c"), "outdated src/later.rs");
}

#[test]
fn what_cannot_be_covered_or_run_is_named_and_nothing_is_recorded() {
    let work = Work::new();
    let recorder = work.task();
    work.write("target/made.rs", "x");
    fs::write(work.folder.path().join("outside.rs"), "x").unwrap();
    symlink("../../outside.rs", work.path("src/link.rs")).unwrap();
    for (input, why) in [
        ("src/none.rs", "is not there"),
        ("src/none/../a.rs", "is not there"),
        ("../outside.rs", "outside of the project"),
        ("/etc/passwd", "outside of the project"),
        ("src/link.rs", "leads out of the project"),
        ("target", "without a source file"),
    ] {
        let proof = work.counted().with_inputs(["src/a.rs", input]);
        let error = recorder.prove("Make a", &proof).unwrap_err();
        let said = error.to_string();
        assert!(
            error.code() == "input" && said.contains(input) && said.contains(why),
            "{said}"
        );
    }
    let missing = Proof::new(["./no-such-program"]).with_inputs(["src"]);
    let error = recorder.prove("Make a", &missing).unwrap_err();
    assert!(
        error.code() == "command" && error.to_string().contains("no-such-program"),
        "{error}"
    );
    assert!(recorder.prove("Make a", &Proof::new([""; 0])).is_err());
    let error = recorder.prove("Make d", &work.counted()).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{said}");
    assert!(
        said.contains(
            "the steps \"Make a\", \"Make b\", \"Make c\" and the criteria or gates \"unit tests\""
        ),
        "{said}"
    );
    assert_eq!(
        (work.runs(), recorder.ledger_state().unwrap().proofs.len()),
        (0, 0)
    );
    // Inputs may have any spelling, and a file that a tool created may be named.
    let inputs = ["./src/", "src/../docs/d.md", "target/made.rs"].map(str::to_owned);
    let absolute = work.path("src/a.rs").display().to_string();
    let proof = work
        .counted()
        .with_inputs(inputs.into_iter().chain([absolute]));
    let record = recorder.prove("Make a", &proof).unwrap().record;
    assert_eq!(
        record.files().collect::<Vec<_>>(),
        [
            "docs/d.md",
            "src/a.rs",
            "src/b.rs",
            "src/deep/c.rs",
            "target/made.rs"
        ]
    );
}

#[test]
fn a_folder_is_covered_with_its_sources_also_through_links_and_in_circles() {
    let work = Work::new();
    let recorder = work.task();
    work.write("shared/e.rs", "x");
    work.write("src/node_modules/x.js", "x");
    symlink("../../shared", work.path("src/deep/shared")).unwrap();
    symlink("..", work.path("src/deep/up")).unwrap();
    symlink("nowhere", work.path("src/dangling")).unwrap();
    let proof = work.counted().with_inputs(["src"]);
    let record = recorder.prove("Make a", &proof).unwrap().record;
    let files = [
        "src/a.rs",
        "src/b.rs",
        "src/dangling",
        "src/deep/c.rs",
        "src/deep/shared/e.rs",
    ];
    assert_eq!(record.files().collect::<Vec<_>>(), files);
    work.write("src/node_modules/x.js", "changed");
    work.write("src/run.log", "x");
    assert_eq!(status(&recorder, "Make a"), "proven");
    work.write("src/nowhere", "x");
    assert_eq!(
        status(&recorder, "Make a"),
        "outdated src/dangling src/nowhere"
    );
    fs::remove_file(work.path("src/nowhere")).unwrap();
    work.write("shared/e.rs", "changed");
    assert_eq!(status(&recorder, "Make a"), "outdated src/deep/shared/e.rs");
    fs::remove_dir_all(work.path("src")).unwrap();
    let all = status(&recorder, "Make a");
    assert!(
        all.starts_with("outdated ") && all.ends_with(" src"),
        "{all}"
    );
    let proofs = recorder.proofs().unwrap();
    let ProofStatus::Outdated { changed } = &proofs.items()[0].status else {
        panic!("{proofs:?}");
    };
    assert!(changed.iter().all(|file| file.state == FileState::Missing));
}

#[test]
fn a_file_that_is_too_large_to_be_compared_counts_as_changed_with_its_marks() {
    let work = Work::new();
    let recorder = work.task();
    let large = File::create(work.path("src/large.bin")).unwrap();
    large.set_len(65 * 1024 * 1024).unwrap();
    // A file that was written just before may not be older than its inspection.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    while {
        let proof = work.counted().with_inputs(["src"]);
        let _ = recorder.prove("Make a", &proof).unwrap();
        status(&recorder, "Make a") != "proven"
    } {}
    large.set_modified(old).unwrap();
    assert_eq!(status(&recorder, "Make a"), "outdated src/large.bin");
}

/// A random number generator with a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// A change of a covered file.
type Change = fn(&Path, &mut Numbers);

/// Changes of its contents.
const CHANGES: [Change; 8] = [
    // Of the same size.
    |path, _| write_over(path, |bytes| bytes[0] ^= 1),
    // The same with the time set back.
    |path, _| {
        let time = fs::metadata(path).unwrap().modified().unwrap();
        write_over(path, |bytes| *bytes.last_mut().unwrap() ^= 1);
        set_time(path, time);
    },
    |path, _| write_over(path, |bytes| bytes.push(b'+')),
    // The file is not left empty, because other changes alter its first byte.
    |path, _| {
        write_over(path, |bytes| match bytes.len() {
            1 => bytes.push(b'+'),
            length => bytes.truncate(length - 1),
        })
    },
    |path, _| fs::remove_file(path).unwrap(),
    |path, _| {
        let mut bytes = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        bytes[0] ^= 1;
        fs::write(path, bytes).unwrap();
    },
    |path, numbers| {
        let other = path.with_extension("tmp");
        fs::write(&other, format!("other {}", numbers.below(1 << 30))).unwrap();
        fs::rename(other, path).unwrap();
    },
    |path, numbers| {
        let new = path.with_file_name(format!("new-{}.rs", numbers.below(1 << 30)));
        fs::write(new, "new").unwrap();
    },
];

/// Actions that do not change the contents of a covered file.
const NO_CHANGES: [Change; 6] = [
    |path, _| set_time(path, std::time::SystemTime::now()),
    |path, numbers| {
        let mode = 0o600 + u32::try_from(numbers.below(64)).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    },
    |path, _| write_over(path, |_| {}),
    |path, _| {
        let copy = path.with_extension("tmp");
        fs::copy(path, &copy).unwrap();
        fs::rename(copy, path).unwrap();
    },
    // Changes of files that the proof does not cover.
    |path, numbers| {
        let log = path.with_file_name("run.log");
        fs::write(log, numbers.below(100).to_string()).unwrap();
    },
    |path, numbers| {
        let docs = path.ancestors().find(|path| path.ends_with("project"));
        fs::write(
            docs.unwrap().join("docs/d.md"),
            numbers.below(100).to_string(),
        )
        .unwrap();
    },
];

fn write_over(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn set_time(path: &Path, time: std::time::SystemTime) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn of_200_changes_to_covered_files_none_is_proven_and_no_proof_runs_without_need() {
    let seed = std::env::var("AGENT_CHECKPOINT_SEED").ok();
    let seed: u64 = seed.map_or_else(
        || u64::from(std::process::id()) << 32 | 0x9e37_79b9,
        |seed| seed.parse().unwrap(),
    );
    let mut numbers = Numbers(seed.max(1));
    for _ in 0..4 {
        make_50_changes(seed, &mut numbers);
    }
}

fn make_50_changes(seed: u64, numbers: &mut Numbers) {
    let work = Work::new();
    let recorder = work.task();
    let proof = work.counted().with_inputs(["src"]);
    let _ = recorder.prove("Make a", &proof).unwrap();
    let mut changes = 0;
    while changes < 50 {
        let record = recorder.ledger_state().unwrap().proofs.remove(0);
        let files: Vec<&str> = record.files().collect();
        let file = files[numbers.below(files.len())];
        let is_change = numbers.below(2) == 0;
        let (which, what) = match is_change {
            true => choose(&CHANGES, numbers),
            false => choose(&NO_CHANGES, numbers),
        };
        what(&work.path(file), numbers);
        let at = format!("seed {seed}, change {changes}: {file}, {is_change} {which}");
        let now = status(&recorder, "Make a");
        if is_change {
            changes += 1;
            assert!(now.starts_with("outdated src/"), "{now}: {at}");
            assert_eq!(reran(&work, &recorder), 1, "{at}");
            assert_eq!(status(&recorder, "Make a"), "proven", "{at}");
        } else {
            assert_eq!(now, "proven", "{at}");
            assert_eq!(reran(&work, &recorder), 0, "{at}");
        }
        if files.len() < 3 {
            work.write("src/a.rs", "anew");
            work.write("src/deep/c.rs", "anew");
            recorder.rerun_proofs().unwrap();
        }
    }
}

fn choose(from: &[Change], numbers: &mut Numbers) -> (usize, Change) {
    let which = numbers.below(from.len());
    (which, from[which])
}

#[test]
fn the_same_command_over_the_same_inputs_is_one_run_for_all_that_it_shows() {
    let work = Work::new();
    let recorder = work.task();
    let proof = work.counted().with_inputs(["src"]);
    for item in ["Make a", "Make b"] {
        let _ = recorder.prove(item, &proof).unwrap();
    }
    // Other proofs with the same command, or over the same inputs, are separate runs.
    let other = work.counted().with_inputs(["src", "docs"]);
    let _ = recorder.prove("unit tests", &other).unwrap();
    work.write("src/a.rs", "changed");
    let reruns = recorder.proofs().unwrap().reruns();
    let of: Vec<&[String]> = reruns.iter().map(|rerun| &*rerun.of).collect();
    assert_eq!(of, [&["Make a", "Make b"][..], &["unit tests"]]);
    assert_eq!(reran(&work, &recorder), 2);
    for item in ["Make a", "Make b", "unit tests"] {
        assert_eq!(status(&recorder, item), "proven");
    }
    // One result counts for both items.
    work.write("src/a.rs", "broken");
    work.ends_with(1);
    let _ = recorder.prove("Make b", &proof).unwrap();
    assert_eq!(status(&recorder, "Make a"), "failed");
    assert_eq!(reran(&work, &recorder), 1, "that of the unit tests");
}

#[test]
fn a_criterion_of_a_task_and_of_a_site_is_passed_or_failed_by_its_proof() {
    let work = Work::new();
    let recorder = work.task();
    for (code, word) in [(1, "failed"), (0, "passed")] {
        work.ends_with(code);
        let proved = recorder.prove("unit tests", &work.counted()).unwrap();
        assert!(proved.refused.is_empty() && proved.reported.len() == 1);
        let shown = recorder
            .checkpoint()
            .unwrap()
            .handoff()
            .verification
            .unwrap();
        assert_eq!(shown.results, [("unit tests".to_owned(), word.to_owned())]);
    }
    // A step has no such member.
    assert!(
        recorder
            .prove("Make a", &work.counted())
            .unwrap()
            .reported
            .is_empty()
    );

    let now = work.scene.watch.now();
    let site = SitebuilderCheckpoint::begin("migration", "T060", ["post-01"], now)
        .with_criteria(["links work"]);
    let recorder = begun(
        &work.scene.view(),
        "migration-T060",
        work.options("migration"),
        &site,
    );
    let proved = recorder.prove("links work", &work.counted()).unwrap();
    assert_eq!(proved.reported.len(), 1);
    let site = recorder.checkpoint().unwrap();
    assert_eq!(site.acceptance_criteria_met["links work"], Some(true));
}

#[test]
fn a_gate_of_a_build_is_passed_or_failed_by_its_proof_and_a_refusal_is_said() {
    let work = Work::new();
    let now = work.scene.watch.now();
    let phase = SpecPhase::new(1, [("WS1", "Database"), ("WS2", "Service")]);
    let spec = ExecutionSpec::new([phase], ["lint", "types"]);
    let first = BuildCheckpoint::initialize("PRD-009", "x", &spec, now).unwrap();
    let recorder = begun(
        &work.scene.view(),
        "PRD-009",
        work.options("builder"),
        &first,
    );
    let id = || "WS1".to_owned();
    recorder
        .report(Operation::WorkstreamStart { id: id() })
        .unwrap();
    let done = Operation::WorkstreamDone {
        id: id(),
        files: vec!["src/a.rs".to_owned()],
    };
    recorder.report(done).unwrap();
    recorder
        .report(Operation::Verify {
            activity: "gate_a_fidelity".to_owned(),
            status: "fail:2".to_owned(),
        })
        .unwrap();

    assert!(
        recorder
            .prove("lint", &work.counted())
            .unwrap()
            .refused
            .is_empty()
    );
    assert_eq!(recorder.checkpoint().unwrap().gates_passed, ["lint"]);
    assert!(
        recorder
            .prove("gate_a_fidelity", &work.counted())
            .unwrap()
            .refused
            .is_empty()
    );
    assert_eq!(
        recorder.checkpoint().unwrap().gate_a_fidelity.as_deref(),
        Some("pass")
    );
    // The number of faults is not guessed.
    work.ends_with(2);
    let other = work.counted().with_inputs(["docs"]);
    let proved = recorder.prove("gate_a_fidelity", &other).unwrap();
    assert!(
        proved.refused[0]
            .to_string()
            .contains("not a value of gate_a_fidelity"),
        "{proved:?}"
    );
    assert_eq!(status(&recorder, "gate_a_fidelity"), "failed");
    let plan = recorder.plan().unwrap().plan;
    assert!(
        plan.reasons.contains(&ResumeReason::Proofs {
            failed: vec!["gate_a_fidelity".to_owned()],
            outdated: Vec::new(),
        }),
        "{plan:?}"
    );

    let _ = recorder.prove("types", &other).unwrap();
    let build = recorder.checkpoint().unwrap();
    assert!(build.status() == Status::Failed && build.gates_pending == ["types"]);
    let message = build.error.unwrap().message.unwrap();
    assert!(
        message.starts_with("types: sh -c ") && message.ends_with(" ended with exit code 2"),
        "{message}"
    );
}

#[test]
fn a_plan_verifies_finished_work_whose_proof_failed_or_is_outdated() {
    let work = Work::new();
    let recorder = work.task();
    let plan = || recorder.plan().unwrap();
    assert!(plan().plan.decision == ResumeDecision::Continue && plan().proofs.items().is_empty());
    let proof = |script: &str, inputs: &str| sh(script).with_inputs([inputs]);
    let _ = recorder.prove("Make a", &proof("true", "src")).unwrap();
    let _ = recorder.prove("Make c", &proof("exit 9", "src")).unwrap();
    // Everything else is only reported, and unfinished work is not trusted anyway.
    let first = plan();
    assert_eq!(first.plan.decision, ResumeDecision::Continue);
    assert!(first.plan.reasons.is_empty() && first.plan.warnings.is_empty());
    let prompt = first.prompt().unwrap();
    assert!(prompt.contains("- Make a (proven)\n- Make b\n"), "{prompt}");

    let _ = recorder
        .prove("Make b", &proof("kill -9 $$", "docs"))
        .unwrap();
    let _ = recorder
        .prove("unit tests", &proof("exit 0", "src"))
        .unwrap();
    work.write("src/a.rs", "changed");
    fs::remove_file(work.path("src/b.rs")).unwrap();
    let now = plan();
    assert_eq!(now.plan.decision, ResumeDecision::Verify);
    assert_eq!(
        now.plan.reasons,
        [ResumeReason::Proofs {
            failed: vec!["Make b".to_owned()],
            outdated: vec!["Make a".to_owned(), "unit tests".to_owned()],
        }]
    );
    let prompt = now.prompt().unwrap();
    let about: Vec<&str> = prompt
        .lines()
        .skip_while(|line| !line.starts_with("## Before"))
        .filter(|line| !line.is_empty())
        .take_while(|line| !line.starts_with("## Decisions"))
        .chain(prompt.lines().filter(|line| line.contains("unit tests: ")))
        .collect();
    insta::assert_snapshot!("prompt_with_proofs", about.join("\n"));
}

#[test]
fn proofs_go_along_with_the_task_until_it_is_archived_as_complete() {
    let work = Work::new();
    let recorder = work.task();
    let proof = work.counted().with_inputs(["src"]);
    let _ = recorder.prove("Make a", &proof).unwrap();
    drop(recorder);
    let tasks = work.scene.view::<TaskCheckpoint>();
    let next = Recorder::resume(&tasks, &key("US-003"), work.options("next")).unwrap();
    let next = next.carry_on().unwrap();
    assert_eq!(status(&next, "Make a"), "proven");
    let record = &next.ledger_state().unwrap().proofs[0];
    assert!(record.by.starts_with("dev, session "), "{record:?}");
    // Even for a dropped step, and in another store.
    let other = FileStore::open(work.folder.path().join("checkpoints"));
    copy(tasks.store(), &other, &CopyOptions::new(), &mut |_| {}).unwrap();
    let there = other.checkpoints::<TaskCheckpoint>();
    let proofs = || there.proofs(&key("US-003"), work.root()).unwrap();
    assert_eq!(proofs().items()[0].status, ProofStatus::Proven);
    let ledger = there.ledger(&key("US-003"), "dev");
    let revision = there.get(&key("US-003")).unwrap().revision;
    ledger
        .end_with(&revision, || Ok::<_, agent_checkpoint::Error>(()))
        .unwrap();
    assert!(
        proofs()
            .items()
            .iter()
            .all(|item| item.status == ProofStatus::Reported)
    );
}

#[test]
fn finished_work_that_was_moved_out_of_the_checkpoint_keeps_its_proof_and_may_be_proven_anew() {
    let work = Work::new();
    let recorder = work.task();
    let proof = work.counted().with_inputs(["src"]);
    let _ = recorder.prove("Make a", &proof).unwrap();
    let tasks = recorder.checkpoints();
    let mut limits = Limits::default();
    limits.completed_steps = Some(2);
    let small = tasks.clone().with_limits(limits);
    for number in 0..5 {
        let more = StepDone::new(format!("More {number} {}", "x".repeat(200)));
        let context = OperationContext::at(work.scene.watch.now());
        small
            .report(&key("US-003"), &[more.into()], &context, |_| {})
            .unwrap();
    }
    let kept = recorder.checkpoint().unwrap().handoff();
    assert!(kept.done.iter().all(|step| step.text != "Make a"));
    assert_eq!(status(&recorder, "Make a"), "proven");
    assert_eq!(status(&recorder, "Make b"), "not listed");
    work.write("src/a.rs", "changed");
    let plan = recorder.plan().unwrap().plan;
    assert!(
        plan.warnings
            .iter()
            .any(|it| it.contains("Make a: outdated")),
        "{plan:?}"
    );
    assert_eq!(reran(&work, &recorder), 1);
    assert_eq!(status(&recorder, "Make a"), "proven");
}

#[test]
fn an_owner_that_lost_its_task_proves_nothing() {
    let work = Work::new();
    let old = work.task();
    work.scene.watch.pass(16);
    let tasks = work.scene.view::<TaskCheckpoint>();
    let new = Recorder::resume(&tasks, &key("US-003"), "other").unwrap();
    let new = new.carry_on().unwrap();
    assert!(
        old.prove("Make a", &work.counted())
            .unwrap_err()
            .is_taken_over()
    );
    assert_eq!(
        (work.runs(), new.ledger_state().unwrap().proofs.len()),
        (0, 0)
    );
}

#[test]
fn another_may_lose_its_task_while_the_command_runs_and_calls_go_on() {
    let work = Work::new();
    let recorder = work.task();
    let proof = work.counted();
    let calls = Cell::new(0);
    // For example in a container; the recorder is not locked meanwhile.
    let proved = recorder.prove_by("Make a", &proof, |command| {
        calls.set(calls.get() + 1);
        recorder.note_partial("still at it").unwrap();
        assert_eq!(command.get_current_dir().unwrap(), work.root());
        let mut output = OutputBuffer::default();
        output.write_all("looks good\u{1b}[2J".as_bytes())?;
        Ok((ProofEnd::Exit(0), output.finish()))
    });
    assert_eq!(
        (proved.unwrap().record.output.text(), calls.get()),
        ("looks good\u{1b}[2J", 1)
    );
    let lost = recorder.prove_by("Make b", &proof, |_| {
        work.scene.watch.pass(16);
        let tasks = work.scene.view::<TaskCheckpoint>();
        let new = Recorder::resume(&tasks, &key("US-003"), "other").unwrap();
        drop(new.carry_on().unwrap());
        Ok((ProofEnd::Exit(0), OutputTail::default()))
    });
    assert!(lost.unwrap_err().is_taken_over());
    assert_eq!(recorder.ledger_state().unwrap().proofs.len(), 1);
}

/// A host file beside the project, and the slot of its task.
fn host(work: &Work) -> (PathBuf, Checkpoints<TaskCheckpoint>, Key) {
    let path = work.folder.path().join("builder-state.json");
    fs::write(&path, EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&path);
    let slot = store.list(&Query::all()).unwrap().entries[0].key.clone();
    (path, store.checkpoints(), slot)
}

/// Gives the slot of a host file to another task, and returns the former text of the file.
fn give_to_another(path: &Path, tasks: &Checkpoints<TaskCheckpoint>, slot: &Key) -> String {
    let host = fs::read_to_string(path).unwrap();
    let of = tasks.get(slot).unwrap().context.task.unwrap();
    fs::write(path, host.replace(&of, "another-task")).unwrap();
    host
}

#[test]
fn a_proof_is_not_recorded_for_the_task_after_its_own() {
    let work = Work::new();
    let tasks = FileStore::open(work.path("checkpoints")).checkpoints::<TaskCheckpoint>();
    let id = key("a");
    // Without lines in the ledger, none says that the first task ended.
    for has_lines in [false, true] {
        tasks.create(&id, &work.scene.first(&["Make a"])).unwrap();
        let prove = |ends: bool| {
            let of = ["Make a".to_owned()];
            tasks.prove(&id, "dev", &of, &sh(""), work.root(), &mut |_| {
                if ends {
                    let revision = tasks.get(&id).unwrap().revision;
                    let archive = || tasks.store().delete(&id, &DeleteOptions::new());
                    let ledger = tasks.ledger(&id, "other");
                    ledger.end_with(&revision, archive).unwrap();
                    let next = work.scene.first(&["Make a", "Make b"]);
                    tasks.create(&id, &next).unwrap();
                }
                Ok((ProofEnd::Exit(0), OutputTail::default()))
            })
        };
        if has_lines {
            let _ = prove(false).unwrap();
        }
        let refused = prove(true).unwrap_err();
        assert!(refused.to_string().contains("the task ended"), "{refused}");
        let proofs = || tasks.ledger(&id, "next").state().unwrap().proofs;
        assert!(proofs().is_empty(), "{:?}", proofs());
        let _ = prove(false).unwrap();
        assert_eq!(proofs().len(), 1);
        tasks.store().forget(&id, &DeleteOptions::new()).unwrap();
    }
}

#[test]
fn a_proof_is_not_recorded_for_another_task_in_the_slot_of_its_own() {
    let work = Work::new();
    let (path, tasks, slot) = host(&work);
    let of = [tasks.get(&slot).unwrap().checkpoint.handoff().pending[0].clone()];
    let refused = tasks.prove(&slot, "dev", &of, &sh(""), work.root(), &mut |_| {
        give_to_another(&path, &tasks, &slot);
        Ok((ProofEnd::Exit(0), OutputTail::default()))
    });
    let refused = refused.unwrap_err();
    assert!(refused.to_string().contains("the task ended"), "{refused}");
    assert!(tasks.store().beside().ledger(&slot).unwrap().is_empty());
}

#[test]
fn the_ledger_of_an_emptied_slot_has_the_proofs_of_its_tasks() {
    let work = Work::new();
    std::thread::sleep(std::time::Duration::from_millis(100));
    for other_ends in [false, true] {
        let (path, tasks, slot) = host(&work);
        let items = tasks.get(&slot).unwrap().checkpoint.handoff().pending;
        let prove = |script: &str| {
            let proof = sh(script).with_inputs(["src"]);
            let mut run = |_| Ok((ProofEnd::Exit(0), OutputTail::default()));
            let proved = tasks.prove(&slot, "dev", &items[..1], &proof, work.root(), &mut run);
            proved.unwrap()
        };
        let _ = prove("exit 0");
        let host = give_to_another(&path, &tasks, &slot);
        // For a reader of all tasks, it takes the place of the first.
        let _ = prove("exit 0");
        if other_ends {
            let revision = tasks.get(&slot).unwrap().revision;
            let archive = || Ok::<_, agent_checkpoint::Error>(());
            tasks
                .ledger(&slot, "other")
                .end_with(&revision, archive)
                .unwrap();
        }
        fs::write(&path, host).unwrap();
        let last = prove("exit 1");
        let lines = tasks.store().beside().ledger(&slot).unwrap();
        assert!(lines.last().unwrap().contains(r#""differs":"#), "{lines:?}");
        tasks.store().delete(&slot, &DeleteOptions::new()).unwrap();
        let state = tasks.ledger(&slot, "reader").state().unwrap();
        let files: Vec<_> = state.proofs.last().unwrap().files().collect();
        assert_eq!(files, last.files().collect::<Vec<_>>());
        fs::remove_dir_all(work.folder.path().join(".agent-checkpoint")).unwrap();
    }
}

#[test]
fn whatever_a_command_writes_is_kept_as_text() {
    let work = Work::new();
    let recorder = work.task();
    for script in [
        "printf '\\377\\000\\033[31m\\n\"}'",
        "head -c 300000 /dev/zero",
        "yes 'é \"quoted\"' | head -c 100001; exit 4",
        "printf out; printf err >&2",
        "sleep 30 & echo up",
    ] {
        let record = recorder.prove("Make a", &sh(script)).unwrap().record;
        let read = &recorder.ledger_state().unwrap().proofs[0];
        assert_eq!(read.output, record.output, "{script}");
        assert!(record.output.text().len() <= 3 * 8192);
    }
}

/// The lines of the ledger, in bytes.
fn sizes(work: &Work) -> Vec<usize> {
    let tasks = work.scene.view::<TaskCheckpoint>();
    let lines = tasks.store().beside().ledger(&key("US-003")).unwrap();
    lines.iter().map(String::len).collect()
}

#[test]
fn a_list_of_covered_files_is_written_once() {
    let work = Work::new();
    for number in 0..200 {
        work.write(&format!("src/many/file-{number}.rs"), "x");
    }
    // A file that was written just before its proof is recorded anew by the next one.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let recorder = work.task();
    let all = || work.counted().with_inputs(["src", "docs"]);
    let first = recorder.prove("Make a", &all()).unwrap().record;
    for command in 0..5 {
        let other = sh(&format!("exit {}", command % 2)).with_inputs(["src", "docs"]);
        let _ = recorder.prove("Make b", &other).unwrap();
        work.write("src/a.rs", &format!("change {command}"));
        let _ = recorder.prove("Make a", &all()).unwrap();
    }
    // A list of other files has only its own files.
    let few = sh("exit 0").with_inputs(["docs"]);
    let last = recorder.prove("Make b", &few).unwrap().record;
    assert_eq!(last.files().collect::<Vec<_>>(), ["docs/d.md"]);
    let sizes = sizes(&work);
    assert!(sizes[0] > 200 * 100, "{sizes:?}");
    assert!(sizes[1..].iter().all(|size| *size < 2_000), "{sizes:?}");
    // Every reader of the ledger gets all files of each proof, and a change of any shows.
    let read = |state: agent_checkpoint::ledger::LedgerState| -> Vec<Vec<String>> {
        let files = state
            .proofs
            .iter()
            .map(|proof| proof.files().map(str::to_owned).collect());
        files.collect()
    };
    let tasks = work.scene.view::<TaskCheckpoint>();
    let anew = read(tasks.ledger(&key("US-003"), "next").state().unwrap());
    assert_eq!(anew, read(recorder.ledger_state().unwrap()));
    assert_eq!(anew[0], first.files().collect::<Vec<_>>());
    assert_eq!(status(&recorder, "Make a"), "proven");
    work.write("src/many/file-7.rs", "y");
    assert_eq!(status(&recorder, "Make a"), "outdated src/many/file-7.rs");
    assert_eq!(status(&recorder, "Make b"), "proven");
    fs::remove_file(work.path("src/many/file-7.rs")).unwrap();
    let _ = recorder.prove("Make a", &all()).unwrap();
    assert_eq!(status(&recorder, "Make a"), "proven");
    work.write("src/many/file-7.rs", "x");
    assert_eq!(status(&recorder, "Make a"), "outdated src/many/file-7.rs");
    // A copy of the store has the lists, and so has a copy of the ledger.
    let target = tempfile::tempdir().unwrap();
    let target = FileStore::open(target.path());
    let report = copy(tasks.store(), &target, &CopyOptions::new(), &mut |_| {}).unwrap();
    assert!(report.refused.is_empty(), "{:?}", report.refused);
    let there = target.checkpoints::<TaskCheckpoint>();
    let there = there.ledger(&key("US-003"), "next");
    assert_eq!(
        read(there.state().unwrap()),
        read(recorder.ledger_state().unwrap())
    );
    let other = tasks.ledger(&key("converted"), "next");
    tasks
        .ledger(&key("US-003"), "next")
        .copy_to(&other)
        .unwrap();
    assert_eq!(
        read(other.state().unwrap()),
        read(recorder.ledger_state().unwrap())
    );
}

#[test]
fn a_save_of_another_task_outdates_no_proof_of_the_whole_project() {
    let work = Work::new();
    // For a store in a folder of the project, and for one in the project's own folder.
    for folder in ["checkpoints", ""] {
        let store = FileStore::open(work.path(folder));
        let tasks = store.checkpoints::<TaskCheckpoint>();
        let first = work.scene.first(&["Make a"]);
        work.write("settings.json", "{}");
        work.write("checkpoints/notes.md", "notes");
        tasks.create(&key("US-009"), &first).unwrap();
        let recorder = begun(&tasks, "US-003", work.options("dev"), &first);
        recorder.step_done(&StepDone::new("Make a")).unwrap();
        let proof = sh("exit 0").with_inputs(["."]);
        let proved = recorder.prove("Make a", &proof).unwrap();
        let files: Vec<&str> = proved.record.files().collect();
        assert!(files.contains(&"settings.json") && files.contains(&"checkpoints/notes.md"));
        let is_proven = || status(&recorder, "Make a") == "proven";
        tasks
            .update(&key("US-009"), |task| task.blockers.push("x".into()))
            .unwrap();
        tasks.create(&key("US-010"), &first).unwrap();
        assert!(is_proven(), "{}", status(&recorder, "Make a"));
        // A named file still counts, and so does a file that is not the store's.
        let named = match folder {
            "" => "US-009.json",
            _ => "checkpoints/US-009.json",
        };
        let one = sh("exit 0").with_inputs([named]);
        let _ = recorder.prove("Make a", &one).unwrap();
        tasks
            .update(&key("US-009"), |task| task.blockers.push("y".into()))
            .unwrap();
        assert_eq!(status(&recorder, "Make a"), format!("outdated {named}"));
        let _ = recorder.prove("Make a", &proof).unwrap();
        assert!(is_proven());
        work.write("settings.json", "[]");
        assert_eq!(status(&recorder, "Make a"), "outdated settings.json");
        recorder.leave().unwrap();
        for name in ["US-003", "US-009", "US-010"] {
            tasks
                .store()
                .delete(&key(name), &Default::default())
                .unwrap();
        }
    }
}

#[test]
fn no_rest_of_a_secret_is_kept_of_an_output() {
    let secret = &["sk-", "ant-api03-", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
    // Cut the secret at each of its characters.
    for rest in 0..=secret.len() {
        let after = 8 * 1024 - rest;
        let output = format!("begin\ntoken {secret}\n{}", "x".repeat(after - 1));
        for piece in [1_000, 100_000] {
            let mut buffer = OutputBuffer::default();
            for bytes in output.as_bytes().chunks(piece) {
                buffer.write_all(bytes).unwrap();
            }
            let tail = buffer.finish();
            let text = tail.text();
            assert_eq!(tail.omitted() as usize + 8 * 1024, output.len());
            assert!(text.ends_with(&"x".repeat(after - 1)));
            let shown = &text[..text.len() - (after - 1)];
            let is_rest = (4..=shown.len()).any(|length| {
                shown
                    .get(..length)
                    .is_some_and(|part| secret.contains(part))
            });
            assert!(!is_rest, "with {rest} bytes of it: {shown:?}");
        }
    }
}
