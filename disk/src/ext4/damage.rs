use std::fmt;

/// One place of a file system that is not as it has to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct Damage {
    /// What is damaged.
    pub structure: Structure,
    /// The inode that it belongs to, if it belongs to one.
    pub inode: Option<u32>,
    /// The block of the file system that it is in, where known.
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

/// What can be damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Structure {
    /// The superblock.
    Superblock,
    /// The descriptor of a group of blocks.
    Group,
    /// An inode itself.
    Inode,
    /// The map from a file's blocks to those of the disk.
    Map,
    /// A directory, or one entry of it.
    Directory,
    /// A symlink.
    Link,
    /// Data that is kept in the inode.
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
            Self::Map => "block map",
            Self::Directory => "directory",
            Self::Link => "symlink",
            Self::InlineData => "inline data",
            Self::Attributes => "extended attributes",
            Self::Journal => "journal",
        })
    }
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The bytes do not have the sum that was written with them.
    Checksum,
    /// A number that marks the structure is missing.
    Magic,
    /// It leads to a block that the file system or the image does not have.
    Block(u64),
    /// It leads to an inode that does not exist or that nothing may lead to.
    Number(u32),
    /// A size or count is impossible.
    Size(u64),
    /// Parts are not in their order, or lie in each other.
    Order,
    /// The depth of a tree is not what it has to be.
    Depth(u16),
    /// No file, directory, link or device has this mode.
    Mode(u16),
    /// A name that no entry can have.
    Name,
    /// A part is missing.
    Missing,
    /// A directory contains itself, or is in two places.
    Loop,
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum => f.write_str("wrong checksum"),
            Self::Magic => f.write_str("wrong magic number"),
            Self::Block(block) => write!(f, "it leads to block {block}, which there is not"),
            Self::Number(inode) => write!(f, "it leads to inode {inode}, which it must not"),
            Self::Size(size) => write!(f, "impossible size {size}"),
            Self::Order => f.write_str("its parts are out of order"),
            Self::Depth(depth) => write!(f, "wrong depth {depth}"),
            Self::Mode(mode) => write!(f, "no kind of file has mode {mode:o}"),
            Self::Name => f.write_str("a name that cannot be"),
            Self::Missing => f.write_str("a part is missing"),
            Self::Loop => f.write_str("the directory is in two places"),
        }
    }
}
