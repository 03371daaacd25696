use std::{
    ffi::OsStr,
    future::poll_fn,
    path::{Path, PathBuf},
    task::{Context, Poll, ready},
};

use vmcell_wire::files::{self as wire, FileOperation, FileReply};

use super::{Entry, FileFailure, Files, Job, WalkOptions};
use crate::{error::Error, event_stream::event_stream, result_budget::ResultBudget};

impl Files {
    /// Lists a directory, sorted by name: at most
    /// [a million entries](Self::MAX_LISTED) and
    /// [256 MiB](Self::MAX_LISTED_BYTES). [`walk`](Self::walk) has no limit.
    ///
    /// # Errors
    /// [`Error::File`] if the directory does not exist, or an entry cannot be
    /// read. Use [`walk`](Self::walk) to continue after such entries.
    /// [`Error::ResultLimit`] if there are more.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(&self, path: impl AsRef<Path>) -> Result<Vec<Entry>, Error> {
        self.walk(path, WalkOptions::new().depth(1))
            .await?
            .all()
            .await
    }

    /// Lists the entries below the root that match a pattern, sorted: see
    /// [`WalkOptions::glob`]. It has the limits of [`list`](Self::list).
    ///
    /// # Errors
    /// See [`list`](Self::list).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn glob(&self, pattern: impl AsRef<OsStr>) -> Result<Vec<Entry>, Error> {
        self.walk("", WalkOptions::new().glob(pattern))
            .await?
            .all()
            .await
    }

    /// Lists the entries below a directory one by one. For a path that is not a
    /// directory, it returns that one entry.
    ///
    /// # Errors
    /// If the path is invalid, or the VM is gone. That it does not exist is
    /// reported with the first entry.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn walk(&self, path: impl AsRef<Path>, walk: WalkOptions) -> Result<Entries, Error> {
        let path = path.as_ref();
        let operation = FileOperation::Walk(wire::Walk {
            path: self.relative_bytes(path)?,
            depth: walk.depth,
            top: walk.top,
            glob: &walk.glob,
            include: walk.filter.included(),
            exclude: walk.filter.excluded(),
            sorted: walk.sorted,
            digest: walk.digest,
            names: walk.names,
        });
        Ok(Entries {
            top: self.relative_path(path)?.to_owned(),
            job: self.begin(path, operation).await?,
            problems: Vec::new(),
            dropped_problems: 0,
            failed: false,
        })
    }
}

/// Entries from the guest. The guest sends only as fast as they are read.
#[derive(Debug)]
pub struct Entries {
    job: Job,
    top: PathBuf,
    problems: Vec<WalkProblem>,
    dropped_problems: u64,
    failed: bool,
}

/// An entry that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkProblem {
    /// The path, relative to the root.
    pub path: PathBuf,
    /// The reason.
    pub failure: FileFailure,
}

/// How many problems are kept; further ones are only counted.
const MAX_PROBLEMS: usize = 1000;

event_stream!(Entries, Entry);

impl Entries {
    /// Returns the next entry, or `None` at the end. Skips entries that cannot
    /// be read; [`problems`](Self::problems) returns them.
    ///
    /// # Errors
    /// [`Error::File`] if the directory is not there; [`Error::Gone`] if the VM
    /// ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Entry>, Error> {
        poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Entry>, Error>> {
        loop {
            let top = &self.top;
            let with = |answer: FileReply<'_>| entry_or_problem(answer, top);
            match ready!(self.job.poll_answer(context, with))? {
                None => return Poll::Ready(Ok(None)),
                Some(Ok(entry)) => return Poll::Ready(Ok(Some(entry))),
                Some(Err(Some(problem))) if self.problems.len() < MAX_PROBLEMS => {
                    self.problems.push(problem);
                }
                Some(Err(Some(_))) => self.dropped_problems += 1,
                Some(Err(None)) => return Poll::Ready(Err(Error::unexpected_reply())),
            }
        }
    }

    /// Returns up to `entries` next entries, fewer only at the end. Each takes
    /// at most 10 KiB of memory.
    ///
    /// # Errors
    /// See [`next`](Self::next).
    ///
    /// # Cancel safety
    /// Not cancel safe: entries of an unfinished page are lost.
    pub async fn page(&mut self, entries: usize) -> Result<Vec<Entry>, Error> {
        let mut page = Vec::new();
        while page.len() < entries {
            match self.next().await? {
                Some(entry) => page.push(entry),
                None => break,
            }
        }
        Ok(page)
    }

    /// Returns the entries that could not be read so far; at most the first
    /// thousand.
    pub fn problems(&self) -> &[WalkProblem] {
        &self.problems
    }

    /// Returns how many entries could not be read so far.
    pub fn problem_count(&self) -> u64 {
        self.problems.len() as u64 + self.dropped_problems
    }

    /// Returns all remaining entries. Fails if an entry could not be read.
    async fn all(mut self) -> Result<Vec<Entry>, Error> {
        let mut budget = ResultBudget::new(
            "the list of files",
            Files::MAX_LISTED,
            Files::MAX_LISTED_BYTES,
            "use `Files::walk`, which returns them one by one",
        );
        let mut entries = Vec::new();
        while let Some(entry) = self.next().await? {
            budget.add(entry.memory_size())?;
            entries.push(entry);
        }
        match self.problems.into_iter().next() {
            Some(problem) => Err(problem.failure.into()),
            None => Ok(entries),
        }
    }
}

impl Files {
    /// The maximum number of entries of [`list`](Self::list) and
    /// [`glob`](Self::glob).
    pub const MAX_LISTED: usize = 1_000_000;

    /// The maximum memory that they take for the entries: 256 MiB.
    pub const MAX_LISTED_BYTES: usize = 256 << 20;
}

/// Converts an answer to an entry or a problem; `Err(None)` for any other.
fn entry_or_problem(answer: FileReply<'_>, top: &Path) -> Result<Entry, Option<WalkProblem>> {
    match answer {
        FileReply::Entry(entry) => Ok(Entry::from_guest(&entry, top)),
        FileReply::Problem { path, failure } => {
            let path = top.join(vmcell_tree::relative_path_from_bytes(path));
            let failure = FileFailure::from_wire(&failure, &path);
            Err(Some(WalkProblem { path, failure }))
        }
        _ => Err(None),
    }
}
