use std::time::Instant;

use vmcell_wire::limits::MAX_PATH;

use super::{DiskError, DiskLimit, DiskLimits, path::shown};

/// How much of its limits an operation has used up.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    limits: DiskLimits,
    start: Instant,
    /// Since when nothing is done, because the caller has not asked for more.
    resting: Option<Instant>,
    entries: u64,
    bytes: u64,
    memory: usize,
}

impl Budget {
    pub(super) fn new(limits: DiskLimits) -> Self {
        Self {
            limits,
            start: Instant::now(),
            resting: None,
            entries: 0,
            bytes: 0,
            memory: 0,
        }
    }

    /// The caller has something, and takes as long as it likes with it.
    pub(super) fn rest(&mut self) {
        self.resting = Some(Instant::now());
    }

    /// The caller has asked for more.
    pub(super) fn resume(&mut self) {
        if let Some(since) = self.resting.take() {
            self.start += since.elapsed();
        }
    }

    /// One more entry.
    pub(super) fn entry(&mut self, path: &[u8]) -> Result<(), DiskError> {
        if self.entries >= self.limits.entries {
            return Err(exceeded(DiskLimit::Entries, self.limits.entries, path));
        }
        self.entries += 1;
        self.check_time(path)
    }

    /// So many bytes more of files. If they are too many, none of them count.
    pub(super) fn data(&mut self, count: u64, path: &[u8]) -> Result<(), DiskError> {
        let sum = self.bytes.saturating_add(count);
        if sum > self.limits.bytes {
            return Err(exceeded(DiskLimit::Bytes, self.limits.bytes, path));
        }
        self.bytes = sum;
        self.check_time(path)
    }

    /// Something is kept in memory.
    pub(super) fn keep(&mut self, bytes: usize, path: &[u8]) -> Result<(), DiskError> {
        let sum = self.memory.saturating_add(bytes);
        if sum > self.limits.memory {
            return Err(exceeded(DiskLimit::Memory, self.limits.memory as u64, path));
        }
        self.memory = sum;
        Ok(())
    }

    /// Something that can be done without is kept in memory, if half of what may
    /// be kept is left for the rest. Returns whether it is.
    pub(super) fn keep_if_half_is_left(&mut self, bytes: usize) -> bool {
        let sum = self.memory.saturating_add(bytes);
        let is_kept = sum <= self.limits.memory / 2;
        if is_kept {
            self.memory = sum;
        }
        is_kept
    }

    /// Something that was kept is not kept any more.
    pub(super) fn forget(&mut self, bytes: usize) {
        self.memory = self.memory.saturating_sub(bytes);
    }

    /// A directory is to be entered when so many are open.
    pub(super) fn check_depth(&self, open: usize, path: &[u8]) -> Result<(), DiskError> {
        if open >= self.limits.depth {
            return Err(exceeded(DiskLimit::Depth, self.limits.depth as u64, path));
        }
        Ok(())
    }

    /// A path that no system call takes is of no use.
    pub(super) fn check_path(&self, path: &[u8]) -> Result<(), DiskError> {
        if path.len() >= MAX_PATH {
            return Err(exceeded(DiskLimit::Path, MAX_PATH as u64, path));
        }
        Ok(())
    }

    pub(super) fn check_time(&self, path: &[u8]) -> Result<(), DiskError> {
        if self.start.elapsed() <= self.limits.time {
            return Ok(());
        }
        let limit = u64::try_from(self.limits.time.as_millis()).unwrap_or(u64::MAX);
        Err(exceeded(DiskLimit::Time, limit, path))
    }
}

pub(super) fn exceeded(what: DiskLimit, limit: u64, path: &[u8]) -> DiskError {
    DiskError::Limit {
        what,
        limit,
        path: shown(path),
    }
}
