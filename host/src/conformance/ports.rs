//! Servers in the guest.

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    scene::Scene,
    streams::pattern,
    unmet::{Seen, demand, refused},
};
use crate::{
    process::Command,
    service::{Probe, ServiceSpec},
};

const PORT: u16 = 7007;

pub(super) async fn port(scene: Scene) -> Seen {
    refused(
        "dialling nobody",
        scene.vm.ports().dial(PORT).await,
        "nobody-listens",
    )?;
    let server = Command::from_argv(["nc", "-ll", "-p", &PORT.to_string(), "-e", "cat"]);
    let spec = ServiceSpec::new(server).ready(Probe::tcp(PORT));
    let service = scene.vm.services().start("echo", spec).await?;
    service.ready().await?;
    echoes(scene.vm.ports().dial(PORT).await?).await?;
    let published = scene.vm.ports().publish(PORT).await?;
    echoes(TcpStream::connect(published.address()).await?).await?;
    published.close().await;
    let closed = TcpStream::connect(published.address()).await;
    demand(closed.is_err(), || "a closed port is open".to_owned())?;
    service.stop().await?;
    Ok(service.remove().await?)
}

/// Whether what is sent comes back.
async fn echoes(connection: impl AsyncRead + AsyncWrite) -> Seen {
    let bytes = pattern(200_000);
    let (mut reader, mut writer) = tokio::io::split(connection);
    let mut heard = vec![0; bytes.len()];
    let (written, read) = tokio::join!(writer.write_all(&bytes), reader.read_exact(&mut heard));
    written?;
    read?;
    demand(heard == bytes, || {
        "what came back is something else".to_owned()
    })
}
