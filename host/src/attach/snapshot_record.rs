//! The records of a snapshot that a client requests.
//!
//! ```text
//!  client  flags (u8)  length of the path (u32 le)  the path
//!  owner   whether it is done, as in `change_record.rs`;
//!          then the pause in ns (u64 le), the bytes on the disk (u64 le)
//! ```

use std::{
    ffi::OsString,
    io,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use super::change_record;
use crate::{
    error::Error,
    snapshot::{SnapshotOptions, SnapshotReport},
};

const COMPRESS: u8 = 1;
const END_VM: u8 = 2;
const LEAVE_DISK: u8 = 4;

/// The longest path that the kernel accepts, and more.
const MAX_PATH: usize = 64 * 1024;

pub(super) async fn send_request(
    socket: &mut UnixStream,
    path: &Path,
    options: SnapshotOptions,
) -> io::Result<()> {
    let path = path.as_os_str().as_bytes();
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    let flags = flag(options.compress, COMPRESS)
        | flag(options.end_vm, END_VM)
        | flag(options.leave_disk, LEAVE_DISK);
    let length = u32::try_from(path.len()).map_err(io::Error::other)?;
    let mut record = vec![flags];
    record.extend(length.to_le_bytes());
    record.extend(path);
    socket.write_all(&record).await
}

pub(super) async fn receive_request(
    socket: &mut (impl AsyncRead + Unpin),
) -> io::Result<(PathBuf, SnapshotOptions)> {
    let flags = socket.read_u8().await?;
    let length = socket.read_u32_le().await?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MAX_PATH {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut path = vec![0; length];
    socket.read_exact(&mut path).await?;
    let options = SnapshotOptions::new()
        .compress(flags & COMPRESS != 0)
        .end_vm(flags & END_VM != 0)
        .leave_disk(flags & LEAVE_DISK != 0);
    Ok((OsString::from_vec(path).into(), options))
}

pub(super) async fn send_result(
    socket: &mut UnixStream,
    result: Result<SnapshotReport, Error>,
) -> io::Result<()> {
    let (report, result) = match result {
        Ok(report) => (Some(report), Ok(())),
        Err(error) => (None, Err(error)),
    };
    change_record::send(socket, result).await?;
    let Some(report) = report else {
        return Ok(());
    };
    let pause = u64::try_from(report.pause.as_nanos()).unwrap_or(u64::MAX);
    socket.write_all(&pause.to_le_bytes()).await?;
    socket.write_all(&report.bytes.to_le_bytes()).await
}

/// Receives the result: `Err` with the owner's error. Fails if the owner is gone.
pub(super) async fn receive_result(
    socket: &mut (impl AsyncRead + Unpin),
) -> io::Result<Result<SnapshotReport, String>> {
    if let Err(error) = change_record::receive(socket).await? {
        return Ok(Err(error));
    }
    let pause = Duration::from_nanos(socket.read_u64_le().await?);
    let bytes = socket.read_u64_le().await?;
    Ok(Ok(SnapshotReport { pause, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_and_results_arrive_as_they_were_sent() {
        let (mut owner, mut client) = UnixStream::pair().unwrap();
        let path = Path::new("/a/path with spaces/\u{e9}");
        for options in [
            SnapshotOptions::new(),
            SnapshotOptions::new().compress(true),
            SnapshotOptions::new().end_vm(true),
            SnapshotOptions::new().leave_disk(true),
        ] {
            send_request(&mut client, path, options).await.unwrap();
            let received = receive_request(&mut owner).await.unwrap();
            assert_eq!(received, (path.to_owned(), options));
        }
        let report = SnapshotReport {
            pause: Duration::from_micros(1234),
            bytes: 1 << 40,
        };
        send_result(&mut owner, Ok(report)).await.unwrap();
        assert_eq!(receive_result(&mut client).await.unwrap(), Ok(report));
        send_result(&mut owner, Err(Error::Paused)).await.unwrap();
        let expected = Err(Error::Paused.to_string());
        assert_eq!(receive_result(&mut client).await.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_is_refused() {
        let (mut owner, mut client) = UnixStream::pair().unwrap();
        client
            .write_all(&[0, 0xff, 0xff, 0xff, 0xff])
            .await
            .unwrap();
        let error = receive_request(&mut owner).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
