//! A hand-written client, which sees each line that the server prints.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ckpt-mcp");

/// A server in a folder, without the settings of the user who runs the tests.
fn program(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    for name in [
        "STORE", "FORMAT", "KEY", "AGENT", "SESSION", "FENCE", "ROOT",
    ] {
        command.env_remove(format!("CKPT_{name}"));
    }
    command.current_dir(folder);
    command
}

/// The server of a store, in the folder above it.
pub(crate) fn command(store: &Path) -> Command {
    let mut command = program(store.parent().unwrap());
    command.arg("--store").arg(store);
    command
}

pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    /// A session with the server of this store.
    pub(crate) fn of(store: &Path) -> Client {
        Client::with(store, &[])
    }

    /// A session with the server of this store, with more options.
    pub(crate) fn with(store: &Path, options: &[&str]) -> Client {
        Client::silent(store, options).greeted()
    }

    /// A session with the server of the store that a folder's `ckpt.toml` names, or that is at an address.
    pub(crate) fn here(folder: &Path, options: &[&str]) -> Client {
        let mut command = program(folder);
        command.args(options);
        Client::run(command).greeted()
    }

    fn greeted(self) -> Client {
        let mut client = self;
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test-agent", "version": "1" },
        });
        client.ask("initialize", hello);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    /// A session without a greeting yet.
    pub(crate) fn silent(store: &Path, options: &[&str]) -> Client {
        let mut command = command(store);
        command.args(options);
        Client::run(command)
    }

    fn run(mut command: Command) -> Client {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Client {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            id: 0,
        }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// The next line, which is a message of the protocol.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The whole answer to a request.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The result of a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        answer["result"].take()
    }

    /// The answer of a successful tool call.
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result:#}");
        result["structuredContent"].take()
    }

    /// The text of a failed tool call.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result:#}");
        text(&result)
    }

    /// Begins a task and returns its fence.
    pub(crate) fn begin(&mut self, key: &str, plan: &[&str]) -> u64 {
        let begun = self.done("begin", json!({ "key": key, "plan": plan }));
        assert_eq!(begun["outcome"], "begun");
        begun["fence"].as_u64().unwrap()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends standard input. Returns the exit status and the remaining text of standard output and standard error.
    pub(crate) fn end(mut self) -> (ExitStatus, String, String) {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let logged = String::from_utf8(output.stderr).unwrap();
        (output.status, rest, logged)
    }
}

/// The words of a result.
pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// A folder with the path of a store that does not exist yet.
pub(crate) fn place() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("checkpoints");
    (folder, store)
}
