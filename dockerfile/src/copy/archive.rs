use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use flate2::read::GzDecoder;
use tar::{Builder, EntryType, Header};
use vmcell::disk::Disk;

use super::entry::{Content, CopyEntry, CopyKind};

/// What is packed, and how.
pub(crate) struct Packing {
    pub(crate) entries: Vec<CopyEntry>,
    /// Where files are that are not on the host.
    pub(crate) disk: Option<Disk>,
    /// The permissions of all, if they are not their own.
    pub(crate) mode: Option<u32>,
}

/// Writes an archive. Files that become shorter meanwhile are an error.
pub(crate) fn send(packing: Packing, writer: impl Write) -> io::Result<()> {
    let mut archive = Builder::new(writer);
    for entry in packing.entries {
        let mut header = Header::new_gnu();
        header.set_mode(packing.mode.unwrap_or(entry.mode));
        header.set_uid(entry.owner.0.into());
        header.set_gid(entry.owner.1.into());
        header.set_mtime(entry.modified);
        header.set_size(0);
        match entry.kind {
            CopyKind::Directory => {
                header.set_entry_type(EntryType::Directory);
                archive.append_data(&mut header, &entry.name, io::empty())?;
            }
            CopyKind::Symlink(target) => {
                header.set_entry_type(EntryType::Symlink);
                archive.append_link(&mut header, &entry.name, target)?;
            }
            CopyKind::File { size, content } => {
                header.set_size(size);
                let mut append = |reader: &mut dyn Read| {
                    let whole = Whole { reader, left: size };
                    archive.append_data(&mut header, &entry.name, whole)
                };
                match content {
                    Content::Bytes(bytes) => append(&mut &bytes[..])?,
                    Content::Host(path) => append(&mut open(&path)?)?,
                    Content::Disk(path) => {
                        let disk = packing.disk.as_ref().ok_or(io::ErrorKind::NotFound)?;
                        let reader = disk.reader(path).map_err(io::Error::other);
                        append(&mut reader?)?;
                    }
                }
            }
        }
    }
    archive.into_inner()?.flush()
}

/// Opens a file, and no link that took its place.
fn open(path: &Path) -> io::Result<File> {
    const O_NOFOLLOW: i32 = 0o400_000;
    let file = File::options()
        .read(true)
        .custom_flags(O_NOFOLLOW)
        .open(path);
    file.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Reads as many bytes as were promised.
struct Whole<'a> {
    reader: &'a mut dyn Read,
    left: u64,
}

impl Read for Whole<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let piece = buffer.get_mut(..length).unwrap_or_default();
        if piece.is_empty() {
            return Ok(0);
        }
        match self.reader.read(piece)? {
            0 => Err(io::Error::other(
                "a file became shorter while it was copied",
            )),
            length => {
                self.left -= length as u64;
                Ok(length)
            }
        }
    }
}

/// The beginnings of compressed files.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BZIP2: &[u8] = b"BZh";
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// Returns whether a file is an archive that ADD unpacks.
pub(super) fn is_archive(path: &Path) -> Result<bool, String> {
    let problem = |error| format!("cannot read {}: {error}", path.display());
    let first = |reader: &mut dyn Read| {
        let mut block = Vec::new();
        // What cannot be decompressed is no archive.
        let _ = reader.take(512).read_to_end(&mut block);
        block
    };
    let block = first(&mut open(path).map_err(problem)?);
    if block.starts_with(XZ) || block.starts_with(BZIP2) {
        return Err(format!(
            "ADD does not unpack {}: COPY it, and unpack it in a RUN",
            path.display()
        ));
    }
    let block = match open(path).map_err(problem)? {
        file if block.starts_with(GZIP) => first(&mut GzDecoder::new(file)),
        file if block.starts_with(ZSTD) => match zstd::Decoder::new(file) {
            Ok(mut decoder) => first(&mut decoder),
            Err(_) => Vec::new(),
        },
        _ => block,
    };
    Ok(block.get(257..262) == Some(b"ustar"))
}
