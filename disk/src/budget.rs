use std::time::Instant;

use vmcell_wire::limits::MAX_PATH;

use super::{DiskError, DiskLimit, DiskLimits, path::shown};

/// Tracks how much of its limits an operation has used.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    limits: DiskLimits,
    start: Instant,
    /// Set while the caller holds a result and has not asked for the next one.
    /// This time does not count.
    paused_since: Option<Instant>,
    entries: u64,
    bytes: u64,
    memory: usize,
}

impl Budget {
    pub(super) fn new(limits: DiskLimits) -> Self {
        Self {
            limits,
            start: Instant::now(),
            paused_since: None,
            entries: 0,
            bytes: 0,
            memory: 0,
        }
    }

    /// Stops the clock while the caller handles a result.
    pub(super) fn pause(&mut self) {
        self.paused_since = Some(Instant::now());
    }

    /// Restarts the clock when the caller asks for the next result.
    pub(super) fn resume(&mut self) {
        if let Some(since) = self.paused_since.take() {
            self.start += since.elapsed();
        }
    }

    /// Counts one entry.
    pub(super) fn count_entry(&mut self, path: &[u8]) -> Result<(), DiskError> {
        if self.entries >= self.limits.entries {
            return Err(exceeded(DiskLimit::Entries, self.limits.entries, path));
        }
        self.entries += 1;
        self.check_time(path)
    }

    /// Counts bytes of file data. If they exceed the limit, none of them are
    /// counted.
    pub(super) fn count_bytes(&mut self, count: u64, path: &[u8]) -> Result<(), DiskError> {
        let sum = self.bytes.saturating_add(count);
        if sum > self.limits.bytes {
            return Err(exceeded(DiskLimit::Bytes, self.limits.bytes, path));
        }
        self.bytes = sum;
        self.check_time(path)
    }

    /// Reserves memory for data that the operation has to hold.
    pub(super) fn reserve(&mut self, bytes: usize, path: &[u8]) -> Result<(), DiskError> {
        let sum = self.memory.saturating_add(bytes);
        if sum > self.limits.memory {
            return Err(exceeded(DiskLimit::Memory, self.limits.memory as u64, path));
        }
        self.memory = sum;
        Ok(())
    }

    /// Reserves memory for data that is optional, unless more than half of the
    /// limit would be in use. Returns whether the memory was reserved.
    pub(super) fn reserve_optional(&mut self, bytes: usize) -> bool {
        let sum = self.memory.saturating_add(bytes);
        let fits = sum <= self.limits.memory / 2;
        if fits {
            self.memory = sum;
        }
        fits
    }

    /// Releases memory that was reserved.
    pub(super) fn release(&mut self, bytes: usize) {
        self.memory = self.memory.saturating_sub(bytes);
    }

    /// Fails if entering another directory exceeds the depth limit. `open` is
    /// the number of directories already open.
    pub(super) fn check_depth(&self, open: usize, path: &[u8]) -> Result<(), DiskError> {
        if open >= self.limits.depth {
            return Err(exceeded(DiskLimit::Depth, self.limits.depth as u64, path));
        }
        Ok(())
    }

    /// Fails if the path is too long for a system call.
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
