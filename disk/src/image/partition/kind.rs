use std::fmt;

/// The type of a partition, from its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionKind {
    /// The type byte of an MBR partition.
    Mbr(u8),
    /// The type GUID of a GPT partition, as stored: the bytes of the first
    /// three groups of the usual notation are reversed.
    Gpt([u8; 16]),
}

impl PartitionKind {
    /// Returns the name of the type, if it is a common one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Mbr(kind) => match kind {
                0x07 => Some("NTFS or exFAT"),
                0x0b | 0x0c => Some("FAT32"),
                0x82 => Some("Linux swap"),
                0x83 => Some("Linux"),
                0x8e => Some("Linux LVM"),
                0xef => Some("EFI system"),
                0xfd => Some("Linux RAID"),
                _ => None,
            },
            Self::Gpt(_) => {
                let text = self.id();
                let found = GPT_NAMES.iter().find(|(id, _)| *id == text);
                found.map(|(_, name)| *name)
            }
        }
    }

    /// Returns the type as a number or a GUID.
    fn id(self) -> String {
        match self {
            Self::Mbr(kind) => format!("0x{kind:02x}"),
            Self::Gpt(bytes) => {
                let [a0, a1, a2, a3, b0, b1, c0, c1, rest @ ..] = bytes;
                let first = u32::from_le_bytes([a0, a1, a2, a3]);
                let second = u16::from_le_bytes([b0, b1]);
                let third = u16::from_le_bytes([c0, c1]);
                let rest = u64::from_be_bytes(rest);
                let (fourth, fifth) = (rest >> 48, rest & 0xffff_ffff_ffff);
                format!("{first:08x}-{second:04x}-{third:04x}-{fourth:04x}-{fifth:012x}")
            }
        }
    }
}

impl fmt::Display for PartitionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.write_str(name),
            None => formatter.write_str(&self.id()),
        }
    }
}

/// From the Discoverable Partitions Specification and the UEFI specification.
const GPT_NAMES: [(&str, &str); 11] = [
    ("c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "EFI system"),
    ("21686148-6449-6e6f-744e-656564454649", "BIOS boot"),
    ("0fc63daf-8483-4772-8e79-3d69d8477de4", "Linux"),
    (
        "4f68bce3-e8cd-4db1-96e7-fbcaf984b709",
        "Linux root (x86-64)",
    ),
    ("b921b045-1df0-41c3-af44-4c6f280d3fae", "Linux root (arm64)"),
    ("bc13c2ff-59e6-4262-a352-b275fd6f7172", "Linux boot"),
    ("933ac7e1-2eb4-4f13-b844-0e14e2aef915", "Linux home"),
    ("0657fd6d-a4ab-43c4-84e5-0933c84b4f4f", "Linux swap"),
    ("e6d6d379-f507-44c2-a23c-238f2a3df928", "Linux LVM"),
    ("a19d880f-05fc-4d3b-a006-743f0f84911e", "Linux RAID"),
    ("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7", "Microsoft data"),
];
