//! Work on files, asked for and awaited.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use vmcell_wire::{
    Channel, FailureKind, Request, StreamId,
    files::{
        Answer, ChangeKind, FileKind, Files, Owner, Receive, Send, Usage, Walk, Work,
        record::{self, Piece, Reader},
    },
};

use crate::client::{Host, Reply, RunningAgent};

/// An agent, and a directory for it to work in.
pub(crate) struct Field {
    pub(crate) host: Host,
    agent: RunningAgent,
    directory: TempDir,
}

impl Field {
    pub(crate) fn new() -> Self {
        let agent = RunningAgent::start();
        Self {
            host: agent.connect_with_window(1024 * 1024),
            agent,
            directory: TempDir::new().unwrap(),
        }
    }

    /// The processes that do the work.
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
        // Where temporary directories are may itself be behind a link.
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn work(&mut self, work: Work<'_>) -> Worked {
        let root = self.root();
        self.host.work(&root, work, b"")
    }

    /// Has records become a tree.
    pub(crate) fn push(&mut self, path: &str, records: &[u8]) -> Worked {
        let root = self.root();
        self.host.push(&root, path, records)
    }

    /// Gets the records of a tree.
    pub(crate) fn pull(&mut self, path: &str) -> Worked {
        let root = self.root();
        self.host.pull(&root, path)
    }
}

/// Names in a tree that a worker uses for a while only.
pub(crate) fn leftovers(top: &Path) -> Vec<PathBuf> {
    let is_ours = |path: &PathBuf| path.to_string_lossy().contains(".vmcell-");
    super::snapshot::snapshot(top)
        .into_keys()
        .filter(is_ours)
        .collect()
}

/// How work ended, and what came of it.
#[derive(Debug)]
pub(crate) struct Worked {
    pub(crate) failure: Option<FailureKind>,
    /// The text of the failure.
    pub(crate) text: String,
    pub(crate) output: Vec<u8>,
}

impl Worked {
    pub(crate) fn output(self) -> Vec<u8> {
        assert_eq!(self.failure, None, "{}", self.text);
        self.output
    }

    pub(crate) fn answers(self) -> Vec<Told> {
        answers(&self.output())
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
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
    /// Begins work on files.
    pub(crate) fn begin(&mut self, root: &Path, work: Work<'_>) -> StreamId {
        let root = root.as_os_str().as_bytes();
        self.open(&Request::Files(Files { root, work }))
    }

    /// Has work done on files, from this input.
    pub(crate) fn work(&mut self, root: &Path, work: Work<'_>, input: &[u8]) -> Worked {
        let stream = self.begin(root, work);
        self.feed(stream, input);
        self.worked(stream)
    }

    pub(crate) fn worked(&mut self, stream: StreamId) -> Worked {
        let failure = match self.outcome(stream) {
            Reply::Done(_) => None,
            Reply::Failed(_, kind, ..) => Some(kind),
            other => panic!("unexpected {other:?}"),
        };
        Worked {
            failure,
            text: self.failures.remove(&stream).unwrap_or_default(),
            output: self.output(stream, Channel::Stdout).to_vec(),
        }
    }

    pub(crate) fn push(&mut self, root: &Path, path: &str, records: &[u8]) -> Worked {
        let receive = Receive {
            path: path.as_bytes(),
            owner: Owner::OfDirectory,
            sync: false,
        };
        self.work(root, Work::Receive(receive), records)
    }

    pub(crate) fn pull(&mut self, root: &Path, path: &str) -> Worked {
        let send = Send {
            path: path.as_bytes(),
            include: b"",
            exclude: b"",
        };
        self.work(root, Work::Send(send), b"")
    }
}

/// A walk through everything.
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

pub(crate) fn answers(output: &[u8]) -> Vec<Told> {
    let mut reader = Reader::new();
    let told = more_answers(&mut reader, output);
    assert!(reader.is_between_records());
    told
}

/// What is told by this part of an output.
pub(crate) fn more_answers(reader: &mut Reader, output: &[u8]) -> Vec<Told> {
    let mut input = output;
    let mut told = Vec::new();
    while let Some(piece) = reader.next(&mut input).unwrap() {
        let Piece::Message(message) = piece else {
            panic!("raw bytes among answers");
        };
        let answer: Answer<'_> = record::decode(message).unwrap();
        assert!(answer.is_valid(), "{answer:?}");
        told.push(match answer {
            Answer::Entry(entry) => Told::Entry(Entry {
                path: entry.path.into(),
                kind: entry.kind,
                size: entry.size,
                target: entry.target.into(),
                owner: entry.owner.into(),
                digest: entry.digest,
            }),
            Answer::Problem { path, failure } => Told::Problem(path.into(), failure.kind),
            Answer::Usage(usage) => Told::Usage(usage),
            Answer::Change(change) => Told::Change(change.kind, change.path.into()),
            Answer::Received { entries, bytes } => Told::Received(entries, bytes),
            other => panic!("unexpected {other:?}"),
        });
    }
    told
}
