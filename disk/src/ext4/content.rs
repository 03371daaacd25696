use super::{Error, Ext4, Inode, Kind, RunPlace, fields::narrow, link};

impl Ext4 {
    /// Reads the contents of a file from a byte on, as far as they and the
    /// buffer go. The number of bytes is less than the buffer has only at the
    /// end of the file.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`], [`Error::Encrypted`]; [`Error::Damaged`] if a part
    /// of what was wanted cannot be found. Other parts may be readable.
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

    /// The same for directories and long links.
    pub(super) fn read_any(
        &self,
        inode: &Inode,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let wanted = narrow(inode.size.saturating_sub(offset)).min(buffer.len());
        let mut rest = buffer.get_mut(..wanted).unwrap_or_default();
        let mut runs = self.runs_from(inode, offset);
        while !rest.is_empty() {
            let Some(run) = runs.next().transpose()? else {
                break;
            };
            let length = rest.len().min(narrow(run.length));
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

    /// Whether the map of an inode leads to blocks, and is not something else.
    pub(super) fn has_contents(&self, inode: &Inode) -> bool {
        match inode.kind {
            Kind::File | Kind::Directory => true,
            Kind::Link => !link::is_short(inode),
            _ => false,
        }
    }

    fn copy_inline(&self, inode: &Inode, offset: u64, part: &mut [u8]) -> Result<(), Error> {
        let bytes = self.inline_data(inode)?;
        let from = bytes.get(narrow(offset)..).unwrap_or_default();
        // What the inode has no room for was never written.
        let (copied, zeros) = part.split_at_mut(from.len().min(part.len()));
        copied.copy_from_slice(from.get(..copied.len()).unwrap_or_default());
        zeros.fill(0);
        Ok(())
    }
}
