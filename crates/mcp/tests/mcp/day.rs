//! The day of a task: begun, reported, left by a killed agent, and continued.

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::store::FileStore;
use agent_checkpoint::{CheckpointStoreExt, Key};
use serde_json::json;

use crate::client::{Client, place, text};

#[test]
fn an_agent_goes_on_where_a_killed_one_stopped() {
    let (_folder, store) = place();
    let mut first = Client::with(&store, &["--agent", "ui-dev"]);
    let fence = first.begin("US-003", &["Wire toggle", "Write tests"]);
    let started = json!([{ "op": "step start", "text": "Wire toggle" }]);
    first.done(
        "report",
        json!({ "key": "US-003", "fence": fence, "operations": started }),
    );
    let decision =
        json!({ "key": "US-003", "fence": fence, "text": "Use CSS", "why": "no runtime cost" });
    first.done("decide", decision);
    let both = json!([
        { "op": "step done", "text": "Wired toggle" },
        { "op": "step start", "text": "Write tests" },
    ]);
    let saved = first.done(
        "report",
        json!({ "key": "US-003", "fence": fence, "operations": both }),
    );
    assert_eq!(saved["done"].as_array().unwrap().len(), 2);
    first.kill();

    // The same agent in a new process: the process that held the claim is gone.
    let mut second = Client::with(&store, &["--agent", "ui-dev"]);
    let found = second.done("begin", json!({ "key": "US-003" }));
    assert_eq!(found["outcome"], "found");
    assert_eq!(found["fence"], json!(null));
    assert_eq!(found["next"], "Write tests");
    let prompt = found["resume"]["prompt"].as_str().unwrap();
    for said in ["Wired toggle", "Use CSS — no runtime cost", "carry_on"] {
        assert!(prompt.contains(said), "{prompt}");
    }
    let carried_on = second.done("begin", json!({ "key": "US-003", "carry_on": true }));
    assert_eq!(carried_on["outcome"], "carried_on");
    let new = carried_on["fence"].as_u64().unwrap();
    assert!(new > fence);
    let again = second.done("begin", json!({ "key": "US-003", "carry_on": true }));
    assert_eq!(again["fence"], new, "the owner gets its fence again");

    let rest = json!([{ "op": "step done", "text": "Write tests" }, { "op": "complete" }]);
    let old = second.refused(
        "report",
        json!({ "key": "US-003", "fence": fence, "operations": rest }),
    );
    assert!(old.starts_with("fenced: "), "{old}");
    second.done(
        "report",
        json!({ "key": "US-003", "fence": new, "operations": rest }),
    );
    second.done("hand_over", json!({ "key": "US-003", "fence": new }));
    let over = second.refused("begin", json!({ "key": "US-003", "carry_on": true }));
    assert!(
        over.starts_with("refused: ") && over.contains("complete"),
        "{over}"
    );

    let store = FileStore::open(&store);
    let key = Key::new("US-003").unwrap();
    let task = store
        .checkpoints::<TaskCheckpoint>()
        .get(&key)
        .unwrap()
        .checkpoint;
    let done: Vec<&str> = task
        .completed_steps
        .iter()
        .map(|step| step.step.as_deref().unwrap())
        .collect();
    assert_eq!(done, ["Wired toggle", "Write tests"]);
    assert!(
        !store
            .claimed(&key)
            .unwrap()
            .unwrap()
            .stands(chrono::Utc::now())
    );
}

#[test]
fn a_task_at_which_one_server_after_the_other_is_killed_is_refused() {
    let (_folder, store) = place();
    let mut client = Client::with(&store, &["--agent", "dev"]);
    let fence = client.begin("T-1", &["One", "Two"]);
    let started = json!([{ "op": "step start", "text": "One" }]);
    client.done(
        "report",
        json!({ "key": "T-1", "fence": fence, "operations": started }),
    );
    client.kill();
    let carry_on = json!({ "key": "T-1", "carry_on": true });
    for _ in 0..3 {
        let mut client = Client::with(&store, &["--agent", "dev"]);
        let begun = client.done("begin", carry_on.clone());
        assert_eq!(begun["outcome"], "carried_on");
        client.kill();
    }
    let mut last = Client::with(&store, &["--agent", "dev"]);
    let refused = last.refused("begin", carry_on);
    for said in [
        "refused: ",
        "Poisoned: 3 attempts in a row ended without progress",
        "--reset-attempts",
        "nothing was claimed or written",
    ] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
}

#[test]
fn another_agent_goes_on_once_the_task_was_handed_over() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One", "Two"]);
    let other = json!({ "key": "T-1", "agent": "other", "session": "s", "carry_on": true });
    let held = client.refused("begin", other.clone());
    assert!(
        held.starts_with("claimed: claimed by test-agent, session "),
        "{held}"
    );
    assert!(held.contains("fleet"), "{held}");

    let over = client.done(
        "hand_over",
        json!({ "key": "T-1", "fence": fence, "to": "other" }),
    );
    assert!(
        over["done"][0]
            .as_str()
            .unwrap()
            .contains("reassigned to other"),
        "{over}"
    );
    let begun = client.done("begin", other);
    assert_eq!(begun["outcome"], "carried_on");
    let fence = begun["fence"].as_u64().unwrap();
    let step = json!([{ "op": "step done", "text": "One" }]);
    client.done(
        "report",
        json!({ "key": "T-1", "fence": fence, "operations": step }),
    );
    // A fence identifies the agent that claimed: the report is by that agent, without naming it.
    let fleet = client.done("fleet", json!({}));
    assert_eq!(fleet["tasks"][0]["agent"], "other");
    assert_eq!(fleet["tasks"][0]["claimed_by"], "other, session s");
}

#[test]
fn a_task_that_is_handed_back_is_for_anyone() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    let resumable = json!({ "resumable": true });
    let (mut other, asked) = (
        Client::with(&store, &["--agent", "other"]),
        json!({ "key": "T-1" }),
    );
    let held = other.done("resume", asked.clone());
    assert_eq!(held["decision"], "refuse", "another has it");
    assert_eq!(held["prompt"], json!(null));
    assert_eq!(other.done("fleet", resumable.clone())["tasks"], json!([]));

    client.done("hand_over", json!({ "key": "T-1", "fence": fence }));
    assert_eq!(other.done("resume", asked)["decision"], "continue");
    let fleet = other.done("fleet", resumable);
    assert_eq!(
        (&fleet["total"], &fleet["resumable"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(fleet["tasks"][0]["key"], "T-1");
    assert_eq!(fleet["tasks"][0]["start_at"], "One");
    let step = json!([{ "op": "step done", "text": "One" }]);
    let gone = client.refused(
        "report",
        json!({ "key": "T-1", "fence": fence, "operations": step }),
    );
    assert!(gone.starts_with("fenced: "), "{gone}");
}

#[test]
fn a_report_renews_the_claim_and_nothing_else_does() {
    let (_folder, store) = place();
    let mut client = Client::with(&store, &["--for", "400ms"]);
    let fence = client.begin("T-1", &["One"]);
    let key = Key::new("T-1").unwrap();
    let until = || {
        let claim = FileStore::open(&store).claimed(&key).unwrap().unwrap();
        claim.expires
    };
    let first = until();
    while chrono::Utc::now() < first {
        client.done("resume", json!({ "key": "T-1" }));
    }
    assert_eq!(until(), first);
    // No other agent took the task meanwhile, so its owner may continue.
    let step = json!([{ "op": "step start", "text": "One" }]);
    client.done(
        "report",
        json!({ "key": "T-1", "fence": fence, "operations": step }),
    );
    assert!(until() > first);
}

#[test]
fn a_database_and_a_host_file_are_served_as_a_folder_is() {
    let (folder, _) = place();
    let database = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let mut client = Client::here(folder.path(), &["--store", &database]);
    let fence = client.begin("T/1", &["One"]);
    let step = json!([{ "op": "step done", "text": "One" }]);
    client.done(
        "report",
        json!({ "key": "T/1", "fence": fence, "operations": step }),
    );
    assert_eq!(client.done("fleet", json!({}))["tasks"][0]["key"], "T/1");

    let host = folder.path().join("builder-state.json");
    std::fs::copy(
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../cli/tests/fixtures/builder-state.json"
        ),
        &host,
    )
    .unwrap();
    let mut client = Client::of(&host);
    let fleet = client.done("fleet", json!({}));
    let slot = fleet["tasks"][0]["key"].as_str().unwrap().to_owned();
    let begun = client.done("begin", json!({ "key": slot, "carry_on": true }));
    let fence = begun["fence"].as_u64().unwrap();
    let beat = json!([{ "op": "heartbeat" }]);
    client.done(
        "report",
        json!({ "key": slot, "fence": fence, "operations": beat }),
    );
    let wrong = client.refused("resume", json!({ "key": "T-1" }));
    assert!(wrong.contains("a slot is"), "{wrong}");
}

#[test]
fn the_prompt_of_a_task_is_a_resource_and_a_prompt() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    client.begin("a b/ü", &["One"]);
    let uri = "ckpt://prompt/a%20b%2F%C3%BC";
    let read = client.ask("resources/read", json!({ "uri": uri }));
    let page = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(
        page.starts_with("continue: ") && page.contains("# Resuming Task: a b/ü"),
        "{page}"
    );
    let asked = json!({ "name": "resume", "arguments": { "key": "a b/ü" } });
    let prompt = client.ask("prompts/get", asked);
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], page);
    let resumed = client.call("resume", json!({ "key": "a b/ü" }));
    assert!(text(&resumed).contains("# Resuming Task: a b/ü"));
}

#[test]
fn a_format_has_details_of_its_own_and_its_own_way_to_hand_over() {
    let (_folder, store) = place();
    let mut client = Client::with(&store, &["--format", "agent-session"]);
    let key = "Secondary-A";
    let mut begin =
        json!({ "key": key, "plan": ["One", "Two"], "agent": key, "session": "session-1" });
    let missing = client.refused("begin", begin.clone());
    assert!(
        missing.contains("needs a feature (details.task)"),
        "{missing}"
    );
    begin["details"] = json!({ "task": "Login" });
    let fence = client.done("begin", begin)["fence"].as_u64().unwrap();
    let over = json!({ "key": key, "fence": fence, "to": "Secondary-B" });
    client.done("hand_over", over);
    let goes_on = json!({ "key": "Secondary-B", "agent": "Secondary-B", "session": "session-2", "carry_on": true });
    let begun = client.done("begin", goes_on);
    assert_eq!(begun["outcome"], "carried_on");
    assert_eq!(begun["next"], "One");

    let mut client = Client::with(&store, &["--format", "sitebuilder", "--agent", "media"]);
    for (details, said) in [
        (
            json!({ "task": 7 }),
            "details.task is not as its schema says",
        ),
        (json!({ "total": -1 }), "details.total is not"),
        (json!({ "criteria": ["a", " "] }), "details.criteria is not"),
        (
            json!({ "spec": "x" }),
            "sitebuilder takes task, title, agent-name, criteria, total",
        ),
    ] {
        let refused = client.refused(
            "begin",
            json!({ "key": "media-T210", "plan": ["s1"], "details": details }),
        );
        assert!(refused.contains(said), "{refused}");
    }
    let details = json!({ "task": "T210", "criteria": ["Fast"], "total": 3 });
    let begin = json!({ "key": "media-T210", "plan": ["s1"], "details": details });
    let fence = client.done("begin", begin)["fence"].as_u64().unwrap();
    let stays = client.refused(
        "hand_over",
        json!({ "key": "media-T210", "fence": fence, "to": "other" }),
    );
    assert!(stays.contains("stays with its agent"), "{stays}");

    let mut client = Client::with(&store, &["--format", "build-pipeline"]);
    for details in [
        json!({ "spec": "/etc/passwd" }),
        json!({ "task": "B-1", "title": "B" }),
    ] {
        let refused = client.refused("begin", json!({ "key": "B-1", "details": details }));
        assert!(
            refused.contains("takes task, title, revision")
                || refused.contains("ckpt start --spec FILE"),
            "{refused}"
        );
    }
}
