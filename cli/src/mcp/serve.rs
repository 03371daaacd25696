//! `vmcell mcp serve`: the server of the Model Context Protocol.

use std::{
    ffi::OsStr,
    io::{self, Write as _},
    net::SocketAddr,
};

use anyhow::Context as _;
use vmcell::tool::{Tool, ToolPolicy};
use vmcell_cli::signals::Signals;
use vmcell_mcp::McpServer;

use super::arguments::ServeArguments;
use crate::{environment, runtime::block_on, workspace};

pub(super) fn serve(arguments: &ServeArguments) -> anyhow::Result<u8> {
    let mut builder = McpServer::builder()
        .profile(arguments.profile)
        .keeper(workspace::keeper()?);
    for folder in &arguments.allowed_paths {
        let allowed = builder.allow_path(folder);
        builder = allowed.with_context(|| format!("--allow-path {}", folder.display()))?;
    }
    if let Some(path) = &arguments.policy {
        let tool = Tool::builder(ToolPolicy::read(path)?).environments(|name| {
            environment::image(OsStr::new(name)).map_err(|error| format!("{error:#}"))
        });
        builder = builder.tool(tool.build()?);
    }
    let server = builder.build()?;
    block_on(async move {
        let mut signals = Signals::all()?;
        let served = tokio::select! {
            served = serve_clients(&server, arguments.listen) => served.map(|()| 0),
            code = signals.next() => Ok(code),
        };
        server.close().await;
        served
    })
}

async fn serve_clients(server: &McpServer, address: Option<SocketAddr>) -> anyhow::Result<()> {
    let Some(address) = address else {
        let served = server.serve_standard_streams().await;
        return served.context("cannot serve the client");
    };
    let http = server.listen(address).await.context("--listen")?;
    let mut out = io::stdout();
    writeln!(out, "{}", http.url())?;
    writeln!(out, "Authorization: Bearer {}", http.token())?;
    out.flush()?;
    http.run().await.context("cannot serve clients")
}
