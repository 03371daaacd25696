use std::time::Instant;

use super::{
    Damage, DamageKind, Error, Ext4, Inode, Limit, Structure, acl,
    attribute_area::{AttributeArea, MAGIC, RawEntry},
    fields::{Fields, to_u64, to_usize},
};

const CHECKSUM: usize = 0x10;

/// An extended attribute, as `getxattr` returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The full name, for example `user.note`.
    pub name: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

impl Ext4 {
    /// Returns the extended attributes of an inode. An attribute that cannot be
    /// read is returned as an error. Like the kernel, leaves out attributes
    /// that only the file system uses.
    pub fn attributes(&self, inode: &Inode) -> Vec<Result<Attribute, Error>> {
        let mut collector = Collector {
            ext4: self,
            inode,
            left: self.options.limits.attributes,
            since: Instant::now(),
            items: Vec::new(),
        };
        match self.inode_bytes(inode.number) {
            Ok(bytes) => {
                if let Some(area) = AttributeArea::of_inode(&bytes, inode) {
                    collector.add(area, None);
                }
            }
            Err(error) => collector.items.push(Err(error)),
        }
        if inode.attributes != 0 {
            match self.attribute_block(inode) {
                Ok(bytes) => collector.add(AttributeArea::of_block(&bytes), Some(inode.attributes)),
                Err(error) => collector.items.push(Err(error)),
            }
        }
        collector.items
    }

    fn attribute_block(&self, inode: &Inode) -> Result<super::store::Bytes, Error> {
        let number = inode.attributes;
        let bytes = self
            .store
            .block(Structure::Attributes, inode.number, number)?;
        let fields = Fields(&bytes);
        let problem = if fields.u32(0) != MAGIC {
            DamageKind::Magic
        } else if !self.superblock.matches(
            &number.to_le_bytes(),
            &bytes,
            CHECKSUM,
            fields.u32(CHECKSUM),
        ) {
            DamageKind::Checksum
        } else {
            return Ok(bytes);
        };
        Err(damaged(inode, Some(number), problem).into())
    }

    /// Reads a value that is stored in its own inode.
    fn attribute_inode(&self, inode: &Inode, entry: &RawEntry<'_>) -> Result<Vec<u8>, Error> {
        let holder = self.inode_or_value(entry.inode)?;
        if !holder.is_attribute() || holder.size != u64::from(entry.size) {
            return Err(damaged(inode, None, DamageKind::Inode(entry.inode)).into());
        }
        let mut value = vec![0; to_usize(entry.size.into())];
        self.read(&holder, 0, &mut value)?;
        Ok(value)
    }
}

struct Collector<'a> {
    ext4: &'a Ext4,
    inode: &'a Inode,
    left: usize,
    since: Instant,
    items: Vec<Result<Attribute, Error>>,
}

impl Collector<'_> {
    fn add(&mut self, area: AttributeArea<'_>, block: Option<u64>) {
        let limits = self.ext4.options.limits;
        for entry in area.entries() {
            if let Err(error) = limits.check_time(self.since, self.inode.number) {
                return self.items.push(Err(error));
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(problem) => {
                    let damage = damaged(self.inode, block, problem);
                    return self.items.push(Err(damage.into()));
                }
            };
            let Some(name) = full_name(&entry) else {
                continue;
            };
            // Count each value: several entries can share one, so the size of
            // the image does not bound the sum.
            let size = to_usize(entry.size.into()).saturating_add(name.len());
            let Some(left) = self.left.checked_sub(size) else {
                return self.items.push(Err(Error::Limit {
                    what: Limit::Attributes,
                    limit: to_u64(limits.attributes),
                    inode: self.inode.number,
                }));
            };
            self.left = left;
            let attribute = self.value(area, &entry, block);
            self.items
                .push(attribute.map(|value| Attribute { name, value }));
        }
    }

    fn value(
        &self,
        area: AttributeArea<'_>,
        entry: &RawEntry<'_>,
        block: Option<u64>,
    ) -> Result<Vec<u8>, Error> {
        let value = match entry.inode {
            0 => area.value(entry).map(<[u8]>::to_vec),
            _ => Some(self.ext4.attribute_inode(self.inode, entry)?),
        };
        value
            .and_then(|value| match entry.prefix {
                2 | 3 => acl::from_disk(&value),
                _ => Some(value),
            })
            .ok_or_else(|| damaged(self.inode, block, DamageKind::Size(entry.size.into())).into())
    }
}

/// Returns the full name, or `None` for attributes that users never see: inline
/// data, encryption and verity contexts.
fn full_name(entry: &RawEntry<'_>) -> Option<Vec<u8>> {
    let prefix: &[u8] = match entry.prefix {
        1 => b"user.",
        2 => b"system.posix_acl_access",
        3 => b"system.posix_acl_default",
        4 => b"trusted.",
        6 => b"security.",
        10 => b"gnu.",
        _ => return None,
    };
    Some([prefix, entry.name].concat())
}

fn damaged(inode: &Inode, block: Option<u64>, problem: DamageKind) -> Damage {
    Damage {
        structure: Structure::Attributes,
        inode: Some(inode.number),
        block,
        problem,
    }
}
