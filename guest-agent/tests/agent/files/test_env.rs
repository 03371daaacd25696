use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use tempfile::TempDir;
use vmcell_wire::{
    Channel, FailureKind, Request,
    files::{
        FileKind, FileOperation, FileReply, FileRequest, Owner, Precondition, Write, WriteMode,
        record::{self, Piece, Reader},
    },
};

use crate::client::{Host, Reply, RunningAgent};

/// An agent, and a directory that is the root of its operations. Beside it is
/// another one, `outside`, that no operation may touch.
pub(crate) struct TestEnv {
    pub(crate) host: Host,
    _agent: RunningAgent,
    directory: TempDir,
}

/// The failure of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: FailureKind,
    pub(crate) errno: u16,
}

/// The entry in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryAnswer {
    pub(crate) kind: FileKind,
    pub(crate) mode: u16,
    pub(crate) size: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) owner: String,
    pub(crate) modified: i64,
    pub(crate) target: Vec<u8>,
    pub(crate) digest: Option<[u8; 32]>,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        Self::within(TempDir::new().unwrap())
    }

    pub(crate) fn within(directory: TempDir) -> Self {
        let agent = RunningAgent::start();
        let host = agent.connect_with_window(1024 * 1024);
        std::fs::create_dir(directory.path().join("root")).unwrap();
        std::fs::create_dir(directory.path().join("outside")).unwrap();
        std::fs::write(directory.path().join("outside/secret"), "secret").unwrap();
        Self {
            host,
            _agent: agent,
            directory,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        // The path of temporary directories may contain a link.
        self.directory.path().canonicalize().unwrap().join("root")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.directory
            .path()
            .canonicalize()
            .unwrap()
            .join("outside")
    }

    /// Returns a path within the root.
    pub(crate) fn at(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.root().join(OsStr::from_bytes(path.as_ref()))
    }

    /// Performs an operation, and returns its output.
    pub(crate) fn perform(&mut self, operation: FileOperation<'_>) -> Result<Vec<u8>, Refusal> {
        self.perform_with(operation, b"")
    }

    pub(crate) fn perform_with(
        &mut self,
        operation: FileOperation<'_>,
        input: &[u8],
    ) -> Result<Vec<u8>, Refusal> {
        let root = self.root();
        self.work_in(&root, operation, input)
    }

    pub(crate) fn work_in(
        &mut self,
        root: &Path,
        operation: FileOperation<'_>,
        input: &[u8],
    ) -> Result<Vec<u8>, Refusal> {
        let root = root.as_os_str().as_bytes();
        let stream = self
            .host
            .open(&Request::Files(FileRequest { root, operation }));
        self.host.feed(stream, input);
        match self.host.outcome(stream) {
            Reply::Done(_) => {
                let output = self.host.seen.remove(&(stream, Channel::Stdout));
                Ok(output.unwrap_or_default())
            }
            Reply::Failed(_, kind, errno, _) => Err(Refusal { kind, errno }),
            other => panic!("unexpected {other:?}"),
        }
    }

    /// Performs an operation that answers with an entry.
    pub(crate) fn entry(&mut self, operation: FileOperation<'_>) -> Result<EntryAnswer, Refusal> {
        self.perform(operation).map(|bytes| decode_entry(&bytes))
    }

    pub(crate) fn read(&mut self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, Refusal> {
        self.perform(FileOperation::Read {
            path: path.as_ref(),
            offset: 0,
            length: u64::MAX,
        })
    }

    pub(crate) fn write(
        &mut self,
        path: impl AsRef<[u8]>,
        bytes: impl AsRef<[u8]>,
    ) -> Result<EntryAnswer, Refusal> {
        self.write_with(path, bytes, |_| {})
    }

    pub(crate) fn write_with(
        &mut self,
        path: impl AsRef<[u8]>,
        bytes: impl AsRef<[u8]>,
        change: impl FnOnce(&mut Write<'_>),
    ) -> Result<EntryAnswer, Refusal> {
        let mut write = Write {
            path: path.as_ref(),
            write_mode: WriteMode::Replace,
            precondition: Precondition::Anything,
            mode: None,
            owner: Owner::OfDirectory,
            size: None,
            sync: false,
        };
        change(&mut write);
        self.perform_with(FileOperation::Write(write), bytes.as_ref())
            .map(|bytes| decode_entry(&bytes))
    }

    pub(crate) fn stat(&mut self, path: impl AsRef<[u8]>) -> Result<EntryAnswer, Refusal> {
        self.entry(FileOperation::Stat {
            path: path.as_ref(),
            follow: false,
            digest: true,
        })
    }

    /// Returns the sorted paths of everything in the root.
    pub(crate) fn listing(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut rest = vec![self.root()];
        while let Some(directory) = rest.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let path = entry.path();
                let below = path.strip_prefix(self.root()).unwrap();
                all.push(below.to_string_lossy().into_owned());
                if entry.file_type().unwrap().is_dir() {
                    rest.push(path);
                }
            }
        }
        all.sort();
        all
    }

    /// Asserts that nothing outside of the root was touched.
    #[track_caller]
    pub(crate) fn assert_outside_untouched(&self) {
        let names: Vec<_> = std::fs::read_dir(self.outside())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["secret"]);
        let secret = std::fs::read(self.outside().join("secret")).unwrap();
        assert_eq!(secret, b"secret");
    }
}

fn decode_entry(bytes: &[u8]) -> EntryAnswer {
    let mut input = bytes;
    let mut reader = Reader::new();
    let Some(Piece::Message(message)) = reader.next(&mut input).unwrap() else {
        panic!("no answer");
    };
    let answer: FileReply<'_> = record::decode(message).unwrap();
    assert!(answer.is_valid() && input.is_empty());
    let FileReply::Entry(entry) = answer else {
        panic!("unexpected {answer:?}");
    };
    EntryAnswer {
        kind: entry.kind,
        mode: entry.mode,
        size: entry.size,
        uid: entry.uid,
        gid: entry.gid,
        owner: entry.owner.into(),
        modified: entry.modified.seconds,
        target: entry.target.into(),
        digest: entry.digest,
    }
}

pub(crate) fn digest(bytes: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Returns whether the tests run as root, and prints that one is skipped if not.
pub(crate) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: only root can set this up");
    }
    is_root
}

pub(crate) const INVALID: FailureKind = FailureKind::Invalid;
pub(crate) const DENIED: FailureKind = FailureKind::Denied;
pub(crate) const NOT_FOUND: FailureKind = FailureKind::NotFound;
pub(crate) const CONFLICT: FailureKind = FailureKind::Conflict;
pub(crate) const LIMIT: FailureKind = FailureKind::Limit;

/// Returns the kind of a failure.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Refusal>) -> FailureKind {
    outcome.unwrap_err().kind
}
