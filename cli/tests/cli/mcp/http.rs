//! The server on HTTP.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::State;
use crate::vmcell::Running;

struct HttpServer {
    running: Running,
    host: String,
    token: String,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl HttpServer {
    fn start(state: &State) -> Self {
        let serve = ["mcp", "serve", "--listen", "127.0.0.1:0"];
        let mut running = state.cli(serve).start();
        let url = running.line();
        let host = url.trim_end().strip_prefix("http://").unwrap();
        let host = host.strip_suffix("/mcp").unwrap().to_owned();
        let token = running.line();
        Self {
            running,
            host,
            token: token.trim_end().to_owned(),
        }
    }

    /// Sends a request with these headers.
    fn post(&self, path: &str, headers: &[&str], message: &Value) -> Answer {
        let mut stream = self.send(path, headers, &message.to_string());
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        Answer::parse(&answer)
    }

    /// Sends a request, of which the answer is not read yet.
    fn send(&self, path: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut request = format!("POST {path} HTTP/1.1\r\n");
        for header in headers {
            request += &format!("{header}\r\n");
        }
        request += "Accept: application/json, text/event-stream\r\n";
        request += "Content-Type: application/json\r\nConnection: close\r\n";
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Says hello, and returns the headers of the session.
    fn session(&self) -> [String; 4] {
        let (host, token) = (self.host(), self.token.clone());
        let answer = self.post("/mcp", &[&host, &token], &hello());
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.message(1)["result"]["serverInfo"]["name"], "vmcell");
        let mut lines = answer.head.lines();
        let session = lines.find(|line| line.starts_with("mcp-session-id:"));
        let session = session.unwrap().to_owned();
        let version = "MCP-Protocol-Version: 2025-06-18".to_owned();
        let headers = [host, token, session, version];
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let ready = self.post("/mcp", &headers.each_ref().map(String::as_str), &ready);
        assert_eq!(ready.status, 202, "{}", ready.body);
        headers
    }

    fn host(&self) -> String {
        format!("Host: {}", self.host)
    }
}

impl Answer {
    fn parse(answer: &str) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Self {
            status: head[9..12].parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    /// Returns the message with this id, of a stream of events.
    fn message(&self, id: u64) -> Value {
        let lines = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let found = messages.find(|message| message["id"] == id);
        found.unwrap_or_else(|| panic!("{}", self.body))
    }
}

fn hello() -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    })
}

#[test]
fn only_who_has_the_token_is_served_and_no_page_of_a_browser() {
    let state = State::new();
    let server = HttpServer::start(&state);
    let (host, token) = (server.host(), server.token.clone());
    let wrong = token.replace(|digit: char| digit.is_ascii_digit(), "a");
    let short = &token[..token.len() - 1];
    for (path, headers, status) in [
        ("/mcp", &[&*host][..], 401),
        ("/mcp", &[&host, &wrong], 401),
        ("/mcp", &[&host, short], 401),
        ("/mcp", &[&host, "Authorization: Bearer "], 401),
        ("/", &[&host, &token], 404),
        ("/mcp", &["Host: evil.example:80", &token], 403),
        (
            "/mcp",
            &[&host, &token, "Origin: https://evil.example"],
            403,
        ),
        ("/mcp", &[&host, &token, "Origin: null"], 403),
    ] {
        let answer = server.post(path, headers, &hello());
        assert_eq!(answer.status, status, "{path} {headers:?}: {}", answer.body);
    }

    let headers = server.session();
    let headers = headers.each_ref().map(String::as_str);
    let call = json!({
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": { "name": "vm_run", "arguments": { "command": "echo over HTTP", "mem_mib": 128 } },
    });
    let answer = server.post("/mcp", &headers, &call).message(2);
    assert_eq!(
        answer["result"]["structuredContent"]["stdout"], "over HTTP\n",
        "{answer}"
    );
    // Each server has its own token.
    let other = HttpServer::start(&state);
    assert_ne!(other.token, token);
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.finish().code(), 143);
}

#[test]
fn used_ids_and_long_bodies_are_refused() {
    let state = State::new();
    let server = HttpServer::start(&state);
    let headers = server.session();
    let headers = headers.each_ref().map(String::as_str);
    let run = |command: &str| {
        json!({
            "jsonrpc": "2.0",
            "id": 5,
            "method": "tools/call",
            "params": { "name": "vm_run", "arguments": { "command": command, "mem_mib": 128 } },
        })
    };
    let mut first = server.send("/mcp", &headers, &run("sleep 2; echo one").to_string());
    // The head of the answer, which comes at once.
    let mut answer = vec![0; 17];
    first.read_exact(&mut answer).unwrap();
    let refused = server.post("/mcp", &headers, &run("echo two"));
    assert_eq!(refused.status, 400, "{}", refused.body);
    let error: Value = serde_json::from_str(&refused.body).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("the id 5 is"), "{error}");
    first.read_to_end(&mut answer).unwrap();
    let answer = Answer::parse(&String::from_utf8(answer).unwrap());
    let answer = answer.message(5)["result"]["structuredContent"].clone();
    assert_eq!(answer["stdout"], "one\n", "{answer}");
    // When it is answered, the id can be used again.
    let answer = server.post("/mcp", &headers, &run("echo two")).message(5);
    assert_eq!(
        answer["result"]["structuredContent"]["stdout"], "two\n",
        "{answer}"
    );

    let refused = server.post("/mcp", &headers, &run(&"a".repeat(100 << 20)));
    assert_eq!(refused.status, 413, "{}", refused.body);
    assert!(refused.body.contains("longer than 16777216 bytes"));
    let ping = json!({ "jsonrpc": "2.0", "id": 6, "method": "ping" });
    let pong = server.post("/mcp", &headers, &ping).message(6);
    assert!(pong["result"].is_object(), "{pong}");
}

#[test]
fn other_machines_do_not_reach_it() {
    let state = State::new();
    let serve = ["mcp", "serve", "--listen", "0.0.0.0:0"];
    state
        .cli(serve)
        .finish()
        .assert_failed(125, "use 127.0.0.1");
}
