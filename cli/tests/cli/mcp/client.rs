//! A client that sends any line, also ones that no library would.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::vmcell::{Ended, Running, Vmcell};

pub(super) struct Client {
    server: Running,
    last_id: u64,
    /// Messages that are no answers.
    pub(super) notifications: Vec<Value>,
}

/// Where the workspaces of one test are.
pub(super) struct State(TempDir);

impl State {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn cli<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Vmcell {
        Vmcell::new(arguments).env("XDG_STATE_HOME", self.0.path())
    }

    /// Starts a server, and says hello to it.
    pub(super) fn serve<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> Client {
        let serve = ["mcp", "serve"].into_iter().chain(options);
        let mut client = Client {
            server: self.cli(serve).start(),
            last_id: 0,
            notifications: Vec::new(),
        };
        let hello = client.request(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "vmcell", "{hello}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }
}

impl Client {
    pub(super) fn send_line(&mut self, line: &[u8]) {
        self.server.write(line);
        self.server.write(b"\n");
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    pub(super) fn receive(&mut self) -> Value {
        let line = self.server.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Sends a request, and returns its id.
    pub(super) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the answer to a request.
    pub(super) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Calls a tool. Returns the whole result.
    pub(super) fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let call = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", call);
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that succeeds. Returns what it returns.
    #[track_caller]
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        // The same as text, for clients that know no structured content.
        let text = result["content"][0]["text"].as_str().unwrap();
        let parsed: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parsed, result["structuredContent"]);
        parsed
    }

    /// Calls a tool that fails. Returns the error.
    #[track_caller]
    pub(super) fn fail(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"]["error"].clone()
    }

    /// Closes the connection, and waits for the end of the server.
    pub(super) fn close(mut self) -> Ended {
        self.server.close_stdin();
        self.server.finish()
    }

    /// Closes its end of what it sends, and keeps the other one without reading it.
    pub(super) fn close_unread(mut self) -> Running {
        self.server.close_stdin();
        self.server
    }

    pub(super) fn server(&self) -> &Running {
        &self.server
    }
}
