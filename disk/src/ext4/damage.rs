use std::fmt;

/// Damage found at one place of a file system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct Damage {
    /// The damaged structure.
    pub structure: Structure,
    /// The inode to which it belongs, if any.
    pub inode: Option<u32>,
    /// The block that contains it, if known.
    pub block: Option<u64>,
    /// What is wrong with it.
    pub problem: DamageKind,
}

impl Damage {
    pub(super) fn new(structure: Structure, problem: DamageKind) -> Self {
        Self {
            structure,
            inode: None,
            block: None,
            problem,
        }
    }

    pub(super) fn of(mut self, inode: u32) -> Self {
        self.inode = Some(inode);
        self
    }

    pub(super) fn at(mut self, block: u64) -> Self {
        self.block = Some(block);
        self
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} ", self.structure)?;
        if let Some(inode) = self.inode {
            write!(f, "of inode {inode} ")?;
        }
        if let Some(block) = self.block {
            write!(f, "in block {block} ")?;
        }
        write!(f, "is damaged: {}", self.problem)
    }
}

/// A structure of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Structure {
    /// The superblock.
    Superblock,
    /// A block group descriptor.
    Group,
    /// An inode.
    Inode,
    /// The map from the blocks of a file to blocks of the disk: extent tree or
    /// indirect blocks.
    BlockMap,
    /// A directory or one of its entries.
    Directory,
    /// A symlink.
    Symlink,
    /// Data stored in the inode.
    InlineData,
    /// Extended attributes.
    Attributes,
    /// The journal.
    Journal,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Superblock => "superblock",
            Self::Group => "group descriptor",
            Self::Inode => "inode record",
            Self::BlockMap => "block map",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::InlineData => "inline data",
            Self::Attributes => "extended attributes",
            Self::Journal => "journal",
        })
    }
}

/// The kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The checksum does not match.
    Checksum,
    /// The magic number is wrong.
    Magic,
    /// It points to a block outside of the file system or the image.
    Block(u64),
    /// It points to an inode that does not exist or is reserved.
    Inode(u32),
    /// A size or count is invalid.
    Size(u64),
    /// Parts are out of order or overlap.
    Order,
    /// The depth of the extent tree is wrong.
    Depth(u16),
    /// The mode has no valid file type.
    Mode(u16),
    /// A name is invalid, or occurs twice in a directory.
    Name,
    /// A part is missing.
    Missing,
    /// A directory contains itself, or is in two places.
    Loop,
    /// The inode was deleted, but a name still points to it.
    Deleted,
    /// The flags contradict each other or the use of the inode.
    Flags(u32),
    /// A file contains blocks that belong to the file system.
    Overlap(u64),
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum => f.write_str("wrong checksum"),
            Self::Magic => f.write_str("wrong magic number"),
            Self::Block(block) => write!(f, "it points to block {block}, which does not exist"),
            Self::Inode(inode) => write!(f, "it points to inode {inode}, which is invalid"),
            Self::Size(size) => write!(f, "invalid size {size}"),
            Self::Order => f.write_str("its parts are out of order"),
            Self::Depth(depth) => write!(f, "wrong depth {depth}"),
            Self::Mode(mode) => write!(f, "mode {mode:o} has no valid file type"),
            Self::Name => f.write_str("invalid name"),
            Self::Missing => f.write_str("a part is missing"),
            Self::Loop => f.write_str("the directory is in two places"),
            Self::Deleted => f.write_str("it was deleted"),
            Self::Flags(flags) => write!(f, "invalid flags {flags:#x}"),
            Self::Overlap(block) => {
                write!(
                    f,
                    "it points to block {block}, which belongs to the file system"
                )
            }
        }
    }
}
