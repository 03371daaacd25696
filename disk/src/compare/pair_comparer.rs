use sha2::{Digest as _, Sha256};

use super::{DiffSide, DiskChange, node::Node, pairs::Pair, shared_blocks::SharedBlocks};
use vmcell_tree::diff::{Change, DiffOptions, FileDiff, ManifestEntry, ManifestKind};

use crate::{
    DiskError,
    budget::Budget,
    content::{CHUNK_SIZE, at_most},
    ext4::Kind,
    path::to_path,
};

/// Compares the entries of two trees at one path.
pub(super) struct PairComparer<'c, 'a> {
    pub(super) sides: (&'c DiffSide<'a>, &'c DiffSide<'a>),
    pub(super) shared: Option<&'c SharedBlocks>,
    pub(super) options: DiffOptions,
    pub(super) budget: &'c mut Budget,
}

/// The state of one side at a path.
#[derive(Default)]
struct SideState {
    entry: Option<ManifestEntry>,
    /// The contents of a file, unless it is too large to show.
    text: Option<Vec<u8>>,
}

/// Approximate memory of a change without its patch.
const CHANGE_MEMORY: usize = 512;

impl PairComparer<'_, '_> {
    /// Returns the change, or `None` if the entries are equal.
    pub(super) fn change(
        &mut self,
        pair: &Pair,
        owners: bool,
    ) -> Result<Option<DiskChange>, DiskError> {
        let path = &pair.path;
        let mut is_same = false;
        if let (Some(old), Some(new)) = (&pair.old, &pair.new)
            && old.kind == new.kind
        {
            is_same = self.is_same(old, new, path)?;
            let same_mode = old.mode == new.mode || old.kind == Kind::Symlink;
            if is_same && same_mode && (!owners || old.owner == new.owner) {
                return Ok(None);
            }
        }
        let new = self.state(self.sides.1, pair.new.as_ref(), is_same, path)?;
        let old = match (&pair.old, &new.entry) {
            (Some(node), Some(entry)) if is_same => SideState {
                entry: Some(ManifestEntry {
                    kind: entry.kind.clone(),
                    mode: node.mode,
                }),
                text: None,
            },
            _ => self.state(self.sides.0, pair.old.as_ref(), is_same, path)?,
        };
        let change = Change::new(to_path(path), old.entry, new.entry);
        let texts = (old.text.as_deref(), new.text.as_deref());
        self.budget
            .reserve(CHANGE_MEMORY + path.len() + target_bytes(&change), path)?;
        let mut file = FileDiff::new(change, texts.0, texts.1, self.options);
        if !self.budget.reserve_optional(file.patch().len()) {
            // List the file without its contents, for which there is not enough
            // memory.
            file = file.without_texts(self.options);
            self.budget.reserve(file.patch().len(), path)?;
        }
        let owner = |node: &Option<Node>| {
            let owner = node.as_ref().map(|node| node.owner);
            owner.filter(|_| owners)
        };
        Ok(Some(DiskChange {
            file,
            old_owner: owner(&pair.old),
            new_owner: owner(&pair.new),
        }))
    }

    /// Returns whether two entries of the same kind have the same contents.
    fn is_same(&mut self, old: &Node, new: &Node, path: &[u8]) -> Result<bool, DiskError> {
        match old.kind {
            Kind::File if old.size != new.size => Ok(false),
            Kind::File if self.is_shared(old, new) => Ok(true),
            Kind::File => self.has_same_bytes(old, new, path),
            Kind::Symlink => {
                let target = self.sides.0.link(old, path)?;
                Ok(target == self.sides.1.link(new, path)?)
            }
            _ => Ok(true),
        }
    }

    fn is_shared(&self, old: &Node, new: &Node) -> bool {
        let old = self.sides.0.as_disk().zip(old.inode());
        let new = self.sides.1.as_disk().zip(new.inode());
        match (self.shared, old, new) {
            (Some(shared), Some(old), Some(new)) => shared.is_same(old, new),
            _ => false,
        }
    }

    fn has_same_bytes(&mut self, old: &Node, new: &Node, path: &[u8]) -> Result<bool, DiskError> {
        self.budget.count_bytes(old.size.saturating_mul(2), path)?;
        let files = (self.sides.0.open(old, path)?, self.sides.1.open(new, path)?);
        let mut buffers = (read_buffer(old), read_buffer(old));
        let mut offset = 0;
        while offset < old.size {
            self.budget.check_time(path)?;
            let counts = (
                files.0.read_at(offset, &mut buffers.0, path)?,
                files.1.read_at(offset, &mut buffers.1, path)?,
            );
            if buffers.0.get(..counts.0) != buffers.1.get(..counts.1) {
                return Ok(false);
            }
            if counts.0 == 0 {
                break;
            }
            offset += counts.0 as u64;
        }
        Ok(true)
    }

    fn state(
        &mut self,
        side: &DiffSide<'_>,
        node: Option<&Node>,
        is_same: bool,
        path: &[u8],
    ) -> Result<SideState, DiskError> {
        let Some(node) = node else {
            return Ok(SideState::default());
        };
        let mut text = None;
        let kind = match node.kind {
            Kind::File => {
                let is_shown = !is_same && node.size <= self.options.max_size as u64;
                text = is_shown.then(Vec::new);
                self.digest(side, node, text.as_mut(), path)?
            }
            Kind::Directory => ManifestKind::Directory,
            Kind::Symlink => ManifestKind::Symlink {
                target: side.link(node, path)?,
            },
            _ => ManifestKind::Other,
        };
        let mode = node.mode;
        Ok(SideState {
            entry: Some(ManifestEntry { kind, mode }),
            text,
        })
    }

    /// Returns the size and digest of a file, and stores its contents in `text`
    /// if given.
    fn digest(
        &mut self,
        side: &DiffSide<'_>,
        node: &Node,
        mut text: Option<&mut Vec<u8>>,
        path: &[u8],
    ) -> Result<ManifestKind, DiskError> {
        self.budget.count_bytes(node.size, path)?;
        let file = side.open(node, path)?;
        let mut hasher = Sha256::new();
        let mut buffer = read_buffer(node);
        let mut size = 0;
        while size < node.size {
            self.budget.check_time(path)?;
            let count = file.read_at(size, &mut buffer, path)?;
            let piece = buffer.get(..count).unwrap_or_default();
            if piece.is_empty() {
                break;
            }
            hasher.update(piece);
            if let Some(text) = &mut text {
                text.extend_from_slice(piece);
            }
            size += count as u64;
        }
        Ok(ManifestKind::File {
            size,
            sha256: hasher.finalize().into(),
        })
    }
}

/// Returns the length of the symlink targets in a change.
fn target_bytes(change: &Change) -> usize {
    let target = |entry: &Option<ManifestEntry>| match entry.as_ref().map(|entry| &entry.kind) {
        Some(ManifestKind::Symlink { target }) => target.len(),
        _ => 0,
    };
    target(&change.old) + target(&change.new)
}

fn read_buffer(node: &Node) -> Vec<u8> {
    vec![0; at_most(node.size, CHUNK_SIZE)]
}
