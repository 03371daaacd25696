use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use vmcell_wire::files::{self as wire, Answer, Work};

use super::{Entry, FileFailure, Files, Job, WalkOptions};
use crate::{error::Error, result_budget::ResultBudget, session::Failed};

impl Files {
    /// What is in a directory, in the order of the names: at most
    /// [a million entries](Self::MAX_LISTED), and no more than fit into
    /// [256 MiB](Self::MAX_LISTED_BYTES). [`walk`](Self::walk) has no limit.
    ///
    /// # Errors
    /// [`Error::File`]: it is not there, or an entry cannot be looked at. Use
    /// [`walk`](Self::walk) to go on past such entries.
    /// [`Error::ResultLimit`]: there are more.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(&self, path: impl AsRef<Path>) -> Result<Vec<Entry>, Error> {
        self.walk(path, WalkOptions::new().depth(1))
            .await?
            .all()
            .await
    }

    /// The entries below the root that match a pattern, in order: see
    /// [`WalkOptions::glob`]. The limits are those of [`list`](Self::list).
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

    /// The entries below a directory, as they come. Of a path that is no
    /// directory it tells that one entry.
    ///
    /// # Errors
    /// The path makes no sense, or the VM is gone. That it is not there comes
    /// with the first entry.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn walk(&self, path: impl AsRef<Path>, walk: WalkOptions) -> Result<Entries, Error> {
        let path = path.as_ref();
        let work = Work::Walk(wire::Walk {
            path: self.inside(path)?,
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
            top: self.below(path)?.to_owned(),
            job: self.begin(path, work).await?,
            problems: Vec::new(),
            unkept_problems: 0,
        })
    }
}

/// Entries, as they come from the guest, which waits for whoever asks.
#[derive(Debug)]
pub struct Entries {
    job: Job,
    top: PathBuf,
    problems: Vec<WalkProblem>,
    unkept_problems: u64,
}

/// An entry that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkProblem {
    /// Which one, relative to the root.
    pub path: PathBuf,
    /// Why.
    pub failure: FileFailure,
}

/// More problems than this are only counted.
const MAX_PROBLEMS: usize = 1000;

impl Entries {
    /// The next entry. None: that was all. Entries that could not be looked at
    /// are left out, and told by [`problems`](Self::problems).
    ///
    /// # Errors
    /// [`Error::File`] if the directory is not there; [`Error::Gone`] if the VM
    /// ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            let top = &self.top;
            let answer = self.job.next_answer(|answer| told(answer, top)).await?;
            match answer {
                None => return Ok(None),
                Some(Ok(entry)) => return Ok(Some(entry)),
                Some(Err(Some(problem))) if self.problems.len() < MAX_PROBLEMS => {
                    self.problems.push(problem);
                }
                Some(Err(Some(_))) => self.unkept_problems += 1,
                Some(Err(None)) => return Err(Error::unexpected_reply()),
            }
        }
    }

    /// The next entries, at most so many. Fewer: that was all. One takes at
    /// most 10 KiB of memory.
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

    /// What could not be looked at so far: the first thousand.
    pub fn problems(&self) -> &[WalkProblem] {
        &self.problems
    }

    /// How many entries could not be looked at so far.
    pub fn problem_count(&self) -> u64 {
        self.problems.len() as u64 + self.unkept_problems
    }

    /// All that are left. What could not be looked at is an error.
    async fn all(mut self) -> Result<Vec<Entry>, Error> {
        let mut budget = ResultBudget::new(
            "the list of files",
            Files::MAX_LISTED,
            Files::MAX_LISTED_BYTES,
            "use `Files::walk`, which returns them one by one",
        );
        let mut entries = Vec::new();
        while let Some(entry) = self.next().await? {
            budget.add(entry.memory())?;
            entries.push(entry);
        }
        match self.problems.into_iter().next() {
            Some(problem) => Err(problem.failure.into()),
            None => Ok(entries),
        }
    }
}

impl Files {
    /// The most entries that [`list`](Self::list) and [`glob`](Self::glob)
    /// return.
    pub const MAX_LISTED: usize = 1_000_000;

    /// The most memory that they take for them: 256 MiB.
    pub const MAX_LISTED_BYTES: usize = 256 << 20;
}

/// An entry, or a problem, or nothing that belongs here.
fn told(answer: Answer<'_>, top: &Path) -> Result<Entry, Option<WalkProblem>> {
    match answer {
        Answer::Entry(entry) => Ok(Entry::from_guest(&entry, top)),
        Answer::Problem { path, failure } => {
            let path = top.join(vmcell_tree::relative(path));
            let failure = FileFailure::from_guest(Failed::from_wire(&failure), &path);
            Err(Some(WalkProblem { path, failure }))
        }
        _ => Err(None),
    }
}
