use std::{
    io,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

/// The baseline manifest, as bytes that the owner keeps for clients.
#[derive(Debug, Default)]
pub(crate) struct BaselineSlot(Mutex<Bytes>);

/// The limit for a received baseline. The owner is of our own user, but may be
/// faulty.
const MAX_SIZE: u64 = 512 << 20;

impl BaselineSlot {
    pub(crate) fn put(&self, bytes: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    }

    /// Returns the bytes, or none if no baseline was set.
    pub(crate) fn get(&self) -> Bytes {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.clone()
    }

    pub(super) async fn send(&self, socket: &mut UnixStream) -> io::Result<()> {
        let bytes = self.get();
        socket.write_u64_le(bytes.len() as u64).await?;
        socket.write_all(&bytes).await
    }

    pub(super) async fn receive(socket: &mut UnixStream) -> io::Result<Bytes> {
        let size = socket.read_u64_le().await?;
        if size > MAX_SIZE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = Vec::new();
        let count = socket.take(size).read_to_end(&mut bytes).await?;
        if count as u64 != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes.into())
    }
}
