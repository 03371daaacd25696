use std::{
    fs::{File, Metadata},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::PathBuf,
};

use super::Owner;
use crate::{
    Disk,
    ext4::{Inode, Kind},
};

/// An entry on one side of a comparison.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) owner: Owner,
    pub(super) size: u64,
    pub(super) source: NodeSource,
}

/// Where the entry can be read.
#[derive(Clone, Debug)]
pub(super) enum NodeSource {
    Disk(Box<Inode>),
    Host(PathBuf),
}

/// A file opened for comparison.
pub(super) enum OpenFile<'a> {
    Disk(&'a Disk, &'a Inode),
    Host(File),
}

impl Node {
    pub(super) fn of_inode(inode: Inode) -> Self {
        Self {
            kind: inode.kind,
            mode: inode.mode.into(),
            owner: Owner {
                uid: inode.uid,
                gid: inode.gid,
            },
            size: inode.size,
            source: NodeSource::Disk(Box::new(inode)),
        }
    }

    pub(super) fn of_host(path: PathBuf, metadata: &Metadata) -> Option<Self> {
        Some(Self {
            kind: kind_of(metadata)?,
            mode: metadata.mode() & 0o7777,
            owner: Owner {
                uid: metadata.uid(),
                gid: metadata.gid(),
            },
            size: metadata.len(),
            source: NodeSource::Host(path),
        })
    }

    pub(super) fn inode(&self) -> Option<&Inode> {
        match &self.source {
            NodeSource::Disk(inode) => Some(inode),
            NodeSource::Host(_) => None,
        }
    }
}

fn kind_of(metadata: &Metadata) -> Option<Kind> {
    let kind = metadata.file_type();
    let kinds = [
        (kind.is_file(), Kind::File),
        (kind.is_dir(), Kind::Directory),
        (kind.is_symlink(), Kind::Symlink),
        (kind.is_fifo(), Kind::Fifo),
        (kind.is_socket(), Kind::Socket),
        (kind.is_char_device(), Kind::CharacterDevice),
        (kind.is_block_device(), Kind::BlockDevice),
    ];
    kinds.into_iter().find(|(is, _)| *is).map(|(_, kind)| kind)
}
