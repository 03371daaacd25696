use std::{fs::File, io, os::unix::fs::FileExt as _};

use rustix::{
    fs::{SeekFrom, seek},
    io::Errno,
};

/// How much is read at once. No run is longer.
pub(super) const BLOCK: usize = 64 * 1024;

/// The unit in which zeros are skipped: the size of a page of memory.
const PAGE: usize = 4096;

const ZERO_PAGE: [u8; PAGE] = [0; PAGE];

/// Calls `take` with the offset and the bytes of every run of pages that are not all
/// zero, in order. Runs end where a block does, so they are the same for equal
/// contents. Returns the size of the file.
///
/// It moves the position of the file.
pub(super) fn for_each_run(
    file: &File,
    mut take: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let size = file.metadata()?.len();
    let mut buffer = vec![0; BLOCK];
    let mut offset = 0;
    while let Some(data) = next_data(file, offset, size)? {
        offset = data - data % BLOCK as u64;
        let length = BLOCK.min(usize::try_from(size - offset).unwrap_or(BLOCK));
        let block = &mut buffer[..length];
        file.read_exact_at(block, offset)?;
        for_each_run_in(block, |start, run| take(offset + start as u64, run))?;
        offset += length as u64;
    }
    Ok(size)
}

/// Returns where the next data is; `None` if there is none.
fn next_data(file: &File, offset: u64, size: u64) -> io::Result<Option<u64>> {
    if offset >= size {
        return Ok(None);
    }
    match seek(file, SeekFrom::Data(offset)) {
        Ok(data) => Ok(Some(data).filter(|data| *data < size)),
        Err(Errno::NXIO) => Ok(None),
        // A file system without holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(offset)),
        Err(error) => Err(error.into()),
    }
}

fn for_each_run_in(
    block: &[u8],
    mut take: impl FnMut(usize, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut start = None;
    for (number, page) in block.chunks(PAGE).enumerate() {
        let offset = number * PAGE;
        let is_zero = ZERO_PAGE.starts_with(page);
        match (start, is_zero) {
            (None, false) => start = Some(offset),
            (Some(from), true) => {
                take(from, &block[from..offset])?;
                start = None;
            }
            _ => {}
        }
    }
    match start {
        Some(from) => take(from, &block[from..]),
        None => Ok(()),
    }
}

/// Copies a file into an empty one, which is a hole wherever this one is zero. Where
/// the file system can, the two share their blocks.
pub(crate) fn copy_into(from: &File, to: &File) -> io::Result<()> {
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let size = for_each_run(from, |offset, run| to.write_all_at(run, offset))?;
    to.set_len(size)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_copy_is_equal_and_has_holes() {
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        from.set_len(64 << 20).unwrap();
        from.write_all_at(b"begin", 0).unwrap();
        from.write_all_at(&[0; 100_000], 1 << 20).unwrap();
        from.write_all_at(b"end", (64 << 20) - 3).unwrap();
        copy_into(&from, &to).unwrap();
        let mut all = vec![1; 64 << 20];
        to.read_exact_at(&mut all, 0).unwrap();
        assert_eq!(&all[..5], b"begin");
        assert!(all[5..(64 << 20) - 3].iter().all(|byte| *byte == 0));
        assert_eq!(&all[(64 << 20) - 3..], b"end");
        assert_eq!(to.metadata().unwrap().len(), 64 << 20);
        assert!(to.metadata().unwrap().blocks() * 512 < 1 << 20);
    }

    proptest! {
        #[test]
        fn a_copy_is_equal(pieces in prop::collection::vec((any::<u8>(), 1..9000usize), 0..60)) {
            let mut contents = Vec::new();
            for (byte, length) in pieces {
                // Every second piece is zeros.
                contents.extend(std::iter::repeat_n(if byte < 128 { 0 } else { byte }, length));
            }
            let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
            from.write_all_at(&contents, 0).unwrap();
            copy_into(&from, &to).unwrap();
            let mut copy = vec![0; contents.len()];
            to.read_exact_at(&mut copy, 0).unwrap();
            prop_assert_eq!(copy, contents);
        }
    }
}
