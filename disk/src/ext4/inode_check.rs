use super::{
    Damage, DamageKind, Ext4, Inode, Kind, Structure, attribute_area::AttributeArea, extents,
    indirect,
};

/// Flags that no symlink may have.
const IMMUTABLE: u32 = 0x10;
const APPEND_ONLY: u32 = 0x20;

impl Ext4 {
    /// Checks an inode as the kernel does before it uses one (`__ext4_iget`):
    /// whether it is in use, the root of its block map, and its extended
    /// attributes.
    ///
    /// Of directories, only the former is checked: other damage is found when
    /// they are read, and should not hide the names that are still readable.
    /// Nor is the block map of a symlink, which is read whenever it is listed.
    pub(super) fn check_inode(&self, inode: &Inode, bytes: &[u8]) -> Result<(), Damage> {
        let damaged = |structure, problem| Damage::new(structure, problem).of(inode.number);
        if inode.links == 0 {
            return Err(damaged(Structure::Inode, DamageKind::Deleted));
        }
        let contradicts = match inode.kind {
            Kind::Symlink => inode.flags & (IMMUTABLE | APPEND_ONLY) != 0,
            _ => inode.has_inline_data() && inode.has_extents(),
        };
        if contradicts {
            return Err(damaged(Structure::Inode, DamageKind::Flags(inode.flags)));
        }
        if inode.kind == Kind::Directory {
            return Ok(());
        }
        if let Some(area) = AttributeArea::of_inode(bytes, inode) {
            let checked = area.check(&self.superblock);
            checked.map_err(|problem| damaged(Structure::Attributes, problem))?;
        }
        let block = inode.attributes;
        if block != 0 && self.store.offset(block, 1).is_none() {
            return Err(damaged(Structure::Attributes, DamageKind::Block(block)));
        }
        if let Some(block) = self.zone.overlap(block, 1).filter(|block| *block != 0) {
            return Err(damaged(Structure::Attributes, DamageKind::Overlap(block)));
        }
        if inode.has_inline_data() || inode.kind != Kind::File {
            return Ok(());
        }
        match inode.has_extents() {
            true => extents::check_root(self, inode),
            false => indirect::check_root(self, inode),
        }
    }
}
