//! `ckpt-mcp`, with the formats of the library.

use std::process::ExitCode;

use agent_checkpoint::formats::Formats;

fn main() -> ExitCode {
    agent_checkpoint_mcp::run(Formats::default())
}
