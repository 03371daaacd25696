use super::{Error, Ext4, Inode, Kind, RunPlace, fields::to_usize, symlink};

impl Ext4 {
    /// Reads from a file at `offset`, until the buffer is full or the file
    /// ends. Returns the number of bytes, which is less than the length of the
    /// buffer only at the end of the file.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`] if it is not a regular file; [`Error::Encrypted`];
    /// [`Error::Damaged`] if a part of the range cannot be found. Other parts
    /// may be readable.
    pub fn read(&self, inode: &Inode, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        if inode.kind != Kind::File {
            return Err(Error::WrongKind {
                inode: inode.number,
                wanted: "regular file",
            });
        }
        if inode.is_encrypted() {
            return Err(Error::Encrypted {
                inode: inode.number,
            });
        }
        self.read_any(inode, offset, buffer)
    }

    /// Reads from an inode of any type, including directories and long
    /// symlinks.
    pub(super) fn read_any(
        &self,
        inode: &Inode,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let wanted = to_usize(inode.size.saturating_sub(offset)).min(buffer.len());
        let mut rest = buffer.get_mut(..wanted).unwrap_or_default();
        let mut runs = self.runs_from(inode, offset);
        while !rest.is_empty() {
            let Some(run) = runs.next().transpose()? else {
                break;
            };
            let length = rest.len().min(to_usize(run.length));
            let (part, others) = rest.split_at_mut(length);
            match run.place {
                RunPlace::Data(start) => self.store.read(start, part)?,
                RunPlace::Hole | RunPlace::Unwritten(_) => part.fill(0),
                RunPlace::Inline => self.copy_inline(inode, run.offset, part)?,
            }
            rest = others;
        }
        Ok(wanted.saturating_sub(rest.len()))
    }

    /// Returns whether the inode's block map refers to blocks. In other inodes
    /// the field has another meaning.
    pub(super) fn has_contents(&self, inode: &Inode) -> bool {
        match inode.kind {
            Kind::File | Kind::Directory => true,
            Kind::Symlink => !symlink::is_fast(inode),
            _ => false,
        }
    }

    fn copy_inline(&self, inode: &Inode, offset: u64, part: &mut [u8]) -> Result<(), Error> {
        let bytes = self.inline_data(inode)?;
        let from = bytes.get(to_usize(offset)..).unwrap_or_default();
        // Beyond the data in the inode, the file is zeros.
        let (copied, zeros) = part.split_at_mut(from.len().min(part.len()));
        copied.copy_from_slice(from.get(..copied.len()).unwrap_or_default());
        zeros.fill(0);
        Ok(())
    }
}
