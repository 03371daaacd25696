//! A server for the fuzz target `mcp_arguments`. It exists only with the feature `fuzzing`,
//! and is no API.

use std::{path::Path, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex},
    runtime,
    time::timeout,
};
use vmcell::workspace::Workspaces;

use crate::{McpServer, tools};

/// What is sent before the client's own lines.
const GREETING: &str = r#"{"jsonrpc":"2.0","id":"greeting","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a client","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// Nobody waits for as long.
const TIMEOUT: Duration = Duration::from_secs(8);

/// How much a client may send that has read nothing.
const BUFFER: usize = 1 << 20;

/// Serves a client that sends these lines in pieces of this size, and then a ping with an id
/// that nothing else has. There are no workspaces: `folder` is empty. Returns the lines that
/// the client gets until the answer of the ping, and whether that came.
///
/// # Panics
/// If the server does neither answer nor end.
pub fn serve(lines: &[u8], piece: usize, ping: &str, folder: &Path) -> (Vec<Vec<u8>>, bool) {
    let workspaces = Workspaces::at(folder.join("workspaces")).expect("it can be made");
    let vms = Workspaces::at(folder.join("vms")).expect("it can be made");
    let server = McpServer::builder().workspaces(workspaces).vms(vms).build();
    let server = server.expect("a server can be made");
    let server = server.with_tools(tools::fuzzing::without_vms());
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    runtime.block_on(async {
        let (ours, input) = duplex(BUFFER);
        let (output, answers) = duplex(BUFFER);
        let serving = tokio::spawn(async move { server.serve(input, output).await });
        let client = async {
            let mut ours = ours;
            let last = format!("\n{{\"jsonrpc\":\"2.0\",\"id\":\"{ping}\",\"method\":\"ping\"}}\n");
            let greeting = GREETING.as_bytes().chunks(GREETING.len());
            let own = lines.chunks(piece.max(1));
            for piece in greeting.chain(own).chain([last.as_bytes()]) {
                if ours.write_all(piece).await.is_err() {
                    break;
                }
            }
            let mut answers = BufReader::new(answers).split(b'\n');
            let mut received = Vec::new();
            let is_last = |line: &[u8]| contains(line, ping.as_bytes());
            while let Ok(Some(line)) = answers.next_segment().await {
                let is_pong = is_last(&line);
                received.push(line);
                if is_pong {
                    return (received, true);
                }
            }
            (received, false)
        };
        let served = timeout(TIMEOUT, client).await;
        serving.abort();
        served.expect("the server does not answer")
    })
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|part| part == text)
}
