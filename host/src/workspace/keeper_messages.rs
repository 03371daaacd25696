//! What a program and the keeper that it starts tell each other: lines of JSON, on a
//! socket that is the keeper's standard input. The locks of the workspace go with the
//! first line.

use std::{
    io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read as _, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::{
    record::Record,
    seed::{OnSeed, Seed, SeedProgress},
};

/// What the keeper is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeeperRequest {
    /// The folder of the workspace.
    pub(super) folder: PathBuf,
    pub(super) task: KeeperTask,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KeeperTask {
    /// Start it.
    Start,
    /// Boot and fill a new one, and write its first record.
    Create {
        record: Box<Record>,
        seed: Option<Seed>,
        #[serde(default)]
        is_warm: bool,
        /// Whether to tell how much of the seed was copied.
        #[serde(default)]
        tells_progress: bool,
    },
}

/// What the keeper tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KeeperReport {
    /// So much of the seed was copied. Only if the other program wants to know.
    Seeding { entries: u64, bytes: u64 },
    /// The workspace runs.
    Ready,
    /// It does not, and the keeper ends.
    Failed { reason: String },
    /// It does not, because the disk is full.
    DiskFull { path: PathBuf, reason: String },
}

/// The most bytes of a line that are read.
const MAX_LINE: u64 = 4 << 20;

/// Sends a request and the descriptors of two locks.
pub(super) fn send_request(
    socket: &mut UnixStream,
    request: &KeeperRequest,
    locks: [&OwnedFd; 2],
) -> io::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let locks = locks.map(OwnedFd::as_fd);
    ancillary.push(SendAncillaryMessage::ScmRights(&locks));
    let slices = [IoSlice::new(&line)];
    let sent = sendmsg(&*socket, &slices, &mut ancillary, SendFlags::NOSIGNAL)?;
    // The descriptors went with the first byte.
    socket.write_all(line.get(sent..).unwrap_or_default())
}

/// Receives a request and the descriptors of two locks.
pub(super) fn receive_request(socket: &UnixStream) -> io::Result<(KeeperRequest, [OwnedFd; 2])> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut first = vec![0; 4096];
    let mut slices = [IoSliceMut::new(&mut first)];
    let received = recvmsg(socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    first.truncate(received.bytes);
    let mut locks = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            locks.extend(descriptors);
        }
    }
    let locks = <[OwnedFd; 2]>::try_from(locks)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the locks are missing"))?;
    let line = read_line(BufReader::new(first.as_slice().chain(socket)))?;
    Ok((serde_json::from_slice(&line)?, locks))
}

pub(super) fn send_report(mut socket: &UnixStream, report: &KeeperReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// Receives the report that ends the others, which go to `on_seed`. Fails at the end of the
/// keeper.
pub(super) fn receive_report(socket: &UnixStream, on_seed: &OnSeed) -> io::Result<KeeperReport> {
    let mut reader = BufReader::new(socket);
    loop {
        let line = read_line(&mut reader)?;
        match serde_json::from_slice(&line)? {
            KeeperReport::Seeding { entries, bytes } => {
                if let Some(on_seed) = on_seed {
                    on_seed(SeedProgress { entries, bytes });
                }
            }
            report => return Ok(report),
        }
    }
}

pub(super) fn read_line(reader: impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(MAX_LINE).read_until(b'\n', &mut line)?;
    match line.last() {
        Some(b'\n') => Ok(line),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, sync::mpsc};

    use super::*;

    #[test]
    fn a_request_arrives_with_its_locks() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let request = KeeperRequest {
            folder: "/a".repeat(10_000).into(),
            task: KeeperTask::Start,
        };
        let file = || OwnedFd::from(File::open("/dev/null").unwrap());
        send_request(&mut ours, &request, [&file(), &file()]).unwrap();
        let (received, _) = receive_request(&theirs).unwrap();
        assert_eq!(received.folder, request.folder);
        assert!(matches!(received.task, KeeperTask::Start));
    }

    #[test]
    fn a_request_without_locks_is_refused() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"{}\n").unwrap();
        let error = receive_request(&theirs).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_keeper_that_ends_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (entries, bytes) = (2, 30);
        send_report(&theirs, &KeeperReport::Seeding { entries, bytes }).unwrap();
        send_report(&theirs, &KeeperReport::Ready).unwrap();
        let (sender, seen) = mpsc::channel();
        let on_seed: OnSeed = Some(Box::new(move |progress| sender.send(progress).unwrap()));
        let report = receive_report(&ours, &on_seed);
        assert!(matches!(report, Ok(KeeperReport::Ready)));
        assert_eq!(seen.recv().unwrap(), SeedProgress { entries, bytes });
        drop(theirs);
        assert!(receive_report(&ours, &None).is_err());
    }
}
