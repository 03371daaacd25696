use std::{fmt, io};

use super::source::Source;

/// A format that is recognized, to name it in an error, but not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignFormat {
    /// VMware's virtual disk.
    Vmdk,
    /// VirtualBox's virtual disk.
    Vdi,
    /// Hyper-V's virtual disk.
    Vhdx,
    /// Virtual PC's and Azure's virtual disk, of dynamic size. One of fixed size
    /// is a raw image with a footer.
    Vhd,
    /// QEMU's enhanced disk.
    Qed,
    /// Parallels' virtual disk.
    Parallels,
    /// A file compressed with gzip.
    Gzip,
    /// A file compressed with bzip2.
    Bzip2,
    /// A file compressed with xz.
    Xz,
    /// A file compressed with zstd.
    Zstd,
}

/// Each format with the offset and the bytes by which it is recognized.
const MAGIC_NUMBERS: [(ForeignFormat, usize, &[u8]); 13] = [
    (ForeignFormat::Vmdk, 0, b"KDMV"),
    (ForeignFormat::Vmdk, 0, b"COWD"),
    (ForeignFormat::Vmdk, 0, b"# Disk DescriptorFile"),
    (ForeignFormat::Vdi, 0x40, b"\x7f\x10\xda\xbe"),
    (ForeignFormat::Vhdx, 0, b"vhdxfile"),
    (ForeignFormat::Vhd, 0, b"conectix"),
    (ForeignFormat::Qed, 0, b"QED\0"),
    (ForeignFormat::Parallels, 0, b"WithoutFreeSpace"),
    (ForeignFormat::Parallels, 0, b"WithouFreSpacExt"),
    (ForeignFormat::Gzip, 0, b"\x1f\x8b\x08"),
    (ForeignFormat::Bzip2, 0, b"BZh"),
    (ForeignFormat::Xz, 0, b"\xfd7zXZ\0"),
    (ForeignFormat::Zstd, 0, b"\x28\xb5\x2f\xfd"),
];

/// Offset and value of the magic number of an ext superblock.
const EXT_MAGIC: (usize, [u8; 2]) = (1024 + 0x38, [0x53, 0xef]);

impl ForeignFormat {
    /// Returns the format of a file that is neither qcow2 nor known to be raw.
    pub(super) fn detect(source: &Source) -> io::Result<Option<Self>> {
        let mut start = [0; 2048];
        source.read_padded(0, &mut start)?;
        let has = |at: usize, magic: &[u8]| {
            let bytes = start.get(at..).unwrap_or_default();
            bytes.starts_with(magic)
        };
        // The first KiB of an ext file system can contain anything.
        if has(EXT_MAGIC.0, &EXT_MAGIC.1) {
            return Ok(None);
        }
        let found = MAGIC_NUMBERS.iter().find(|(_, at, magic)| has(*at, magic));
        Ok(found.map(|(format, ..)| *format))
    }

    /// Returns the command that makes an image of a supported format.
    fn remedy(self) -> &'static str {
        match self {
            Self::Gzip => "decompress it with `gunzip`",
            Self::Bzip2 => "decompress it with `bunzip2`",
            Self::Xz => "decompress it with `unxz`",
            Self::Zstd => "decompress it with `unzstd`",
            _ => "convert it with `qemu-img convert -O qcow2`",
        }
    }
}

/// Prints the name, and how to get an image of a supported format.
impl fmt::Display for ForeignFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Vmdk => "a VMware image (vmdk)",
            Self::Vdi => "a VirtualBox image (vdi)",
            Self::Vhdx => "a Hyper-V image (vhdx)",
            Self::Vhd => "a Virtual PC image (vhd)",
            Self::Qed => "a QED image (qed)",
            Self::Parallels => "a Parallels image (parallels)",
            Self::Gzip => "compressed with gzip",
            Self::Bzip2 => "compressed with bzip2",
            Self::Xz => "compressed with xz",
            Self::Zstd => "compressed with zstd",
        };
        write!(f, "{name}, which is not supported: {}", self.remedy())
    }
}
