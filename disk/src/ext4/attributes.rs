use std::time::Instant;

use super::{
    Damage, DamageKind, Error, Ext4, Inode, Limit, Structure, acl,
    attribute_area::{Area, MAGIC, RawEntry},
    fields::{Fields, narrow, wide},
};

const CHECKSUM: usize = 0x10;

/// An extended attribute, as `getxattr` would tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The whole name, such as `user.note`.
    pub name: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

impl Ext4 {
    /// The extended attributes of an inode, and what is wrong with those that
    /// cannot be read. What only the file system itself uses is left out, as
    /// the kernel does.
    pub fn attributes(&self, inode: &Inode) -> Vec<Result<Attribute, Error>> {
        let mut found = WalkEntry {
            ext4: self,
            inode,
            left: self.options.limits.attributes,
            since: Instant::now(),
            items: Vec::new(),
        };
        match self.inode_bytes(inode.number) {
            Ok(bytes) => {
                if let Some(area) = Area::of_inode(&bytes, inode) {
                    found.take(area, None);
                }
            }
            Err(error) => found.items.push(Err(error)),
        }
        if inode.attributes != 0 {
            match self.attribute_block(inode) {
                Ok(bytes) => found.take(Area::of_block(&bytes), Some(inode.attributes)),
                Err(error) => found.items.push(Err(error)),
            }
        }
        found.items
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

    /// A value that has an inode of its own.
    fn attribute_inode(&self, inode: &Inode, entry: &RawEntry<'_>) -> Result<Vec<u8>, Error> {
        let holder = self.inode(entry.inode)?;
        if !holder.is_attribute() || holder.size != u64::from(entry.size) {
            return Err(damaged(inode, None, DamageKind::Number(entry.inode)).into());
        }
        let mut value = vec![0; narrow(entry.size.into())];
        self.read(&holder, 0, &mut value)?;
        Ok(value)
    }
}

struct WalkEntry<'a> {
    ext4: &'a Ext4,
    inode: &'a Inode,
    left: usize,
    since: Instant,
    items: Vec<Result<Attribute, Error>>,
}

impl WalkEntry<'_> {
    fn take(&mut self, area: Area<'_>, block: Option<u64>) {
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
            // Entries may share a value, so the image does not bound the sum.
            let size = narrow(entry.size.into()).saturating_add(name.len());
            let Some(left) = self.left.checked_sub(size) else {
                return self.items.push(Err(Error::Limit {
                    what: Limit::Attributes,
                    limit: wide(limits.attributes),
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
        area: Area<'_>,
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

/// None for what users never see: inline data, encryption and verity contexts.
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
