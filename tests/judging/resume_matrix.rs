//! Every status of every format, with fresh, indeterminate and stale files: each gives the decision in the table of
//! `docs/resume.md`.

use std::fs;
use std::path::Path;

use crate::common::{clock, key, time};
use agent_checkpoint::formats::agent_session::{AgentCheckpoint, Worked};
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{
    Counters, PipelineState, StoryCheckpoint, StoryState,
};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::resume::{Resume, ResumeOptions};
use agent_checkpoint::store::{CheckpointStore, MemoryStore, Put};
use agent_checkpoint::{Checkpoint, CheckpointStoreExt};
use serde_json::{Value, json};

const STAMP: &str = "2026-03-02T08:00:00Z";
const NOW: &str = "2026-03-02T08:10:00Z";
const FILE: &str = "src/a.rs";

/// When the file was last written, so that it is fresh, indeterminate or stale.
const WRITTEN: [&str; 3] = [
    "2026-03-02T07:00:00Z",
    "2026-03-02T08:00:00Z",
    "2026-03-02T08:05:00Z",
];

fn resume<C: Checkpoint>(root: &Path, checkpoint: &Value, options: ResumeOptions) -> Resume {
    let store = MemoryStore::new();
    let document = Document::from_text(checkpoint.to_string()).unwrap();
    store
        .put(&key(id(C::FORMAT)), Put::new(document.clone()))
        .unwrap();
    let mut options = options;
    options.root = root.to_path_buf();
    store
        .checkpoints::<C>()
        .with_clock(clock(NOW))
        .resume(&key(id(C::FORMAT)), &options)
        .unwrap()
}

/// The key that fits the checkpoints here.
fn id(format: &str) -> &'static str {
    match format {
        "agent-session" => "Secondary-A",
        "sitebuilder" => "media-T210",
        "story-pipeline" => "SHOP-12",
        "story-pipeline-state" => "state",
        "build-pipeline" => "PRD-041",
        _ => "t",
    }
}

/// The rows of one format: the name of the status, and a checkpoint with it.
struct Rows<'r> {
    table: &'r mut String,
    root: &'r Path,
}

impl Rows<'_> {
    fn add<C: Checkpoint>(&mut self, status: &str, checkpoint: &Value) {
        self.add_with::<C>(status, checkpoint, ResumeOptions::default());
    }

    fn add_with<C: Checkpoint>(
        &mut self,
        status: &str,
        checkpoint: &Value,
        options: ResumeOptions,
    ) {
        let decisions = WRITTEN.map(|written| {
            let path = self.root.join(FILE);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(time(written).into()).unwrap();
            let resume = resume::<C>(self.root, checkpoint, options.clone());
            resume.plan.decision.as_str()
        });
        let row = decisions
            .map(|decision| format!("`{decision}`"))
            .join(" | ");
        self.table
            .push_str(&format!("| `{}` | {status} | {row} |\n", C::FORMAT));
    }
}

fn with(mut base: Value, changes: Value) -> Value {
    let base_object = base.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        base_object.insert(name.clone(), value.clone());
    }
    base
}

fn task() -> Value {
    json!({
        "schemaVersion": 1, "phase": "implementation",
        "completedSteps": [{"step": "a", "filesCreated": [FILE], "timestamp": STAMP}],
        "pendingSteps": ["b"], "currentStep": null, "decisions": [], "blockers": [],
        "metadata": {"createdBy": "dev", "lastUpdatedAt": STAMP, "reason": "periodic"}
    })
}

fn tasks(rows: &mut Rows<'_>) {
    let reason = |reason: &str| json!({"metadata": {"createdBy": "dev", "lastUpdatedAt": STAMP, "reason": reason}});
    rows.add::<TaskCheckpoint>("in progress", &task());
    for phase in ["planning", "verification", "documentation"] {
        let status = format!("in progress, phase {phase}");
        rows.add::<TaskCheckpoint>(&status, &with(task(), json!({"phase": phase})));
    }
    rows.add::<TaskCheckpoint>(
        "an unknown phase",
        &with(task(), json!({"phase": "dreaming"})),
    );
    let planned = with(task(), json!({"completedSteps": []}));
    rows.add::<TaskCheckpoint>("not started (names no file)", &planned);
    rows.add::<TaskCheckpoint>(
        "blocked",
        &with(task(), json!({"blockers": ["CI is down"]})),
    );
    for (status, why) in [
        ("failed", "failure"),
        ("stopped by a full context", "context_limit"),
        ("stopped by a rate limit", "rate_limit"),
        ("reassigned", "reassignment"),
        ("saved by hand", "manual"),
    ] {
        rows.add::<TaskCheckpoint>(status, &with(task(), reason(why)));
    }
    rows.add::<TaskCheckpoint>("an unknown reason", &with(task(), reason("whim")));
    let done = with(task(), json!({"pendingSteps": []}));
    rows.add::<TaskCheckpoint>("complete", &done);
    let unverified = json!({"verification": {"contractRef": "c", "results": []}});
    rows.add::<TaskCheckpoint>("all steps done, not verified", &with(done, unverified));
    rows.add::<TaskCheckpoint>("a newer schema", &with(task(), json!({"schemaVersion": 2})));
    let unreadable = with(task(), json!({"pendingSteps": [{"step": "b"}]}));
    rows.add::<TaskCheckpoint>("what is left cannot be read", &unreadable);
}

fn agents(rows: &mut Rows<'_>) {
    let agent = json!({
        "agent_id": "Secondary-A", "status": "IN_PROGRESS", "last_checkpoint": STAMP, "can_resume": true,
        "files_modified": [FILE], "current_step": "b", "blockers": []
    });
    for status in [
        "IN_PROGRESS",
        "WAITING",
        "WAITING_FOR_SYNC",
        "PAUSED",
        "COMPLETE",
        "DREAMING",
    ] {
        let name = format!("`{status}`");
        rows.add::<AgentCheckpoint>(&name, &with(agent.clone(), json!({"status": status})));
    }
    let blocked = with(
        agent.clone(),
        json!({"status": "BLOCKED", "blockers": ["CI is down"]}),
    );
    rows.add::<AgentCheckpoint>("`BLOCKED`", &blocked);
    let silent = with(agent.clone(), json!({"status": "BLOCKED"}));
    rows.add::<AgentCheckpoint>("`BLOCKED`, no blocker", &silent);
    rows.add::<AgentCheckpoint>("no status", &with(agent.clone(), json!({"status": null})));
    let refused = with(agent.clone(), json!({"can_resume": false}));
    rows.add::<AgentCheckpoint>("`IN_PROGRESS`, `can_resume` false", &refused);
    let little = ResumeOptions::default().with_input(Worked(chrono::TimeDelta::minutes(20)));
    rows.add_with::<AgentCheckpoint>("`IN_PROGRESS`, 20 minutes of work", &agent, little);
}

fn sites(rows: &mut Rows<'_>) {
    let site = json!({
        "checkpoint_id": "media-T210-20260302-070000", "agent": "media", "task_id": "T210",
        "status": "in_progress", "updated_at": STAMP, "started_at": STAMP, "resumable": true,
        "files_created": [FILE], "subtasks": {"total": 2, "completed": 1, "failed": 0, "items": [
            {"id": "one", "status": "complete"}, {"id": "two", "status": "pending"}
        ]}, "progress_percent": 50
    });
    rows.add::<SitebuilderCheckpoint>("`in_progress`", &site);
    let error = json!({"type": "x", "message": "no key", "timestamp": STAMP, "blocking": true});
    let blocked = with(
        site.clone(),
        json!({"status": "blocked", "errors": [error]}),
    );
    rows.add::<SitebuilderCheckpoint>("`blocked`", &blocked);
    let silent = with(site.clone(), json!({"status": "blocked", "errors": []}));
    rows.add::<SitebuilderCheckpoint>("`blocked`, no error", &silent);
    let complete = json!({
        "status": "complete", "completed_at": STAMP, "resumable": false, "progress_percent": 100,
        "subtasks": {"total": 1, "completed": 1, "failed": 0, "items": [{"id": "one", "status": "complete"}]},
        "acceptance_criteria_met": {"valid": true}
    });
    let complete = with(site.clone(), complete);
    rows.add::<SitebuilderCheckpoint>("`complete`", &complete);
    let open = with(
        complete,
        json!({"acceptance_criteria_met": {"valid": false}}),
    );
    rows.add::<SitebuilderCheckpoint>("`complete`, criteria open", &open);
    rows.add::<SitebuilderCheckpoint>(
        "an unknown status",
        &with(site.clone(), json!({"status": "done"})),
    );
    rows.add::<SitebuilderCheckpoint>("no status", &with(site.clone(), json!({"status": null})));
    let refused = with(site, json!({"resumable": false}));
    rows.add::<SitebuilderCheckpoint>("`in_progress`, `resumable` false", &refused);
}

fn stories(rows: &mut Rows<'_>) {
    let story = |stage: u8, more: Value| {
        let base = json!({
            "storyId": "SHOP-12", "stage": stage, "agentId": "abc", "lastAction": "Did it", "timestamp": STAMP,
            "tasksCompleted": [], "tasksRemaining": []
        });
        with(base, more)
    };
    let left = json!({"tasksCompleted": ["SHOP-13"], "tasksRemaining": ["SHOP-14"]});
    let done = json!({"tasksCompleted": ["SHOP-13", "SHOP-14"]});
    let judged = |verdict: &str, score: u8| {
        let mut more = done.clone();
        more["verdict"] = json!(verdict);
        more["qualityScore"] = json!(score);
        more["issues"] = json!("red");
        more
    };
    for (status, checkpoint) in [
        (
            "stage 0, planned",
            story(0, json!({"planScore": 4, "tasksRemaining": ["SHOP-13"]})),
        ),
        (
            "stage 1, GO",
            story(1, json!({"readiness": 8, "verdict": "GO"})),
        ),
        (
            "stage 1, NO-GO",
            story(
                1,
                json!({"readiness": 3, "verdict": "NO-GO", "reason": "vague"}),
            ),
        ),
        ("stage 2, tasks left", story(2, left)),
        ("stage 2, none left", story(2, done.clone())),
        ("stage 3, PASS", story(3, judged("PASS", 92))),
        ("stage 3, CONCERNS", story(3, judged("CONCERNS", 75))),
        ("stage 3, WAIVED", story(3, judged("WAIVED", 50))),
        ("stage 3, FAIL", story(3, judged("FAIL", 40))),
        ("stage 3, an unknown verdict", story(3, judged("MAYBE", 80))),
        ("an unknown stage", story(7, json!({}))),
    ] {
        rows.add::<StoryCheckpoint>(status, &checkpoint);
    }
    let running = story(
        2,
        json!({"tasksCompleted": ["SHOP-13"], "tasksRemaining": ["SHOP-14"]}),
    );
    for state in ["STAGE_2", "STAGE_1", "QUEUED", "PAUSED", "DONE"] {
        let options = ResumeOptions::default().with_input(StoryState::from(state));
        let status = format!("stage 2, `{state}` in the pipeline");
        rows.add_with::<StoryCheckpoint>(&status, &running, options);
    }
    let mut counters = Counters::default();
    counters.crashes = 1;
    let options = ResumeOptions::default().with_input(counters);
    rows.add_with::<StoryCheckpoint>("stage 2, crashed once before", &running, options);

    let state =
        |states: Value| json!({"complete": false, "last_check": STAMP, "story_state": states});
    rows.add::<PipelineState>(
        "running",
        &state(json!({"A-1": "STAGE_2", "A-2": "QUEUED"})),
    );
    rows.add::<PipelineState>(
        "a story is `PAUSED`",
        &state(json!({"A-1": "PAUSED", "A-2": "STAGE_1"})),
    );
    rows.add::<PipelineState>(
        "a story in an unknown state",
        &state(json!({"A-1": "STAGE_9"})),
    );
    rows.add::<PipelineState>(
        "complete",
        &json!({"complete": true, "last_check": STAMP, "story_state": {"A-1": "DONE"}}),
    );
}

fn builds(rows: &mut Rows<'_>) {
    let build = |status: &str, more: Value| {
        let base = json!({
            "prd": "PRD-041", "prd_title": "Shop", "current_phase": 1, "status": status,
            "completed_workstreams": ["WS1"], "in_progress_workstreams": [], "pending_workstreams": ["WS2"],
            "artifacts": {"WS1": [FILE]}, "gates_passed": ["lint (WS1)"], "gates_pending": [], "timestamp": STAMP
        });
        with(base, more)
    };
    let running = json!({"in_progress_workstreams": ["WS2"], "pending_workstreams": []});
    let error = json!({"error": {"workstream": "WS2", "message": "red"}});
    let fresh = json!({
        "completed_workstreams": [], "pending_workstreams": ["WS1", "WS2"], "artifacts": {},
        "gates_passed": [], "current_phase": 0
    });
    for (name, status, more) in [
        ("`initialized` (names no file)", "initialized", fresh),
        ("`in_progress`", "in_progress", running),
        ("`paused`", "paused", json!({})),
        ("`failed`", "failed", error),
        ("`failed`, no error", "failed", json!({})),
        ("`complete`", "complete", json!({"pending_workstreams": []})),
        ("an unknown status", "approved", json!({})),
    ] {
        rows.add::<BuildCheckpoint>(name, &build(status, more));
    }
    rows.add::<BuildCheckpoint>("no status", &build("paused", json!({"status": null})));
}

#[test]
fn every_status_of_every_format_has_the_decision_of_the_table() {
    let project = tempfile::tempdir().unwrap();
    let mut table = String::from(
        "| format | status | fresh | indeterminate | stale |\n|---|---|---|---|---|\n",
    );
    let mut rows = Rows {
        table: &mut table,
        root: project.path(),
    };
    tasks(&mut rows);
    agents(&mut rows);
    sites(&mut rows);
    stories(&mut rows);
    builds(&mut rows);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/resume.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&table),
        "docs/resume.md has another table than this, which is what happens:\n{table}"
    );
}
