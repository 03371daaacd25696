use std::time::Instant;

use super::{
    Damage, DamageKind, Error, Ext4, Inode, Limit, Run, RunPlace, Runs, Structure, fields::to_usize,
};

/// Number of bytes read at a time. A walk has one such buffer for each open
/// directory.
const BUFFER_SIZE: u64 = 16 << 10;

/// Maximum number of blocks to try after one that is not mapped: as many as are
/// lost with one indirect block.
const MAX_SKIPPED: u32 = 1024;

/// Reads the blocks of a directory.
pub(super) struct DirectoryBlocks<'a> {
    ext4: &'a Ext4,
    inode: Inode,
    runs: Runs<'a>,
    /// The rest of the current run.
    run: Option<Run>,
    /// The offset up to which the directory was read or given up.
    position: u64,
    /// When the caller began to wait for the next name.
    since: Option<Instant>,
}

impl<'a> DirectoryBlocks<'a> {
    pub(super) fn new(ext4: &'a Ext4, inode: &Inode) -> Self {
        Self {
            ext4,
            inode: inode.clone(),
            runs: ext4.runs(inode),
            run: None,
            position: 0,
            since: None,
        }
    }

    /// Restarts the clock of the time limit, for the next name.
    pub(super) fn restart_clock(&mut self) {
        // The time is read only when it is needed, not for each name.
        self.since = None;
    }

    /// Fills the buffer with the next blocks. Returns false at the end. After
    /// an error, the next call continues behind it.
    pub(super) fn fill(&mut self, buffer: &mut Vec<u8>) -> Result<bool, Error> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.position < self.inode.size {
            let limits = &self.ext4.options.limits;
            let in_time = limits.check_time(since, self.inode.number);
            in_time.inspect_err(|_| self.position = self.inode.size)?;
        }
        let Some(run) = self.next_run(since)? else {
            return Ok(false);
        };
        let block_size = u64::from(self.ext4.superblock.block_size);
        let blocks = run.length.checked_div(block_size).unwrap_or(0);
        let RunPlace::Data(start) = run.place else {
            self.position = run.offset.saturating_add(run.length);
            return Err(self.damaged(DamageKind::Missing));
        };
        if blocks == 0 {
            self.position = self.inode.size;
            return Err(self.damaged(DamageKind::Size(self.inode.size)));
        }
        let mut length = blocks
            .saturating_mul(block_size)
            .min(BUFFER_SIZE.max(block_size));
        let mut outcome = self.read(start, length, buffer);
        if outcome.is_err() && length > block_size {
            // Perhaps only one of the blocks cannot be read.
            length = block_size;
            outcome = self.read(start, length, buffer);
        }
        self.position = run.offset.saturating_add(length);
        if run.length > length {
            self.run = Some(Run {
                offset: self.position,
                length: run.length.saturating_sub(length),
                place: RunPlace::Data(start.saturating_add(length)),
            });
        }
        outcome.map(|()| true)
    }

    fn read(&self, start: u64, length: u64, buffer: &mut Vec<u8>) -> Result<(), Error> {
        buffer.resize(to_usize(length), 0);
        self.ext4.store.read(start, buffer)
    }

    fn next_run(&mut self, since: Instant) -> Result<Option<Run>, Error> {
        let limit = self.ext4.options.limits.directory;
        if self.position >= self.inode.size {
            return Ok(None);
        }
        if self.position >= limit {
            self.position = self.inode.size;
            return Err(Error::Limit {
                what: Limit::Directory,
                limit,
                inode: self.inode.number,
            });
        }
        if let Some(run) = self.run.take() {
            return Ok(Some(run));
        }
        let run = self.runs.next().transpose();
        if run.is_err() {
            self.skip_lost_blocks(since);
        }
        run
    }

    /// Skips unmapped blocks where the block map is damaged, to the next mapped
    /// one.
    fn skip_lost_blocks(&mut self, since: Instant) {
        for _ in 0..MAX_SKIPPED {
            if self.ext4.options.limits.is_late(since) {
                break;
            }
            let next = self
                .position
                .saturating_add(self.ext4.superblock.block_size.into());
            self.position = next;
            let mut runs = self.ext4.runs_from(&self.inode, next);
            match runs.next() {
                Some(Ok(run)) => {
                    self.run = Some(run);
                    self.runs = runs;
                    return;
                }
                Some(Err(_)) => {}
                None => break,
            }
        }
        self.position = self.inode.size;
    }

    fn damaged(&self, problem: DamageKind) -> Error {
        Damage::new(Structure::Directory, problem)
            .of(self.inode.number)
            .into()
    }
}
