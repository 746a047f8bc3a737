//! The lists of tools, prompts and resources.

use serde_json::{Value, json};

use crate::client::{Client, place};

fn tools(options: &[&str]) -> Vec<Value> {
    let (_folder, store) = place();
    let mut client = Client::with(&store, options);
    let listed = client.ask("tools/list", json!({}));
    listed["result"]["tools"].as_array().unwrap().clone()
}

#[test]
fn the_tools_are_as_they_were() {
    insta::assert_json_snapshot!("tools", tools(&["--format", "task"]));
}

#[test]
fn each_tool_says_what_it_takes_gives_and_does() {
    for tool in tools(&[]) {
        let name = tool["name"].as_str().unwrap();
        for member in ["inputSchema", "outputSchema"] {
            let schema = &tool[member];
            assert_eq!(schema["type"], "object", "{name}");
            jsonschema::validator_for(schema).unwrap();
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        let reads = ["resume", "fleet"].contains(&name);
        assert_eq!(tool["annotations"]["readOnlyHint"], reads, "{name}");
        assert_eq!(tool["annotations"]["destructiveHint"], false, "{name}");
        assert!(tool["description"].as_str().unwrap().len() > 80, "{name}");
        let takes_fence = ["report", "decide", "effect", "hand_over"].contains(&name);
        let required = tool["inputSchema"]["required"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        assert_eq!(required.contains(&json!("fence")), takes_fence, "{name}");
    }
}

#[test]
fn answers_are_as_their_schemas_say_and_inputs_are_read_as_theirs_do() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let tools = tools(&[]);
    let validator = |name: &str, member: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        jsonschema::validator_for(&tool[member]).unwrap()
    };
    let fence = client.begin("T-1", &["One"]);
    for (tool, input) in [
        (
            "begin",
            json!({ "key": "T-2", "plan": ["One"], "agent": "a", "session": "s" }),
        ),
        ("begin", json!({ "key": "T-1" })),
        (
            "begin",
            json!({ "key": "T-1", "carry_on": true, "budget_tokens": 500 }),
        ),
        (
            "report",
            json!({ "key": "T-1", "fence": fence, "operations": [{ "op": "step done", "text": "One", "force": true }] }),
        ),
        (
            "decide",
            json!({ "key": "T-1", "fence": fence, "text": "x" }),
        ),
        ("resume", json!({ "key": "T-1" })),
        (
            "effect",
            json!({ "key": "T-1", "fence": fence, "id": "mail", "do": "begin", "how_to_check": "ask" }),
        ),
        (
            "effect",
            json!({ "key": "T-1", "fence": fence, "id": "mail", "do": "done", "receipt": { "id": 7 } }),
        ),
        (
            "approval",
            json!({ "key": "T-1", "fence": fence, "id": "pay", "action": { "cents": 7 }, "why": "due" }),
        ),
        ("approval", json!({ "key": "T-1", "id": "pay" })),
        ("fleet", json!({ "resumable": false, "limit": 3 })),
        ("hand_over", json!({ "key": "T-1", "fence": fence })),
    ] {
        validator(tool, "inputSchema").validate(&input).unwrap();
        let answer = client.done(tool, input);
        validator(tool, "outputSchema").validate(&answer).unwrap();
    }
    let report = validator("report", "inputSchema");
    for operation in [
        json!({ "op": "fly" }),
        json!({ "op": "note" }),
        json!({ "op": "heartbeat", "x": 1 }),
        json!(7),
    ] {
        let input = json!({ "key": "T-1", "fence": fence, "operations": [operation] });
        assert!(!report.is_valid(&input), "{input}");
        client.refused("report", input);
    }
}

#[test]
fn the_pages_of_the_formats_and_the_schema_are_resources() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let listed = client.ask("resources/list", json!({}));
    let listed = listed["result"]["resources"].as_array().unwrap().clone();
    assert!(listed.len() > 5);
    for resource in listed {
        let read = client.ask("resources/read", json!({ "uri": resource["uri"] }));
        let page = &read["result"]["contents"][0];
        assert_eq!(page["mimeType"], resource["mimeType"]);
        assert!(page["text"].as_str().unwrap().len() > 500);
    }
    let task = agent_checkpoint::formats::Formats::default();
    let guide = task.get("task").unwrap().guide();
    let read = client.ask("resources/read", json!({ "uri": "ckpt://guide/task" }));
    assert_eq!(read["result"]["contents"][0]["text"].as_str(), guide);
    for uri in [
        "ckpt://guide/nope",
        "ckpt://guide/../task",
        "file:///etc/passwd",
        "ckpt://prompt",
        "",
    ] {
        let read = client.ask("resources/read", json!({ "uri": uri }));
        assert!(
            read["error"]["message"]
                .as_str()
                .unwrap()
                .contains("there is no resource"),
            "{read}"
        );
    }
    for uri in ["ckpt://prompt/%ff", "ckpt://prompt/", "ckpt://prompt/nope"] {
        let read = client.ask("resources/read", json!({ "uri": uri }));
        assert!(
            read["error"]["message"]
                .as_str()
                .unwrap()
                .contains("Next: "),
            "{read}"
        );
    }
    let templates = client.ask("resources/templates/list", json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let prompts = client.ask("prompts/list", json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "resume");
    for asked in [
        json!({ "name": "resume" }),
        json!({ "name": "nope", "arguments": { "key": "x" } }),
    ] {
        let error = client.ask("prompts/get", asked);
        assert!(error["error"]["message"].is_string());
    }
}

#[test]
fn the_page_has_each_tool_what_it_takes_and_each_option() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = std::fs::read_to_string(format!("{root}/docs/mcp.md")).unwrap();
    for tool in tools(&[]) {
        let members = tool["inputSchema"]["properties"].as_object().unwrap();
        let name = tool["name"].as_str().unwrap();
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap();
        for member in members.keys() {
            assert!(row.contains(&format!("`{member}`")), "{name}: {member}");
        }
    }
    let (_folder, store) = place();
    let help = crate::client::command(&store)
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let options = help
        .split_whitespace()
        .filter(|word| word.starts_with("--"));
    let mut count = 0;
    for option in options.filter(|option| !["--help", "--version"].contains(option)) {
        assert!(page.contains(&format!("`{option}")), "{option}");
        count += 1;
    }
    assert!(count >= 8, "{help}");
}
