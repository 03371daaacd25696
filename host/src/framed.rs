//! Messages from one program of a user to another: postcard, after their length.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The size of the largest message that is read.
const MAX_MESSAGE: u32 = 4 << 20;

/// Sends a message.
pub(crate) async fn send(
    socket: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> io::Result<()> {
    let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    socket.write_all(&length.to_le_bytes()).await?;
    socket.write_all(&bytes).await
}

/// Receives a message.
pub(crate) async fn receive<T: for<'a> Deserialize<'a>>(
    socket: &mut (impl AsyncRead + Unpin),
) -> io::Result<T> {
    let length = socket.read_u32_le().await?;
    if length > MAX_MESSAGE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    socket.read_exact(&mut bytes).await?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}
