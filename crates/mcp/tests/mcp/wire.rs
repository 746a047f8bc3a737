//! The bytes on standard input and output.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, command, place};

#[test]
fn standard_output_has_the_protocol_and_nothing_else() {
    let (_folder, store) = place();
    let mut client = Client::with(&store, &["--log", "trace"]);
    client.begin("T-1", &["One ghp_0123456789abcdefghijABCDEFGHIJ012345"]);
    client.refused("begin", json!({ "key": "" }));
    client.done("resume", json!({ "key": "T-1" }));
    let (status, rest, logged) = client.end();
    assert!(status.success());
    assert_eq!(rest, "");
    assert!(
        logged.contains("answered") && logged.contains("invalid-key"),
        "{logged}"
    );
    assert!(!logged.contains("ghp_"), "{logged}");
}

#[test]
fn the_server_ends_with_its_input() {
    let (_folder, store) = place();
    for client in [Client::of(&store), Client::silent(&store, &[])] {
        let (status, rest, logged) = client.end();
        assert_eq!(
            (status.code(), rest.as_str(), logged.as_str()),
            (Some(0), "", "")
        );
    }
    // A call that arrives before the end is still done.
    let mut client = Client::of(&store);
    client.request(
        "tools/call",
        json!({ "name": "begin", "arguments": { "key": "T-1", "plan": ["One"] } }),
    );
    let (status, _, _) = client.end();
    assert!(status.success());
    assert!(store.join("T-1.json").exists());
}

#[test]
fn lines_that_are_no_messages_do_not_stop_it() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    for line in [
        "",
        "nonsense",
        "[1,",
        "{}",
        "null",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"no/such\"}",
        "\u{0}",
    ] {
        client.send_line(line);
    }
    let id = client.request("ping", json!({}));
    loop {
        let answer = client.receive();
        if answer["id"] == id {
            break assert_eq!(answer["result"], json!({}));
        }
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
}

#[test]
fn calls_at_the_same_time_are_each_answered_and_writes_keep_their_order() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &[]);
    let mut ids = Vec::new();
    for number in 0..40 {
        let step = json!([{ "op": "step add", "text": format!("Step {number:02}") }]);
        let report = json!({ "key": "T-1", "fence": fence, "operations": step });
        ids.push(client.request(
            "tools/call",
            json!({ "name": "report", "arguments": report }),
        ));
        ids.push(client.request("tools/call", json!({ "name": "fleet", "arguments": {} })));
    }
    for _ in 0..ids.len() {
        let answer = client.receive();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let id = answer["id"].as_u64().unwrap();
        ids.retain(|asked| *asked != id);
    }
    assert!(ids.is_empty());
    let kept: Value =
        serde_json::from_slice(&std::fs::read(store.join("T-1.json")).unwrap()).unwrap();
    let steps: Vec<&str> = kept["pendingSteps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..40).map(|number| format!("Step {number:02}")).collect();
    assert_eq!(steps, expected);
}

#[test]
fn a_ping_is_answered_while_a_call_waits_for_a_lock() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    // Another process that holds the lock of the checkpoint.
    let lock = std::fs::File::options()
        .write(true)
        .open(store.join(".agent-checkpoint/locks/t-1.json.lock"))
        .unwrap();
    lock.lock().unwrap();
    let step = json!([{ "op": "step done", "text": "One" }]);
    let report = json!({ "key": "T-1", "fence": fence, "operations": step });
    let waiting = client.request(
        "tools/call",
        json!({ "name": "report", "arguments": report }),
    );
    let began = Instant::now();
    client.ask("ping", json!({}));
    assert!(began.elapsed() < Duration::from_secs(2));
    lock.unlock().unwrap();
    let answer = client.receive();
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!(waiting), &json!(false)),
        "{answer}"
    );
}

#[test]
fn a_command_line_that_is_wrong_is_said_on_standard_error() {
    let (folder, store) = place();
    for (options, said) in [
        (vec!["--format", "nope"], "is not a known format"),
        (vec!["--for", "0s"], "a claim lasts more than zero"),
        (vec!["--fence", "1"], "unexpected argument"),
        (vec!["--log", "loud"], "invalid value"),
    ] {
        let output = command(&store)
            .args(options)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains(said), "{error}");
        assert_eq!(output.stdout, b"");
    }
    let mut without = std::process::Command::new(crate::client::PROGRAM);
    let without = without
        .current_dir(folder.path())
        .env_remove("CKPT_STORE")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8(without.stderr).unwrap();
    assert!(error.starts_with("ckpt-mcp: which store? "), "{error}");
    assert_eq!(without.status.code(), Some(2));
}

#[test]
fn the_store_of_the_project_file_is_served() {
    let (folder, store) = place();
    std::fs::write(
        folder.path().join("ckpt.toml"),
        "store = \"checkpoints\"\nformat = \"task\"\n",
    )
    .unwrap();
    Client::of(&store).begin("T-1", &["One"]);
    let mut client = Client::here(folder.path(), &[]);
    assert_eq!(client.done("fleet", json!({}))["tasks"][0]["key"], "T-1");
    let (status, ..) = client.end();
    assert!(status.success());
}
