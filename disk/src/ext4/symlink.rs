use super::{
    Damage, DamageKind, Error, Ext4, Inode, Kind, Limit, Structure,
    fields::{to_u64, to_usize},
};

/// Maximum length of a target, which is the kernel's limit on paths.
const MAX_TARGET: u64 = 4096;

impl Ext4 {
    /// Returns the target of a symlink as stored, unresolved.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`] if it is not a symlink; [`Error::Encrypted`];
    /// [`Error::Limit`] above 4096 bytes; [`Error::Damaged`].
    pub fn read_link(&self, inode: &Inode) -> Result<Vec<u8>, Error> {
        let number = inode.number;
        if inode.kind != Kind::Symlink {
            return Err(Error::WrongKind {
                inode: number,
                wanted: "symlink",
            });
        }
        if inode.is_encrypted() {
            return Err(Error::Encrypted { inode: number });
        }
        if inode.size > MAX_TARGET {
            return Err(Error::Limit {
                what: Limit::Symlink,
                limit: MAX_TARGET,
                inode: number,
            });
        }
        let length = to_usize(inode.size);
        let damaged = |problem| Damage::new(Structure::Symlink, problem).of(number);
        let target = if is_fast(inode) {
            // The target must end where the size says.
            if inode.map.get(length).is_some_and(|byte| *byte != 0) {
                return Err(damaged(DamageKind::Size(inode.size)).into());
            }
            inode.map.get(..length).unwrap_or_default().to_vec()
        } else if inode.size >= self.superblock.block_size.into() {
            // A target has at most one block, with the zero byte that ends it.
            return Err(damaged(DamageKind::Size(inode.size)).into());
        } else {
            let mut target = vec![0; length];
            self.read_any(inode, 0, &mut target)?;
            target
        };
        if target.is_empty() || target.contains(&0) {
            return Err(damaged(DamageKind::Name).into());
        }
        Ok(target)
    }
}

/// Returns whether it is a fast symlink, whose target is stored in place of the
/// block map.
pub(super) fn is_fast(inode: &Inode) -> bool {
    !inode.has_inline_data() && !inode.has_extents() && inode.size < to_u64(inode.map.len())
}
