//! The story-pipeline protocol: checkpoints of stories and the state of their pipeline.

use std::path::Path;

use crate::common::{clock, key, time};
use agent_checkpoint::formats::story_pipeline::{
    AfterCrash, Counters, GitStats, InfraIssue, NextStep, Pipeline, PipelineState, ProjectBrief,
    StageResults, StageTimes, StoryBrief, StoryCheckpoint, StoryState, Verdict, pipeline_folder,
};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::formats::{Archive, FileRole, Formats, Inputs, Number, convert, violations};
use agent_checkpoint::json::Document;
use agent_checkpoint::resume::{ResumeDecision, ResumePlan};
use agent_checkpoint::store::{CheckpointStore, MemoryStore, Outcome, Put};
use agent_checkpoint::strategies::{json_object, json_value, restyled};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, ErrorKind, Operation, OperationContext, RuleContext, Status,
    Timestamp,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const STAGE_3: &str = include_str!("../fixtures/story-pipeline/checkpoint-stage-3.json");
const STATE: &str = include_str!("../fixtures/story-pipeline/state.json");
const NOW: &str = "2026-02-20T12:00:00Z";

fn now() -> chrono::DateTime<chrono::Utc> {
    time(NOW)
}

fn read<C: Checkpoint>(text: &str) -> C {
    let document = Document::from_text(text).unwrap();
    document.read::<C>().unwrap().value
}

fn found_with<C: Checkpoint>(text: &str, context: &RuleContext<'_>) -> Vec<(String, String)> {
    let document = Document::from_text(text).unwrap();
    let reading = document.read::<C>().unwrap();
    pairs(&violations(&document, &reading, context))
}

fn found<C: Checkpoint>(text: &str) -> Vec<(String, String)> {
    found_with::<C>(text, &RuleContext::none())
}

fn pairs(violations: &[agent_checkpoint::json::Violation]) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = violations
        .iter()
        .map(|v| (v.pointer.clone(), v.code.as_str().to_owned()))
        .collect();
    pairs.sort();
    pairs
}

fn broken_by<C: Checkpoint>(checkpoint: &C) -> Vec<(String, String)> {
    let document = Document::new(checkpoint).unwrap();
    found::<C>(document.text())
}

fn at_stage(stage: u8) -> Value {
    let mut value = json!({
        "storyId": "SHOP-12",
        "stage": stage,
        "agentId": "a-1",
        "tasksCompleted": [],
        "tasksRemaining": [],
        "lastAction": "Did it",
        "timestamp": "2026-02-20T10:00:00Z",
    });
    let more = match stage {
        0 => json!({"planScore": 4, "tasksRemaining": ["SHOP-13", "SHOP-14"]}),
        1 => json!({"readiness": 8, "verdict": "GO"}),
        2 => json!({"tasksCompleted": ["SHOP-13"], "tasksRemaining": ["SHOP-14", "SHOP-15"]}),
        _ => json!({"tasksCompleted": ["SHOP-13"], "verdict": "PASS", "qualityScore": 90}),
    };
    value
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    value
}

fn story(stage: u8) -> StoryCheckpoint {
    read(&at_stage(stage).to_string())
}

fn story_with(stage: u8, change: Value) -> StoryCheckpoint {
    let mut value = at_stage(stage);
    value
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    read(&value.to_string())
}

/// Stage 3 in the later revision.
fn later() -> Value {
    json!({
        "story_id": "SHOP-12",
        "stage": 3,
        "started_at": "2026-04-02T10:00:00Z",
        "completed_at": "2026-04-02T11:00:00Z",
        "tasks_completed": ["SHOP-13"],
        "tasks_remaining": [],
        "last_action": "Gate passed",
        "verdict": "PASS",
        "quality_score": 91,
    })
}

fn number(number: u32) -> Number {
    Number::from(number)
}

// ---- Cases and examples

#[test]
fn the_examples_break_no_rule_and_an_unchanged_save_writes_nothing() {
    fn check<C: Checkpoint>(text: &str) {
        assert_eq!(found::<C>(text), []);
        let store = MemoryStore::new();
        let document = Document::from_text(text).unwrap();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        let saved = store.checkpoints::<C>().update(&key("a"), |_| {}).unwrap();
        assert_eq!(saved.outcome, Outcome::Unchanged);
        assert_eq!(
            store.load(&key("a")).unwrap().unwrap().document.text(),
            text
        );
    }
    check::<StoryCheckpoint>(STAGE_3);
    check::<PipelineState>(STATE);
}

#[test]
fn the_example_of_the_state_is_read_whole() {
    let state: PipelineState = read(STATE);
    assert_eq!(state.complete, Some(false));
    assert_eq!(state.active_workers, Some(number(3)));
    assert_eq!(state.story_state["API-427"], StoryState::Stage2);
    assert_eq!(
        state.story_results["API-427"].stage2.as_deref(),
        Some("Done")
    );
    assert_eq!(state.depends_on["API-429"], ["API-427"]);
    assert_eq!(state.git_stats["API-427"].lines_added, Some(number(245)));
    let times = &state.stage_timestamps["API-427"];
    assert_eq!(
        times.duration(0, now()),
        Some(chrono::TimeDelta::minutes(12))
    );
    // Every member of the example is a field.
    let written = serde_json::to_value(&state).unwrap();
    let example: Value = serde_json::from_str(STATE).unwrap();
    for (name, value) in example.as_object().unwrap() {
        assert_eq!(&written[name], value, "{name}");
    }
}

#[test]
fn an_empty_object_is_every_struct() {
    fn check<T: serde::de::DeserializeOwned + Default + PartialEq + std::fmt::Debug>() {
        assert_eq!(serde_json::from_str::<T>("{}").unwrap(), T::default());
    }
    check::<StoryCheckpoint>();
    check::<PipelineState>();
    check::<StageResults>();
    check::<InfraIssue>();
    check::<StageTimes>();
    check::<GitStats>();
    check::<ProjectBrief>();
    check::<StoryBrief>();
}

#[test]
fn null_counts_as_absent() {
    let text = r#"{"storyId":null,"tasksCompleted":null,"stage":null,"verdict":null}"#;
    assert_eq!(read::<StoryCheckpoint>(text), StoryCheckpoint::default());
    let text = r#"{"story_state":null,"worker_map":{"SHOP-1":null},"infra_issues":null,
        "business_answers":{"Why?":null},"priority_queue_ids":null,"complete":null}"#;
    assert_eq!(read::<PipelineState>(text), PipelineState::default());
    assert_eq!(found::<PipelineState>(text), []);
}

// ---- The later revision

/// A file of the original revision must name its agent, one of the later must not.
#[test]
fn the_later_revision_is_told_by_its_names() {
    let is_later = |value: Value| {
        let missed = found::<StoryCheckpoint>(&value.to_string());
        !missed.contains(&("/agentId".to_owned(), "missing".to_owned()))
    };
    for name in ["story_id", "last_action"] {
        assert!(is_later(json!({ name: "x" })), "{name}");
    }
    for name in ["tasks_completed", "tasks_remaining"] {
        assert!(is_later(json!({ name: [] })), "{name}");
    }
    assert!(!is_later(json!({})));
    assert!(!is_later(json!({"story_id": "A-1", "storyId": "A-1"})));
    assert!(!is_later(json!({"quality_score": 1})));
}

#[test]
fn each_file_keeps_its_own_spelling() {
    let mut value = later();
    value["stage"] = json!(2);
    value["tasks_remaining"] = json!(["SHOP-14"]);
    for name in ["verdict", "quality_score"] {
        value.as_object_mut().unwrap().remove(name);
    }
    let store = MemoryStore::new();
    let text = format!("{value:#}\n");
    let document = Document::from_text(&text).unwrap();
    store
        .put(&key("SHOP-12"), Put::new(document.clone()))
        .unwrap();
    let stories = store
        .checkpoints::<StoryCheckpoint>()
        .with_clock(clock(NOW));
    let saved = stories
        .try_update(&key("SHOP-12"), |story| apply(story, &task_done("SHOP-14")))
        .unwrap();
    assert!(saved.violations.is_empty());
    let after = store.load(&key("SHOP-12")).unwrap().unwrap().document;
    let after: Value = serde_json::from_str(after.text()).unwrap();
    value["tasks_remaining"] = json!([]);
    value["tasks_completed"] = json!(["SHOP-13", "SHOP-14"]);
    value["last_action"] = json!("SHOP-14 done");
    value["completed_at"] = json!(NOW);
    assert_eq!(after, value);
}

// ---- Operations

/// A story with these tasks at the end of stage 0.
fn planned(tasks: &[&str]) -> StoryCheckpoint {
    let mut story = StoryCheckpoint::begin("SHOP-12", "a-1", tasks.to_vec(), now()).unwrap();
    apply(&mut story, &measured("planScore", "4")).unwrap();
    story
}

#[test]
fn a_story_begins_under_its_own_id_and_with_each_task_once() {
    for (story, tasks) in [("shop", ["A", "B"]), ("SHOP-12", ["A", "A"])] {
        assert!(StoryCheckpoint::begin(story, "a", tasks, now()).is_err());
    }
    let begun = StoryCheckpoint::begin("SHOP-12", "a", [""; 0], now()).unwrap();
    assert_eq!(begun.action(), Some("Story begun"));
    let planned = planned(&["SHOP-13"]);
    assert_eq!(broken_by(&planned), []);
}

#[test]
fn the_planned_tasks_come_back_with_stage_2() {
    let store = MemoryStore::new();
    let stories = store
        .checkpoints::<StoryCheckpoint>()
        .with_clock(clock(NOW));
    let name = key("SHOP-12");
    let tasks = ["SHOP-13", "SHOP-14"];
    stories.create(&name, &planned(&tasks)).unwrap();
    let report = |operation| stories.try_update(&name, |story| apply(story, &operation));
    let saved = report(stage_operation("1")).unwrap();
    assert_eq!(saved.violations, []);
    assert_eq!(saved.transient.len(), 2, "{:?}", saved.transient);
    assert_eq!(saved.truncation.dropped[0].value, json!(tasks));
    report(measured("readiness", "7")).unwrap();
    report(measured("verdict", "GO")).unwrap();
    report(note("asked")).unwrap();
    report(stage_operation("2")).unwrap();
    let story = stories.get(&name).unwrap().checkpoint;
    assert_eq!(story.remaining(), tasks);
    assert_eq!(story.verdict, None);
    let action = story.action().unwrap();
    assert!(action.ends_with("tasks: SHOP-13, SHOP-14"), "{action}");
    for (task, is_last) in [("SHOP-13", false), ("SHOP-14", true)] {
        report(task_done(task)).unwrap();
        assert_eq!(report(stage_operation("3")).is_ok(), is_last);
    }
}

#[test]
fn what_follows_is_told_with_its_data() {
    let no_go = story_with(1, json!({"verdict": "NO-GO", "reason": "Vague"}));
    let fail = story_with(3, json!({"verdict": "FAIL", "issues": "Slow"}));
    let mut counters = Counters::default();
    let reason = Some("Vague".to_owned());
    let retry = NextStep::Retry { attempt: 1, reason };
    assert_eq!(no_go.next_step(counters), retry);
    counters.validation_retries = 1;
    let because = "NO-GO after 1 retry: Vague".to_owned();
    assert_eq!(no_go.next_step(counters), NextStep::Pause { because });
    counters.quality_cycles = 1;
    let issues = Some("Slow".to_owned());
    let rework = NextStep::Rework { cycle: 2, issues };
    assert_eq!(fail.next_step(counters), rework);
    assert_eq!(story(1).next_step(counters), NextStep::Enter { stage: 2 });
    let because = "tasks remain: SHOP-14, SHOP-15".to_owned();
    assert_eq!(story(2).next_step(counters), NextStep::Wait { because });
    assert_eq!(story(3).next_step(counters), NextStep::Finish);
}

#[test]
fn the_later_revision_is_completed_only_when_its_stage_is() {
    let at = |stage: u8, change: Value| {
        let mut value = later();
        value["stage"] = stage.into();
        value.as_object_mut().unwrap().remove("completed_at");
        for (name, to) in change.as_object().unwrap() {
            value[name] = to.clone();
        }
        read::<StoryCheckpoint>(&value.to_string())
    };
    let mut story = at(
        2,
        json!({"tasks_completed": ["SHOP-13"], "tasks_remaining": ["SHOP-14"]}),
    );
    story.stamp(now());
    assert_eq!(story.completed_at, None);
    assert_eq!(story.updated_at().map(Timestamp::text), Some(NOW));
    apply(&mut story, &task_done("SHOP-14")).unwrap();
    story.stamp(now());
    assert_eq!(story.completed_at.as_ref().map(Timestamp::text), Some(NOW));
    apply(&mut story, &stage_operation("3")).unwrap();
    story.stamp(now());
    assert_eq!(story.completed_at, None, "the next stage is not");
    assert!(story.started_at.is_some());
}

/// A line of a batch cannot even express it.
#[test]
fn what_says_nothing_is_refused_also_from_rust() {
    let blank = || " ".to_owned();
    for (stage, operation) in [
        (1, failed(" ")),
        (3, failed(" ")),
        (2, Operation::Reassign { to: blank() }),
        (2, Operation::TaskAdd { id: blank() }),
    ] {
        let (before, mut story) = (story(stage), story(stage));
        let error = apply(&mut story, &operation).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
        assert_eq!(story, before);
    }
}

fn apply(story: &mut StoryCheckpoint, operation: &Operation) -> agent_checkpoint::Result<()> {
    story.apply(operation, &OperationContext::at(now()))
}

fn stage_operation(name: &str) -> Operation {
    Operation::Stage { name: name.into() }
}

fn note(text: &str) -> Operation {
    Operation::Note { text: text.into() }
}

fn failed(text: &str) -> Operation {
    Operation::Fail { text: text.into() }
}

fn task_start(id: &str) -> Operation {
    Operation::TaskStart { id: id.into() }
}

fn task_done(id: &str) -> Operation {
    Operation::TaskDone {
        id: id.into(),
        files: Vec::new(),
    }
}

fn measured(activity: &str, status: &str) -> Operation {
    Operation::Verify {
        activity: activity.into(),
        status: status.into(),
    }
}

// ---- Resuming

#[test]
fn the_resume_block_is_the_protocols() {
    let story = story_with(2, json!({"tasksCompleted": ["SHOP-13", "SHOP-16"]}));
    let plan = story.resume_plan(&RuleContext::none());
    assert_eq!(
        plan.new_worker.unwrap().block,
        "CHECKPOINT RESUME — DO NOT re-execute completed work.\n\
         Tasks already completed: SHOP-13, SHOP-16\n\
         Tasks remaining: SHOP-14, SHOP-15\n\
         Last action: Did it\n\
         Continue from remaining tasks only."
    );
}

#[test]
fn a_resume_tries_the_same_agent_and_then_a_new_worker() {
    let story = story(2);
    let plan = story.resume_plan(&RuleContext::none());
    assert_eq!(plan.decision, ResumeDecision::Continue);
    assert_eq!(plan.start_at.as_deref(), Some("SHOP-14"));
    assert_eq!(plan.resume_agent.as_deref(), Some("a-1"));
    let worker = plan.new_worker.unwrap();
    assert_eq!(worker.name, "story-SHOP-12-s2-retry");
    assert!(worker.block.contains("Tasks remaining: SHOP-14"));
    assert_eq!(worker.inputs["stage"], 2);
    // The later revision may name no story; then the key does.
    let unnamed = read::<StoryCheckpoint>(r#"{"stage":1,"last_action":"x"}"#);
    let shop = key("SHOP-7");
    let plan = unnamed.resume_plan(&RuleContext::none().with_key(&shop));
    assert_eq!(plan.resume_agent, None);
    assert_eq!(plan.new_worker.unwrap().name, "story-SHOP-7-s1-retry");
    assert_eq!(unnamed.resume_plan(&RuleContext::none()).new_worker, None);
}

#[test]
fn what_is_refused_has_its_question_and_what_is_done_is_not_resumed() {
    let fail = story_with(3, json!({"verdict": "FAIL", "issues": "Slow"}));
    let plan = fail.resume_plan(&RuleContext::none());
    assert_eq!(plan.decision, ResumeDecision::Ask);
    assert_eq!(plan.questions, ["Is this still in the way: Slow"]);
    let plan = story(3).resume_plan(&RuleContext::none());
    assert_eq!(plan.decision, ResumeDecision::Refuse);
    assert_eq!((plan.resume_agent, plan.new_worker), (None, None));
    let decided = |state| {
        let inputs = Inputs::of(StoryState::from(state));
        let context = RuleContext::none().with_inputs(&inputs);
        story(2).resume_plan(&context).decision
    };
    assert_eq!(decided("STAGE_2"), ResumeDecision::Continue);
    assert_eq!(decided("STAGE_3"), ResumeDecision::Verify);
    assert_eq!(decided("PAUSED"), ResumeDecision::Ask);
    assert_eq!(decided("DONE"), ResumeDecision::Refuse);
}

#[test]
fn what_was_tried_often_enough_is_resumed_only_when_somebody_says_so() {
    let mut state = PipelineState::default();
    let questions = |story: &StoryCheckpoint, state: &PipelineState| {
        let inputs = Inputs::of(state.counters("SHOP-12"));
        let inputs = match state.story_state.get("SHOP-12") {
            Some(at) => inputs.with(at.clone()),
            None => inputs,
        };
        story
            .resume_plan(&RuleContext::none().with_inputs(&inputs))
            .questions
    };
    let fail = story_with(3, json!({"verdict": "FAIL", "issues": "Slow"}));
    assert_eq!(questions(&fail, &state), ["Is this still in the way: Slow"]);
    assert_eq!(questions(&story(2), &state), [""; 0]);
    state.quality_cycles.insert("SHOP-12".into(), number(2));
    assert_eq!(
        questions(&fail, &state),
        [
            "Is this still in the way: Slow",
            "The story is paused: FAIL after 2 cycles: Slow. Should it continue?"
        ]
    );
    assert_eq!(questions(&story(2), &state), [""; 0]);
    state.crash_count.insert("SHOP-12".into(), number(1));
    let asked = questions(&story(2), &state);
    assert!(
        asked[0].starts_with("Its worker was restarted"),
        "{asked:?}"
    );
    // What the lead granted and counted is no question in the stage that its state names.
    let mut at = |story: &StoryCheckpoint, stage| {
        state.story_state.insert("SHOP-12".into(), stage);
        questions(story, &state)
    };
    assert_eq!(at(&story(2), StoryState::Stage2), [""; 0]);
    state.crash_count.clear();
    let mut at = |story: &StoryCheckpoint, stage| {
        state.story_state.insert("SHOP-12".into(), stage);
        questions(story, &state)
    };
    assert_eq!(
        at(&fail, StoryState::Stage2),
        ["Is this still in the way: Slow"]
    );
    assert!(at(&fail, StoryState::Stage3).len() > 1);
}

fn absolute(path: &str) -> std::path::PathBuf {
    std::path::absolute(path).unwrap()
}

#[test]
fn a_new_worker_gets_all_its_prompt_takes() {
    let mut state: PipelineState = read(STATE);
    state
        .business_answers
        .insert("Which currency?".into(), json!("EUR"));
    let story = story_with(2, json!({"storyId": "API-427"}));
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_path_buf();
    // Its worktree is gone: no agent begins there until its fate is reported.
    let plan_in = |state: &PipelineState| plan_in_project(&story, state, &root);
    let plan = plan_in(&state);
    assert_eq!(plan.decision, ResumeDecision::Ask);
    assert!(plan.questions[0].contains(".worktrees/story-API-427 does not exist"));
    std::fs::create_dir_all(root.join(".worktrees/story-API-427")).unwrap();
    let plan = plan_in(&state);
    assert_eq!(plan.decision, ResumeDecision::Continue);
    assert_eq!(plan.resume_agent.as_deref(), Some("a-1"));
    let worker = plan.new_worker.unwrap();
    assert_eq!(worker.name, "story-API-427-s2-retry");
    let inputs = worker.inputs;
    assert_eq!(inputs["stage"], 2);
    for (name, value) in [
        ("team_name", "pipeline-2026-02-13"),
        ("model", "opus"),
        ("mode", "bypassPermissions"),
        ("subagent_type", "general-purpose"),
    ] {
        assert_eq!(inputs[name], value);
    }
    assert_eq!(
        inputs["business_answers"],
        json!({"Which currency?": "EUR"})
    );
    assert_eq!(inputs["worktree"], ".worktrees/story-API-427");
    assert_eq!(inputs["project_root"], root.display().to_string());
    let team =
        |state: &PipelineState| plan_in(state).new_worker.unwrap().inputs["team_name"].clone();
    state.pipeline_start_time = None;
    assert_eq!(team(&state), "pipeline-2026-02-20", "of today");
    state.team_name = Some("pipeline-shop".into());
    assert_eq!(team(&state), "pipeline-shop");
    state.story_state.insert("API-427".into(), StoryState::Done);
    let plan = plan_in(&state);
    assert_eq!(
        (plan.decision, plan.new_worker),
        (ResumeDecision::Refuse, None)
    );
}

fn plan_in_project(story: &StoryCheckpoint, state: &PipelineState, root: &Path) -> ResumePlan {
    let pipeline = Inputs::of(Pipeline::new(state.clone()).in_project(root));
    story.resume_plan(&RuleContext::none().with_inputs(&pipeline).with_now(now()))
}

#[test]
fn the_root_is_absolute_and_no_worktree() {
    let root = absolute("shop");
    assert_eq!(pipeline_folder(&root).unwrap(), root.join(".pipeline"));
    for relative in ["shop", "", "."] {
        assert!(pipeline_folder(Path::new(relative)).is_err());
    }
    let state: PipelineState = read(STATE);
    let story = story_with(2, json!({"storyId": "API-427"}));
    let decided = |root: &Path| plan_in_project(&story, &state, root).decision;
    assert_ne!(decided(&root), ResumeDecision::Refuse);
    let worktree = root.join(".worktrees/story-API-427");
    for wrong in [worktree.clone(), worktree.join("src"), "shop".into()] {
        assert_eq!(
            decided(&wrong),
            ResumeDecision::Refuse,
            "{}",
            wrong.display()
        );
    }
}

// ---- The pipeline's state

#[test]
fn the_lead_moves_stories_and_counts() {
    let mut state: PipelineState = read(
        r#"{"priority_queue_ids":["SHOP-12","SHOP-20"],
        "depends_on":{"SHOP-20":["SHOP-12"]},"active_workers":0,"stories_remaining":2}"#,
    );
    assert_eq!(state.ready(), ["SHOP-12"]);
    assert!(state.begin_story("SHOP-20", 0, now()).is_err());
    let worker = state.begin_story("SHOP-12", 0, now()).unwrap();
    assert_eq!(worker, "story-SHOP-12-s0");
    let again = state.begin_story("SHOP-12", 0, now()).unwrap_err();
    assert!(
        again.to_string().contains("is STAGE_0; only a story"),
        "{again}"
    );
    let unknown = state.begin_story("SHOP-99", 0, now()).unwrap_err();
    assert!(
        unknown.to_string().contains("no story of this pipeline"),
        "{unknown}"
    );
    assert_eq!(state.active_workers, Some(number(1)));
    // A checkpoint of another stage, or another story, is not recorded.
    let before = state.clone();
    assert!(state.record("SHOP-12", &story(2), now()).is_err());
    assert!(state.record("SHOP-99", &story(0), now()).is_err());
    let low = story_with(0, json!({"tasksRemaining": []}));
    let next = state.record("SHOP-12", &low, now()).unwrap();
    assert!(matches!(next, NextStep::Wait { .. }), "{next}");
    assert_eq!(state, before);
    state.record("SHOP-12", &story(0), now()).unwrap();
    assert_eq!(state.story_state["SHOP-12"], StoryState::Stage1);
    let no_go = story_with(1, json!({"verdict": "NO-GO", "reason": "Vague"}));
    state.record("SHOP-12", &no_go, now()).unwrap();
    assert_eq!(state.validation_retries["SHOP-12"], number(1));
    assert_eq!(state.story_state["SHOP-12"], StoryState::Stage1);
    state.record("SHOP-12", &story(1), now()).unwrap();
    assert_eq!(state.readiness_scores["SHOP-12"], number(8));
    let done = story_with(2, json!({"tasksRemaining": []}));
    let fail = story_with(3, json!({"verdict": "FAIL", "issues": "Slow"}));
    for cycle in 1..=2 {
        state.record("SHOP-12", &done, now()).unwrap();
        assert_eq!(state.worker_map["SHOP-12"], "story-SHOP-12-s3");
        state.record("SHOP-12", &fail, now()).unwrap();
        assert_eq!(state.quality_cycles["SHOP-12"], number(cycle));
        assert_eq!(state.story_state["SHOP-12"], StoryState::Stage2);
    }
    let mut paused = state.clone();
    paused.record("SHOP-12", &done, now()).unwrap();
    paused.record("SHOP-12", &fail, now()).unwrap();
    assert_eq!(paused.story_state["SHOP-12"], StoryState::Paused);
    assert_eq!(broken_by(&paused), []);
    state.record("SHOP-12", &done, now()).unwrap();
    let complete =
        |state: &mut PipelineState| state.apply(&Operation::Complete, &OperationContext::at(now()));
    assert!(complete(&mut state).is_err());
    assert_eq!(
        state.record("SHOP-12", &story(3), now()).unwrap(),
        NextStep::Finish
    );
    assert_eq!(state.story_state["SHOP-12"], StoryState::Done);
    assert_eq!(state.stories_remaining, Some(number(1)));
    assert_eq!(state.active_workers, Some(number(0)));
    let results = &state.story_results["SHOP-12"];
    assert_eq!(results.stage1.as_deref(), Some("GO"));
    assert_eq!(results.stage3.as_deref(), Some("PASS"));
    assert_eq!(state.ready(), ["SHOP-20"]);
    assert_eq!(broken_by(&state), []);
    state.priority_queue_ids.clear();
    complete(&mut state).unwrap();
    assert_eq!(state.status(), Status::Complete);
    assert_eq!(
        state.resume_plan(&RuleContext::none()).decision,
        ResumeDecision::Refuse
    );
}

#[test]
fn a_crashed_worker_is_started_anew_once() {
    let mut state: PipelineState = read(STATE);
    let respawn = AfterCrash::Respawn {
        name: "story-API-427-s2-retry".into(),
        attempt: 1,
    };
    assert_eq!(state.crashed("API-427").unwrap(), respawn);
    assert_eq!(state.worker_map["API-427"], "story-API-427-s2-retry");
    assert_eq!(state.crashed("API-427").unwrap(), AfterCrash::Pause);
    assert_eq!(state.story_state["API-427"], StoryState::Paused);
    assert_eq!(state.crash_count["API-427"], number(1));
    assert!(state.crashed("API-427").is_err());
    assert_eq!(broken_by(&state), []);
}

#[test]
fn the_state_beats_and_completes() {
    let mut state: PipelineState = read(STATE);
    let at = OperationContext::at(now());
    state.apply(&Operation::Heartbeat, &at).unwrap();
    assert_eq!(state.updated_at().map(Timestamp::text), Some(NOW));
    assert!(state.apply(&Operation::Complete, &at).is_err());
    assert_eq!(state.complete, Some(false));
    state
        .apply(&Operation::Complete, &at.with_force(true))
        .unwrap();
    assert_eq!(state.complete, Some(true));
    assert!(state.apply(&Operation::Pause { until: None }, &at).is_err());
}

#[test]
fn a_heartbeat_of_the_lead_writes_all_that_follows_and_every_map() {
    let store = MemoryStore::new();
    let text = r#"{"own": 1, "story_state": {"SHOP-12": "STAGE_2", "SHOP-9": "DONE"}, "depends_on": null,
        "priority_queue_ids": ["SHOP-20"], "worker_map": {"SHOP-12": "w"}, "active_workers": 3,
        "stage_timestamps": {"SHOP-12": {"stage_2_start": "2026-02-19T12:00:00Z"}}}"#;
    let name = key("state");
    let document = Document::from_text(text).unwrap();
    store.put(&name, Put::new(document.clone())).unwrap();
    let states = store.checkpoints::<PipelineState>().with_clock(clock(NOW));
    let beat = |state: &mut PipelineState| {
        state.apply(&Operation::Heartbeat, &OperationContext::at(now()))
    };
    assert_eq!(states.try_update(&name, beat).unwrap().violations, []);
    let text = store.load(&name).unwrap().unwrap().document.into_text();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["complete"], false);
    assert_eq!(value["active_workers"], 3, "what is there stays");
    assert_eq!(value["stories_remaining"], 2);
    assert_eq!(value["last_check"], NOW);
    assert_eq!(value["pipeline_start_time"], "2026-02-19T12:00:00Z");
    assert_eq!(value["team_name"], "pipeline-2026-02-19");
    assert_eq!(value["own"], 1);
    for name in [
        "quality_cycles",
        "depends_on",
        "git_stats",
        "business_answers",
    ] {
        assert_eq!(value[name], json!({}), "{name}");
    }
    assert_eq!(value["infra_issues"], json!([]));
    // All except three texts and a description, whose meaning is unknown.
    assert_eq!(value.as_object().unwrap().len(), 25 + 1 - 3);
    // A new pipeline has the same members.
    let state = PipelineState::begin(["SHOP-12"], now()).unwrap();
    let value = serde_json::to_value(&state).unwrap();
    assert_eq!(value["stories_remaining"], 1);
    assert_eq!(value["pipeline_start_time"], NOW);
    assert!(PipelineState::begin(["x"], now()).is_err());
    let mut state = state;
    state.begin_story("SHOP-12", 2, now()).unwrap();
    let results = &state.story_results["SHOP-12"];
    assert_eq!(results.stage0.as_deref(), Some("skip"));
    assert_eq!(results.stage1.as_deref(), Some("skip"));
    assert_eq!(results.stage2, None);
}

#[test]
fn elapsed_time_is_worked_out() {
    let mut state: PipelineState = read(STATE);
    let at = time("2026-02-13T13:55:00Z");
    let elapsed = state.progress(&state.handoff(), at).elapsed;
    assert_eq!(elapsed, Some(chrono::TimeDelta::hours(1)));
    let times = state.stage_timestamps.get_mut("API-427").unwrap();
    assert_eq!(times.duration(2, at), None);
    times.stage_2_start = Some(Timestamp::parse("2026-02-13T13:35:00Z"));
    let took = times.duration(2, at);
    assert_eq!(took, Some(chrono::TimeDelta::minutes(20)));
    let percent = |story: &StoryCheckpoint| story.progress(&story.handoff(), at).percent;
    assert_eq!(
        percent(&story_with(2, json!({"tasksCompleted": []}))),
        Some(0)
    );
    assert_eq!(percent(&StoryCheckpoint::default()), None);
}

#[test]
fn the_states_handoff_tells_each_story() {
    let mut state: PipelineState = read(STATE);
    state.story_state.insert("API-1".into(), StoryState::Done);
    state.story_state.insert("API-2".into(), StoryState::Paused);
    let issue = json!({"phase": 3, "type": "git", "message": "no space left"});
    state
        .infra_issues
        .push(serde_json::from_value(issue).unwrap());
    let handoff = state.handoff();
    assert_eq!(handoff.status, Status::InProgress);
    assert_eq!(handoff.done[0].text, "API-1");
    assert_eq!(handoff.blockers, ["API-2 is PAUSED"]);
    assert_eq!(handoff.in_progress[0].text, "API-427");
    assert_eq!(
        handoff.in_progress[0].note.as_deref(),
        Some("STAGE_2, worker story-API-427-s2")
    );
    assert_eq!(handoff.pending, ["API-429", "API-430", "API-431"]);
    assert_eq!(
        handoff.instructions,
        ["Infrastructure issue in phase 3 (git): no space left"]
    );
    let plan = state.resume_plan(&RuleContext::none());
    assert_eq!(plan.decision, ResumeDecision::Ask);
    assert!(convert::<PipelineState>(&handoff, now()).is_err());
}

// ---- Files

#[test]
fn names_go_both_ways() {
    let layout = StoryCheckpoint::layout();
    let file = (layout.file_name)(&key("SHOP-12")).unwrap();
    assert_eq!(file, "checkpoint-SHOP-12.json");
    assert_eq!(
        (layout.role)(&file),
        FileRole::Current(Some(key("SHOP-12")))
    );
    let odd = (layout.file_name)(&key("a/b")).unwrap();
    assert_eq!(odd, "checkpoint-a%2Fb.json");
    assert_eq!((layout.role)(&odd), FileRole::Current(Some(key("a/b"))));
    let stem = (layout.archive_stem)("checkpoint-SHOP-12", Archive::Crashed, now());
    for name in [format!("{stem}.json"), format!("{stem}-2.json")] {
        assert_eq!((layout.role)(&name), FileRole::Archive, "{name}");
    }
    for name in [
        "state.json",
        "SHOP-12.json",
        "checkpoint-SHOP-12.txt",
        "checkpoint-.json",
    ] {
        assert_eq!((layout.role)(name), FileRole::Foreign, "{name}");
    }
    assert!((layout.file_name)(&key(&"/".repeat(75))).is_err());

    let layout = PipelineState::layout();
    assert_eq!((layout.file_name)(&key("state")).unwrap(), "state.json");
    assert!((layout.file_name)(&key("other")).is_err());
    assert_eq!(
        (layout.role)("state.json"),
        FileRole::Current(Some(key("state")))
    );
    let stem = (layout.archive_stem)("state", Archive::Complete, now());
    assert_eq!((layout.role)(&format!("{stem}.json")), FileRole::Archive);
    for name in [
        "checkpoint-SHOP-12.json",
        "states.json",
        "checkpoint-A-1%crashed-7.json",
    ] {
        assert_eq!((layout.role)(name), FileRole::Foreign, "{name}");
    }
}

#[test]
fn files_are_recognised_by_name_folder_and_content() {
    let formats = Formats::default();
    let detect = |path: &str, text: Option<&str>| {
        let document = text.map(|text| Document::from_text(text).unwrap());
        formats
            .detect(Path::new(path), document.as_ref())
            .map(|detected| detected.format.name())
    };
    // Corrupt files by their path alone.
    let story = "story-pipeline";
    assert_eq!(
        detect("p/.pipeline/checkpoint-SHOP-12.json", None).unwrap(),
        story
    );
    assert_eq!(
        detect("p/.pipeline/checkpoint-odd.json", None).unwrap(),
        story
    );
    assert_eq!(
        detect("elsewhere/checkpoint-SHOP-12.json", None).unwrap(),
        story
    );
    assert_eq!(
        detect("p/.pipeline/state.json", None).unwrap(),
        "story-pipeline-state"
    );
    for path in [
        "state.json",
        "checkpoint-odd.json",
        "p/.pipeline/other.json",
    ] {
        assert!(detect(path, None).is_err(), "{path}");
    }
    assert_eq!(detect("x.json", Some(STAGE_3)).unwrap(), story);
    assert_eq!(detect("x.json", Some(&later().to_string())).unwrap(), story);
    assert_eq!(
        detect("x.json", Some(STATE)).unwrap(),
        "story-pipeline-state"
    );
    assert!(detect("x.json", Some(r#"{"last_action":"x"}"#)).is_err());
    // A name is no evidence without a member of the format.
    for path in [
        "p/.pipeline/state.json",
        "p/.pipeline/checkpoint-SHOP-12.json",
    ] {
        assert!(
            detect(path, Some(r#"{"status": "implemented"}"#)).is_err(),
            "{path}"
        );
    }
}

// ---- The same hand-off

#[test]
fn the_handoff_tells_what_the_protocol_tells() {
    let handoff = story_with(3, json!({"verdict": "FAIL", "issues": "Slow"})).handoff();
    assert_eq!(handoff.task.as_deref(), Some("SHOP-12"));
    assert_eq!(handoff.phase.as_deref(), Some("STAGE_3"));
    assert_eq!(handoff.agent.as_deref(), Some("a-1"));
    assert_eq!(handoff.status, Status::Failed);
    assert_eq!(handoff.done[0].text, "SHOP-13");
    assert_eq!(handoff.blockers, ["Slow"]);
    assert_eq!(
        handoff.instructions,
        [
            "DO NOT re-execute completed work.",
            "Last action: Did it",
            "Continue from remaining tasks only."
        ]
    );
    let results = handoff.verification.unwrap().results;
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(
        results,
        [pair("qualityScore", "90"), pair("verdict", "FAIL")]
    );
    assert_eq!(StoryCheckpoint::default().status(), Status::NotStarted);
    let low = story_with(3, json!({"qualityScore": 60}));
    assert_eq!(low.status(), Status::InProgress);
    // Content that exists only in a sentence of the hand-off is listed.
    let rework = story_with(2, json!({"verdict": "FAIL", "issues": "Slow"})).handoff();
    let converted = convert::<StoryCheckpoint>(&rework, now()).unwrap();
    assert_eq!(
        converted.not_held,
        [
            "instruction: Last action: Did it",
            "instruction: The quality gate failed; fix this: Slow"
        ]
    );
    assert_eq!(converted.checkpoint.verdict, Some(Verdict::Fail));
}

proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn a_story_holds_what_a_story_had(story in any::<StoryCheckpoint>()) {
        let converted = convert::<StoryCheckpoint>(&story.handoff(), now()).unwrap();
        // Only content for which a hand-off has no member.
        let told = ["instruction: Last action: ", "instruction: The quality gate failed; fix this: "];
        for line in &converted.not_held {
            prop_assert!(told.iter().any(|told| line.starts_with(told)), "{}", line);
        }
        if story.snake_last_action.is_none() {
            prop_assert_eq!(broken_by(&converted.checkpoint), vec![]);
        }
    }

    #[test]
    fn another_formats_steps_become_tasks_and_the_rest_is_listed(task in any::<TaskCheckpoint>()) {
        let handoff = task.handoff();
        let converted = convert::<StoryCheckpoint>(&handoff, now()).unwrap();
        let story = converted.checkpoint;
        prop_assert_eq!(story.stage_number(), Some(2));
        prop_assert_eq!(story.completed().len(), handoff.done.len());
        // The task has no story's id: that is reported, and nothing else.
        prop_assert_eq!(broken_by(&story), vec![("/storyId".to_owned(), "missing".to_owned())]);
        for decision in &handoff.decisions {
            let line = format!("decision: {}", decision.text);
            prop_assert!(converted.not_held.contains(&line));
        }
        let back = convert::<TaskCheckpoint>(&story.handoff(), now()).unwrap();
        prop_assert_eq!(back.checkpoint.completed_steps.len(), handoff.done.len());
    }

    // ---- Any checkpoint and any object

    #[test]
    fn a_valid_checkpoint_comes_back_from_its_text_equal_and_valid(
        story in any::<StoryCheckpoint>(),
        state in any::<PipelineState>(),
    ) {
        let document = Document::new(&story).unwrap();
        prop_assert_eq!(found::<StoryCheckpoint>(document.text()), vec![]);
        prop_assert_eq!(document.read::<StoryCheckpoint>().unwrap().value, story);
        let document = Document::new(&state).unwrap();
        prop_assert_eq!(found::<PipelineState>(document.text()), vec![]);
        prop_assert_eq!(document.read::<PipelineState>().unwrap().value, state);
    }

    #[test]
    fn any_object_loads_or_is_reported_and_an_unchanged_save_writes_nothing(
        text in any_object().prop_flat_map(restyled),
    ) {
        let store = MemoryStore::new();
        let document = Document::from_text(&text).unwrap();
        store.put(&key("a"), Put::new(document.clone())).unwrap();
        let stories = store.checkpoints::<StoryCheckpoint>();
        let loaded = stories.get(&key("a")).unwrap();
        loaded.checkpoint.handoff();
        let _ = loaded.checkpoint.resume_plan(&RuleContext::none());
        prop_assert_eq!(stories.update(&key("a"), |_| {}).unwrap().outcome, Outcome::Unchanged);
        let states = store.checkpoints::<PipelineState>();
        let loaded = states.get(&key("a")).unwrap();
        loaded.checkpoint.handoff();
        let _ = loaded.checkpoint.resume_plan(&RuleContext::none());
        prop_assert_eq!(states.update(&key("a"), |_| {}).unwrap().outcome, Outcome::Unchanged);
        let after = store.load(&key("a")).unwrap().unwrap().document;
        prop_assert_eq!(after.text(), &text);
    }

    /// An operation keeps the rules or changes nothing. One that enters a stage leaves that stage's own
    /// fields to be reported at its end.
    #[test]
    fn an_operation_keeps_the_rules_or_changes_nothing(
        story in any::<StoryCheckpoint>(),
        operations in proptest::collection::vec(operation(), 1..6),
    ) {
        let mut story = story;
        for operation in operations {
            let before = story.clone();
            match apply(&mut story, &operation) {
                Err(_) => prop_assert_eq!(&story, &before),
                Ok(()) => {
                    story.stamp(now());
                    let mut found = broken_by(&story);
                    found.retain(|(pointer, code)| {
                        let own = ["/readiness", "/verdict", "/qualityScore", "/quality_score"];
                        code != "missing" || !own.contains(&pointer.as_str())
                    });
                    prop_assert_eq!(found, vec![], "{:?}", operation);
                    prop_assert_eq!(story.updated_at().map(|at| at.time().unwrap().timestamp()),
                        Some(now().timestamp()));
                }
            }
        }
    }

    #[test]
    fn the_lead_keeps_the_rules_or_changes_nothing(
        state in any::<PipelineState>(),
        story in any::<StoryCheckpoint>(),
        crashes in any::<bool>(),
    ) {
        let mut changed = state.clone();
        let id = story.story().unwrap_or("SHOP-1").to_owned();
        if let Some(stage) = story.stage_number() {
            let at = StoryState::from(format!("STAGE_{stage}").as_str());
            changed.story_state.insert(id.clone(), at);
        }
        let before = changed.clone();
        let outcome = if crashes {
            changed.crashed(&id).map(|_| ())
        } else {
            changed.record(&id, &story, now()).map(|_| ())
        };
        if outcome.is_err() {
            prop_assert_eq!(&changed, &before);
        }
        prop_assert_eq!(broken_by(&changed), vec![]);
    }
}

/// Any object, and valid ones with fitting and unfitting members.
fn any_object() -> impl Strategy<Value = Value> {
    let spoilt = prop_oneof![
        any::<StoryCheckpoint>().prop_map(|story| serde_json::to_value(story).unwrap()),
        any::<PipelineState>().prop_map(|state| serde_json::to_value(state).unwrap()),
    ];
    let spoilt =
        (spoilt, any::<prop::sample::Index>(), json_value()).prop_map(|(mut value, index, new)| {
            let object = value.as_object_mut().unwrap();
            let names: Vec<String> = object.keys().cloned().collect();
            let name = index.get(&names).clone();
            object.insert(name, new);
            value
        });
    prop_oneof![json_object(), spoilt]
}

fn operation() -> impl Strategy<Value = Operation> {
    let id = "[A-Z]{2,4}-[0-9]{1,4}";
    prop_oneof![
        4 => proptest::sample::select(vec!["0", "1", "2", "3", "DONE", "4"]).prop_map(stage_operation),
        2 => id.prop_map(|id| task_start(&id)),
        1 => id.prop_map(|id| task_done(&id)),
        1 => "[a-z]{1,9}".prop_map(|text| note(&text)),
        1 => "[a-z]{1,9}".prop_map(|text| failed(&text)),
        1 => Just(Operation::Complete),
        1 => (
            proptest::sample::select(vec!["planScore", "readiness", "qualityScore", "verdict"]),
            proptest::sample::select(vec!["GO", "NO-GO", "PASS", "FAIL", "WAIVED", "3", "80"]),
        )
            .prop_map(|(activity, status)| measured(activity, status)),
    ]
}

// ---- Schemas

#[cfg(feature = "schema")]
mod schemas {
    use agent_checkpoint::schema::schema;

    use super::*;

    fn validator(schema: &Value) -> jsonschema::Validator {
        jsonschema::options()
            .should_validate_formats(true)
            .build(schema)
            .unwrap()
    }

    #[test]
    fn the_examples_and_both_revisions_fit_the_schemas() {
        let story = validator(&schema::<StoryCheckpoint>());
        assert!(story.is_valid(&serde_json::from_str(STAGE_3).unwrap()));
        assert!(story.is_valid(&later()));
        for stage in 0..=3 {
            assert!(story.is_valid(&at_stage(stage)));
        }
        for (name, value) in [
            ("storyId", json!("shop")),
            ("stage", json!(4)),
            ("stage", json!(1.5)),
            ("verdict", json!("MAYBE")),
            ("timestamp", json!("soon")),
            ("qualityScore", json!(101)),
            ("agentId", Value::Null),
        ] {
            let mut broken = at_stage(3);
            broken[name] = value.clone();
            if value.is_null() {
                broken.as_object_mut().unwrap().remove(name);
            }
            assert!(!story.is_valid(&broken), "{name}");
        }
        let state = validator(&schema::<PipelineState>());
        assert!(state.is_valid(&serde_json::from_str(STATE).unwrap()));
        assert!(!state.is_valid(&json!({})));
        assert!(!state.is_valid(&json!({"story_state": {"SHOP-1": "STAGE_9"}})));
        assert!(!state.is_valid(&json!({"quality_cycles": {"SHOP-1": 3}})));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::common::cases(64)))]

        #[test]
        fn whatever_is_written_fits_the_schemas(
            story in any::<StoryCheckpoint>(),
            state in any::<PipelineState>(),
        ) {
            let written = serde_json::to_value(&story).unwrap();
            prop_assert!(validator(&schema::<StoryCheckpoint>()).is_valid(&written));
            let written = serde_json::to_value(&state).unwrap();
            prop_assert!(validator(&schema::<PipelineState>()).is_valid(&written));
        }
    }
}
