//! The record with which the owner reports to clients how the VM ended.
//!
//! ```text
//! reason (1 byte)  has status (0 or 1)  status as of wait(2) (i32 le)
//! ```

use std::{io, os::unix::process::ExitStatusExt as _, process::ExitStatus};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use crate::vm::{End, VmEnd};

/// The byte of each reason. A byte is never reused for another reason.
const REASONS: [(End, u8); 9] = [
    (End::Stopped, b's'),
    (End::Killed, b'k'),
    (End::StopTimedOut, b't'),
    (End::Died, b'd'),
    (End::ProtocolViolation, b'u'),
    (End::Unknown, b'?'),
    (End::NotClean, b'n'),
    (End::StoppedUnproven, b'p'),
    (End::CpuTimeUsed, b'c'),
];

pub(super) async fn send(socket: &mut UnixStream, end: VmEnd) -> io::Result<()> {
    let known = REASONS
        .into_iter()
        .find(|(reason, _)| *reason == end.reason);
    let reason = known.map_or(b'?', |(_, byte)| byte);
    let status = end.status.map_or(0, |status| status.into_raw());
    let mut record = vec![reason, u8::from(end.status.is_some())];
    record.extend_from_slice(&status.to_le_bytes());
    socket.write_all(&record).await
}

/// Receives the record. Fails if the owner is gone. Returns [`End::Unknown`] for
/// a reason that this version does not know.
pub(super) async fn receive(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<VmEnd> {
    let byte = socket.read_u8().await?;
    receive_after(byte, socket).await
}

/// Receives the rest of a record after its first byte.
pub(super) async fn receive_after(
    byte: u8,
    socket: &mut (impl AsyncRead + Unpin),
) -> io::Result<VmEnd> {
    let has_status = socket.read_u8().await? != 0;
    let status = socket.read_i32_le().await?;
    let known = REASONS.into_iter().find(|(_, known)| *known == byte);
    let reason = known.map_or(End::Unknown, |(reason, _)| reason);
    let status = has_status.then(|| ExitStatus::from_raw(status));
    Ok(VmEnd { reason, status })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_end_arrives_as_it_was_told() {
        let (mut owner, mut client) = UnixStream::pair().unwrap();
        for (reason, _) in REASONS {
            for status in [None, Some(0), Some(9), Some(1 << 8)] {
                let status = status.map(ExitStatus::from_raw);
                let end = VmEnd { reason, status };
                send(&mut owner, end).await.unwrap();
                assert_eq!(receive(&mut client).await.unwrap(), end);
            }
        }
        drop(owner);
        assert!(receive(&mut client).await.is_err());
    }
}
