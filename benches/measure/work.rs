//! The test data of the benches, and what a plain program would do instead of the library.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use agent_checkpoint::formats::task::{Decision, TaskCheckpoint};
use agent_checkpoint::{Checkpoint, OperationContext, StepDone};

/// The textbook durable replace: create, write, fdatasync, rename, fsync the folder.
pub fn textbook(path: &Path, bytes: &[u8]) {
    let temp = path.with_extension("tmp");
    let mut file = File::create(&temp).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_data().unwrap();
    fs::rename(&temp, path).unwrap();
    let folder = File::open(path.parent().unwrap()).unwrap();
    folder.sync_all().unwrap();
}

/// A checkpoint of about 2 KB: eight steps done, eight pending.
pub fn checkpoint() -> TaskCheckpoint {
    let now = chrono::Utc::now();
    let plan = (0..8).map(|n| format!("Pending step {n} of the plan"));
    let mut task = TaskCheckpoint::begin("bench-agent", plan, now);
    for n in 0..8 {
        let done = StepDone::new(format!("Finished module m{n}"))
            .with_created(format!("src/module_{n}/mod.rs"))
            .with_modified("src/lib.rs");
        task.apply(&done.into(), &OperationContext::at(now))
            .unwrap();
    }
    task.decisions.push(Decision::new("Keep it simple"));
    task
}

/// A host file with this checkpoint in its slot `active`, and this many bytes of other content.
pub fn host(checkpoint: &str, filling: usize) -> String {
    let inside = checkpoint.trim_end().replace('\n', "\n    ");
    let line = "\n    \"An entry of the log that others keep in this file.\",";
    let mut others = line.repeat(filling / line.len());
    others.pop();
    format!(
        "{{\n  \"log\": [{others}\n  ],\n  \"activeWork\": {{\n    \"id\": \"w\",\n    \"checkpoint\": {inside}\n  }}\n}}\n"
    )
}
