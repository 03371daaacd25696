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

/// Copies bytes between a client and a program of the guest until both have
/// closed their direction. Applies backpressure: what a client does not read is
/// not taken from the guest.
///
/// If this fails or is dropped, the client's connection is reset.
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

/// Makes closing the socket reset the client's connection: SO_LINGER in
/// socket(7).
pub(super) fn reset_on_close(client: &TcpStream) -> io::Result<()> {
    Ok(set_socket_linger(client, Some(Duration::ZERO))?)
}

/// The read size for a client that sends little.
const SMALL_READ: usize = 8 * 1024;

/// The read size for a client that sends much.
const LARGE_READ: usize = 64 * 1024;

async fn to_guest(client: &ReadHalf<'_>, writer: ConnectionWriter) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    let mut size = SMALL_READ;
    loop {
        // No buffer is allocated for an idle client.
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
                if count >= SMALL_READ / 2 {
                    size = LARGE_READ;
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
    // The program may still read more, or break the connection.
    reader.closed().await
}
