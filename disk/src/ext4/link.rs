use super::{
    Damage, DamageKind, Error, Ext4, Inode, Kind, Limit, Structure,
    fields::{narrow, wide},
};

/// The kernel follows no longer path.
const MOST: u64 = 4096;

impl Ext4 {
    /// Where a symlink leads to, in its own bytes.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`], [`Error::Encrypted`]; [`Error::Limit`] above 4096
    /// bytes; [`Error::Damaged`].
    pub fn link(&self, inode: &Inode) -> Result<Vec<u8>, Error> {
        let number = inode.number;
        if inode.kind != Kind::Link {
            return Err(Error::WrongKind {
                inode: number,
                wanted: "symlink",
            });
        }
        if inode.is_encrypted() {
            return Err(Error::Encrypted { inode: number });
        }
        if inode.size > MOST {
            return Err(Error::Limit {
                what: Limit::Link,
                limit: MOST,
                inode: number,
            });
        }
        let length = narrow(inode.size);
        let target = if is_short(inode) {
            inode.map.get(..length).unwrap_or_default().to_vec()
        } else {
            let mut target = vec![0; length];
            self.read_any(inode, 0, &mut target)?;
            target
        };
        if target.is_empty() || target.contains(&0) {
            return Err(Damage::new(Structure::Link, DamageKind::Name)
                .of(number)
                .into());
        }
        Ok(target)
    }
}

/// Whether the target is where the map would be.
pub(super) fn is_short(inode: &Inode) -> bool {
    !inode.has_inline_data() && !inode.has_extents() && inode.size < wide(inode.map.len())
}
