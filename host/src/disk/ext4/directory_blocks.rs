use super::{
    Damage, Error, Ext4, Inode, Limit, Problem, Run, RunPlace, Runs, Structure, fields::narrow,
};

/// How much is read at a time. A walk has one such buffer for each directory
/// that it is in.
const BUFFER: u64 = 16 << 10;

/// How many blocks are tried behind one that cannot be found: as many as are
/// lost with a table of blocks.
const TRIES: u32 = 1024;

/// The blocks of a directory, some at a time.
pub(super) struct DirectoryBlocks<'a> {
    ext4: &'a Ext4,
    inode: Inode,
    runs: Runs<'a>,
    /// What is left of a run.
    run: Option<Run>,
    /// How far the directory has been read or given up.
    position: u64,
}

impl<'a> DirectoryBlocks<'a> {
    pub(super) fn new(ext4: &'a Ext4, inode: &Inode) -> Self {
        Self {
            ext4,
            inode: inode.clone(),
            runs: ext4.runs(inode),
            run: None,
            position: 0,
        }
    }

    /// Fills the buffer with the next blocks. False at the end. After an error
    /// it goes on with those that follow.
    pub(super) fn fill(&mut self, buffer: &mut Vec<u8>) -> Result<bool, Error> {
        let Some(run) = self.next_run()? else {
            return Ok(false);
        };
        let block_size = u64::from(self.ext4.superblock.block_size);
        let blocks = run.length.checked_div(block_size).unwrap_or(0);
        let RunPlace::Data(start) = run.place else {
            self.position = run.offset.saturating_add(run.length);
            return Err(self.damaged(Problem::Missing));
        };
        if blocks == 0 {
            self.position = self.inode.size;
            return Err(self.damaged(Problem::Size(self.inode.size)));
        }
        let mut length = blocks
            .saturating_mul(block_size)
            .min(BUFFER.max(block_size));
        let mut outcome = self.read(start, length, buffer);
        if outcome.is_err() && length > block_size {
            // Perhaps only one of them cannot be read.
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
        buffer.resize(narrow(length), 0);
        self.ext4.store.read(start, buffer)
    }

    fn next_run(&mut self) -> Result<Option<Run>, Error> {
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
            self.skip_lost_blocks();
        }
        run
    }

    /// The map is damaged here. Looks for the next block that it has.
    fn skip_lost_blocks(&mut self) {
        for _ in 0..TRIES {
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

    fn damaged(&self, problem: Problem) -> Error {
        Damage::new(Structure::Directory, problem)
            .of(self.inode.number)
            .into()
    }
}
