//! Ports of servers in the guest.

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    check::{CheckResult, ensure, ensure_error_code},
    context::CheckContext,
    streams::pattern,
};
use crate::{
    process::Command,
    service::{Probe, ServiceSpec},
};

const PORT: u16 = 7007;

pub(super) async fn port(context: CheckContext) -> CheckResult {
    ensure_error_code(
        "dialling a port without listener",
        context.vm.ports().dial(PORT).await,
        "nobody-listens",
    )?;
    let server = Command::from_argv(["nc", "-ll", "-p", &PORT.to_string(), "-e", "cat"]);
    let spec = ServiceSpec::new(server).ready(Probe::tcp(PORT));
    let service = context.vm.services().start("echo", spec).await?;
    service.ready().await?;
    echoes(context.vm.ports().dial(PORT).await?).await?;
    let published = context.vm.ports().publish(PORT).await?;
    echoes(TcpStream::connect(published.address()).await?).await?;
    published.close().await;
    let closed = TcpStream::connect(published.address()).await;
    ensure(closed.is_err(), || "a closed port is open".to_owned())?;
    service.stop().await?;
    Ok(service.remove().await?)
}

/// Checks that what is sent comes back.
async fn echoes(connection: impl AsyncRead + AsyncWrite) -> CheckResult {
    let bytes = pattern(200_000);
    let (mut reader, mut writer) = tokio::io::split(connection);
    let mut heard = vec![0; bytes.len()];
    let (written, read) = tokio::join!(writer.write_all(&bytes), reader.read_exact(&mut heard));
    written?;
    read?;
    ensure(heard == bytes, || {
        "what came back is something else".to_owned()
    })
}
