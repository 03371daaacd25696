use super::{
    Damage, DamageKind, Error, Ext4, Inode, Structure, attribute_area::AttributeArea,
    fields::to_u64,
};

/// Index of the name prefix `system.`, and the name after it.
const SYSTEM: u8 = 7;
const DATA: &[u8] = b"data";

impl Ext4 {
    /// Returns the contents that are stored in an inode: first in place of the
    /// block map, then in an extended attribute.
    pub(super) fn inline_data(&self, inode: &Inode) -> Result<Vec<u8>, Error> {
        let damaged = |problem| Damage::new(Structure::InlineData, problem).of(inode.number);
        let bytes = self.inode_bytes(inode.number)?;
        let mut data = inode.map.to_vec();
        let area = AttributeArea::of_inode(&bytes, inode);
        if let Some(area) = area {
            area.check(&self.superblock).map_err(damaged)?;
        }
        let more = area
            .into_iter()
            .flat_map(|area| area.entries().flatten().map(move |entry| (area, entry)))
            .find(|(_, entry)| entry.prefix == SYSTEM && entry.name == DATA);
        match more {
            Some((area, entry)) => data.extend_from_slice(
                area.value(&entry)
                    .ok_or_else(|| damaged(DamageKind::Size(entry.size.into())))?,
            ),
            None if inode.size > to_u64(inode.map.len()) => {
                return Err(damaged(DamageKind::Missing).into());
            }
            None => {}
        }
        Ok(data)
    }
}
