use std::{convert::Infallible, io};

use tokio::net::UnixStream;

use super::{LinkError, Shared};

/// Writes the outgoing queue to the link until a write fails.
pub(super) async fn run(link: &UnixStream, shared: &Shared) -> Result<Infallible, LinkError> {
    loop {
        for piece in shared.outgoing.take().await {
            write(link, &piece).await?;
            shared.outgoing.count_written(piece.len());
        }
    }
}

pub(super) async fn write(link: &UnixStream, mut bytes: &[u8]) -> Result<(), LinkError> {
    while !bytes.is_empty() {
        match link.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => link.writable().await?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
