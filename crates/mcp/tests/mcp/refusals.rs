//! Refused calls and their messages.

use serde_json::{Value, json};

use crate::client::{Client, place, text};

/// The files of a folder and its sub-folders, without those that the library keeps for itself.
fn files(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true if name == ".agent-checkpoint" => {}
            true => found.extend(
                files(&entry.path())
                    .into_iter()
                    .map(|it| format!("{name}/{it}")),
            ),
            false => found.push(name),
        }
    }
    found.sort();
    found
}

#[test]
fn a_write_needs_the_fence_of_the_claim() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    let step = json!([{ "op": "step done", "text": "One" }]);
    let without = client.refused("report", json!({ "key": "T-1", "operations": step }));
    assert!(
        without.starts_with("input: missing field `fence`"),
        "{without}"
    );
    for wrong in [fence - 1, fence + 1, 0, u64::MAX] {
        for (tool, mut input) in [
            ("report", json!({ "operations": step })),
            ("decide", json!({ "text": "x" })),
            ("hand_over", json!({})),
            ("hand_over", json!({ "to": "other" })),
        ] {
            (input["key"], input["fence"]) = (json!("T-1"), json!(wrong));
            let refused = client.refused(tool, input);
            assert!(
                refused.starts_with("fenced: ") && refused.contains("Next: "),
                "{refused}"
            );
        }
    }
    // No fence fits a task that was begun without a claim.
    let kept = store.join("T-1.json");
    std::fs::copy(&kept, store.join("T-2.json")).unwrap();
    let refused = client.refused(
        "report",
        json!({ "key": "T-2", "fence": fence, "operations": step }),
    );
    assert!(refused.starts_with("fenced: "), "{refused}");
    assert_eq!(client.done("fleet", json!({}))["tasks"][0]["percent"], 0);
}

#[test]
fn a_key_names_nothing_outside_of_the_store() {
    let (folder, store) = place();
    std::fs::write(folder.path().join("outside.json"), r#"{"secret":1}"#).unwrap();
    let mut client = Client::of(&store);
    let absolute = folder.path().join("outside").display().to_string();
    for key in [
        "../outside",
        "../outside.json",
        "..",
        "/etc/passwd",
        &absolute,
        "a\\..\\b",
        "C:x",
        "~/x",
    ] {
        let looked = client.refused("resume", json!({ "key": key }));
        assert!(looked.starts_with("not-found: "), "{key}: {looked}");
        client.begin(key, &["One"]);
    }
    let made = files(folder.path());
    let elsewhere: Vec<&String> = made
        .iter()
        .filter(|it| !it.starts_with("checkpoints/"))
        .collect();
    assert_eq!(elsewhere, ["outside.json"]);
    assert!(
        made.iter().all(|it| it.matches('/').count() <= 1),
        "{made:?}"
    );
    for key in ["", " a", "a\nb", "a\u{0}", &"x".repeat(201)] {
        let refused = client.refused("begin", json!({ "key": key }));
        assert!(refused.starts_with("invalid-key: "), "{refused}");
    }
    let uri = json!({ "uri": "ckpt://prompt/..%2Foutside" });
    let read = client.ask("resources/read", uri);
    assert!(read["result"].is_object(), "{read}"); // begun above, in the store
}

#[test]
fn a_client_gives_no_place_and_nothing_that_is_not_asked_for() {
    let (folder, store) = place();
    let mut client = Client::of(&store);
    for member in [
        "store",
        "root",
        "path",
        "file",
        "format",
        "now",
        "take_over",
    ] {
        for tool in ["begin", "resume", "fleet", "report", "decide", "hand_over"] {
            let refused = client.refused(tool, json!({ "key": "T-1", member: "/etc" }));
            let is_unknown = refused.contains(&format!("unknown field `{member}`"));
            // A tool without a key reports that first.
            assert!(
                is_unknown || (tool == "fleet" && refused.contains("unknown field")),
                "{refused}"
            );
        }
    }
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

#[test]
fn input_of_another_kind_is_refused_in_words() {
    let (_folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    let wrong: Vec<(&str, Value, &str)> = vec![
        ("begin", json!({ "key": 7 }), "invalid type"),
        (
            "begin",
            json!({ "key": "T-2", "plan": "One" }),
            "invalid type",
        ),
        (
            "begin",
            json!({ "key": "T-2", "plan": [" "] }),
            "a step of the plan is empty",
        ),
        (
            "begin",
            json!({ "key": "T-2", "agent": "a\nb" }),
            "agent is a name",
        ),
        (
            "begin",
            json!({ "key": "T-2", "session": "" }),
            "session is a name",
        ),
        (
            "report",
            json!({ "key": "T-1", "fence": "1", "operations": [] }),
            "invalid type",
        ),
        (
            "report",
            json!({ "key": "T-1", "fence": -1, "operations": [] }),
            "invalid value",
        ),
        (
            "report",
            json!({ "key": "T-1", "fence": fence, "operations": [] }),
            "operations is empty",
        ),
        (
            "report",
            json!({ "key": "T-1", "fence": fence, "operations": [7] }),
            "operations[0] is no object",
        ),
        (
            "report",
            json!({ "key": "T-1", "fence": fence, "operations": [{ "op": "fly" }] }),
            "operations[0] \"fly\" is not an operation",
        ),
        (
            "report",
            json!({ "key": "T-1", "fence": fence, "operations": [{ "op": "note", "text": " " }] }),
            "is empty",
        ),
        (
            "report",
            json!({ "key": "T-1", "fence": fence, "operations": [{ "op": "step done", "text": "One" }, { "op": "gate pass", "name": "g" }] }),
            "operations[1]: this format has no operation",
        ),
        (
            "hand_over",
            json!({ "key": "T-1", "fence": fence, "to": "\u{1b}" }),
            "to is a name",
        ),
        ("fleet", json!({ "limit": "all" }), "invalid type"),
    ];
    for (tool, input, said) in wrong {
        let refused = client.refused(tool, input.clone());
        assert!(refused.contains(said), "{input}: {refused}");
    }
    // All or none.
    assert_eq!(client.done("fleet", json!({}))["tasks"][0]["percent"], 0);
    let unknown = client.ask("tools/call", json!({ "name": "rm", "arguments": {} }));
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("the tools are begin")
    );
}

#[test]
fn a_server_that_only_reads_writes_nothing() {
    let (folder, store) = place();
    let mut client = Client::of(&store);
    let fence = client.begin("T-1", &["One"]);
    client.done("hand_over", json!({ "key": "T-1", "fence": fence }));
    let before = files(folder.path());
    let mut reader = Client::with(&store, &["--read-only"]);
    let tools = reader.ask("tools/list", json!({}));
    let names: Vec<&Value> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["resume", "fleet"]);
    for tool in ["begin", "report", "decide", "hand_over"] {
        let refused = reader.refused(tool, json!({ "key": "T-2" }));
        assert!(refused.starts_with("read-only: "), "{refused}");
    }
    assert_eq!(
        reader.done("resume", json!({ "key": "T-1" }))["decision"],
        "continue"
    );
    assert_eq!(files(folder.path()), before);
}

#[test]
fn what_cannot_be_read_is_left_as_it_is() {
    let (_folder, store) = place();
    std::fs::create_dir(&store).unwrap();
    let damaged = r#"{"taskId":"T-1","completedSteps":[{"description":"One""#;
    std::fs::write(store.join("T-1.json"), damaged).unwrap();
    let mut client = Client::with(&store, &["--format", "task"]);
    for (tool, input) in [
        ("begin", json!({ "key": "T-1", "plan": ["x"] })),
        ("begin", json!({ "key": "T-1", "carry_on": true })),
        ("resume", json!({ "key": "T-1" })),
    ] {
        let refused = client.refused(tool, input);
        assert!(
            refused.contains("corrupt") && refused.contains("ckpt recover"),
            "{refused}"
        );
    }
    assert_eq!(
        client.done("fleet", json!({}))["tasks"][0]["result"],
        "corrupt"
    );
    assert_eq!(
        std::fs::read_to_string(store.join("T-1.json")).unwrap(),
        damaged
    );
    let gone = client.refused("resume", json!({ "key": "T-9" }));
    assert!(gone.starts_with("not-found: "), "{gone}");
    let listed = client.call("fleet", json!({ "limit": 1 }));
    assert!(text(&listed).starts_with("1 tasks, 0 can be resumed"));
}
