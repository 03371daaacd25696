use super::{
    Damage, DamageKind, Error, Ext4, Inode, Structure, attribute_area::Area, fields::wide,
};

/// The number of the name prefix `system.`, and the name behind it.
const SYSTEM: u8 = 7;
const DATA: &[u8] = b"data";

impl Ext4 {
    /// The contents that are kept in an inode: first where the map would be,
    /// then in an extended attribute.
    pub(super) fn inline_data(&self, inode: &Inode) -> Result<Vec<u8>, Error> {
        let damaged = |problem| Damage::new(Structure::InlineData, problem).of(inode.number);
        let bytes = self.inode_bytes(inode.number)?;
        let mut data = inode.map.to_vec();
        let more = Area::of_inode(&bytes, inode)
            .into_iter()
            .flat_map(|area| area.entries().map(move |entry| (area, entry)))
            .find_map(|(area, entry)| {
                let entry = entry.ok()?;
                (entry.prefix == SYSTEM && entry.name == DATA).then_some((area, entry))
            });
        match more {
            Some((area, entry)) => data.extend_from_slice(
                area.value(&entry)
                    .ok_or_else(|| damaged(DamageKind::Size(entry.size.into())))?,
            ),
            None if inode.size > wide(inode.map.len()) => {
                return Err(damaged(DamageKind::Missing).into());
            }
            None => {}
        }
        Ok(data)
    }
}
