//! Ports of a guest.

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};
use vmcell::{Command, Error, Vm, port::PortError};

use super::guest_port;
use crate::random::Random;

/// Sends bytes through connections to a server that sends them back.
pub(super) async fn echo(vm: &Vm, random: &mut Random) -> Result<()> {
    let port = guest_port(random);
    let text = port.to_string();
    let argv = ["nc", "-ll", "-p", &text, "-e", "cat"];
    let server = vm.spawn(Command::from_argv(argv)).await?;
    let connection = loop {
        match vm.ports().dial(port).await {
            // The server is being started.
            Err(Error::Port(PortError::NobodyListens { .. })) => {}
            dialled => break dialled?,
        }
    };
    let mut own = random.fork();
    exchange(connection, &mut own).await?;
    let published = vm.ports().publish(port).await?;
    let exchanges = (0..random.below(4) + 1).map(|_| {
        let mut random = random.fork();
        let address = published.address();
        async move { exchange(TcpStream::connect(address).await?, &mut random).await }
    });
    try_join_all(exchanges.collect::<Vec<_>>()).await?;
    published.close().await;
    ensure!(
        TcpStream::connect(published.address()).await.is_err(),
        "a port that was closed is still open"
    );
    server.kill().await?;
    server.forget().await?;
    Ok(())
}

/// Sends bytes, and receives the same.
async fn exchange(connection: impl AsyncRead + AsyncWrite, random: &mut Random) -> Result<()> {
    let count = random.size_below(500_000) + 1;
    let bytes = random.bytes(count);
    let (mut from, mut to) = tokio::io::split(connection);
    let write = async {
        to.write_all(&bytes).await?;
        anyhow::Ok(())
    };
    let read = async {
        // Only so many: `nc` does not pass the end of the input on.
        let mut received = vec![0; count];
        from.read_exact(&mut received).await?;
        anyhow::Ok(received)
    };
    let ((), received) = tokio::try_join!(write, read)?;
    ensure!(received == bytes, "{count} bytes came back as others");
    Ok(())
}
