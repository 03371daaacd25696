//! Freezes all children with their descendants: cgroups(7), `cgroup.freeze`.
//!
//! ```text
//!             1 is written             the kernel reports `frozen 1`
//!  running ----------------> freezing --------------------------------> frozen
//!     ^                         |  deadline: 0 is written                  |
//!     +-------------------------+-------------------- 0 is written --------+
//! ```
//!
//! The cgroup of all children is frozen as a whole, so what the agent starts
//! meanwhile stands still from its first instruction on, and executes its program
//! later: the agent never waits for that. SIGKILL ends frozen processes. Those of
//! root that have left the cgroup by force are not frozen.

use alloc::{rc::Rc, vec::Vec};
use core::cell::Cell;

use rustix::{fd::OwnedFd, fs::OFlags, io::Errno};

use super::{number_in, open, write};
use crate::{
    clock::Moment,
    event::{Event, Poller},
    ids::LinkId,
};

/// How long processes may take to stand still. One that waits in the kernel, for
/// example for a disk, can delay that.
const FREEZE_TIMEOUT_MS: u64 = 5000;

/// Freezes and thaws the cgroup of all children.
pub(crate) struct Freezer {
    /// The cgroup, from the first freeze to the next thaw.
    frozen: Option<Rc<OwnedFd>>,
    attempt: Option<Attempt>,
    /// Links with streams whose attempt is over.
    links_to_serve: Vec<LinkId>,
}

/// Processes that are about to stand still.
struct Attempt {
    /// `cgroup.events` of the cgroup. It is open only meanwhile: later it would wake
    /// the agent at the start and the end of commands.
    events: OwnedFd,
    deadline: Moment,
    result: FreezeResult,
    /// Links with streams that wait.
    links: Vec<LinkId>,
}

/// How an attempt ends, for a stream that waits for that.
#[derive(Clone)]
pub(crate) struct FreezeResult(Rc<Cell<Option<Result<(), FreezeError>>>>);

/// Why processes do not stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreezeError {
    /// They did not within [`FREEZE_TIMEOUT_MS`], and run on.
    TimedOut,
    /// They were thawed meanwhile.
    Thawed,
}

impl FreezeResult {
    /// Returns the result, or `None` before there is one.
    pub(crate) fn get(&self) -> Option<Result<(), FreezeError>> {
        self.0.get()
    }
}

impl Freezer {
    pub(crate) const fn new() -> Self {
        Self {
            frozen: None,
            attempt: None,
            links_to_serve: Vec::new(),
        }
    }

    /// Begins to freeze a cgroup, or joins the attempt that is under way. `link` is
    /// served when there is a result; there may be one at once.
    pub(crate) fn freeze(
        &mut self,
        cgroup: Rc<OwnedFd>,
        link: LinkId,
        poller: &Poller,
    ) -> Result<FreezeResult, Errno> {
        if let Some(attempt) = &mut self.attempt {
            if !attempt.links.contains(&link) {
                attempt.links.push(link);
            }
            return Ok(attempt.result.clone());
        }
        // It is watched first, so that no change is missed.
        let events = open(&cgroup, "cgroup.events", OFlags::RDONLY)?;
        poller.watch(&events, Event::Freezer)?;
        write(&cgroup, "cgroup.freeze", "1")?;
        self.frozen = Some(cgroup);
        let result = FreezeResult(Rc::new(Cell::new(None)));
        self.attempt = Some(Attempt {
            events,
            deadline: Moment::now().after_ms(FREEZE_TIMEOUT_MS),
            result: result.clone(),
            links: alloc::vec![link],
        });
        self.check();
        Ok(result)
    }

    /// Lets the processes of the cgroup run.
    pub(crate) fn thaw(&mut self, cgroup: &OwnedFd) -> Result<(), Errno> {
        write(cgroup, "cgroup.freeze", "0")?;
        self.frozen = None;
        self.finish(Err(FreezeError::Thawed));
        Ok(())
    }

    /// Lets processes run that were frozen, if any were.
    pub(crate) fn thaw_if_frozen(&mut self) -> Result<(), Errno> {
        match self.frozen.clone() {
            Some(cgroup) => self.thaw(&cgroup),
            None => Ok(()),
        }
    }

    /// Checks whether all processes stand still: the kernel has reported a change.
    pub(crate) fn check(&mut self) {
        // Reading it also makes epoll(7) report the next change.
        let is_frozen = |attempt: &Attempt| number_in(&attempt.events, b"frozen ") == Some(1);
        if self.attempt.as_ref().is_some_and(is_frozen) {
            self.finish(Ok(()));
        }
    }

    /// Ends an attempt whose time is over.
    pub(crate) fn expire(&mut self) {
        if self.next_deadline().is_none_or(|at| at > Moment::now()) {
            return;
        }
        self.check();
        if self.attempt.is_some() {
            // It was written before, so this is not expected to fail.
            let _ = self
                .frozen
                .take()
                .map(|it| write(&it, "cgroup.freeze", "0"));
            self.finish(Err(FreezeError::TimedOut));
        }
    }

    /// Returns when [`expire`](Self::expire) must be called.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.attempt.as_ref().map(|attempt| attempt.deadline)
    }

    /// Takes a link with a stream whose attempt is over.
    pub(crate) fn next_link_to_serve(&mut self) -> Option<LinkId> {
        self.links_to_serve.pop()
    }

    pub(crate) fn has_links_to_serve(&self) -> bool {
        !self.links_to_serve.is_empty()
    }

    fn finish(&mut self, result: Result<(), FreezeError>) {
        if let Some(attempt) = self.attempt.take() {
            attempt.result.0.set(Some(result));
            self.links_to_serve.extend(attempt.links);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A freezer whose processes do not stand still, with files in place of those of
    /// a cgroup.
    fn freezing(deadline: Moment) -> (Freezer, FreezeResult, TempDir) {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("cgroup.freeze"), "1").unwrap();
        let events = directory.path().join("cgroup.events");
        fs::write(&events, "populated 1\nfrozen 0\n").unwrap();
        let result = FreezeResult(Rc::new(Cell::new(None)));
        let freezer = Freezer {
            frozen: Some(Rc::new(fs::File::open(&directory).unwrap().into())),
            attempt: Some(Attempt {
                events: fs::File::open(&events).unwrap().into(),
                deadline,
                result: result.clone(),
                links: alloc::vec![LinkId(3)],
            }),
            links_to_serve: Vec::new(),
        };
        (freezer, result, directory)
    }

    fn written(directory: &TempDir) -> std::string::String {
        fs::read_to_string(directory.path().join("cgroup.freeze")).unwrap()
    }

    #[test]
    fn processes_that_do_not_stand_still_in_time_run_on() {
        let (mut freezer, result, directory) = freezing(Moment::now());
        freezer.check();
        assert_eq!(result.get(), None);
        freezer.expire();
        assert_eq!(result.get(), Some(Err(FreezeError::TimedOut)));
        assert_eq!(written(&directory), "0");
        assert_eq!(freezer.next_deadline(), None);
        assert_eq!(freezer.next_link_to_serve(), Some(LinkId(3)));
        assert!(!freezer.has_links_to_serve());
    }

    #[test]
    fn a_report_that_comes_at_the_last_moment_counts() {
        let (mut freezer, result, directory) = freezing(Moment::now());
        fs::write(directory.path().join("cgroup.events"), "frozen 1\n").unwrap();
        freezer.expire();
        assert_eq!(result.get(), Some(Ok(())));
        assert_eq!(written(&directory), "1");
    }

    #[test]
    fn an_attempt_ends_with_a_thaw_and_not_before_its_time() {
        let (mut freezer, result, directory) = freezing(Moment::now().after_ms(100_000));
        freezer.expire();
        assert_eq!(result.get(), None);
        freezer.thaw_if_frozen().unwrap();
        assert_eq!(result.get(), Some(Err(FreezeError::Thawed)));
        assert_eq!(written(&directory), "0");
        fs::remove_file(directory.path().join("cgroup.freeze")).unwrap();
        assert_eq!(freezer.thaw_if_frozen(), Ok(()));
    }

    #[test]
    fn another_request_joins_the_attempt_under_way() {
        let (mut freezer, first, directory) = freezing(Moment::now().after_ms(100_000));
        let poller = Poller::new(crate::children::Reaping::OwnChildren).unwrap();
        let cgroup: Rc<OwnedFd> = Rc::new(fs::File::open(&directory).unwrap().into());
        let freeze =
            |freezer: &mut Freezer, link| freezer.freeze(Rc::clone(&cgroup), LinkId(link), &poller);
        let second = freeze(&mut freezer, 3).unwrap();
        let third = freeze(&mut freezer, 4).unwrap();
        fs::write(directory.path().join("cgroup.events"), "frozen 1\n").unwrap();
        freezer.check();
        for result in [first, second, third] {
            assert_eq!(result.get(), Some(Ok(())));
        }
        let links = core::iter::from_fn(|| freezer.next_link_to_serve());
        assert_eq!(links.collect::<Vec<_>>(), [LinkId(4), LinkId(3)]);
    }
}
