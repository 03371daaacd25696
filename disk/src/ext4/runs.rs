use super::{
    Damage, DamageKind, Error, Ext4, Inode, Structure,
    extents::{self, Leaf},
    indirect,
};

/// A part of a file that is in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it starts in the file, in bytes.
    pub offset: u64,
    /// How many bytes it has, never more than the file.
    pub length: u64,
    /// Where it is.
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

/// Where a part of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPlace {
    /// On the disk, from this byte of the image on.
    Data(u64),
    /// Room on the disk, from this byte on, that was never written: it reads as
    /// zeros.
    Unwritten(u64),
    /// Nowhere: it reads as zeros.
    Hole,
    /// In the inode.
    Inline,
}

/// The same in blocks.
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

/// The parts of a file, in their order and without gaps, up to its size.
///
/// It ends after an error; [`Ext4::runs_from`] goes on behind it. Each step is
/// short, but a hostile map can have thousands of millions of them: whoever
/// takes them all sets a limit.
pub struct Runs<'a> {
    ext4: &'a Ext4,
    inode: Inode,
    position: u64,
    leaf: Option<Leaf>,
}

impl Ext4 {
    /// Where the contents of a file are. A device and the like have none.
    pub fn runs(&self, inode: &Inode) -> Runs<'_> {
        self.runs_from(inode, 0)
    }

    /// The same from a byte of the file on.
    pub fn runs_from(&self, inode: &Inode, offset: u64) -> Runs<'_> {
        Runs {
            ext4: self,
            inode: inode.clone(),
            position: offset,
            leaf: None,
        }
    }

    /// Whether some of the bytes of a run are newer in the journal than in the
    /// image. Who reads the image itself gets old ones then.
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
            // A file may be made longer than what was written.
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

        // Beyond what a map can have, there is nothing up to the end.
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
            self.ext4
                .store
                .offset(first, used)
                .and_then(|start| start.checked_add(within))
                .ok_or_else(|| {
                    let problem = DamageKind::Block(first);
                    Damage::new(Structure::Map, problem).of(self.inode.number)
                })
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
            // A run is never empty; if one were, this would be its last.
            Ok(run) if run.length > 0 => self.position.saturating_add(run.length),
            _ => u64::MAX,
        };
        Some(step)
    }
}
