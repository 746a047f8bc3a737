#![doc = include_str!("../README.md")]

mod answer;
mod args;
mod bounds;
mod calls;
mod catalog;
mod details;
mod failed;
mod guards;
mod inputs;
mod outside;
mod resources;
mod server;

use std::io::Write;
use std::process::ExitCode;

use agent_checkpoint::formats::Formats;
use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use server::Server;

/// Serves the store that the command line of this process names, with these formats, until standard input ends.
#[must_use]
pub fn run(formats: Formats) -> ExitCode {
    let args = match args::parse() {
        Ok(args) => args,
        Err(error) => {
            // The help may go to standard output: no client reads there yet.
            let _ = error.print();
            return match error.use_stderr() {
                true => ExitCode::from(2),
                false => ExitCode::SUCCESS,
            };
        }
    };
    log(args.log);
    let ended = match Server::new(&args, formats) {
        Ok(server) => serve(server),
        Err(why) => Err(why),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let line = why.replace(['\n', '\r'], " ");
            let _ = writeln!(std::io::stderr(), "ckpt-mcp: {line}");
            ExitCode::from(2)
        }
    }
}

/// Logs on standard error. Below warnings, the protocol's own crate logs whole messages with unredacted texts of
/// checkpoints; these are suppressed.
fn log(level: LevelFilter) {
    let shown = Targets::new()
        .with_default(level)
        .with_target("rmcp", level.min(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false);
    tracing_subscriber::registry()
        .with(lines.with_filter(shown))
        .init();
}

fn serve(server: Server) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("the system gives no threads: {error}; try again"))?;
    let ended = runtime.block_on(async {
        let service = match server.serve(rmcp::transport::stdio()).await {
            Ok(service) => service,
            // The client closed the connection before it sent anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(format!("the client does not speak MCP: {error}")),
        };
        match service.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(format!("it broke off: {error}")),
            Ok(_) => Ok(()),
        }
    });
    // Finish running saves, but do not wait for a client that keeps its end open.
    runtime.shutdown_timeout(LAST_SAVES);
    ended
}

/// How long running saves may take after the client is gone.
const LAST_SAVES: std::time::Duration = std::time::Duration::from_secs(30);
