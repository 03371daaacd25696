use std::{io, time::Duration};

use bytes::BytesMut;
use rustix::net::sockopt::set_socket_linger;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, tcp::ReadHalf},
};

use super::connection::{Connection, ConnectionReader, ConnectionWriter};

/// Copies bytes between a client and a program of the guest until both have
/// closed their direction. Applies backpressure: what a client does not read is
/// not taken from the guest.
///
/// `meter` is told of the bytes of each direction, and ends it with an error.
///
/// If this fails or is dropped, the client's connection is reset.
pub(crate) async fn relay(
    client: &mut TcpStream,
    connection: Connection,
    meter: &impl Meter,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (reader, writer) = connection.into_split();
    let (from_client, to_client) = client.split();
    tokio::try_join!(
        to_guest(&from_client, writer, meter),
        from_guest(reader, to_client, meter)
    )?;
    set_socket_linger(&*client, None)?;
    Ok(())
}

/// Makes closing the socket reset the client's connection: SO_LINGER in
/// socket(7).
pub(crate) fn reset_on_close(client: &TcpStream) -> io::Result<()> {
    Ok(set_socket_linger(client, Some(Duration::ZERO))?)
}

/// The read size for a client that sends little.
const SMALL_READ: usize = 8 * 1024;

/// The read size for a client that sends much.
const LARGE_READ: usize = 64 * 1024;

/// Copies as [`relay`] does, with any stream in place of a TCP connection.
pub(crate) async fn relay_stream(
    stream: impl AsyncRead + AsyncWrite,
    connection: Connection,
    meter: &impl Meter,
) -> io::Result<()> {
    let (reader, writer) = connection.into_split();
    let (mut from_stream, to_stream) = tokio::io::split(stream);
    let to_guest = async {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(SMALL_READ);
            let count = from_stream.read_buf(&mut buffer).await?;
            if count == 0 {
                writer.end();
                return Ok(());
            }
            meter.received(count)?;
            writer.send(buffer.split().freeze()).await?;
        }
    };
    tokio::try_join!(to_guest, from_guest(reader, to_stream, meter))?;
    Ok(())
}

/// Is told of the bytes that are relayed. An error ends the connection.
pub(crate) trait Meter {
    /// The guest gets these bytes.
    fn received(&self, bytes: usize) -> io::Result<()>;
    /// These bytes are the guest's.
    fn sent(&self, bytes: usize) -> io::Result<()>;
}

impl<M: Meter> Meter for std::sync::Arc<M> {
    fn received(&self, bytes: usize) -> io::Result<()> {
        M::received(self, bytes)
    }

    fn sent(&self, bytes: usize) -> io::Result<()> {
        M::sent(self, bytes)
    }
}

/// Counts nothing.
impl Meter for () {
    fn received(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn sent(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
}

async fn to_guest(
    client: &ReadHalf<'_>,
    writer: ConnectionWriter,
    meter: &impl Meter,
) -> io::Result<()> {
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
                meter.received(count)?;
                writer.send(buffer.split().freeze()).await?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn from_guest(
    mut reader: ConnectionReader,
    mut client: impl AsyncWrite + Unpin,
    meter: &impl Meter,
) -> io::Result<()> {
    while let Some(bytes) = reader.chunk().await? {
        meter.sent(bytes.len())?;
        client.write_all(&bytes).await?;
    }
    client.shutdown().await?;
    // The program may still read more, or break the connection.
    reader.closed().await
}
