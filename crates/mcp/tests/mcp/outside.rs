//! Effects and approvals: what an agent does outside, and what a person decides.

use std::path::Path;
use std::time::Duration;

use agent_checkpoint::formats::Archive;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::ledger::{ApprovalDecision, Effect, EffectDecision, Ledger};
use agent_checkpoint::store::{CheckpointStore, DeleteOptions, FileStore};
use agent_checkpoint::{CheckpointStoreExt, ClaimRequest, Fence, Key};
use chrono::Utc;
use serde_json::{Value, json};

use crate::client::{Client, place, text};

const MAIL: &str = "mail the team about 1.4";

/// The input of `effect` for the mail of T-1.
fn mail(fence: u64, doing: &str, more: Value) -> Value {
    let mut input = json!({ "key": "T-1", "fence": fence, "id": MAIL, "do": doing });
    for (name, value) in more.as_object().unwrap() {
        input[name] = value.clone();
    }
    input
}

fn person(store: &Path) -> Ledger {
    let tasks = FileStore::open(store).checkpoints::<TaskCheckpoint>();
    tasks.ledger(&Key::new("T-1").unwrap(), "desk")
}

#[test]
fn an_effect_is_done_once() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    let begin = mail(
        fence,
        "begin",
        json!({ "how_to_check": "look into the sent mail" }),
    );
    let early = client.refused("effect", mail(fence, "done", json!({})));
    assert!(early.contains("has begun no effect"), "{early}");
    let begun = client.done("effect", begin.clone());
    assert_eq!(begun["outcome"], "do");
    assert!(begun["next"].as_str().unwrap().contains("Do it now"));
    // An agent that lost its context asks again.
    let again = client.done("effect", begin.clone());
    assert_eq!(again["outcome"], "in_progress");
    assert_eq!(again["how_to_check"], "look into the sent mail");
    let done = mail(fence, "done", json!({ "receipt": { "id": "m-7" } }));
    assert_eq!(client.done("effect", done.clone())["outcome"], "done");
    // An answer that was lost on the way.
    assert_eq!(client.done("effect", done)["outcome"], "done");
    let already = client.done("effect", begin.clone());
    assert_eq!(already["outcome"], "already_done");
    assert_eq!(already["receipt"], r#"{"id":"m-7"}"#);
    let back = client.refused("effect", mail(fence, "not_done", json!({})));
    assert!(back.contains("took place"), "{back}");

    // What did not take place is begun anew.
    let other = |doing| json!({ "key": "T-1", "fence": fence, "id": "other", "do": doing });
    for doing in ["begin", "not_done", "begin", "done"] {
        client.done("effect", other(doing));
    }
    assert_eq!(
        client.done("effect", other("begin"))["receipt"],
        json!("null")
    );
    for wrong in [
        json!({ "key": "T-1", "fence": fence + 1, "id": "x", "do": "begin" }),
        json!({ "key": "T-1", "fence": fence + 1, "id": MAIL, "do": "done" }),
        json!({ "key": "T-1", "fence": fence, "id": " ", "do": "begin" }),
        json!({ "key": "T-1", "fence": fence, "id": "x", "do": "fly" }),
        json!({ "key": "T-2", "fence": fence, "id": "x", "do": "begin" }),
        mail(fence, "begin", json!({ "how_to_check": "x".repeat(2001) })),
    ] {
        client.refused("effect", wrong);
    }
    assert_eq!(person(&store).effects().unwrap().len(), 2);
}

#[test]
fn an_effect_whose_server_was_killed_is_in_doubt_until_it_is_settled() {
    let (_folder, store) = place();
    let mut first = Client::with(&store, &["--agent", "dev"]);
    let fence = first.begin("T-1", &["One"]);
    let how = json!({ "how_to_check": "look into the sent mail" });
    first.done("effect", mail(fence, "begin", how.clone()));
    first.kill();

    let mut second = Client::with(&store, &["--agent", "dev"]);
    let found = second.done("begin", json!({ "key": "T-1" }));
    assert_eq!(found["resume"]["decision"], "ask");
    let asked = found["resume"]["questions"].to_string();
    assert!(
        asked.contains(MAIL) && asked.contains("sent mail"),
        "{asked}"
    );
    let carried_on = second.done("begin", json!({ "key": "T-1", "carry_on": true }));
    let fence = carried_on["fence"].as_u64().unwrap();
    let doubt = second.done("effect", mail(fence, "begin", how.clone()));
    assert_eq!(doubt["outcome"], "in_doubt");
    assert_eq!(doubt["how_to_check"], "look into the sent mail");
    assert!(doubt["by"].as_str().unwrap().starts_with("dev"), "{doubt}");
    second.done("effect", mail(fence, "not_done", json!({})));
    let anew = second.done("effect", mail(fence, "begin", how));
    assert_eq!(anew["outcome"], "do");
    second.done("effect", mail(fence, "done", json!({ "receipt": "sent" })));
    let already = second.done("effect", mail(fence, "begin", json!({})));
    assert_eq!(already["receipt"], "sent");
}

#[test]
fn an_effect_without_an_end_is_in_doubt_for_the_next_agent() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    client.done("effect", mail(fence, "begin", json!({})));
    let over = client.done("hand_over", json!({ "key": "T-1", "fence": fence }));
    assert!(over["notes"].to_string().contains("has no end"), "{over}");
    let late = client.refused("effect", mail(fence, "done", json!({})));
    assert!(late.starts_with("fenced: "), "{late}");
    let begun = client.done(
        "begin",
        json!({ "key": "T-1", "agent": "other", "carry_on": true }),
    );
    let fence = begun["fence"].as_u64().unwrap();
    let doubt = client.done("effect", mail(fence, "begin", json!({})));
    assert_eq!(doubt["outcome"], "in_doubt");
    client.done("effect", mail(fence, "done", json!({})));
    // Now none is left so.
    let over = client.done("hand_over", json!({ "key": "T-1", "fence": fence }));
    assert!(!over["notes"].to_string().contains("has no end"), "{over}");
}

#[test]
fn how_an_effect_ended_counts_also_once_another_has_the_task() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    client.done("effect", mail(fence, "begin", json!({})));
    let files = FileStore::open(&store);
    let request = ClaimRequest::new("other", Duration::from_secs(60)).taking_over();
    files.claim(&Key::new("T-1").unwrap(), &request).unwrap();
    let none = client.refused(
        "effect",
        json!({ "key": "T-1", "fence": fence, "id": "more", "do": "begin" }),
    );
    assert!(none.starts_with("fenced: "), "{none}");
    client.done("effect", mail(fence, "done", json!({ "receipt": 7 })));
    let effects = person(&store).effects().unwrap();
    let done = serde_json::to_value(&effects[0]).unwrap();
    assert_eq!(done["status"], "done");
}

#[test]
fn an_effect_of_a_task_that_was_forgotten_is_not_mistaken_for_that_of_the_next() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    client.done("effect", mail(fence, "begin", json!({})));
    let files = FileStore::open(&store);
    let forget = DeleteOptions::new().with_fence(Some(Fence::new(fence)));
    files.forget(&Key::new("T-1").unwrap(), &forget).unwrap();
    let fence = client.begin("T-1", &["One"]);
    let other = person(&store).fenced(Fence::new(fence));
    match other.begin(&Effect::with_id(MAIL).unwrap()).unwrap() {
        // Its process does not record how it ended.
        EffectDecision::Do(guard) => drop(guard),
        decision => panic!("{decision:?}"),
    }
    let doubt = client.done("effect", mail(fence, "begin", json!({})));
    assert_eq!(doubt["outcome"], "in_doubt");
    client.done("effect", mail(fence, "done", json!({ "receipt": "sent" })));
    let already = client.done("effect", mail(fence, "begin", json!({})));
    assert_eq!(already["receipt"], "sent");
}

#[test]
fn nothing_is_begun_or_asked_for_a_task_that_was_archived() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    client.done("effect", mail(fence, "begin", json!({})));
    client.done("effect", mail(fence, "done", json!({ "receipt": "sent" })));
    let options = DeleteOptions::new().with_fence(Some(Fence::new(fence)));
    let (files, key) = (FileStore::open(&store), Key::new("T-1").unwrap());
    let archive = files.archive(&key, Archive::Complete, Utc::now(), &options);
    archive.unwrap();
    let refused = client.refused("effect", mail(fence, "begin", json!({})));
    assert!(refused.starts_with("not-found: "), "{refused}");
    let ask = json!({ "key": "T-1", "fence": fence, "id": "pay", "action": "pay" });
    let refused = client.refused("approval", ask);
    assert!(refused.starts_with("not-found: "), "{refused}");
}

#[test]
fn a_number_that_may_have_been_rounded_is_not_approved() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    let ask = |wei: Value| {
        let action = json!({ "to": "ann", "wei": wei });
        json!({ "key": "T-1", "fence": fence, "id": wei.to_string(), "action": action })
    };
    let wei = |digits: &str| serde_json::from_str::<Value>(digits).unwrap();
    let refused = client.refused("approval", ask(wei("20000000000000000001")));
    assert!(refused.contains("may have been rounded"), "{refused}");
    for exact in ["9007199254740993", "0.5", "\"20000000000000000001\""] {
        client.done("approval", ask(wei(exact)));
    }
}

#[test]
fn an_effect_is_the_same_under_each_spelling_of_its_key() {
    let (_folder, store) = place();
    let mut client = Client::with(&store, &["--format", "agent-session", "--agent", "Agent-A"]);
    let begin = json!({ "key": "Agent-A", "plan": ["One"], "details": { "task": "F-1" } });
    let fence = client.done("begin", begin)["fence"].as_u64().unwrap();
    let effect = |key, id, doing| json!({ "key": key, "fence": fence, "id": id, "do": doing });
    for id in ["one", "two"] {
        client.done("effect", effect("Agent-A", id, "begin"));
    }
    client.done("effect", effect("agent_a", "one", "done"));
    let over = client.done("hand_over", json!({ "key": "agent_a", "fence": fence }));
    let notes = over["notes"].to_string();
    assert!(notes.contains("two") && !notes.contains("one"), "{over}");
}

#[test]
fn a_person_approves_exactly_one_action_once() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    let action = json!({ "pay": "ann", "cents": 50 });
    let look = json!({ "key": "T-1", "id": "invoice 7" });
    let mut ask = json!({ "key": "T-1", "id": "invoice 7", "action": action, "why": "it is due" });
    let none = client.refused("approval", look.clone());
    assert!(none.contains("was asked for"), "{none}");
    let unfenced = client.refused("approval", ask.clone());
    assert!(unfenced.contains("takes the fence"), "{unfenced}");
    ask["fence"] = json!(fence + 1);
    client.refused("approval", ask.clone());
    ask["fence"] = json!(fence);
    let mut blank = ask.clone();
    for nothing in [json!(null), json!(""), json!(" ")] {
        blank["action"] = nothing.clone();
        // A `null` is a JSON value as any, and no text.
        let result = client.call("approval", blank.clone());
        assert_eq!(result["isError"], !nothing.is_null(), "{result}");
    }
    let denied = person(&store).state().unwrap().approvals.remove(0);
    let deny = ApprovalDecision::Denied {
        because: Some("of what?".to_owned()),
    };
    person(&store).decide(&denied, &deny, "Ann").unwrap();
    let denied = client.done("approval", look.clone());
    assert_eq!(
        (&denied["status"], &denied["because"]),
        (&json!("denied"), &json!("of what?"))
    );

    let asked = client.done("approval", ask.clone());
    assert_eq!(asked["status"], "pending");
    let line = asked["decide_with"].as_str().unwrap();
    let round = person(&store).state().unwrap().approvals.remove(0).round;
    assert_eq!(
        line,
        format!("ckpt approve 'invoice 7' --store STORE --key T-1 --round {round} --by NAME")
    );
    let resume = client.done("resume", json!({ "key": "T-1" }));
    assert_eq!(resume["decision"], "wait");

    let pay = |action: &Value| {
        let mut input = json!({ "key": "T-1", "fence": fence, "id": "invoice 7", "do": "begin" });
        if !action.is_null() {
            input["action"] = action.clone();
        }
        input
    };
    let early = client.refused("effect", pay(&action));
    assert!(early.contains("pending"), "{early}");
    let pending = person(&store).state().unwrap().approvals.remove(0);
    person(&store)
        .decide(&pending, &ApprovalDecision::Approved, "Ann")
        .unwrap();
    let approved = client.done("approval", look.clone());
    assert_eq!(
        (&approved["status"], &approved["decided_by"]),
        (&json!("approved"), &json!("Ann"))
    );
    assert_eq!(approved["decide_with"], json!(null));
    for other in [
        json!(null),
        json!({ "pay": "ann", "cents": 51 }),
        json!("pay"),
    ] {
        client.refused("effect", pay(&other));
    }
    // The order of members is no part of it.
    let same: Value = serde_json::from_str(r#"{ "cents": 50, "pay": "ann" }"#).unwrap();
    assert_eq!(client.done("effect", pay(&same))["outcome"], "do");
    assert_eq!(client.done("approval", look)["status"], "consumed");
    assert_eq!(client.done("approval", ask)["status"], "consumed");
    let done = json!({ "key": "T-1", "fence": fence, "id": "invoice 7", "do": "done" });
    client.done("effect", done);
    assert_eq!(
        client.done("effect", pay(&action))["outcome"],
        "already_done"
    );
}

#[test]
fn no_answer_shows_a_secret_or_more_than_a_model_can_use() {
    const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    let receipt = json!({ "token": SECRET, "log": "x".repeat(100_000) });
    let mut answers = Vec::new();
    for doing in ["begin", "begin", "done", "begin"] {
        let input = json!({
            "key": "T-1", "fence": fence, "id": format!("push with {SECRET}"), "do": doing,
            "how_to_check": SECRET, "receipt": receipt,
        });
        answers.push(client.call("effect", input));
    }
    assert_eq!(answers[3]["structuredContent"]["outcome"], "already_done");
    assert!(text(&answers[3]).contains("left out"), "{}", answers[3]);
    let action = format!("push with {SECRET} {}", "x".repeat(10_000));
    let ask =
        json!({ "key": "T-1", "fence": fence, "id": SECRET, "action": action, "why": SECRET });
    answers.push(client.call("approval", ask));
    answers.push(client.call("approval", json!({ "key": "T-1", "id": SECRET })));
    answers.push(client.call(
        "effect",
        json!({ "key": "T-1", "fence": 0, "id": SECRET, "do": SECRET }),
    ));
    for answer in answers {
        let shown = answer.to_string();
        assert!(!shown.contains(SECRET), "{shown}");
        assert!(shown.len() < 20_000, "{}", shown.len());
    }
}
