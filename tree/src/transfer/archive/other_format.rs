use std::fmt;

/// A format of archives or compression that is recognized, but not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OtherFormat {
    /// xz
    Xz,
    /// bzip2
    Bzip2,
    /// lz4
    Lz4,
    /// lzip
    Lzip,
    /// lzma
    Lzma,
    /// lzop
    Lzop,
    /// lrzip
    Lrzip,
    /// compress (`.Z`)
    Compress,
    /// zip
    Zip,
    /// 7-Zip
    SevenZip,
    /// RAR
    Rar,
    /// cpio
    Cpio,
    /// ar, also of Debian packages
    Ar,
}

/// The first bytes of each format.
const SIGNATURES: &[(&[u8], OtherFormat)] = &[
    (b"\xfd7zXZ\0", OtherFormat::Xz),
    (b"BZh", OtherFormat::Bzip2),
    (&[4, 0x22, 0x4d, 0x18], OtherFormat::Lz4),
    (&[2, 0x21, 0x4c, 0x18], OtherFormat::Lz4),
    (b"LZIP", OtherFormat::Lzip),
    (b"\x5d\0\0", OtherFormat::Lzma),
    (b"\x89LZO\0\r\n\x1a\n", OtherFormat::Lzop),
    (b"LRZI", OtherFormat::Lrzip),
    (&[0x1f, 0x9d], OtherFormat::Compress),
    (b"PK\x03\x04", OtherFormat::Zip),
    (b"PK\x05\x06", OtherFormat::Zip),
    (b"7z\xbc\xaf\x27\x1c", OtherFormat::SevenZip),
    (b"Rar!\x1a\x07", OtherFormat::Rar),
    (b"070701", OtherFormat::Cpio),
    (b"070702", OtherFormat::Cpio),
    (b"070707", OtherFormat::Cpio),
    (&[0xc7, 0x71], OtherFormat::Cpio),
    (&[0x71, 0xc7], OtherFormat::Cpio),
    (b"!<arch>\n", OtherFormat::Ar),
];

impl OtherFormat {
    /// Detects the format by the first bytes. A tar archive may start with the
    /// same bytes, because it starts with the name of its first entry.
    pub(super) fn detect(start: &[u8]) -> Option<Self> {
        let known = SIGNATURES.iter();
        let mut known = known.filter(|(signature, _)| start.starts_with(signature));
        known.next().map(|(_, format)| *format)
    }

    /// Returns a command that makes a tar archive of a file `OLD`.
    pub(super) fn conversion(self) -> &'static str {
        match self {
            Self::Xz => "xz -dc OLD > NEW.tar",
            Self::Bzip2 => "bzip2 -dc OLD > NEW.tar",
            Self::Lz4 => "lz4 -dc OLD > NEW.tar",
            Self::Lzip => "lzip -dc OLD > NEW.tar",
            Self::Lzma => "xz --format=lzma -dc OLD > NEW.tar",
            Self::Lzop => "lzop -dc OLD > NEW.tar",
            Self::Lrzip => "lrzip -d -o NEW.tar OLD",
            Self::Compress => "gzip -dc OLD > NEW.tar",
            Self::Zip | Self::SevenZip | Self::Rar | Self::Cpio | Self::Ar => {
                "bsdtar -cf NEW.tar @OLD"
            }
        }
    }
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Xz => "compressed with xz",
            Self::Bzip2 => "compressed with bzip2",
            Self::Lz4 => "compressed with lz4",
            Self::Lzip => "compressed with lzip",
            Self::Lzma => "compressed with lzma",
            Self::Lzop => "compressed with lzop",
            Self::Lrzip => "compressed with lrzip",
            Self::Compress => "compressed with compress",
            Self::Zip => "a zip archive",
            Self::SevenZip => "a 7-Zip archive",
            Self::Rar => "a RAR archive",
            Self::Cpio => "a cpio archive",
            Self::Ar => "an ar archive",
        })
    }
}
