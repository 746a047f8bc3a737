//! Many checkpoints in one table: rows, findings, and what a scan never does.

use crate::common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{clock, key, time, tree};
use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::fleet::{
    EventKind, Finding, Fleet, FleetOptions, Row, RowState, SkipReason, Skipped, Source,
};
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::resume::ResumeDecision;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, FileOptions, FileStore, MemoryStore, Put,
};
use agent_checkpoint::{Checkpoint, Checkpoints, ClaimRequest, DropReason, Dropped};

const NOW: &str = "2026-03-02T08:05:00Z";

struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Project {
        Project(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn agent(&self, name: &str, id: &str, more: &str) {
        let text = agent(id, "IN_PROGRESS", "2026-03-02T08:00:00Z", more);
        self.write(&format!("agent_checkpoints/{name}"), text);
    }

    fn scan(&self) -> Fleet {
        self.scan_with(&FleetOptions::new())
    }

    fn scan_with(&self, options: &FleetOptions) -> Fleet {
        Fleet::scan(&[Source::folder(self.0.path())], options, time(NOW))
    }
}

/// An agent whose id ends with `-New` works on the feature of the agent before it.
fn agent(id: &str, status: &str, last: &str, more: &str) -> String {
    let feature = id.trim_end_matches("-New");
    format!(
        r#"{{"agent_id":"{id}","agent_type":"secondary","feature":"feature_{feature}","stage":"S2.P2",
            "last_checkpoint":"{last}","status":"{status}","can_resume":true{more}}}"#
    )
}

fn site(agent: &str, task: &str, status: &str, more: &str) -> String {
    format!(
        r#"{{"checkpoint_id":"x","agent":"{agent}","task_id":"{task}","status":"{status}",
            "started_at":"2026-03-02T07:55:00Z","updated_at":"2026-03-02T08:03:00Z",
            "subtasks":{{"total":20,"completed":13}},"resumable":true{more}}}"#
    )
}

fn results(fleet: &Fleet) -> Vec<&'static str> {
    fleet.rows().iter().map(Row::result).collect()
}

fn json_files(folder: &Path) -> BTreeSet<String> {
    let names = tree(folder).into_iter();
    let files = names.filter(|name| name.ends_with(".json") && !folder.join(name).is_dir());
    files
        .map(|name| folder.join(name).display().to_string())
        .collect()
}

fn files(fleet: &Fleet) -> Vec<&Skipped> {
    let skipped = fleet.skipped().iter();
    skipped.filter(|it| !it.why.is_of_folder()).collect()
}

fn folders(fleet: &Fleet) -> Vec<&Skipped> {
    let skipped = fleet.skipped().iter();
    skipped.filter(|it| it.why.is_of_folder()).collect()
}

/// The files that are rows or skipped.
fn accounted(fleet: &Fleet) -> BTreeSet<String> {
    let rows = fleet
        .rows()
        .iter()
        .filter_map(|row| row.place.file.as_ref());
    let rows = rows.map(|file| file.display().to_string());
    rows.chain(files(fleet).into_iter().map(|left| left.what.clone()))
        .collect()
}

#[test]
fn all_cases_are_accounted_for_and_none_makes_the_scan_fail() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let before = tree(&cases);
    let fleet = Fleet::scan(&[Source::folder(&cases)], &FleetOptions::new(), time(NOW));
    assert_eq!(tree(&cases), before, "a scan creates nothing");
    let expected = fs::read(cases.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    let expected = expected.as_array().unwrap();
    assert_eq!(expected.len(), 90);
    let mut corrupt = 0;
    for case in expected {
        let file = cases.join(case["file"].as_str().unwrap());
        let rows = fleet.rows().iter();
        let rows: Vec<&Row> = rows
            .filter(|row| row.place.file.as_deref() == Some(&file))
            .collect();
        if case["file"] == "builder-state/valid-no-checkpoint.json" {
            let left = files(&fleet)
                .into_iter()
                .find(|left| left.what.ends_with("no-checkpoint.json"));
            assert_eq!(left.unwrap().why, SkipReason::NoCheckpoint);
            continue;
        }
        if case["error"] == "not-an-object" {
            // Without a named format a list is no checkpoint.
            let left = files(&fleet).into_iter();
            let mut left = left.filter(|left| left.what == file.display().to_string());
            assert_eq!(left.next().unwrap().why, SkipReason::NoDocument);
            continue;
        }
        let row = rows
            .first()
            .unwrap_or_else(|| panic!("{} is no row", file.display()));
        if case["outcome"] == "corrupt" {
            corrupt += 1;
            let RowState::Corrupt { reason } = &row.state else {
                panic!("{row:?}");
            };
            assert!(reason.contains(case["error"].as_str().unwrap()), "{reason}");
        } else {
            assert_eq!(row.format, case["format"].as_str(), "{}", file.display());
            // If another agent took over the work, liveness is not judged.
            let is_taken_over = matches!(row.state, RowState::TakenOver { .. });
            assert!(is_taken_over || row.liveness().is_some(), "{row:?}");
        }
    }
    assert_eq!(corrupt, fleet.totals().count("corrupt"));
    assert!(corrupt >= 8, "{corrupt}");
    assert_eq!(accounted(&fleet), json_files(&cases));
    assert!(fleet.skipped().iter().all(|it| !it.why.is_of_folder()));
}

#[test]
fn a_mixed_project_is_one_table() {
    let project = Project::new();
    project.agent("secondary_a.json", "Secondary-A", "");
    project.write(
        "progress/checkpoints/media-T1.json",
        site("media", "T1", "in_progress", ""),
    );
    project.write("docs/builder-state.json", common::EXAMPLE);
    project.write("package.json", "{\"name\": \"x\"}");
    let options = FleetOptions::new()
        .with_expected("Secondary-A")
        .with_expected("agent-secondary_b")
        .with_planned("T1", Some("media"))
        .with_planned("T2", Some("content"));
    let fleet = project.scan_with(&options);
    assert_eq!(
        results(&fleet),
        ["active", "stalled", "active", "not_started", "missing"]
    );
    let site = &fleet.rows()[2];
    assert_eq!(site.agent.as_deref(), Some("media"));
    assert_eq!(site.progress.percent, Some(65));
    assert_eq!(site.progress.elapsed.unwrap().num_minutes(), 10);
    assert_eq!(site.progress.rest.unwrap().num_seconds(), 258);
    let slot = &fleet.rows()[1].place;
    assert_eq!(slot.slot.as_deref(), Some("active"));
    assert_eq!(files(&fleet).len(), 1);
    assert_eq!(files(&fleet)[0].why, SkipReason::Foreign);
    assert_eq!(fleet.totals().rows, 5);
    assert_eq!(fleet.totals().count("missing"), 1);
    // 65 %, 33 % of the host's task, and 0 % of the planned one; the agent counts no steps.
    assert_eq!(fleet.totals().percent, Some(32));
}

#[test]
fn archives_backups_and_our_own_folder_are_never_rows() {
    let project = Project::new();
    let folder = project.path("agent_checkpoints");
    let store = FileStore::open(&folder).with_layout(AgentCheckpoint::layout());
    let text = agent("Secondary-A", "IN_PROGRESS", "2026-03-02T08:00:00Z", "");
    let id = key("Secondary-A");
    for step in 1..4 {
        let document = Document::from_text(text.replace("S2.P2", &format!("S2.P{step}"))).unwrap();
        store.put(&id, Put::new(document.clone())).unwrap();
    }
    project.agent("secondary_b_crashed_1768488300.json", "Secondary-B", "");
    project.write(
        "progress/checkpoints/media-T1-complete.json",
        site("media", "T1", "complete", ""),
    );
    assert!(project.path("agent_checkpoints/backups").is_dir());
    assert!(project.path("agent_checkpoints/.agent-checkpoint").is_dir());
    let fleet = project.scan();
    assert_eq!(fleet.rows().len(), 1, "{:?}", fleet.rows());
    assert!(
        files(&fleet)
            .iter()
            .all(|left| left.why == SkipReason::Archive)
    );
    // Two backups and two archives.
    assert_eq!(files(&fleet).len(), 4, "{:?}", files(&fleet));
    assert_eq!(fleet.findings(), []);
}

#[test]
fn a_damaged_file_is_a_row_where_anything_speaks_for_a_checkpoint() {
    let project = Project::new();
    // A crash leaves such files; a settings file with comments is not one of them.
    project.write("alone/empty.json", "");
    project.write("alone/.json", "");
    project.write("alone/nul.json", [0; 64]);
    project.write("settings/tsconfig.json", "{ // comment\n \"a\": 1 }");
    project.write("settings/list.json", "[1, 2]");
    // The format is known from its path, from its readable part, or from the files beside it.
    project.write("agent_checkpoints/secondary_x.json", "{ oops");
    project.write(
        "left/over.json",
        "{\"completedSteps\": [{\"step\": \"a\"}], \"pendingSteps\": [\"b\"], oops",
    );
    project.write("beside/a.json", site("media", "T1", "in_progress", ""));
    project.write("beside/b.json", "{\"x\": 1}\"y\": 2}");
    // JSON Lines of another tool are no checkpoint at any place.
    project.write("beside/lines.json", "{\"x\": 1}\n{\"y\": 2}\n");
    let fleet = project.scan();
    let corrupt: Vec<String> = fleet
        .rows()
        .iter()
        .filter(|row| row.result() == "corrupt")
        .map(|row| {
            row.place
                .file
                .as_ref()
                .unwrap()
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into()
        })
        .collect();
    assert_eq!(
        corrupt,
        [
            "secondary_x.json",
            ".json",
            "empty.json",
            "nul.json",
            "b.json",
            "over.json"
        ]
    );
    let format = |name: &str| {
        let row = fleet
            .rows()
            .iter()
            .find(|row| row.place.to_string().ends_with(name));
        row.unwrap().format
    };
    assert_eq!(format("secondary_x.json"), Some("agent-session"));
    assert_eq!(format("over.json"), Some("task"));
    assert_eq!(format("empty.json"), None);
    let left: Vec<&SkipReason> = files(&fleet).iter().map(|left| &left.why).collect();
    assert_eq!(left, [&SkipReason::NoDocument; 3]);
    assert!(fleet.needs_attention());
    // An expected agent whose file is corrupt has a checkpoint: it is the row.
    let fleet = project.scan_with(&FleetOptions::new().with_expected("Secondary-X"));
    assert_eq!(fleet.totals().count("missing"), 0);
}

#[test]
fn one_agent_in_two_files_is_found() {
    let project = Project::new();
    project.agent("secondary_a.json", "Secondary-A", "");
    project.write(
        "agent_checkpoints/old_copy.json",
        agent("secondary_a", "COMPLETE", "2026-03-02T07:00:00Z", ""),
    );
    let fleet = project.scan();
    let same = fleet.findings().iter().find_map(|finding| match finding {
        Finding::SameAgent { agent, places } => Some((agent.as_str(), places.len())),
        _ => None,
    });
    assert_eq!(same, Some(("secondary_a", 2)), "{:?}", fleet.findings());
    // Some agents wrote their name as their role; a role that is a type names no agent.
    let project = Project::new();
    project.agent("secondary_a.json", "Secondary-A", "");
    for (file, role) in [
        ("secondary-a-2", "Secondary-A"),
        ("b", "secondary"),
        ("c", "secondary"),
    ] {
        let text = agent(role, "IN_PROGRESS", "2026-03-02T07:00:00Z", "");
        let text = text.replace("agent_id", "agent_role");
        project.write(&format!("agent_checkpoints/{file}.json"), text);
    }
    let fleet = project.scan();
    let same = fleet.findings().iter().filter_map(|finding| match finding {
        Finding::SameAgent { places, .. } => Some(places.len()),
        _ => None,
    });
    assert_eq!(same.collect::<Vec<_>>(), [2], "{:?}", fleet.findings());
    // A sitebuilder has a file for each of its tasks.
    let project = Project::new();
    for task in ["T1", "T2"] {
        let text = site("media", task, "in_progress", "");
        project.write(&format!("progress/checkpoints/media-{task}.json"), text);
    }
    assert_eq!(project.scan().findings(), []);
    // The same task in two files is a finding.
    project.write(
        "progress/checkpoints/copy.json",
        site("media", "T1", "in_progress", ""),
    );
    let fleet = project.scan();
    assert!(fleet.findings().iter().any(|finding| matches!(finding,
        Finding::SameKey { key, .. } if key == "media-T1")));
    assert!(fleet.findings().iter().any(|finding| matches!(finding,
        Finding::KeyMismatch { id, .. } if id == "media-T1")));
}

#[test]
fn a_file_that_two_active_agents_changed_is_found() {
    let changed = |files: &str| format!(",\"files_modified\":{files}");
    let shared = |project: &Project| {
        let fleet = project.scan();
        fleet.findings().iter().find_map(|finding| match finding {
            Finding::SharedPaths { agents, paths, .. } => Some((agents.clone(), paths.clone())),
            _ => None,
        })
    };
    let project = Project::new();
    project.agent(
        "secondary_a.json",
        "Secondary-A",
        &changed(r#"["src/a.rs","src/b.rs"]"#),
    );
    project.agent(
        "secondary_b.json",
        "Secondary-B",
        &changed(r#"["./src//b.rs","src/c.rs"]"#),
    );
    assert_eq!(
        shared(&project),
        Some((
            vec!["Secondary-A".to_owned(), "Secondary-B".to_owned()],
            vec!["src/b.rs".to_owned()]
        ))
    );
    // A finished or long silent agent is no longer part of a conflict.
    for (status, last) in [("COMPLETE", "08:00:00"), ("IN_PROGRESS", "05:00:00")] {
        let more = changed(r#"["src/b.rs"]"#);
        let text = agent("Secondary-B", status, &format!("2026-03-02T{last}Z"), &more);
        project.write("agent_checkpoints/secondary_b.json", text);
        assert_eq!(shared(&project), None, "{status} {last}");
    }
    // The agent that took over the work has its files.
    let more = format!(
        "{},\"previous_agent\":\"Secondary-A\"",
        changed(r#"["src/b.rs"]"#)
    );
    project.agent("secondary_a_new.json", "Secondary-A-New", &more);
    assert_eq!(shared(&project), None);
    // In two projects the same relative path means two files and the same name two agents; an absolute path means one
    // file everywhere.
    let (one, other) = (Project::new(), Project::new());
    one.agent(
        "secondary_a.json",
        "Secondary-A",
        &changed(r#"["src/a.rs","/etc/x"]"#),
    );
    other.agent(
        "secondary_a.json",
        "Secondary-A",
        &changed(r#"["src/a.rs"]"#),
    );
    other.agent("secondary_b.json", "Secondary-B", &changed(r#"["/etc/x"]"#));
    let sources = [Source::folder(one.0.path()), Source::folder(other.0.path())];
    let fleet = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
    let found: Vec<_> = fleet.findings().iter().collect();
    let [Finding::SharedPaths { paths, agents, .. }] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!((paths.join(" "), agents.len()), ("/etc/x".to_owned(), 2));
    // The protocol has every agent write its progress into one file.
    let project = Project::new();
    for id in ["a", "b"] {
        let more = changed(r#"["EPIC_README.md","docs/EPIC_README.md"]"#);
        project.agent(
            &format!("secondary_{id}.json"),
            &format!("Secondary-{id}"),
            &more,
        );
    }
    assert_eq!(shared(&project), None);
    // A sitebuilder's agent is a kind of agent: each task has one. By its document, files that two of them created are
    // no conflict, but files that both changed are.
    let project = Project::new();
    for task in ["T1", "T2"] {
        let files = ",\"files_created\":[\"made.md\"],\"files_modified\":[\"MANIFEST.json\"]";
        let text = site("media", task, "in_progress", files);
        project.write(&format!("progress/checkpoints/media-{task}.json"), text);
    }
    let agents = vec!["media (T1)".to_owned(), "media (T2)".to_owned()];
    assert_eq!(
        shared(&project),
        Some((agents, vec!["MANIFEST.json".to_owned()]))
    );
    // One agent may change the same file in two tasks.
    let project = Project::new();
    for name in ["T1", "T2"] {
        project.write(&format!("c/{name}.json"), task("ann", r#"["src/a.rs"]"#, 1));
    }
    assert_eq!(shared(&project), None);
}

/// A task of this agent with one finished step and `left` remaining ones.
fn task(agent: &str, files: &str, left: usize) -> String {
    let pending: Vec<String> = (1..=left).map(|step| format!("\"step {step}\"")).collect();
    let pending = pending.join(",");
    format!(
        r#"{{"schemaVersion":1,"phase":"implementation",
            "completedSteps":[{{"step":"begun","timestamp":"2026-03-02T08:00:00Z","filesModified":{files}}}],
            "pendingSteps":[{pending}],"currentStep":null,"decisions":[],"blockers":[],
            "metadata":{{"createdBy":"{agent}","lastUpdatedAt":"2026-03-02T08:00:00Z","reason":"periodic"}}}}"#
    )
}

#[test]
fn a_finished_row_with_work_left_is_found() {
    let project = Project::new();
    let steps = ",\"completed_steps\":[\"one\"],\"next_steps\":[\"two\",\"three\"]";
    let text = agent("Secondary-A", "COMPLETE", "2026-03-02T08:00:00Z", steps);
    project.write("agent_checkpoints/secondary_a.json", text);
    let site = site(
        "media",
        "T1",
        "complete",
        ",\"completed_at\":\"2026-03-02T08:03:00Z\"",
    );
    project.write("progress/checkpoints/media-T1.json", site);
    let fleet = project.scan();
    let told: Vec<String> = fleet.findings().iter().map(ToString::to_string).collect();
    assert!(
        told[0].ends_with("secondary_a.json is finished, but has 2 steps left: two, three"),
        "{told:?}"
    );
    assert!(told[1].contains("media-T1.json is finished, "), "{told:?}");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(fleet.needs_attention());
}

#[test]
fn the_rest_is_estimated_only_while_work_goes_on_and_at_a_pace_that_is_one() {
    let project = Project::new();
    let rest = |started: &str, updated: &str, status: &str| {
        let text = site("media", "T1", status, "");
        let text = text.replace("2026-03-02T07:55:00Z", started);
        project.write(
            "progress/checkpoints/media-T1.json",
            text.replace("2026-03-02T08:03:00Z", updated),
        );
        let fleet = project.scan();
        assert_eq!(fleet.rows()[0].progress.rest, fleet.totals().rest);
        fleet.totals().rest.is_some()
    };
    let (hour, recent) = ("2026-03-02T07:05:00Z", "2026-03-02T08:03:00Z");
    assert!(rest(hour, recent, "in_progress"));
    assert!(
        !rest(hour, "2026-03-02T07:06:00Z", "in_progress"),
        "stalled"
    );
    assert!(!rest(hour, recent, "blocked"));
    assert!(!rest(hour, recent, "complete"));
    assert!(!rest(hour, recent, "whatever"), "unknown");
    assert!(
        !rest("2024-03-02T07:05:00Z", recent, "in_progress"),
        "a year"
    );
}

#[test]
fn work_that_was_taken_over_is_not_offered_to_a_third() {
    let project = Project::new();
    let old = agent("Secondary-A", "IN_PROGRESS", "2026-03-02T06:00:00Z", "");
    project.write("agent_checkpoints/secondary_a.json", old);
    assert!(
        project.scan().rows()[0].message.is_some(),
        "it is escalated"
    );
    let more = ",\"previous_agent\":\"Secondary-A\"";
    project.agent("secondary_a_new.json", "Secondary-A-New", more);
    let fleet = project.scan();
    assert_eq!(results(&fleet), ["taken_over", "active"]);
    assert!(!fleet.rows()[0].is_resumable() && fleet.rows()[0].message.is_none());
    assert!(
        matches!(fleet.findings(), [Finding::TakenOver { agent, by, .. }]
            if agent == "Secondary-A" && by == "Secondary-A-New"),
        "{:?}",
        fleet.findings()
    );
    // The old agent came back later, so both are working.
    project.agent("secondary_a.json", "Secondary-A", "");
    let later = ",\"previous_agent\":\"Secondary-A\"";
    let before = agent(
        "Secondary-A-New",
        "IN_PROGRESS",
        "2026-03-02T07:59:00Z",
        later,
    );
    project.write("agent_checkpoints/secondary_a_new.json", before);
    assert_eq!(results(&project.scan()), ["active", "active"]);
    // Both are also working if it is at another feature, or if its stamp is no time.
    project.agent("secondary_a_new.json", "Secondary-A-New", more);
    assert_eq!(results(&project.scan()), ["taken_over", "active"]);
    let old = project.path("agent_checkpoints/secondary_a.json");
    let text = fs::read_to_string(&old).unwrap();
    fs::write(&old, text.replace("feature_Secondary-A", "feature_b")).unwrap();
    assert_eq!(results(&project.scan()), ["active", "active"]);
    fs::write(&old, text.replace("2026-03-02T08:00:00Z", "noon")).unwrap();
    assert_ne!(results(&project.scan())[0], "taken_over");
}

#[cfg(unix)]
#[test]
fn a_host_file_whose_name_is_not_utf_8_is_one_finding() {
    use std::os::unix::ffi::OsStrExt;

    let project = Project::new();
    let name = std::ffi::OsStr::from_bytes(b"s\xff.json");
    let step = r#"{"pendingSteps":["one"]}"#;
    let host = format!(
        r#"{{"activePrd":{{"id":"p","currentStory":"US-1","checkpoint":{step}}},
            "adhocQueue":[{{"id":"x","checkpoint":{step}}}]}}"#
    );
    fs::write(project.0.path().join(name), host).unwrap();
    let fleet = project.scan();
    assert_eq!(fleet.rows().len(), 2);
    let unwritten = |it: &&Finding| matches!(it, Finding::NameNotUtf8 { .. });
    let unwritten: Vec<_> = fleet.findings().iter().filter(unwritten).collect();
    let [Finding::NameNotUtf8 { place }] = unwritten.as_slice() else {
        panic!("{unwritten:?}");
    };
    assert!(place.ends_with("s\u{fffd}.json"), "{place}");
}

#[test]
fn one_task_in_two_checkouts_of_a_repository_is_found() {
    let project = Project::new();
    project.write("main/.git/HEAD", "ref: refs/heads/main\n");
    project.write("main/.git/worktrees/side/commondir", "../..\n");
    let worktree = project.path("main/.git/worktrees/side");
    project.write("side/.git", format!("gitdir: {}\n", worktree.display()));
    project.write("main/ck/T.json", task("ann", "[]", 2));
    project.write(
        "side/ck/T.json",
        task("ann", "[]", 1).replace("08:00:00Z", "08:01:00Z"),
    );
    // Another place in the repository is another task.
    let another = task("ben", "[]", 1).replace("08:00:00Z", "07:59:00Z");
    project.write("side/other/T.json", another);
    let found = |fleet: &Fleet| match fleet.findings() {
        [Finding::SameKey { key, places }] => (key.clone(), places.clone()),
        other => panic!("{other:?}"),
    };
    let places = |names: [&str; 2]| names.map(|name| project.path(name).display().to_string());
    let newest_first = places(["side/ck/T.json", "main/ck/T.json"]).to_vec();
    assert_eq!(
        found(&project.scan()),
        ("T".to_owned(), newest_first.clone())
    );
    let sources = ["main", "side"].map(|name| Source::folder(project.path(name)));
    let fleet = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
    assert_eq!(found(&fleet).1, newest_first);
    // A task that is finished everywhere has a copy in each checkout.
    for name in ["main", "side"] {
        project.write(&format!("{name}/ck/T.json"), task("ann", "[]", 0));
    }
    assert_eq!(project.scan().findings(), []);
}

#[test]
fn one_task_in_a_folder_and_in_a_copy_of_it_is_found_once() {
    let project = Project::new();
    let text = task("ann", "[]", 2);
    project.write("m/ck/T.json", &text);
    project.write("m/ck/U.json", task("ann", "[]", 1));
    // It has the same key but is another task.
    let another = task("ann", "[]", 2).replace("08:00:00Z", "07:00:00Z");
    project.write("other/T.json", another);
    assert_eq!(project.scan().findings(), []);
    // One copy continues; another one did not change.
    let more = text.replace(
        "\"completedSteps\":[",
        r#""completedSteps":[{"step":"first","timestamp":"2026-03-02T07:58:00Z"},"#,
    );
    project.write(
        "m2/ck/T.json",
        more.replace("08:00:00Z\",\"reason", "08:01:00Z\",\"reason"),
    );
    project.write("m3/ck/T.json", &text);
    let fleet = project.scan();
    let places = ["m2/ck/T.json", "m/ck/T.json", "m3/ck/T.json"];
    let places = places.map(|name| project.path(name).display().to_string());
    match fleet.findings() {
        [Finding::SameKey { key, places: found }] => {
            assert_eq!(key, "T");
            assert_eq!(*found, places);
        }
        other => panic!("{other:?}"),
    }
    // A task that is finished everywhere is not continued from the old copy.
    for name in ["m", "m2", "m3"] {
        project.write(&format!("{name}/ck/T.json"), task("ann", "[]", 0));
    }
    assert_eq!(project.scan().findings(), []);
}

/// For any source, even if a store never kept anything beside the checkpoint.
#[test]
fn steps_that_are_in_no_dropped_log_are_told() {
    let text = task("ann", "[]", 3);
    let text = text.replacen(
        '{',
        r#"{"dropped": {"completedSteps": 5, "in": "log.jsonl"}, "#,
        1,
    );
    let project = Project::new();
    project.write("T.json", &text);
    let store = MemoryStore::new();
    let document = Document::parse(text.as_bytes()).unwrap();
    store.put(&key("T"), Put::new(document.clone())).unwrap();
    let sources = [
        Source::folder(project.0.path()),
        Source::store("memory", &store),
    ];
    let fleet = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
    assert_eq!(fleet.rows().len(), 2);
    for row in fleet.rows() {
        assert_eq!((row.done_elsewhere, row.elsewhere_missing), (5, 5));
        assert_eq!(
            row.steps_missing().unwrap(),
            "5 earlier steps no longer in the checkpoint, moved to log.jsonl, where 5 of them are not found"
        );
        assert!(!row.needs_attention());
    }
}

/// A log that is longer than a resume reads for the files of its steps is still counted whole.
#[test]
fn missing_steps_are_counted_in_a_long_dropped_log_too() {
    let text = task("ann", "[]", 0);
    let text = text.replacen('{', r#"{"dropped": {"completedSteps": 1010}, "#, 1);
    let document = Document::parse(text.as_bytes()).unwrap();
    for (kept, missing) in [(1005, 5), (1010, 0)] {
        let store = MemoryStore::new();
        let dropped = (0..kept).map(|number| {
            let pointer = format!("/completedSteps/{number}");
            let step = serde_json::json!({ "step": format!("step {number}") });
            Dropped::new(pointer, DropReason::Bytes(2000), step)
        });
        let put = Put::new(document.clone()).with_dropped(dropped.collect());
        store.put(&key("T"), put).unwrap();
        let sources = [Source::store("memory", &store)];
        let fleet = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
        let row = &fleet.rows()[0];
        assert_eq!((row.done_elsewhere, row.elsewhere_missing), (1010, missing));
        let checkpoints: Checkpoints<TaskCheckpoint> = Checkpoints::new(store);
        let checkpoint = checkpoints.get(&key("T")).unwrap().checkpoint;
        let handoff = checkpoint.handoff();
        let handoff = checkpoints.complete_handoff(&key("T"), &checkpoint, handoff);
        assert_eq!(handoff.unwrap().elsewhere_missing, missing);
    }
}

#[test]
fn claims_that_do_not_go_with_their_tasks_are_found() {
    let project = Project::new();
    let folder = project.path("agent_checkpoints");
    for (name, id, status) in [
        ("secondary_a.json", "Secondary-A", "COMPLETE"),
        ("secondary_b.json", "Secondary-B", "IN_PROGRESS"),
        ("secondary_c.json", "Secondary-C", "IN_PROGRESS"),
        ("secondary_d.json", "Secondary-D", "IN_PROGRESS"),
    ] {
        let text = agent(id, status, "2026-03-02T08:00:00Z", "");
        project.write(&format!("agent_checkpoints/{name}"), text);
    }
    let options = FileOptions::default().with_clock(clock("2026-03-02T08:00:00Z"));
    let store = FileStore::with_options(&folder, options).with_layout(AgentCheckpoint::layout());
    let claim = |id: &str, minutes: u64| {
        let request =
            ClaimRequest::new(format!("owner of {id}"), Duration::from_secs(minutes * 60));
        store.claim(&key(id), &request).unwrap()
    };
    claim("Secondary-A", 60);
    claim("Secondary-B", 4);
    claim("Secondary-C", 60);
    let given_back = claim("Secondary-D", 4);
    store
        .release(&key("Secondary-D"), given_back.fence)
        .unwrap();
    let fleet = project.scan();
    let findings: Vec<String> = fleet.findings().iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(
        findings[0].contains(
            "secondary_a.json is finished, but owner of Secondary-A still has it claimed"
        )
    );
    assert!(findings[1].contains("secondary_b.json is not finished, and the claim of owner of Secondary-B expired at 2026-03-02T08:04:00Z"));
    let owner = fleet.rows()[2].owner.as_ref().unwrap();
    assert!(owner.stands && owner.name == "owner of Secondary-C");
    assert_eq!(
        fleet.rows()[3].owner.as_ref().map(|owner| owner.stands),
        Some(false)
    );
    // In a host file each slot has its own.
    let project = Project::new();
    let path = project.path("docs/builder-state.json");
    project.write("docs/builder-state.json", common::EXAMPLE);
    let options = FileOptions::default().with_clock(clock(NOW));
    let host = BuilderStateStore::with_options(&path, options);
    let request = ClaimRequest::new("react-dev", Duration::from_secs(60));
    host.claim(&key("active"), &request).unwrap();
    let fleet = project.scan();
    assert_eq!(fleet.rows()[0].owner.as_ref().unwrap().name, "react-dev");
}

#[test]
fn a_record_of_claims_that_is_damaged_is_a_finding() {
    let project = Project::new();
    project.agent("secondary_a.json", "Secondary-A", "");
    let record = "agent_checkpoints/.agent-checkpoint/claims/secondary_a.json.json";
    project.write(record, "{");
    let fleet = project.scan();
    assert!(
        matches!(fleet.findings(), [Finding::ClaimsUnreadable { .. }]),
        "{:?}",
        fleet.findings()
    );
}

const STATE: &str = r#"{"complete":false,"last_check":"2026-03-02T08:04:00Z",
    "story_state":{"SHOP-1":"STAGE_2","SHOP-2":"STAGE_1","SHOP-3":"PAUSED"},
    "worker_map":{"SHOP-1":"story-SHOP-1-s2","SHOP-2":"story-SHOP-2-s1","SHOP-3":"w3"},
    "stage_timestamps":{"SHOP-1":{"stage_2_start":"2026-03-02T07:05:00Z"}}}"#;

fn story(id: &str, stamp: &str) -> String {
    format!(
        r#"{{"story_id":"{id}","stage":2,"last_action":"x","completed_at":"{stamp}",
            "tasks_completed":["A","B"],"tasks_remaining":["C"]}}"#
    )
}

#[test]
fn a_story_is_judged_with_the_state_of_its_pipeline() {
    let project = Project::new();
    project.write(".pipeline/state.json", STATE);
    for (id, stamp) in [
        ("SHOP-1", "2026-03-02T06:05:01Z"),
        ("SHOP-2", "2026-03-02T06:05:00Z"),
        ("SHOP-3", "2026-03-01T06:05:00Z"),
    ] {
        project.write(&format!(".pipeline/checkpoint-{id}.json"), story(id, stamp));
    }
    let fleet = project.scan();
    // One second less than two hours is not two hours; the lead beats for all.
    assert_eq!(results(&fleet), ["active", "stuck", "waiting", "active"]);
    let first = &fleet.rows()[0];
    assert_eq!(first.agent.as_deref(), Some("story-SHOP-1-s2"));
    assert_eq!(first.progress.percent, Some(66));
    assert_eq!(first.progress.elapsed.unwrap().num_minutes(), 60);
    assert_eq!(first.progress.rest, None);
    let findings: Vec<String> = fleet.findings().iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].ends_with("is in STAGE_2, but the pipeline's state says STAGE_1"));
    // The state itself is a row, but no task.
    assert_eq!(fleet.rows()[3].format, Some("story-pipeline-state"));
    assert_eq!(fleet.totals().percent, Some(66));
    // A worker that crashed before is asked about first.
    let decision = |fleet: &Fleet| fleet.rows()[0].next.as_ref().unwrap().decision;
    assert_eq!(decision(&fleet), ResumeDecision::Continue);
    let crashed = STATE.replacen('{', r#"{"crash_count":{"SHOP-1":2},"#, 1);
    project.write(".pipeline/state.json", crashed);
    assert_eq!(decision(&project.scan()), ResumeDecision::Ask);
    // Without the state only silence is seen.
    fs::remove_file(project.path(".pipeline/state.json")).unwrap();
    assert_eq!(results(&project.scan()), ["stalled", "stalled", "stalled"]);
}

#[test]
fn a_story_without_an_id_is_judged_by_the_name_of_its_file() {
    let project = Project::new();
    project.write(".pipeline/state.json", STATE);
    let stamp = "2026-03-02T08:00:00Z";
    project.write(".pipeline/checkpoint-SHOP-1.json", story("SHOP-1", stamp));
    let without = story("SHOP-2", stamp).replace(r#""story_id":"SHOP-2","#, "");
    project.write(".pipeline/checkpoint-SHOP-2.json", without);
    let fleet = project.scan();
    let agents = fleet.rows()[..2].iter().map(|row| row.agent.as_deref());
    let workers = ["story-SHOP-1-s2", "story-SHOP-2-s1"].map(Some);
    assert_eq!(agents.collect::<Vec<_>>(), workers);
}

#[test]
fn a_story_under_the_name_of_another_is_found() {
    let project = Project::new();
    project.write(
        ".pipeline/checkpoint-SHOP-9.json",
        story("SHOP-1", "2026-03-02T08:00:00Z"),
    );
    let fleet = project.scan();
    assert!(
        matches!(fleet.findings(), [Finding::KeyMismatch { id, .. }] if id == "SHOP-1"),
        "{:?}",
        fleet.findings()
    );
}

#[test]
fn what_can_be_resumed_is_what_the_formats_say() {
    let project = Project::new();
    project.agent("secondary_a.json", "Secondary-A", "");
    project.write(
        "agent_checkpoints/secondary_b.json",
        agent("Secondary-B", "IN_PROGRESS", "2026-03-02T08:00:00Z", "")
            .replace("\"can_resume\":true", "\"can_resume\":false"),
    );
    let site = |name: &str, status: &str, more: &str| {
        let text = site("media", name, status, more);
        project.write(&format!("progress/checkpoints/media-{name}.json"), text);
    };
    site(
        "T1",
        "complete",
        ",\"completed_at\":\"2026-03-02T08:03:00Z\"",
    );
    site(
        "T2",
        "complete",
        ",\"acceptance_criteria_met\":{\"valid\":false}",
    );
    project.write("progress/checkpoints/media-T3.json", "");
    let fleet = project.scan();
    let names: Vec<&str> = fleet
        .resumable()
        .filter_map(|row| row.task.as_deref())
        .collect();
    assert_eq!(names, ["feature_Secondary-A", "T2"]);
    assert_eq!(fleet.totals().resumable, 2);
    let start = fleet.resumable().last().unwrap().next.as_ref().unwrap();
    assert_eq!(start.start_at.as_deref(), Some("valid"));
    assert_eq!(fleet.only_resumable().rows().len(), 2);
}

#[test]
fn late_and_stalled_rows_offer_the_message_of_their_protocol() {
    let project = Project::new();
    for (id, last) in [("a", "08:00:00"), ("b", "07:30:00"), ("c", "07:00:00")] {
        let text = agent(
            &format!("Secondary-{id}"),
            "IN_PROGRESS",
            &format!("2026-03-02T{last}Z"),
            "",
        );
        project.write(&format!("agent_checkpoints/secondary_{id}.json"), text);
    }
    let late = site("media", "T1", "in_progress", "").replace("08:03:00Z", "07:50:00Z");
    project.write("progress/checkpoints/media-T1.json", &late);
    let stalled = late.replace("T1", "T2").replace("07:50:00Z", "07:20:00Z");
    project.write(
        "progress/checkpoints/media-T2.json",
        stalled.replace("07:55:00Z", "07:00:00Z"),
    );
    let fleet = project.scan();
    let message = |row: usize| fleet.rows()[row].message.as_deref().unwrap_or("none");
    assert_eq!(message(0), "none");
    assert!(message(1).contains("CHECKPOINT WARNING - No Update in 35 Minutes"));
    assert!(message(2).contains("🚨 STALE AGENT") && message(2).contains("Option 3"));
    assert_eq!(message(3), "@orchestrator: Task T1 progress: 65%");
    assert_eq!(
        message(4),
        "@orchestrator: Task T2 progress: 65%\n/dispatch-sitebuilder media --resume"
    );
}

#[test]
fn the_caller_may_judge_by_other_thresholds() {
    let project = Project::new();
    project.agent("secondary_a.json", "Secondary-A", "");
    project.write(
        "progress/checkpoints/media-T1.json",
        site("media", "T1", "in_progress", "").replace("08:03:00Z", "07:50:00Z"),
    );
    assert_eq!(results(&project.scan()), ["active", "late"]);
    let supervisor = agent_checkpoint::formats::sitebuilder::supervisor_thresholds();
    let options = FleetOptions::new().with_thresholds("sitebuilder", supervisor);
    let fleet = project.scan_with(&options);
    assert_eq!(results(&fleet), ["active", "active"]);
    assert!(fleet.rows()[1].liveness().unwrap().session_timed_out());
    let strict = agent_checkpoint::liveness::Thresholds::at(
        chrono::TimeDelta::minutes(1),
        chrono::TimeDelta::minutes(5),
    );
    let fleet = project.scan_with(&FleetOptions::new().with_thresholds_of_all(strict));
    assert_eq!(results(&fleet), ["stalled", "stalled"]);
}

#[test]
fn folders_are_looked_into_as_deep_as_was_asked_and_others_are_listed() {
    let project = Project::new();
    let text = site("media", "T1", "in_progress", "");
    for folder in ["", "a/", "a/b/", "node_modules/x/", ".git/", "target/"] {
        project.write(&format!("{folder}media-T1.json"), &text);
    }
    let places = |depth| {
        let fleet = project.scan_with(&FleetOptions::new().with_depth(depth));
        let skipped: Vec<SkipReason> = folders(&fleet)
            .iter()
            .map(|place| place.why.clone())
            .collect();
        (fleet.rows().len(), skipped)
    };
    let ignored = || vec![SkipReason::Ignored; 3];
    assert_eq!(places(8), (3, ignored()));
    let mut deep = ignored();
    deep.insert(1, SkipReason::TooDeep);
    assert_eq!(places(1).0, 2);
    assert_eq!(places(0), (1, deep));
    // A named folder is scanned regardless of its name, and each folder once.
    let sources = [
        Source::folder(project.path("target")),
        Source::folder(project.path("a")),
        Source::folder(project.0.path()),
        Source::folder(project.path("nowhere")),
    ];
    let fleet = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
    assert_eq!(fleet.rows().len(), 4);
    let missing = folders(&fleet).pop().unwrap();
    assert!(matches!(missing.why, SkipReason::Unreadable(_)));
}

#[cfg(unix)]
#[test]
fn links_are_listed_and_not_followed() {
    use std::os::unix::fs::symlink;
    let project = Project::new();
    let elsewhere = Project::new();
    elsewhere.write("media-T1.json", site("media", "T1", "in_progress", ""));
    symlink(elsewhere.0.path(), project.path("linked")).unwrap();
    symlink(project.0.path(), project.path("circle")).unwrap();
    symlink(elsewhere.path("media-T1.json"), project.path("link.json")).unwrap();
    let fleet = project.scan();
    assert_eq!(fleet.rows().len(), 0);
    assert_eq!(files(&fleet)[0].why, SkipReason::Link);
    assert!(
        folders(&fleet)
            .iter()
            .all(|place| place.why == SkipReason::LinkedFolder)
    );
    assert_eq!(folders(&fleet).len(), 2);
}

#[test]
fn a_scan_waits_for_no_lock_and_creates_nothing() {
    let project = Project::new();
    project.agent("secondary_a.json", "Secondary-A", "");
    let folder = project.path("agent_checkpoints");
    let store = FileStore::open(&folder).with_layout(AgentCheckpoint::layout());
    let before = tree(project.0.path());
    let mut seen = None;
    // A writer that holds the lock during the scan.
    store
        .transact(&key("Secondary-A"), |_| {
            seen = Some(results(&project.scan()));
            Ok(None)
        })
        .unwrap();
    assert_eq!(seen.unwrap(), ["active"]);
    let after = tree(project.0.path());
    let ours = |name: &&String| !name.contains(".agent-checkpoint");
    assert_eq!(
        after.iter().filter(ours).collect::<Vec<_>>(),
        before.iter().collect::<Vec<_>>()
    );
}

#[test]
fn several_stores_and_folders_are_one_fleet() {
    let memory = MemoryStore::new();
    for (id, text) in [
        (
            "Secondary-A",
            agent("Secondary-A", "IN_PROGRESS", "2026-03-02T08:00:00Z", ""),
        ),
        ("x", site("media", "T1", "in_progress", "")),
        ("foreign", "{\"name\": 1}".to_owned()),
    ] {
        let document = Document::from_text(text).unwrap();
        memory.put(&key(id), Put::new(document.clone())).unwrap();
    }
    let request = ClaimRequest::new("somebody", Duration::from_secs(60));
    memory.claim(&key("x"), &request).unwrap();
    let project = Project::new();
    project.write("docs/builder-state.json", common::EXAMPLE);
    let host = BuilderStateStore::open(project.path("docs/builder-state.json"));
    let sources = [
        Source::store("memory", &memory),
        Source::store_of("host", &host, "builder-state"),
        Source::folder(project.0.path()),
    ];
    let fleet = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
    let places: Vec<String> = fleet
        .rows()
        .iter()
        .map(|row| row.place.to_string())
        .collect();
    assert_eq!(
        places[..3],
        ["host: active", "memory: Secondary-A", "memory: x"]
    );
    assert_eq!(fleet.rows().len(), 4);
    assert_eq!(files(&fleet)[0].what, "memory: foreign");
    assert_eq!(fleet.rows()[2].owner.as_ref().unwrap().name, "somebody");
    // More keys than one page has, and a foreign file, which every page names.
    let many = Project::new();
    for number in 0..300 {
        let text = agent(
            &format!("a{number}"),
            "IN_PROGRESS",
            "2026-03-02T08:00:00Z",
            "",
        );
        many.write(&format!("a{number}.json"), text);
    }
    many.write("%zz.json", "{}");
    let folder = FileStore::open(many.0.path());
    let fleet = Fleet::scan(
        &[Source::store("many", &folder)],
        &FleetOptions::new(),
        time(NOW),
    );
    assert_eq!((fleet.rows().len(), files(&fleet).len()), (300, 1));
    // A key that is not the id inside.
    let mismatch = agent("Other", "IN_PROGRESS", "2026-03-02T08:00:00Z", "");
    let document = Document::from_text(mismatch).unwrap();
    memory
        .put(&key("Secondary-A"), Put::new(document.clone()))
        .unwrap();
    let fleet = Fleet::scan(&sources[..1], &FleetOptions::new(), time(NOW));
    assert!(
        fleet
            .findings()
            .iter()
            .any(|f| matches!(f, Finding::KeyMismatch { .. }))
    );
}

fn kinds(before: &Fleet, after: &Fleet) -> Vec<EventKind> {
    after
        .changes_since(before)
        .iter()
        .map(|event| event.event)
        .collect()
}

#[test]
fn the_slots_of_a_host_file_that_is_damaged_or_mended_turn_and_are_not_gone() {
    let project = Project::new();
    let at = |now| {
        Fleet::scan(
            &[Source::folder(project.0.path())],
            &FleetOptions::new(),
            time(now),
        )
    };
    let task = r#"{"phase":"implementation","completedSteps":[],"pendingSteps":["x"],"decisions":[],"blockers":[],"metadata":{"createdBy":"a","lastUpdatedAt":"2026-03-02T08:00:00Z","reason":"periodic"}}"#;
    let host = format!(
        r#"{{"activeWork":{{"id":"W1","checkpoint":{task}}},"adhocQueue":[{{"id":"a1","checkpoint":{task}}}]}}"#
    );
    project.write("builder-state.json", &host);
    let whole = at("2026-03-02T08:01:00Z");
    assert_eq!(whole.rows().len(), 2);
    project.write("builder-state.json", &host[..host.len() / 2]);
    let damaged = at("2026-03-02T08:02:00Z");
    let events = damaged.changes_since(&whole);
    let said: Vec<_> = events
        .iter()
        .map(|it| (it.event, it.was, it.is, it.task.as_deref()))
        .collect();
    let turned = |was, is, task| (EventKind::Turned, Some(was), Some(is), Some(task));
    assert_eq!(
        said,
        [
            turned("active", "corrupt", "W1"),
            turned("active", "corrupt", "a1")
        ]
    );
    assert!(
        events[0].text.starts_with("a, W1: corrupt: "),
        "{}",
        events[0].text
    );
    project.write("builder-state.json", &host);
    let events = at("2026-03-02T08:03:00Z").changes_since(&damaged);
    let said: Vec<_> = events
        .iter()
        .map(|it| (it.event, it.was, it.is, it.task.as_deref()))
        .collect();
    assert_eq!(
        said,
        [
            turned("corrupt", "active", "W1"),
            turned("corrupt", "active", "a1")
        ]
    );
    // A host file that was never readable appears, and a removed one is gone.
    let none = Fleet::scan(&[], &FleetOptions::new(), time(NOW));
    assert_eq!(kinds(&none, &damaged), [EventKind::Appeared]);
    assert_eq!(kinds(&damaged, &none), [EventKind::Gone]);
}

#[test]
fn what_happened_follows_from_two_scans_alone() {
    let project = Project::new();
    let at = |now: &str| {
        let options = FleetOptions::new().with_expected("Secondary-B");
        Fleet::scan(&[Source::folder(project.0.path())], &options, time(now))
    };
    project.agent("secondary_a.json", "Secondary-A", "");
    let start = at("2026-03-02T08:05:00Z");
    assert_eq!(kinds(&start, &start), []);
    let steps = [
        ("2026-03-02T08:29:59Z", vec![]),
        ("2026-03-02T08:30:00Z", vec![EventKind::Late]),
        ("2026-03-02T09:00:00Z", vec![EventKind::Stalled]),
    ];
    let mut before = start;
    for (now, expected) in steps {
        let after = at(now);
        assert_eq!(kinds(&before, &after), expected, "{now}");
        before = after;
    }
    let stalled = before;
    let event = &stalled.changes_since(&at("2026-03-02T08:31:00Z"))[0];
    assert_eq!(
        event.text,
        "Secondary-A, feature_Secondary-A: stalled: last progress 1 h ago, limit 1 h"
    );
    assert_eq!((event.was, event.is), (Some("late"), Some("stalled")));
    assert!(event.message.as_ref().unwrap().contains("STALE AGENT"));
    // It writes again: this is a change and a recovery.
    let text = agent("Secondary-A", "IN_PROGRESS", "2026-03-02T09:01:00Z", "");
    project.write("agent_checkpoints/secondary_a.json", &text);
    let active = at("2026-03-02T09:02:00Z");
    assert_eq!(
        kinds(&stalled, &active),
        [EventKind::Changed, EventKind::Recovered]
    );
    // Another one appears, and the missing one disappears without an event.
    project.agent("secondary_b.json", "Secondary-B", "");
    project.write(
        "agent_checkpoints/secondary_a.json",
        text.replace("IN_PROGRESS", "COMPLETE"),
    );
    let two = at("2026-03-02T09:02:00Z");
    assert_eq!(
        kinds(&active, &two),
        [
            EventKind::Changed,
            EventKind::Finished,
            EventKind::Appeared,
            EventKind::Stalled
        ]
    );
    project.write("agent_checkpoints/secondary_a.json", "{");
    fs::remove_file(project.path("agent_checkpoints/secondary_b.json")).unwrap();
    let damaged = at("2026-03-02T09:02:00Z");
    assert_eq!(
        kinds(&two, &damaged),
        [
            EventKind::Changed,
            EventKind::Turned,
            EventKind::Appeared,
            EventKind::Gone
        ]
    );
}

#[test]
fn a_row_stays_small_whatever_is_in_its_document() {
    let project = Project::new();
    let long = "x".repeat(1_000_000);
    let text = agent(
        &long,
        &long,
        &long,
        &format!(",\"previous_agent\":\"{long}\""),
    );
    project.write("agent_checkpoints/a.json", text.replace("S2.P2", &long));
    let fleet = project.scan();
    let row = serde_json::to_string(&fleet.rows()[0]).unwrap();
    assert!(row.len() < 4096, "{}", row.len());
}

mod any_files {
    use super::*;
    use agent_checkpoint::strategies::{json_object, restyled};
    use proptest::prelude::*;

    fn name() -> impl Strategy<Value = String> {
        let folder = prop_oneof![
            Just(""),
            Just("agent_checkpoints/"),
            Just("agent_checkpoints/backups/"),
            Just("progress/checkpoints/"),
            Just(".pipeline/"),
            Just(".claude/skills/build-pipeline/checkpoints/"),
        ];
        let file = prop_oneof![
            "[a-zA-Z0-9_%. -]{1,20}",
            Just("state".to_owned()),
            Just("builder-state".to_owned()),
            Just("checkpoint-SHOP-1".to_owned()),
            Just("secondary_a".to_owned()),
            Just("secondary_a_crashed_1768488300".to_owned()),
            Just("secondary_a_20260115_143000".to_owned()),
            Just("media-T1-complete".to_owned()),
            Just("PRD-001".to_owned()),
        ];
        (folder, file)
            .prop_map(|(folder, file)| format!("{folder}{}.json", file.trim_start_matches('.')))
    }

    fn content() -> impl Strategy<Value = Vec<u8>> {
        let site = site("media", "T1", "in_progress", "");
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            json_object()
                .prop_flat_map(restyled)
                .prop_map(String::into_bytes),
            (0..site.len()).prop_map(move |end| site.as_bytes()[..end].to_vec()),
            Just(common::EXAMPLE.as_bytes().to_vec()),
            Just(STATE.as_bytes().to_vec()),
            Just(story("SHOP-1", "N/A").into_bytes()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::common::cases(64)))]

        #[test]
        fn no_file_makes_the_scan_fail_and_each_is_a_row_or_listed(
            files in proptest::collection::btree_map(name(), content(), 0..8)
        ) {
            let project = Project::new();
            for (name, content) in &files {
                project.write(name, content);
            }
            let fleet = project.scan();
            prop_assert_eq!(accounted(&fleet), json_files(project.0.path()));
            serde_json::to_string(&fleet).unwrap();
            prop_assert!(fleet.changes_since(&fleet).is_empty());
        }
    }
}

#[test]
fn a_task_that_is_claimed_and_not_begun_is_a_row_in_a_store_and_in_an_empty_slot() {
    let store = MemoryStore::new().with_clock(clock(NOW));
    let hour = ClaimRequest::new("dev", Duration::from_secs(3600));
    for name in ["begun", "claimed", "given-back", "gone"] {
        store.claim(&key(name), &hour).unwrap();
    }
    let claim = store.claimed(&key("begun")).unwrap().unwrap();
    let document = Document::from_text("{\"status\": \"in_progress\"}").unwrap();
    let put = Put::new(document).with_fence(claim.fence);
    store.put(&key("begun"), put).unwrap();
    let given_back = store.claimed(&key("given-back")).unwrap().unwrap();
    store.release(&key("given-back"), given_back.fence).unwrap();

    let project = Project::new();
    project.write("host.json", r#"{"activeWork": {"currentStory": "US-1", "checkpoint": null}, "adhocQueue": [{"id": "a1", "checkpoint": null}]}"#);
    let options = FileOptions::default().with_clock(clock(NOW));
    let host = BuilderStateStore::with_options(project.path("host.json"), options);
    host.claim(&key("active"), &hour).unwrap();

    let sources = [
        Source::store("tasks", &store),
        Source::folder(project.path("")),
    ];
    let fleet = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
    let claimed = fleet
        .rows()
        .iter()
        .filter(|row| row.state == RowState::Claimed);
    let claimed: Vec<_> = claimed
        .map(|row| {
            (
                row.place.key.as_deref().or(row.place.slot.as_deref()),
                row.task.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        claimed,
        [
            (Some("claimed"), Some("claimed")),
            (Some("gone"), Some("gone")),
            (Some("active"), Some("US-1")),
        ]
    );
    // An expired claim is a finding.
    let later = time("2026-03-02T10:05:00Z");
    let fleet = Fleet::scan(&sources, &FleetOptions::new(), later);
    let never = fleet
        .findings()
        .iter()
        .filter(|it| matches!(it, Finding::NeverBegun { .. }));
    assert_eq!(never.count(), 3, "{:?}", fleet.findings());
}

#[cfg(unix)]
#[test]
fn a_folder_of_the_store_that_is_a_link_to_nowhere_is_told() {
    let project = Project::new();
    project.write("US-1.json", "{}");
    let own = project.path(".agent-checkpoint");
    std::os::unix::fs::symlink("gone", &own).unwrap();
    let sources = [Source::folder(project.path(""))];
    let fleet = Fleet::scan(&sources, &FleetOptions::new(), time(NOW));
    let skipped = fleet.skipped().iter();
    let told = skipped.filter(|it| matches!(it.why, SkipReason::Unreadable(_)));
    let told: Vec<&str> = told.map(|it| it.what.as_str()).collect();
    assert_eq!(told, [own.display().to_string()]);
}
