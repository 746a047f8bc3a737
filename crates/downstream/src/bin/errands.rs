//! `ckpt` with the formats of this orchestrator: those of the library and its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    agent_checkpoint_cli::run(agent_checkpoint_downstream::formats())
}
