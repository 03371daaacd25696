use std::{borrow::Cow, collections::VecDeque, ops::Range};

use super::{
    Damage, DamageKind, DirectoryEntry, Error, Ext4, Inode, Kind, Structure,
    directory_blocks::DirectoryBlocks,
    entry::{self, RawEntry, Rules, WalkEntry},
    fields::narrow,
};

/// The parent of an inline directory is in front of its entries.
const INLINE_PARENT: usize = 4;

/// The entries of a directory, in the order in which they are on the disk, but
/// `.` and `..`.
///
/// It goes on behind a bad entry and a bad block. What is wrong comes as an
/// error in between.
pub struct Directory<'a> {
    ext4: &'a Ext4,
    inode: Inode,
    source: DirectoryBlocks<'a>,
    buffer: Vec<u8>,
    /// The blocks of the buffer that are still to be gone through. The start of
    /// the first moves from entry to entry.
    blocks: VecDeque<Range<usize>>,
    /// What is wrong with the blocks as a whole.
    problems: VecDeque<DamageKind>,
    /// The length of the next entry is wrong, which has been told.
    by_name: bool,
}

impl Ext4 {
    /// The entries of a directory.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`]; [`Error::Damaged`] if nothing can be read at all.
    pub fn directory(&self, inode: &Inode) -> Result<Directory<'_>, Error> {
        if inode.kind != Kind::Directory {
            return Err(Error::WrongKind {
                inode: inode.number,
                wanted: "directory",
            });
        }
        let mut directory = Directory {
            ext4: self,
            inode: inode.clone(),
            source: DirectoryBlocks::new(self, inode),
            buffer: Vec::new(),
            blocks: VecDeque::new(),
            problems: VecDeque::new(),
            by_name: false,
        };
        if inode.has_inline_data() {
            // The entries in the attribute are a block of their own.
            let mut data = self.inline_data(inode)?;
            data.truncate(narrow(inode.size));
            let middle = inode.map.len().min(data.len());
            directory.blocks = [INLINE_PARENT.min(middle)..middle, middle..data.len()].into();
            directory.buffer = data;
        }
        Ok(directory)
    }
}

impl Directory<'_> {
    /// The entry with a name, if there is one.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with the directory, if the name is nowhere
    /// in the rest of it.
    pub fn find(mut self, name: &[u8]) -> Result<Option<DirectoryEntry>, Error> {
        let mut problem = None;
        self.source.restart();
        while let Some(step) = self.step() {
            match step {
                Ok(raw) if *self.name(&raw) == *name => return Ok(Some(self.entry(&raw))),
                Ok(_) => {}
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        problem.map_or(Ok(None), Err)
    }

    fn name(&self, raw: &RawEntry) -> Cow<'_, [u8]> {
        let name = self.buffer.get(raw.name.clone()).unwrap_or_default();
        if self.inode.is_encrypted() {
            return entry::encoded(name).into();
        }
        name.into()
    }

    fn entry(&self, raw: &RawEntry) -> DirectoryEntry {
        DirectoryEntry {
            name: self.name(raw).into_owned(),
            inode: raw.inode,
            kind: raw.kind,
        }
    }

    fn step(&mut self) -> Option<Result<RawEntry, Error>> {
        loop {
            if let Some(problem) = self.problems.pop_front() {
                return Some(Err(self.damaged(problem)));
            }
            let found = match self.blocks.front() {
                Some(block) if block.is_empty() => {
                    self.blocks.pop_front();
                    continue;
                }
                Some(_) => self.slot(),
                None => match self.load() {
                    Ok(true) => continue,
                    Ok(false) => return None,
                    Err(error) => return Some(Err(error)),
                },
            };
            match found {
                WalkEntry::Nothing => {}
                WalkEntry::Name(raw) => return Some(Ok(raw)),
                WalkEntry::Bad(problem) => return Some(Err(self.damaged(problem))),
            }
        }
    }

    /// Reads the next entry of the first block.
    fn slot(&mut self) -> WalkEntry {
        let Some(block) = self.blocks.front_mut() else {
            return WalkEntry::Nothing;
        };
        let rules = Rules {
            superblock: &self.ext4.superblock,
            encrypted: self.inode.is_encrypted(),
        };
        let bytes = self.buffer.get(..block.end).unwrap_or_default();
        if std::mem::take(&mut self.by_name) {
            let Some(slot) = rules.slot_by_name(bytes, block.start) else {
                block.start = block.end;
                return WalkEntry::Nothing;
            };
            block.start = slot.next;
            return slot.found;
        }
        match rules.slot(bytes, block.start) {
            Ok(slot) => {
                block.start = slot.next;
                slot.found
            }
            Err(problem) => {
                self.by_name = true;
                WalkEntry::Bad(problem)
            }
        }
    }

    /// Reads more blocks. False at the end.
    fn load(&mut self) -> Result<bool, Error> {
        if self.inode.has_inline_data() || !self.source.fill(&mut self.buffer)? {
            return Ok(false);
        }
        let superblock = &self.ext4.superblock;
        let block_size = narrow(superblock.block_size.into());
        for (number, block) in self.buffer.chunks(block_size).enumerate() {
            let start = number.saturating_mul(block_size);
            self.blocks
                .push_back(start..start.saturating_add(block.len()));
            if self
                .inode
                .seed
                .is_some_and(|seed| !entry::sum_matches(block, seed, superblock))
            {
                self.problems.push_back(DamageKind::Checksum);
            }
        }
        Ok(true)
    }

    fn damaged(&self, problem: DamageKind) -> Error {
        Damage::new(Structure::Directory, problem)
            .of(self.inode.number)
            .into()
    }
}

impl Iterator for Directory<'_> {
    type Item = Result<DirectoryEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.source.restart();
        let step = self.step()?;
        Some(step.map(|raw| self.entry(&raw)))
    }
}
