use std::{convert::Infallible, io};

use tokio::net::UnixStream;

use super::{LinkError, Shared, rate::MAX_PIECE};

/// Writes the outgoing queue to the link until a write fails.
pub(super) async fn run(link: &UnixStream, shared: &Shared) -> Result<Infallible, LinkError> {
    loop {
        for piece in shared.outgoing.take().await {
            let rate = shared.outgoing.rate();
            let longest = match rate.is_limited() {
                true => MAX_PIECE,
                false => piece.len().max(1),
            };
            for piece in piece.chunks(longest) {
                rate.ready().await;
                write(link, piece).await?;
                shared.outgoing.count_written(piece.len());
            }
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
