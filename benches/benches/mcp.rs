//! Calls of the MCP server, compared with the library.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    env,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, duplex},
    process::Command as Process,
};
use vmcell::{
    Command,
    workspace::{NewWorkspace, Workspaces},
};
use vmcell_benches::summary::{Bound, fact, head, median, median_round, row};
use vmcell_mcp::McpServer;

const ROUNDS: usize = 9;
const CALLS: usize = 50;
const STARTS: usize = 21;

/// Makes this program the server, on its standard streams.
const SERVE: &str = "--serve";

#[tokio::main]
async fn main() -> Result<()> {
    if env::args().any(|argument| argument == SERVE) {
        return Ok(McpServer::builder()
            .build()?
            .serve_standard_streams()
            .await?);
    }
    head();
    calls().await?;
    starts().await
}

/// A client that costs next to nothing.
struct Client<R, W> {
    input: W,
    output: BufReader<R>,
    line: String,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Client<R, W> {
    async fn new(output: R, input: W) -> Result<Self> {
        let mut this = Self {
            input,
            output: BufReader::new(output),
            line: String::new(),
        };
        let client = json!({ "name": "bench", "version": "1" });
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": client,
        });
        this.request("initialize", hello).await?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        this.send(&ready).await?;
        Ok(this)
    }

    async fn send(&mut self, message: &Value) -> Result<()> {
        let line = format!("{message}\n");
        Ok(self.input.write_all(line.as_bytes()).await?)
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send(&message).await?;
        self.line.clear();
        self.output.read_line(&mut self.line).await?;
        let answer: Value = serde_json::from_str(&self.line)?;
        ensure!(answer["result"].is_object(), "{answer}");
        Ok(answer)
    }

    /// Returns the median time of a request.
    async fn time(&mut self, method: &str, params: &Value) -> Result<Duration> {
        let mut times = Vec::new();
        for _ in 0..CALLS {
            let begun = Instant::now();
            let answer = self.request(method, params.clone()).await?;
            times.push(begun.elapsed());
            ensure!(answer["result"]["isError"] != true, "{answer}");
        }
        Ok(median(times))
    }
}

async fn calls() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let workspaces = Workspaces::at(folder.path())?;
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let workspace = workspaces.create(NewWorkspace::new(image)).await?;
    let server = McpServer::builder().workspaces(workspaces.clone());
    let server = server.vms(workspaces).build()?;
    let (ours, theirs) = duplex(64 * 1024);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move { server.serve(input, output).await });
    let (read, write) = tokio::io::split(ours);
    let mut client = Client::new(read, write).await?;

    let exec = json!({
        "name": "workspace_exec",
        "arguments": { "workspace_id": workspace.id(), "command": ["/bin/true"] },
    });
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let called = client.time("tools/call", &exec).await?;
        let ping = client.time("ping", &json!({})).await?;
        let mut times = Vec::new();
        for _ in 0..CALLS {
            let begun = Instant::now();
            let output = workspace.exec(Command::new("/bin/true")).await?;
            times.push(begun.elapsed());
            ensure!(output.success(), "{output:?}");
        }
        rounds.push((called, median(times) + ping));
    }
    let (called, bare) = median_round(rounds);
    row(
        "p50 of `workspace_exec` of /bin/true through the server",
        &format!("{:.2} ms", called.as_secs_f64() * 1e3),
        &format!(
            "{:.2} ms (`Workspace::exec`, and `ping`)",
            bare.as_secs_f64() * 1e3
        ),
        called.as_secs_f64() / bare.as_secs_f64(),
        Bound::AtMost(1.15),
    );
    let list = client.request("tools/list", json!({})).await?;
    let size = list.to_string().len();
    let text = format!("{:.1} KiB", size as f64 / 1024.0);
    fact(
        "`tools/list` of the profile `workspace-full`",
        &text,
        "< 64 KiB",
        size < 64 * 1024,
    );
    drop(client);
    serving.await??;
    Ok(workspace.delete().await?)
}

async fn starts() -> Result<()> {
    let state = tempfile::tempdir()?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let mut server = Process::new(env::current_exe()?)
            .arg(SERVE)
            .env("XDG_STATE_HOME", state.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = server.stdin.take().context("no standard input")?;
        let output = server.stdout.take().context("no standard output")?;
        let client = Client::new(output, input).await?;
        times.push(begun.elapsed());
        drop(client);
        ensure!(server.wait().await?.success());
    }
    let time = median(times);
    let text = format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let kept = time < Duration::from_millis(50);
    fact(
        "start of the server to its first answer",
        &text,
        "< 50 ms",
        kept,
    );
    Ok(())
}
