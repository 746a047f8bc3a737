//! Large and hostile inputs and texts: each answer is bounded and has no secrets, and the server keeps running.

use serde_json::{Value, json};

use crate::client::{Client, place, text};

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

#[test]
fn an_answer_has_no_secrets_and_nothing_that_hides() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let plan = format!("deploy with {SECRET}");
    let fence = client.begin("T-1", &[&plan, "rm \u{202e}gnp.exe\u{1b}[2J"]);
    let mut answers = vec![
        client.call("begin", json!({ "key": "T-1" })),
        client.call("begin", json!({ "key": "T-1", "carry_on": true })),
        client.call("resume", json!({ "key": "T-1" })),
        client.call("fleet", json!({})),
        client.ask("resources/read", json!({ "uri": "ckpt://prompt/T-1" })),
        client.ask(
            "prompts/get",
            json!({ "name": "resume", "arguments": { "key": "T-1" } }),
        ),
    ];
    for operations in [
        json!([{ "op": "step start", "text": plan }]),
        json!([{ "op": "step done", "text": plan }]),
        json!([{ "op": "step done", "text": SECRET, SECRET: 1 }]),
        json!([{ "op": SECRET }]),
    ] {
        answers.push(client.call(
            "report",
            json!({ "key": "T-1", "fence": fence, "operations": operations }),
        ));
    }
    answers.push(client.call("begin", json!({ "key": format!("{SECRET}\n") })));
    answers.push(client.call(SECRET, json!({})));
    for answer in answers {
        let shown = answer.to_string();
        assert!(!shown.contains(SECRET), "{shown}");
        assert!(
            !shown.contains('\u{202e}') && !shown.contains("\\u001b"),
            "{shown}"
        );
    }
}

#[test]
fn a_long_history_is_left_out_of_the_prompt_and_said() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let plan: Vec<String> = (0..200)
        .map(|number| format!("Step {number} {}", "x".repeat(100)))
        .collect();
    let plan: Vec<&str> = plan.iter().map(String::as_str).collect();
    let fence = client.begin("T-1", &plan);
    let done: Vec<Value> = plan[..190]
        .iter()
        .map(|step| json!({ "op": "step done", "text": step }))
        .collect();
    client.done(
        "report",
        json!({ "key": "T-1", "fence": fence, "operations": done }),
    );
    let small = client.done("resume", json!({ "key": "T-1", "budget_tokens": 600 }));
    let large = client.done("resume", json!({ "key": "T-1", "budget_tokens": 30000 }));
    let length = |answer: &Value| answer["prompt"].as_str().unwrap().len();
    assert!(length(&small) <= 4_000, "{}", length(&small));
    assert!(length(&large) > length(&small));
    assert!(small["omitted_steps"].as_u64().unwrap() > large["omitted_steps"].as_u64().unwrap());
}

#[test]
fn a_long_list_is_bounded_and_says_what_is_missing() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    for number in 0..5 {
        client.begin(&format!("T-{number}"), &["One"]);
    }
    let fleet = client.call("fleet", json!({ "limit": 2 }));
    let value = &fleet["structuredContent"];
    assert_eq!(value["tasks"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&value["total"], &value["left_out"]),
        (&json!(5), &json!(3))
    );
    assert!(text(&fleet).contains("3 more are left out"));
    let keys = ["x".repeat(3_000), "y".repeat(100_000)];
    for key in &keys {
        let refused = client.refused("resume", json!({ "key": key }));
        assert!(refused.len() < 3_000, "{}", refused.len());
    }
}

#[test]
fn huge_input_is_refused_or_saved_and_what_is_cut_is_said() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    let beats: Vec<Value> = (0..501).map(|_| json!({ "op": "heartbeat" })).collect();
    let long = "x".repeat(1 << 20);
    let mut nested = json!("x");
    for _ in 0..100 {
        nested = json!([nested]);
    }
    for (operations, said) in [
        (json!(beats), "operations has 501 items"),
        (json!([{ "op": "note", "text": long }]), "the input has 1"),
        (json!([{ "op": "note", "text": nested }]), "operations[0]"),
    ] {
        let refused = client.refused(
            "report",
            json!({ "key": "T-1", "fence": fence, "operations": operations }),
        );
        assert!(refused.contains(said), "{refused}");
    }
    let plan: Vec<&str> = vec!["step"; 501];
    let refused = client.refused("begin", json!({ "key": "T-2", "plan": plan }));
    assert!(refused.contains("plan has 501 items"), "{refused}");
    // Large, but allowed.
    let text = "y".repeat(300_000);
    let large = json!([{ "op": "decide", "text": "Large", "why": text }]);
    let saved = client.call(
        "report",
        json!({ "key": "T-1", "fence": fence, "operations": large }),
    );
    assert!(saved.to_string().len() < 10_000);
    assert_eq!(saved["isError"], false);
    let notes = saved["structuredContent"]["notes"].to_string();
    assert!(notes.contains("cut /decisions/0/rationale"), "{notes}");
    let log = store.join(".agent-checkpoint/overflow/T-1.json.jsonl");
    assert!(std::fs::read_to_string(log).unwrap().contains(&text));
    let resumed = client.call("resume", json!({ "key": "T-1" }));
    assert!(
        resumed.to_string().len() < 600_000,
        "{}",
        resumed.to_string().len()
    );
    client.done(
        "report",
        json!({ "key": "T-1", "fence": fence, "operations": [{ "op": "heartbeat" }] }),
    );
}
