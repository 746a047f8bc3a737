//! `ckpt`, with the formats of the library.

use std::process::ExitCode;

use agent_checkpoint::formats::Formats;

fn main() -> ExitCode {
    agent_checkpoint_cli::run(Formats::default())
}
