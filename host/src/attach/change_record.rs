//! The record with which the owner reports to a client whether it has paused or resumed
//! the VM.
//!
//! ```text
//! length of the error (u16 le), 0 if it is done  the error
//! ```

use std::io;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};
use vmcell_tree::truncate_text;

use crate::error::Error;

/// The longest error that is sent, in bytes.
const MAX_ERROR: usize = 4096;

pub(super) async fn send(socket: &mut UnixStream, result: Result<(), Error>) -> io::Result<()> {
    let text = result.map_or_else(|error| error.with_causes(), |()| String::new());
    let text = truncate_text(&text, MAX_ERROR);
    let length = u16::try_from(text.len()).map_err(io::Error::other)?;
    socket.write_all(&length.to_le_bytes()).await?;
    socket.write_all(text.as_bytes()).await
}

/// Receives the record: `Err` with the owner's error. Fails if the owner is gone.
pub(super) async fn receive(
    socket: &mut (impl AsyncRead + Unpin),
) -> io::Result<Result<(), String>> {
    let length = socket.read_u16_le().await?;
    if length == 0 {
        return Ok(Ok(()));
    }
    let mut text = vec![0; usize::from(length).min(MAX_ERROR)];
    socket.read_exact(&mut text).await?;
    Ok(Err(String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_result_arrives_as_it_was_sent() {
        let (mut owner, mut client) = UnixStream::pair().unwrap();
        send(&mut owner, Ok(())).await.unwrap();
        assert_eq!(receive(&mut client).await.unwrap(), Ok(()));
        send(&mut owner, Err(Error::Paused)).await.unwrap();
        let expected = Err(Error::Paused.to_string());
        assert_eq!(receive(&mut client).await.unwrap(), expected);
        drop(owner);
        assert!(receive(&mut client).await.is_err());
    }
}
