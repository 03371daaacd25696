use super::{
    Damage, Error, Ext4, Inode,
    extents::{self, Leaf},
    indirect,
};

/// A part of a file that is stored contiguously.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The length in bytes. A run does not reach beyond the end of the file.
    pub length: u64,
    /// Where it is stored.
    pub place: RunPlace,
}

impl Run {
    fn hole(offset: u64, length: u64) -> Self {
        Self {
            offset,
            length,
            place: RunPlace::Hole,
        }
    }
}

/// Where a part of a file is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPlace {
    /// At this byte offset of the file system.
    Data(u64),
    /// Allocated at this byte offset of the file system, but never written: it
    /// reads as zeros.
    Unwritten(u64),
    /// Not stored: it reads as zeros.
    Hole,
    /// In the inode.
    Inline,
}

/// A run in units of blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockRun {
    /// Never zero.
    pub(super) length: u64,
    pub(super) place: RunKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunKind {
    Data(u64),
    Unwritten(u64),
    Hole,
}

/// The runs of a file, in order and without gaps, up to its size. Returned by
/// [`Ext4::runs`].
///
/// Ends after an error; use [`Ext4::runs_from`] to continue behind it. Each
/// step is short, but a hostile block map can have billions of them: limit how
/// many you take.
pub struct Runs<'a> {
    ext4: &'a Ext4,
    inode: Inode,
    position: u64,
    leaf: Option<Leaf>,
}

impl Ext4 {
    /// Returns where the contents of a file are stored. Devices, pipes and
    /// sockets have none.
    pub fn runs(&self, inode: &Inode) -> Runs<'_> {
        self.runs_from(inode, 0)
    }

    /// Returns the same from a byte offset on.
    pub fn runs_from(&self, inode: &Inode, offset: u64) -> Runs<'_> {
        Runs {
            ext4: self,
            inode: inode.clone(),
            position: offset,
            leaf: None,
        }
    }

    /// Returns whether the journal has newer data for some bytes of a run.
    /// Reading them directly from the image then returns old data.
    pub fn is_in_journal(&self, run: &Run) -> bool {
        matches!(run.place, RunPlace::Data(start) if self.store.is_in_journal(start, run.length))
    }
}

impl Runs<'_> {
    fn step(&mut self) -> Result<Run, Error> {
        let offset = self.position;
        let left = self.inode.size.saturating_sub(offset);
        if self.inode.has_inline_data() {
            let room = u64::from(self.ext4.superblock.inode_size).saturating_sub(offset);
            // A file can be longer than what was written.
            return Ok(match room {
                0 => Run::hole(offset, left),
                _ => Run {
                    offset,
                    length: left.min(room),
                    place: RunPlace::Inline,
                },
            });
        }
        let block_size = u64::from(self.ext4.superblock.block_size);
        let block = offset.checked_div(block_size).unwrap_or(0);
        let within = offset.checked_rem(block_size).unwrap_or(0);

        // Beyond what a block map can cover, the rest of the file is a hole.
        let Some(run) = self.block_run(block)? else {
            return Ok(Run::hole(offset, left));
        };
        let length = run
            .length
            .saturating_mul(block_size)
            .saturating_sub(within)
            .min(left);
        let used = within.saturating_add(length).div_ceil(block_size.max(1));
        let start = |first| {
            let start = self.ext4.check_blocks(&self.inode, first, used)?;
            Ok::<_, Damage>(start.saturating_add(within))
        };
        let place = match run.place {
            RunKind::Data(first) => RunPlace::Data(start(first)?),
            RunKind::Unwritten(first) => RunPlace::Unwritten(start(first)?),
            RunKind::Hole => RunPlace::Hole,
        };
        Ok(Run {
            offset,
            length,
            place,
        })
    }

    fn block_run(&mut self, from: u64) -> Result<Option<BlockRun>, Error> {
        let store = &self.ext4.store;
        if !self.inode.has_extents() {
            return indirect::run(store, &self.inode, from);
        }
        if let Some(run) = self.leaf_run(from)? {
            return Ok(Some(run));
        }
        self.leaf = extents::leaf(store, &self.inode, from)?;
        Ok(self.leaf_run(from)?)
    }

    fn leaf_run(&self, from: u64) -> Result<Option<BlockRun>, Damage> {
        match &self.leaf {
            Some(leaf) => leaf.run(&self.inode, from),
            None => Ok(None),
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Result<Run, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.position >= self.inode.size || !self.ext4.has_contents(&self.inode) {
            return None;
        }
        let step = self.step();
        self.position = match &step {
            // A run is never empty. If one were, it would be the last.
            Ok(run) if run.length > 0 => self.position.saturating_add(run.length),
            _ => u64::MAX,
        };
        Some(step)
    }
}
