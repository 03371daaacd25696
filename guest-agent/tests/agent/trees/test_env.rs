//! An agent for file operations on trees, and decoded answers.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use vmcell_wire::{
    Channel, FailureKind, Request, StreamId,
    files::{
        ChangeKind, FileKind, FileOperation, FileReply, FileRequest, Owner, Receive, Send, Usage,
        Walk,
        record::{self, Piece, Reader},
    },
};

use crate::client::{Host, Reply, RunningAgent};

/// An agent, and a directory for it to work in.
pub(crate) struct TestEnv {
    pub(crate) host: Host,
    agent: RunningAgent,
    directory: TempDir,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        let agent = RunningAgent::start();
        Self {
            host: agent.connect_with_window(1024 * 1024),
            agent,
            directory: TempDir::new().unwrap(),
        }
    }

    /// Returns the agent's worker processes.
    pub(crate) fn workers(&self) -> Vec<rustix::process::Pid> {
        let agent = self.agent.child.id().to_string();
        let parent = |stat: &str| {
            let fields = stat.rsplit(')').next().unwrap_or_default();
            fields.split(' ').nth(2).map(str::to_owned)
        };
        fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| {
                let name = entry.unwrap().file_name();
                let pid = name.to_str()?.parse().ok()?;
                let stat = fs::read_to_string(Path::new("/proc").join(name).join("stat")).ok()?;
                (parent(&stat)? == agent).then(|| rustix::process::Pid::from_raw(pid))?
            })
            .collect()
    }

    pub(crate) fn root(&self) -> PathBuf {
        // The path of temporary directories may contain a link.
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn perform(&mut self, operation: FileOperation<'_>) -> JobResult {
        let root = self.root();
        self.host.perform(&root, operation, b"")
    }

    /// Sends records to the agent, which creates a tree from them.
    pub(crate) fn push(&mut self, path: &str, records: &[u8]) -> JobResult {
        let root = self.root();
        self.host.push(&root, path, records)
    }

    /// Returns the records of a tree.
    pub(crate) fn pull(&mut self, path: &str) -> JobResult {
        let root = self.root();
        self.host.pull(&root, path)
    }
}

/// Returns temporary names of workers in a tree.
pub(crate) fn leftovers(top: &Path) -> Vec<PathBuf> {
    let is_ours = |path: &PathBuf| path.to_string_lossy().contains(".vmcell-");
    super::snapshot::snapshot(top)
        .into_keys()
        .filter(is_ours)
        .collect()
}

/// The result of a job.
#[derive(Debug)]
pub(crate) struct JobResult {
    pub(crate) failure: Option<FailureKind>,
    /// The text of the failure.
    pub(crate) text: String,
    pub(crate) output: Vec<u8>,
}

impl JobResult {
    pub(crate) fn output(self) -> Vec<u8> {
        assert_eq!(self.failure, None, "{}", self.text);
        self.output
    }

    pub(crate) fn answers(self) -> Vec<OwnedAnswer> {
        answers(&self.output())
    }
}

/// An answer that owns its data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OwnedAnswer {
    Entry(Entry),
    Problem(Vec<u8>, FailureKind),
    Usage(Usage),
    Change(ChangeKind, Vec<u8>),
    Received(u64, u64),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    pub(crate) target: Vec<u8>,
    pub(crate) owner: String,
    pub(crate) digest: Option<[u8; 32]>,
}

impl Host {
    /// Starts a file operation.
    pub(crate) fn begin(&mut self, root: &Path, operation: FileOperation<'_>) -> StreamId {
        let root = root.as_os_str().as_bytes();
        self.open(&Request::Files(FileRequest { root, operation }))
    }

    /// Performs a file operation with this input.
    pub(crate) fn perform(
        &mut self,
        root: &Path,
        operation: FileOperation<'_>,
        input: &[u8],
    ) -> JobResult {
        let stream = self.begin(root, operation);
        self.feed(stream, input);
        self.finish_job(stream)
    }

    pub(crate) fn finish_job(&mut self, stream: StreamId) -> JobResult {
        let failure = match self.outcome(stream) {
            Reply::Done(_) => None,
            Reply::Failed(_, kind, ..) => Some(kind),
            other => panic!("unexpected {other:?}"),
        };
        JobResult {
            failure,
            text: self.failures.remove(&stream).unwrap_or_default(),
            output: self.output(stream, Channel::Stdout).to_vec(),
        }
    }

    pub(crate) fn push(&mut self, root: &Path, path: &str, records: &[u8]) -> JobResult {
        let receive = Receive {
            path: path.as_bytes(),
            owner: Owner::OfDirectory,
            sync: false,
        };
        self.perform(root, FileOperation::Receive(receive), records)
    }

    pub(crate) fn pull(&mut self, root: &Path, path: &str) -> JobResult {
        let send = Send {
            path: path.as_bytes(),
            include: b"",
            exclude: b"",
        };
        self.perform(root, FileOperation::Send(send), b"")
    }
}

/// Returns a request for all entries.
pub(crate) fn walk() -> Walk<'static> {
    Walk {
        path: b"",
        depth: u32::MAX,
        top: false,
        glob: b"",
        include: b"",
        exclude: b"",
        sorted: true,
        digest: false,
        names: false,
    }
}

pub(crate) fn answers(output: &[u8]) -> Vec<OwnedAnswer> {
    let mut reader = Reader::new();
    let answers = more_answers(&mut reader, output);
    assert!(reader.is_between_records());
    answers
}

/// Decodes the answers in a part of an output.
pub(crate) fn more_answers(reader: &mut Reader, output: &[u8]) -> Vec<OwnedAnswer> {
    let mut input = output;
    let mut answers = Vec::new();
    while let Some(piece) = reader.next(&mut input).unwrap() {
        let Piece::Message(message) = piece else {
            panic!("raw bytes among answers");
        };
        let answer: FileReply<'_> = record::decode(message).unwrap();
        assert!(answer.is_valid(), "{answer:?}");
        answers.push(match answer {
            FileReply::Entry(entry) => OwnedAnswer::Entry(Entry {
                path: entry.path.into(),
                kind: entry.kind,
                size: entry.size,
                target: entry.target.into(),
                owner: entry.owner.into(),
                digest: entry.digest,
            }),
            FileReply::Problem { path, failure } => OwnedAnswer::Problem(path.into(), failure.kind),
            FileReply::Usage(usage) => OwnedAnswer::Usage(usage),
            FileReply::Change(change) => OwnedAnswer::Change(change.kind, change.path.into()),
            FileReply::Received { entries, bytes } => OwnedAnswer::Received(entries, bytes),
            other => panic!("unexpected {other:?}"),
        });
    }
    answers
}
