use std::{io, time::Duration};

use bytes::BytesMut;
use rustix::net::sockopt::set_socket_linger;
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
};

use super::connection::{Connection, ConnectionReader, ConnectionWriter};

/// Moves bytes between a client and a program of the guest until both have said
/// all. Each waits for the other: what a client does not read is not taken from
/// the guest.
///
/// However else this ends, or if it is dropped, the client sees a reset.
pub(super) async fn relay(client: &mut TcpStream, connection: Connection) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (reader, writer) = connection.into_split();
    let (from_client, to_client) = client.split();
    tokio::try_join!(
        to_guest(&from_client, writer),
        from_guest(reader, to_client)
    )?;
    set_socket_linger(&*client, None)?;
    Ok(())
}

/// Has a client see a reset when its socket is closed: SO_LINGER in socket(7).
pub(super) fn reset_on_close(client: &TcpStream) -> io::Result<()> {
    Ok(set_socket_linger(client, Some(Duration::ZERO))?)
}

/// What is read at once from a client that says little.
const LITTLE: usize = 8 * 1024;

/// The same for one that says much.
const MUCH: usize = 64 * 1024;

async fn to_guest(client: &ReadHalf<'_>, writer: ConnectionWriter) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    let mut size = LITTLE;
    loop {
        // Nothing is allocated for a client that is silent.
        client.readable().await?;
        if buffer.capacity() < size / 2 {
            buffer.reserve(size);
        }
        match client.try_read_buf(&mut buffer) {
            Ok(0) => {
                writer.end();
                return Ok(());
            }
            Ok(count) => {
                if count >= LITTLE / 2 {
                    size = MUCH;
                }
                writer.send(buffer.split().freeze()).await?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn from_guest(mut reader: ConnectionReader, mut client: WriteHalf<'_>) -> io::Result<()> {
    while let Some(bytes) = reader.chunk().await? {
        client.write_all(&bytes).await?;
    }
    client.shutdown().await?;
    // The program may take more, or break the connection.
    reader.closed().await
}
