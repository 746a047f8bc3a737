//! A session of the Rust SDK's own client.

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult, ReadResourceRequestParams};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

use crate::client::{command, place};

async fn call(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    input: Value,
) -> CallToolResult {
    let input = input.as_object().unwrap().clone();
    let request = CallToolRequestParams::new(tool).with_arguments(input);
    client.call_tool(request).await.unwrap()
}

#[tokio::test]
async fn a_session_of_the_rust_sdk() {
    let (_folder, store) = place();
    let mut server = tokio::process::Command::from(command(&store));
    server.args(["--agent", "rust"]);
    let client = ().serve(TokioChildProcess::new(server).unwrap()).await.unwrap();
    let info = client.peer_info().unwrap();
    assert!(info.instructions.as_ref().unwrap().contains("begin"));
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 8);

    let begun = call(
        &client,
        "begin",
        json!({ "key": "T-1", "plan": ["One", "Two"] }),
    )
    .await;
    let begun = begun.structured_content.unwrap();
    let fence = begun["fence"].as_u64().unwrap();
    let step = json!([{ "op": "step done", "text": "One" }]);
    let report = json!({ "key": "T-1", "fence": fence, "operations": step });
    let saved = call(&client, "report", report).await;
    assert_eq!(saved.is_error, Some(false));
    let old = json!({ "key": "T-1", "fence": fence + 1, "text": "x" });
    assert_eq!(call(&client, "decide", old).await.is_error, Some(true));
    for (doing, outcome) in [("begin", "do"), ("done", "done"), ("begin", "already_done")] {
        let mail = json!({ "key": "T-1", "fence": fence, "id": "mail", "do": doing });
        let state = call(&client, "effect", mail).await.structured_content;
        assert_eq!(state.unwrap()["outcome"], outcome);
    }
    let other = call(&client, "begin", json!({ "key": "T-2", "plan": ["Pay"] })).await;
    let fence_of_other = &other.structured_content.unwrap()["fence"];
    let ask = json!({ "key": "T-2", "fence": fence_of_other, "id": "pay", "action": ["pay", 7] });
    let asked = call(&client, "approval", ask).await.structured_content;
    assert_eq!(asked.unwrap()["status"], "pending");
    let read = ReadResourceRequestParams::new("ckpt://prompt/T-1");
    let page = client.read_resource(read).await.unwrap();
    assert_eq!(page.contents.len(), 1);
    call(
        &client,
        "hand_over",
        json!({ "key": "T-1", "fence": fence }),
    )
    .await;
    let fleet = call(&client, "fleet", json!({ "resumable": true })).await;
    assert_eq!(
        fleet.structured_content.unwrap()["tasks"][0]["start_at"],
        "Two"
    );
    client.cancel().await.unwrap();
}
