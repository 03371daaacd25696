use std::{borrow::Cow, collections::VecDeque, ops::Range};

use super::{
    Damage, DamageKind, DirectoryEntry, Error, Ext4, Inode, Kind, Structure,
    directory_blocks::DirectoryBlocks,
    entry::{self, EntryParser, RawEntry, SlotContent},
    fields::to_usize,
};

/// Length of the parent's inode number, which precedes the entries of an inline
/// directory.
const INLINE_PARENT: usize = 4;

/// The entries of a directory except `.` and `..`, in the order on disk.
/// Returned by [`Ext4::directory`].
///
/// Continues after an invalid entry or block, which is returned as an error.
pub struct Directory<'a> {
    ext4: &'a Ext4,
    inode: Inode,
    source: DirectoryBlocks<'a>,
    buffer: Vec<u8>,
    /// The blocks in the buffer that are still to be read. The start of the
    /// first one moves from entry to entry.
    blocks: VecDeque<Range<usize>>,
    /// Errors that affect whole blocks.
    problems: VecDeque<DamageKind>,
    /// The next entry has an invalid length, which has been reported. Its end
    /// is found from the length of its name.
    resync_by_name: bool,
}

impl Ext4 {
    /// Returns the entries of a directory.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`] if it is not a directory; [`Error::Damaged`] if
    /// nothing can be read at all.
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
            resync_by_name: false,
        };
        if inode.has_inline_data() {
            // The entries in the extended attribute form a block of their own.
            let mut data = self.inline_data(inode)?;
            data.truncate(to_usize(inode.size));
            let middle = inode.map.len().min(data.len());
            directory.blocks = [INLINE_PARENT.min(middle)..middle, middle..data.len()].into();
            directory.buffer = data;
        }
        Ok(directory)
    }
}

impl Directory<'_> {
    /// Returns the entry with a name, if there is one.
    ///
    /// # Errors
    ///
    /// The first error in the directory, if the name is not found in the
    /// readable rest.
    pub fn find(mut self, name: &[u8]) -> Result<Option<DirectoryEntry>, Error> {
        let mut problem = None;
        self.source.restart_clock();
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
            return entry::base64_name(name).into();
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
                SlotContent::Unused => {}
                SlotContent::Entry(raw) => return Some(Ok(raw)),
                SlotContent::Damaged(problem) => return Some(Err(self.damaged(problem))),
            }
        }
    }

    /// Reads the next entry of the first block.
    fn slot(&mut self) -> SlotContent {
        let Some(block) = self.blocks.front_mut() else {
            return SlotContent::Unused;
        };
        let parser = EntryParser {
            superblock: &self.ext4.superblock,
            encrypted: self.inode.is_encrypted(),
        };
        let bytes = self.buffer.get(..block.end).unwrap_or_default();
        if std::mem::take(&mut self.resync_by_name) {
            let Some(slot) = parser.slot_by_name(bytes, block.start) else {
                block.start = block.end;
                return SlotContent::Unused;
            };
            block.start = slot.next;
            return slot.content;
        }
        match parser.slot(bytes, block.start) {
            Ok(slot) => {
                block.start = slot.next;
                slot.content
            }
            Err(problem) => {
                self.resync_by_name = true;
                SlotContent::Damaged(problem)
            }
        }
    }

    /// Reads more blocks. Returns false at the end.
    fn load(&mut self) -> Result<bool, Error> {
        if self.inode.has_inline_data() || !self.source.fill(&mut self.buffer)? {
            return Ok(false);
        }
        let superblock = &self.ext4.superblock;
        let block_size = to_usize(superblock.block_size.into());
        for (number, block) in self.buffer.chunks(block_size).enumerate() {
            let start = number.saturating_mul(block_size);
            self.blocks
                .push_back(start..start.saturating_add(block.len()));
            if self
                .inode
                .seed
                .is_some_and(|seed| !entry::checksum_matches(block, seed, superblock))
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
        self.source.restart_clock();
        let step = self.step()?;
        Some(step.map(|raw| self.entry(&raw)))
    }
}
