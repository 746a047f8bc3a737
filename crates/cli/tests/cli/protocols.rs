//! The verbs on the protocols' formats, in the places of their files.

use serde_json::{Value, json};

use crate::project::{Project, Run, TASK};

const NOW: &str = "2026-03-05T09:00:00Z";

fn case(name: &str) -> String {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases");
    std::fs::read_to_string(format!("{cases}/{name}")).unwrap()
}

fn parsed(project: &Project, name: &str) -> Value {
    serde_json::from_str(&project.read(name)).unwrap()
}

/// A checkpoint of a protocol in its place.
struct Place {
    project: Project,
    file: &'static str,
}

impl Place {
    fn new(file: &'static str, case_name: &str) -> Place {
        Place {
            project: Project::with(file, case(case_name)),
            file,
        }
    }

    fn agent() -> Place {
        let file = "agent_checkpoints/secondary_c.json";
        Place::new(file, "agent-session/valid.json")
    }

    fn site() -> Place {
        Place::new(
            "progress/checkpoints/media-T210.json",
            "sitebuilder/valid.json",
        )
    }

    fn story() -> Place {
        let file = ".pipeline/checkpoint-SHOP-12.json";
        Place::new(file, "story-pipeline/valid-stage-2.json")
    }

    fn build() -> Place {
        let file = ".claude/skills/build-pipeline/checkpoints/PRD-041.json";
        Place::new(file, "build-pipeline/valid-in-progress.json")
    }

    #[track_caller]
    fn does(&self, arguments: &[&str]) -> String {
        self.gives(0, arguments).out
    }

    #[track_caller]
    fn gives(&self, code: i32, arguments: &[&str]) -> Run {
        let place = ["--store", self.file, "--now", NOW];
        self.project.expect(code, &[arguments, &place].concat())
    }

    /// A report that must end with this code and leave the file unchanged.
    #[track_caller]
    fn leaves(&self, code: i32, arguments: &[&str]) -> String {
        let before = self.project.read(self.file);
        let run = self.gives(code, arguments);
        assert_eq!(self.project.read(self.file), before, "{arguments:?}");
        assert_eq!(run.out, "");
        run.error().to_owned()
    }

    fn value(&self) -> Value {
        parsed(&self.project, self.file)
    }
}

#[test]
fn every_checkpoint_is_shown_resumed_and_compared() {
    for (place, format, task) in [
        (Place::agent(), "agent-session", "feature_04_export"),
        (Place::site(), "sitebuilder", "T210"),
        (Place::story(), "story-pipeline", "SHOP-12"),
        (Place::build(), "build-pipeline", "PRD-041"),
    ] {
        let run = place.gives(0, &["show", "--json"]);
        assert_eq!(run.json()["format"], format);
        assert_eq!(run.json()["handoff"]["task"], task);
        assert_eq!(run.json()["violations"], json!([]));
        let run = place.project.ckpt(&["stale", place.file]);
        assert!(run.code <= 1, "{run:?}");
        let run = place.project.ckpt(&["resume", place.file, "--json"]);
        assert!(run.code <= 1, "{run:?}");
        assert_eq!(run.json()["task"], task);
        assert!(place.gives(0, &["revision"]).out.starts_with("sha256:"));
    }
}

#[test]
fn a_key_is_found_in_a_folder_by_the_protocols_names() {
    for (place, folder, key) in [
        (Place::agent(), "agent_checkpoints", "Secondary-C"),
        (Place::site(), "progress/checkpoints", "media-T210"),
        (Place::story(), ".pipeline", "SHOP-12"),
        (
            Place::build(),
            ".claude/skills/build-pipeline/checkpoints",
            "PRD-041",
        ),
    ] {
        let address = ["--store", folder, "--key", key];
        let run = place
            .project
            .expect(0, &[&["show", "--json"], &address[..]].concat());
        assert_eq!(run.json()["file"], place.file);
        assert_eq!(run.json()["key"], key);
        let format = run.json()["format"].as_str().unwrap().to_owned();
        let named = [&["show", "--json", "--format", &format], &address[..]].concat();
        assert_eq!(place.project.expect(0, &named).json()["file"], place.file);
    }
    // If a key may belong to two formats, the format must be named.
    let place = Place::agent();
    place
        .project
        .write("agent_checkpoints/Secondary-C.json", TASK);
    let address = ["--store", "agent_checkpoints", "--key", "Secondary-C"];
    let run = place.project.expect(2, &[&["show"], &address[..]].concat());
    assert!(run.error().contains("choose one with --format"), "{run:?}");
    let format = ["--format", "agent-session"];
    place
        .project
        .expect(0, &[&["show"], &address[..], &format].concat());
}

#[test]
fn an_id_under_another_name_is_no_finding_of_a_file_but_of_a_key() {
    let project = Project::with("copies/other.json", case("agent-session/valid.json"));
    project.expect(0, &["show", "copies/other.json"]);
    project.write("copies/primary.json", case("agent-session/valid.json"));
    let run = project.expect(
        1,
        &[
            "show",
            "--json",
            "--store",
            "copies",
            "--key",
            "Agent-Primary",
            "--format",
            "agent-session",
        ],
    );
    assert_eq!(run.json()["violations"][0]["code"], "key-mismatch");
}

#[test]
fn an_agents_day() {
    let place = Place::agent();
    assert_eq!(
        place.does(&["step", "start", "Section 4"]),
        "started: Section 4\n"
    );
    assert_eq!(
        place.does(&["step", "done"]),
        "done: Section 4; 1 pending, next: Section 3\n"
    );
    assert_eq!(place.does(&["phase", "Design"]), "phase: Design\n");
    assert_eq!(place.does(&["block", "no key"]), "blocked: no key\n");
    assert_eq!(place.value()["status"], "BLOCKED");
    assert_eq!(
        place.does(&["unblock"]),
        "unblocked; the task is in_progress\n"
    );
    assert!(
        place
            .does(&["sync", "SYNC-1"])
            .starts_with("at sync point: SYNC-1")
    );
    assert_eq!(
        place.does(&["restart", "--because", "wrong turn", "--session", "s2"]),
        "restarted: wrong turn\n\
         the checkpoint before was archived as agent_checkpoints/secondary_c_aborted_1772701200.json\n"
    );
    assert_eq!(
        place.value()["next_checkpoint_expected"],
        "2026-03-05T09:15:00Z"
    );
    let error = place.leaves(2, &["verify", "x", "passed"]);
    assert!(
        error.contains(
            "it has step start, step done, step add, step drop, step edit, step move, decide, note"
        ),
        "{error}"
    );
    // The protocol keeps a copy of each replaced state.
    let backups = std::fs::read_dir(place.project.path("agent_checkpoints/backups")).unwrap();
    assert!(backups.count() >= 6);
    let run = place.gives(0, &["set", "/phase=\"Testing\""]);
    assert!(run.out.contains("changed"), "{run:?}");
}

#[test]
fn a_resume_names_the_agent_and_the_worker_to_take_over() {
    let place = Place::story();
    let run = place.gives(0, &["resume"]);
    assert!(run.err.contains("note: resume the agent a-1"), "{run:?}");
    assert!(
        run.err
            .contains("note: else begin the worker story-SHOP-12-s2-retry"),
        "{run:?}"
    );
    let run = place.gives(0, &["resume", "--json"]);
    let plan = &run.json()["plan"];
    assert_eq!(plan["resume_agent"], "a-1");
    assert_eq!(plan["new_worker"]["name"], "story-SHOP-12-s2-retry");
}

#[test]
fn another_agent_takes_over_from_one_that_crashed() {
    let place = Place::agent();
    let old = place.project.read(place.file);
    let error = place.leaves(2, &["reassign", "--to", "Secondary-D"]);
    assert!(error.contains("--session"), "{error}");
    let to = [
        "reassign",
        "--to",
        "Secondary-D",
        "--session",
        "s-9",
        "--because",
        "Timed out",
    ];
    let run = place.gives(0, &to);
    assert!(
        run.out.starts_with(
            "Secondary-D takes over from Secondary-C; its checkpoint was archived as "
        ),
        "{run:?}"
    );
    assert!(
        run.err
            .contains("Resuming work from crashed agent Secondary-C"),
        "{run:?}"
    );
    let new = parsed(&place.project, "agent_checkpoints/secondary_d.json");
    assert_eq!(new["previous_agent"], "Secondary-C");
    assert_eq!(
        (&new["session_id"], &new["recovery_notes"]),
        (&json!("s-9"), &json!("Timed out"))
    );
    let files = std::fs::read_dir(place.project.path("agent_checkpoints")).unwrap();
    let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let archive = names.find(|name| name.starts_with("secondary_c_crashed_"));
    let archive = format!("agent_checkpoints/{}", archive.unwrap());
    assert_eq!(place.project.read(&archive), old);
    let place = Place::agent();
    place.gives(
        0,
        &[
            "reassign",
            "--to",
            "Secondary-D",
            "--session",
            "s-9",
            "--beside",
        ],
    );
    assert_eq!(place.project.read(place.file), old);
    let place = Place::story();
    place.leaves(2, &["reassign", "--to", "a-2", "--beside"]);
    place.gives(0, &["reassign", "--to", "a-2", "--agent", "lead"]);
    assert_eq!(place.value()["agentId"], "a-2");
}

#[test]
fn a_checkpoint_that_cannot_be_resumed_exits_4() {
    let place = Place::agent();
    place.gives(0, &["set", "/can_resume=false"]);
    let run = place.gives(4, &["resume"]);
    assert_eq!(run.out, "");
    assert!(
        run.err
            .contains("ckpt: agent_checkpoints/secondary_c.json: "),
        "{run:?}"
    );
}

#[test]
fn the_subtasks_of_a_site() {
    let place = Place::site();
    assert_eq!(
        place.does(&["subtask", "done", "img-3", "--file", "out/3.webp"]),
        "subtask img-3 done; 1 pending, next: img-4\n"
    );
    assert_eq!(place.value()["progress_percent"], 75);
    assert!(
        place
            .does(&["subtask", "start", "img-4"])
            .contains("in progress: img-4")
    );
    let updated = place.value()["updated_at"].clone();
    assert_eq!(place.does(&["heartbeat"]), "heartbeat\n");
    assert_eq!(place.value()["updated_at"], updated);
    assert_eq!(place.value()["heartbeat"]["last_beat"], NOW);
    place.does(&["block", "no disk"]);
    assert_eq!(place.value()["status"], "blocked");
    place.does(&["unblock"]);
    assert_eq!(place.value()["errors"], json!([]));
    place.does(&["subtask", "done", "img-4"]);
    place.does(&["verify", "all_resized", "true"]);
    assert_eq!(place.does(&["complete"]), "complete\n");
    let error = place.leaves(4, &["subtask", "start", "img-5"]);
    assert!(
        error.contains("there is no transition from complete"),
        "{error}"
    );
    place.leaves(4, &["fail", "dead"]);
    place.leaves(2, &["gate", "pass", "x"]);
    let run = place.project.expect(4, &["resume", place.file]);
    assert!(run.err.contains("start another task"), "{run:?}");
}

#[test]
fn the_stages_of_a_story() {
    let place = Place::story();
    let error = place.leaves(4, &["stage", "3"]);
    assert!(error.contains("SHOP-14"), "{error}");
    let error = place.leaves(4, &["stage", "1"]);
    assert!(
        error.contains("there is no transition from STAGE_2 to STAGE_1"),
        "{error}"
    );
    assert_eq!(
        place.does(&["task", "done", "SHOP-14"]),
        "task SHOP-14 done; 0 pending, nothing is left\n"
    );
    place.leaves(2, &["workstream", "done", "WS1"]);
    // Forced; the new violations are reported.
    let run = place.gives(1, &["stage", "1", "--force"]);
    assert!(run.out.starts_with("stage: 1"), "{run:?}");
    assert!(run.err.contains("new violation: /"), "{run:?}");
    assert_eq!(place.value()["stage"], 1);
}

#[test]
fn a_pipelines_state_limits_how_often_a_story_is_tried_again() {
    let place = Place::story();
    let state = ".pipeline/state.json";
    let write = |text: &str| place.project.write(state, text);
    place.does(&["task", "done", "SHOP-14"]);
    // A stage that has begun lacks its verdict: this is reported, but is no finding.
    let run = place.gives(0, &["stage", "3"]);
    assert!(
        run.err.contains("until the next report: /verdict"),
        "{run:?}"
    );
    place.does(&["verify", "qualityScore", "54"]);
    place.does(&["fail", "Slow"]);
    write(r#"{"story_state": {"SHOP-12": "STAGE_3"}, "quality_cycles": {"SHOP-12": 2}}"#);
    let error = place.leaves(4, &["stage", "2", "--state", state]);
    assert!(error.contains("FAIL after 2 cycles: Slow"), "{error}");
    let run = place.gives(1, &["resume", "--state", state]);
    assert!(run.err.contains("question: The story is paused"), "{run:?}");
    let batch = ["batch", "--store", place.file, "--state", state];
    let line = "{\"op\": \"stage\", \"name\": 2}\n";
    let run = place.project.ckpt_given(&batch, line);
    assert_eq!(run.code, 4, "{run:?}");
    // A count that cannot be read is not zero, and another file is no state.
    write(r#"{"quality_cycles": {"SHOP-12": "two"}}"#);
    let error = place.leaves(2, &["stage", "2", "--state", state]);
    assert!(error.contains("/quality_cycles/SHOP-12"), "{error}");
    let error = place.leaves(2, &["stage", "2", "--state", place.file]);
    assert!(error.contains("is not the state of a pipeline"), "{error}");
    place.leaves(2, &["stage", "2", "--state", ".pipeline/none.json"]);
    write("{");
    place.leaves(3, &["stage", "2", "--state", state]);
    // A state with other stories says nothing about this one either.
    write(r#"{"story_state": {"SHOP-99": "STAGE_3"}}"#);
    let validate = ["validate", place.file, "--state", state];
    let run = place.project.expect(0, &validate);
    assert!(
        run.err.contains("does not say where the story SHOP-12 is"),
        "{run:?}"
    );

    write(
        r#"{"story_state": {"SHOP-12": "STAGE_3"}, "quality_cycles": {"SHOP-12": 1},
        "business_answers": {"Which currency?": "EUR"}, "worktree_map": {"SHOP-12": "wt/SHOP-12"}}"#,
    );
    let run = place.gives(1, &["resume", "--state", state, "--json"]);
    let inputs = run.json()["plan"]["new_worker"]["inputs"].clone();
    assert_eq!(inputs["business_answers"]["Which currency?"], "EUR");
    assert_eq!(inputs["worktree"], "wt/SHOP-12");
    assert!(inputs["project_root"].as_str().unwrap().starts_with('/'));
    let run = place
        .project
        .expect(0, &["validate", place.file, "--state", state]);
    assert!(!run.out.contains("/stage"), "{run:?}");
    assert_eq!(
        place.does(&["stage", "2", "--state", state]),
        "stage: 2; the task is now in_progress\n"
    );
    assert_eq!(
        place.value()["lastAction"],
        "Stage 2 again, qualityScore 54: FAIL, cycle 2 of 2: Slow"
    );
    let run = place
        .project
        .expect(1, &["validate", place.file, "--state", state]);
    assert!(run.out.contains("/stage: "), "{run:?}");
    let site = Place::site();
    site.project.write(state, r#"{"story_state": {}}"#);
    let run = site.gives(1, &["resume", "--state", state]);
    assert!(
        run.err.contains("--state judges story-pipeline only"),
        "{run:?}"
    );
}

#[test]
fn the_workstreams_of_a_build() {
    let place = Place::build();
    assert!(
        place
            .does(&["workstream", "start", "WS3"])
            .starts_with("workstream WS3 begun")
    );
    assert_eq!(
        place.does(&["workstream", "done", "WS2", "--file", "a.ts", "b.ts"]),
        "workstream WS2 done; 0 pending, in progress: WS3\n"
    );
    assert_eq!(place.value()["artifacts"]["WS2"], json!(["a.ts", "b.ts"]));
    assert_eq!(
        place.does(&["gate", "pass", "type-check"]),
        "gate passed: type-check\n"
    );
    let error = place.leaves(4, &["gate", "pass", "nope"]);
    assert!(error.contains("test-pass"), "{error}");
    let error = place.leaves(4, &["complete"]);
    assert!(error.contains("WS3"), "{error}");
    assert_eq!(place.does(&["fail", "no disk"]), "failed: no disk\n");
    assert_eq!(place.value()["pending_workstreams"], json!(["WS3"]));
    place.leaves(2, &["note", "x"]);
    let input = "{\"op\": \"pause\"}\n{\"op\": \"gate pass\", \"name\": \"nope\"}\n";
    let before = place.project.read(place.file);
    let run = place
        .project
        .ckpt_given(&["batch", "--store", place.file], input);
    assert_eq!(run.code, 4, "{run:?}");
    assert!(
        run.error()
            .starts_with(&format!("{}: line 2: ", place.file)),
        "{run:?}"
    );
    assert_eq!(place.project.read(place.file), before);
}

#[test]
fn a_builds_plan_and_a_storys_state_judge() {
    let place = Place::build();
    place.project.write(
        "spec.json",
        r#"{"phases": [{"n": 1, "workstreams": [
            {"id": "WS1", "title": "A"}, {"id": "WS2", "title": "B"}, {"id": "WS9", "title": "C"}
        ]}], "gates": ["schema-validation", "type-check", "test-pass"]}"#,
    );
    place.project.expect(0, &["validate", place.file]);
    let run = place
        .project
        .expect(1, &["validate", place.file, "--spec", "spec.json"]);
    assert!(
        run.out.contains("WS9") && run.out.contains("WS3"),
        "{run:?}"
    );
    let run = place
        .project
        .ckpt(&["resume", "--header", place.file, "--spec", "spec.json"]);
    assert!(run.out.contains("WS1: A"), "{run:?}");
    let place = Place::story();
    let run = place.gives(0, &["resume", "--story-state", "STAGE_2"]);
    assert!(!run.err.contains("STAGE"), "{run:?}");
    let run = place.gives(1, &["resume", "--story-state", "STAGE_3"]);
    assert!(run.err.contains("STAGE_3"), "{run:?}");
    let validate = ["validate", place.file, "--story-state"];
    place
        .project
        .expect(0, &[&validate[..], &["STAGE_2"]].concat());
    let run = place
        .project
        .expect(1, &[&validate[..], &["STAGE_3"]].concat());
    assert!(run.out.contains("/stage: "), "{run:?}");
}

#[test]
fn a_pipelines_state_is_looked_at_and_set() {
    let file = ".pipeline/state.json";
    let project = Project::with(file, case("story-pipeline-state/valid.json"));
    assert!(
        project
            .expect(0, &["detect", file])
            .out
            .contains("story-pipeline-state")
    );
    project.expect(0, &["validate", file]);
    let run = project.expect(0, &["show", file]);
    assert!(run.out.contains("SHOP-12"), "{run:?}");
    project.expect(0, &["set", file, "/story_state/SHOP-12=\"STAGE_3\""]);
    let text = project.read(file);
    for (code, arguments) in [
        (2, vec!["note", "x", "--store", file]),
        (2, vec!["stage", "3", "--store", file]),
        (1, vec!["start", "--store", file]),
        (4, vec!["complete", "--store", file]),
        (4, vec!["convert", file, "--to", "story-pipeline-state"]),
    ] {
        let run = project.expect(code, &arguments);
        assert!(run.err.contains(file) || code == 4, "{run:?}");
    }
    assert_eq!(project.read(file), text);
}

#[test]
fn a_lead_that_names_no_state_is_told_where_it_belongs() {
    let project = Project::new();
    let begin = |more: &[&str]| project.expect(2, &[&["lead", "begin", "S-1"], more].concat());
    let missing = begin(&[]);
    assert!(
        missing.error().contains("where is state.json?"),
        "{missing:?}"
    );
    // A place that does not exist yet gets the format of the lead.
    for (store, file) in [("p", "p/state.json"), ("p/state.json", "p/state.json")] {
        let absent = begin(&["--store", store]);
        assert!(
            absent
                .error()
                .starts_with(&format!("{file}: there is no checkpoint")),
            "{absent:?}"
        );
    }
    let keyed = begin(&["--store", "p", "--key", "S-1"]);
    assert!(keyed.error().contains("omit --key"), "{keyed:?}");
}

#[test]
fn a_lead_goes_on_from_its_pipelines_state() {
    let file = ".pipeline/state.json";
    let project = Project::with(file, case("story-pipeline-state/valid.json"));
    let run = project.expect(0, &["resume", file, "--now", NOW]);
    assert!(run.out.contains("SHOP-12"), "{run:?}");
    // Also by folder and key: a pipeline has one state.
    let place = ["--store", ".pipeline", "--key", "state", "--now", NOW];
    let run = project.expect(0, &[&["heartbeat"], &place[..]].concat());
    assert_eq!(run.out, "heartbeat\n");
    assert_eq!(parsed(&project, file)["last_check"], NOW);
    let run = project.expect(4, &[&["complete"], &place[..]].concat());
    assert!(run.error().contains("neither DONE nor PAUSED"), "{run:?}");
    project.expect(0, &[&["complete", "--force"], &place[..]].concat());
    assert_eq!(parsed(&project, file)["complete"], true);
    let run = project.expect(4, &["resume", file]);
    assert!(run.error().contains("pipeline is complete"), "{run:?}");
}

#[test]
fn start_begins_what_has_a_beginning() {
    let project = Project::new();
    let agent = [
        "start",
        "--store",
        "agent_checkpoints",
        "--format",
        "agent-session",
        "--now",
        NOW,
    ];
    let key = ["--key", "Secondary-A"];
    for (more, says) in [
        (vec!["--session", "s1"], "--task"),
        (vec!["--task", "feature_1"], "--session"),
        (
            vec!["--task", "f", "--session", "s1", "--agent", "Secondary-B"],
            "would have the key Secondary-B",
        ),
    ] {
        let run = project.expect(2, &[&agent[..], &key, &more].concat());
        assert!(run.error().contains(says), "{run:?}");
    }
    assert!(project.names().is_empty());
    let more = [
        "--task",
        "feature_1",
        "--session",
        "s1",
        "--plan",
        "Read",
        "Write",
    ];
    let run = project.expect(0, &[&agent[..], &key, &more].concat());
    assert_eq!(
        run.out,
        "started agent_checkpoints/secondary_a.json for Secondary-A: 2 steps, first: Read\n"
    );
    project.expect(0, &["validate", "agent_checkpoints/secondary_a.json"]);
    let run = project.expect(1, &[&agent[..], &key, &more].concat());
    assert!(run.err.contains("was not changed"), "{run:?}");

    let site = [
        "start",
        "--store",
        "progress/checkpoints",
        "--format",
        "sitebuilder",
        "--key",
        "media-T1",
    ];
    let run = project.expect(2, &[&site[..], &["--agent", "media"]].concat());
    assert!(run.error().contains("--task"), "{run:?}");
    let run = project.expect(
        2,
        &[&site[..], &["--agent", "media", "--task", "T2"]].concat(),
    );
    assert!(
        run.error().contains("would have the key media-T2"),
        "{run:?}"
    );
    let whole = [
        &site[..],
        &["--agent", "media", "--task", "T1", "--plan", "a", "b"],
    ]
    .concat();
    project.expect(0, &whole);
    project.expect(0, &["validate", "progress/checkpoints/media-T1.json"]);
    let run = project.expect(2, &["start", "--store", "t.json", "--task", "x"]);
    assert!(run.error().contains("omit --task"), "{run:?}");
    let place = [
        "--store",
        "s",
        "--key",
        "SHOP-1",
        "--format",
        "story-pipeline",
    ];
    let run = project.expect(2, &[&["start"], &place[..]].concat());
    assert!(
        run.error().ends_with("needs the worker's id (--agent)"),
        "{run:?}"
    );
    let begun = [&["start", "--agent", "a-1", "--plan", "SHOP-2"], &place[..]].concat();
    let run = project.expect(0, &begun);
    assert!(
        run.err.contains("until the next report: /planScore"),
        "{run:?}"
    );
}

#[test]
fn a_build_begins_with_its_plan() {
    let project = Project::new();
    let spec = r#"{"phases": [{"n": 1, "workstreams": [{"id": "WS1", "title": "A"}]},
        {"n": 2, "workstreams": [{"id": "WS2", "title": "B"}]}], "gates": ["type-check"]}"#;
    project.write("spec.json", spec);
    let format = ["--format", "build-pipeline", "--now", NOW];
    let key = ["--store", "c", "--key", "PRD-007"];
    let start = [&["start"], &format[..]].concat();
    for (more, code, says) in [
        (&[][..], 2, "--spec"),
        (&["--spec", "none.json"], 2, "no such file"),
        (&["--spec", "spec.json", "--plan", "x"], 2, "omit --plan"),
        (
            &["--spec", "spec.json", "--task", "PRD-008"],
            2,
            "would have the key PRD-008",
        ),
        (
            &["--spec", "spec.json", "--task", "seven"],
            2,
            "is not an id of this protocol",
        ),
    ] {
        let run = project.expect(code, &[&start[..], &key, more].concat());
        assert!(run.error().contains(says), "{run:?}");
    }
    assert_eq!(project.names(), ["spec.json"]);
    let run = project.expect(
        0,
        &[
            &start[..],
            &key,
            &["--spec", "spec.json", "--title", "Labels"],
        ]
        .concat(),
    );
    assert_eq!(
        run.out,
        "started c/PRD-007.json for PRD-007: 2 steps, first: WS1\n"
    );
    let file = "c/PRD-007.json";
    let made = parsed(&project, file);
    assert_eq!(made["pending_workstreams"], json!(["WS1", "WS2"]));
    assert_eq!(made["prd_title"], "Labels");
    project.expect(0, &["validate", file, "--spec", "spec.json"]);
    project.expect(0, &["workstream", "start", "WS1", "--store", file]);
    project.expect(1, &[&start[..], &key, &["--spec", "spec.json"]].concat());
    let run = project.expect(2, &["start", "--store", "t.json", "--spec", "spec.json"]);
    assert!(run.error().contains("omit --spec"), "{run:?}");
}

#[test]
fn a_hand_off_moves_between_formats() {
    let project = Project::with("T-1.json", TASK);
    let run = project.expect(
        1,
        &[
            "convert",
            "T-1.json",
            "--to",
            "sitebuilder",
            "--out",
            "s.json",
        ],
    );
    assert!(run.err.contains("not converted: "), "{run:?}");
    let made = parsed(&project, "s.json");
    assert_eq!(
        (&made["agent"], &made["task_id"]),
        (&json!("dev"), &json!("T-1"))
    );
    assert_eq!(made["updated_at"], "2026-03-02T08:05:00Z");
    project.expect(0, &["validate", "s.json"]);
    // A build names no agent, but the user who converts can.
    let place = Place::build();
    let convert = ["convert", "--to", "task"];
    let run = place.gives(1, &convert);
    assert!(run.err.contains("createdBy is required"), "{run:?}");
    let run = place.gives(1, &[&convert[..], &["--agent", "me"]].concat());
    assert!(!run.err.contains("new violation"), "{run:?}");
    assert_eq!(run.json()["metadata"]["createdBy"], "me");
}

/// The name of a file that is given by its path is no key: its content is not judged by it.
#[test]
fn a_file_may_be_called_anything() {
    let story = include_str!("../../../../tests/cases/story-pipeline/valid-stage-2.json");
    let project = Project::with("called-anything.json", story);
    let run = project.expect(0, &["resume", "called-anything.json"]);
    assert!(!run.err.contains("key-mismatch"), "{run:?}");
    assert!(run.out.contains("# Resuming Task: SHOP-12"), "{run:?}");
}

#[test]
fn a_checkpoint_that_is_named_by_its_agent_stays_its_own() {
    let place = Place::agent();
    let run = place.gives(0, &["heartbeat", "--agent", "Primary"]);
    assert!(
        run.err
            .contains("note: Primary reports, but the checkpoint still belongs to Secondary-C"),
        "{run:?}"
    );
    let run = place.gives(0, &["heartbeat", "--agent", "secondary_c"]);
    assert_eq!(run.err, "");
}

#[test]
fn a_build_begins_anew_in_its_file() {
    let place = Place::build();
    let said = place.does(&["restart", "--because", "the schema changed"]);
    assert!(said.starts_with("restarted: the schema changed"), "{said}");
    let made = parsed(&place.project, place.file);
    assert_eq!(made["status"], "initialized");
    assert_eq!(made["completed_workstreams"], json!([]));
}

#[test]
fn a_status_that_leads_nowhere_is_left_by_force() {
    let place = Place::build();
    let status = r#"/status="executing""#;
    place.project.expect(1, &["set", place.file, status]);
    let run = place.gives(4, &["pause"]);
    assert!(run.error().ends_with("(--force)"), "{run:?}");
    place.does(&["pause", "--force"]);
}

#[test]
fn a_start_asks_for_all_that_is_missing_at_once() {
    let project = Project::new();
    for (format, needs) in [
        (
            "agent-session",
            "needs a session (--session) and a feature (--task)",
        ),
        (
            "sitebuilder",
            "needs an agent (--agent) and a task id (--task)",
        ),
    ] {
        let start = ["start", "--store", "s", "--key", "a", "--format", format];
        let run = project.expect(2, &start);
        assert!(run.error().ends_with(needs), "{run:?}");
    }
    // Without a key the agent's id is asked for too.
    let start = ["start", "--store", "s/b.json", "--format", "agent-session"];
    let run = project.expect(2, &start);
    let all = "needs the agent's id (--agent) and a session (--session) and a feature (--task)";
    assert!(run.error().ends_with(all), "{run:?}");
    assert_eq!(project.names(), [""; 0]);
}
