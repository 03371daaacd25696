use super::{
    Checksums, Damage, DamageKind, Error, Ext4, Kind, Structure, Timestamp,
    checksum::crc32c,
    fields::{Fields, join},
    store::Bytes,
    superblock::Superblock,
};

/// The inode number of the root directory.
pub(super) const ROOT: u32 = 2;

/// Size of an inode without the fields that were added later
/// (`EXT4_GOOD_OLD_INODE_SIZE` in the kernel).
pub(super) const GOOD_OLD_INODE_SIZE: usize = 128;

const ENCRYPTED: u32 = 0x800;
const HUGE_FILE: u32 = 0x4_0000;
const EXTENTS: u32 = 0x8_0000;
const ATTRIBUTE: u32 = 0x20_0000;
const INLINE_DATA: u32 = 0x1000_0000;

/// An inode: the metadata of a file, directory, symlink or device, without its
/// name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inode {
    /// The inode number.
    pub number: u32,
    /// The type.
    pub kind: Kind,
    /// The permission bits with setuid, setgid and sticky.
    pub mode: u16,
    /// The user id of the owner.
    pub uid: u32,
    /// The group id of the owner.
    pub gid: u32,
    /// The recorded size in bytes. Whether all of it can be read is not
    /// checked.
    pub size: u64,
    /// The number of hard links. A directory with very many subdirectories has
    /// 1.
    pub links: u16,
    /// The number of allocated bytes, including the blocks of the block map.
    pub allocated: u64,
    /// When its contents were last read (`atime`).
    pub accessed: Timestamp,
    /// When its contents were last changed (`mtime`).
    pub modified: Timestamp,
    /// When its contents or metadata were last changed (`ctime`).
    pub changed: Timestamp,
    /// When it was created (`crtime`), if the inode has this field.
    pub created: Option<Timestamp>,
    /// The inode flags that `lsattr` prints, as stored on disk.
    pub flags: u32,
    /// Distinguishes inodes that used the same number one after the other.
    pub generation: u32,
    /// The project id, for quotas.
    pub project: u32,
    /// The major and minor number, if it is a device.
    pub device: Option<(u32, u32)>,
    /// `i_block`: the block map, or short contents themselves.
    pub(super) map: [u8; 60],
    /// `i_extra_isize`: the length of the fields beyond
    /// [`GOOD_OLD_INODE_SIZE`].
    pub(super) extra: u16,
    /// The block with extended attributes, or zero.
    pub(super) attributes: u64,
    /// The initial value of the checksums of its blocks, if they are checked.
    pub(super) seed: Option<u32>,
}

impl Inode {
    /// Returns whether its contents are encrypted and, for a directory, its
    /// names.
    pub fn is_encrypted(&self) -> bool {
        self.flags & ENCRYPTED != 0
    }

    pub(super) fn has_extents(&self) -> bool {
        self.flags & EXTENTS != 0
    }

    pub(super) fn has_inline_data(&self) -> bool {
        self.flags & INLINE_DATA != 0
    }

    /// Returns whether it stores the value of an extended attribute.
    pub(super) fn is_attribute(&self) -> bool {
        self.flags & ATTRIBUTE != 0
    }

    fn parse(superblock: &Superblock, number: u32, bytes: &[u8]) -> Result<Self, Damage> {
        let damaged = |problem| Damage::new(Structure::Inode, problem).of(number);

        let whole = Fields(bytes);
        let extra = if bytes.len() > GOOD_OLD_INODE_SIZE {
            whole.u16(0x80)
        } else {
            0
        };
        let length = GOOD_OLD_INODE_SIZE.saturating_add(extra.into());
        let fields = Fields(
            bytes
                .get(..length)
                .filter(|_| extra.is_multiple_of(4))
                .ok_or_else(|| damaged(DamageKind::Size(extra.into())))?,
        );
        let generation = fields.u32(0x64);
        let seed = superblock.inode_seed(number, generation);
        if seed.is_some_and(|seed| !checksum_matches(seed, bytes, extra)) {
            return Err(damaged(DamageKind::Checksum));
        }

        let mode = fields.u16(0x0);
        let kind = Kind::of_mode(mode).ok_or_else(|| damaged(DamageKind::Mode(mode)))?;
        let flags = fields.u32(0x20);
        let long = kind == Kind::File || superblock.features.large_directories();
        let size = join(if long { fields.u32(0x6c) } else { 0 }, fields.u32(0x4));
        if i64::try_from(size).is_err() {
            return Err(damaged(DamageKind::Size(size)));
        }
        let map = fields.array(0x28);
        let attributes_high = match superblock.features.sixty_four_bit() {
            true => fields.u16(0x76),
            false => 0,
        };
        Ok(Self {
            number,
            kind,
            mode: mode & 0o7777,
            uid: join16(fields.u16(0x78), fields.u16(0x2)),
            gid: join16(fields.u16(0x7a), fields.u16(0x18)),
            size,
            links: fields.u16(0x1a),
            allocated: allocated(superblock, fields, flags),
            accessed: Timestamp::of_inode(fields.u32(0x8), fields.u32(0x8c)),
            modified: Timestamp::of_inode(fields.u32(0x10), fields.u32(0x88)),
            changed: Timestamp::of_inode(fields.u32(0xc), fields.u32(0x84)),
            created: (extra >= 20).then(|| Timestamp::of_inode(fields.u32(0x90), fields.u32(0x94))),
            flags,
            generation,
            project: fields.u32(0x9c),
            device: device(kind, &map),
            map,
            extra,
            attributes: join(attributes_high.into(), fields.u32(0x68)),
            seed,
        })
    }
}

impl Ext4 {
    /// Returns the inode of the root directory.
    ///
    /// # Errors
    ///
    /// See [`Ext4::inode`]; [`Error::Damaged`] if it is not a directory.
    pub fn root(&self) -> Result<Inode, Error> {
        let root = self.inode(ROOT)?;
        if root.kind != Kind::Directory {
            let problem = DamageKind::Missing;
            return Err(Damage::new(Structure::Directory, problem).of(ROOT).into());
        }
        Ok(root)
    }

    /// Returns an inode by its number.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the number is out of range or the inode is unused
    /// or invalid, or, unless checksums are ignored, if the root of its block
    /// map or an extended attribute in it is; [`Error::Read`].
    pub fn inode(&self, number: u32) -> Result<Inode, Error> {
        let inode = self.inode_or_value(number)?;
        if inode.is_attribute() && self.options.checksums == Checksums::Check {
            let problem = DamageKind::Flags(inode.flags);
            return Err(Damage::new(Structure::Inode, problem).of(number).into());
        }
        Ok(inode)
    }

    /// Returns an inode, also one that stores the value of an extended
    /// attribute, to which no name may point.
    pub(super) fn inode_or_value(&self, number: u32) -> Result<Inode, Error> {
        let bytes = self.inode_bytes(number)?;
        let inode = Inode::parse(&self.superblock, number, &bytes)?;
        if self.options.checksums == Checksums::Check {
            self.check_inode(&inode, &bytes)?;
        }
        Ok(inode)
    }

    pub(super) fn inode_bytes(&self, number: u32) -> Result<Bytes, Error> {
        let missing = || Damage::new(Structure::Inode, DamageKind::Inode(number));
        if number > self.superblock.inodes {
            return Err(missing().into());
        }
        let index = number.checked_sub(1).ok_or_else(missing)?;
        let per_group = self.superblock.inodes_per_group;
        let group = index.checked_div(per_group).ok_or_else(missing)?;
        let place = index.checked_rem(per_group).ok_or_else(missing)?;

        let table = self.inode_table(group)?;
        let length = u32::from(self.superblock.inode_size);
        let offset = table
            .checked_mul(self.superblock.block_size.into())
            .and_then(|start| start.checked_add(u64::from(place).checked_mul(length.into())?))
            .ok_or_else(missing)?;
        self.store.bytes(offset, length)
    }
}

fn checksum_matches(seed: u32, bytes: &[u8], extra: u16) -> bool {
    let fields = Fields(bytes);
    let part = |sum, start: usize, end: usize| crc32c(sum, bytes.get(start..end).unwrap_or(&[]));
    let sum = crc32c(part(seed, 0, 0x7c), &[0; 2]);
    let sum = part(sum, 0x7e, GOOD_OLD_INODE_SIZE);
    if bytes.len() == GOOD_OLD_INODE_SIZE {
        return sum & 0xffff == u32::from(fields.u16(0x7c));
    }
    let sum = part(sum, GOOD_OLD_INODE_SIZE, 0x82);
    if extra < 4 {
        let sum = part(sum, 0x82, bytes.len());
        return sum & 0xffff == u32::from(fields.u16(0x7c));
    }
    let sum = part(crc32c(sum, &[0; 2]), 0x84, bytes.len());
    sum == join16(fields.u16(0x82), fields.u16(0x7c))
}

fn allocated(superblock: &Superblock, fields: Fields<'_>, flags: u32) -> u64 {
    let low = fields.u32(0x1c);
    if !superblock.features.huge_files() {
        return u64::from(low).saturating_mul(512);
    }
    let blocks = join(fields.u16(0x74).into(), low);
    let unit = if flags & HUGE_FILE != 0 {
        superblock.block_size
    } else {
        512
    };
    blocks.saturating_mul(unit.into())
}

/// Decodes a device number, in the old or the new format.
fn device(kind: Kind, map: &[u8; 60]) -> Option<(u32, u32)> {
    if !matches!(kind, Kind::CharacterDevice | Kind::BlockDevice) {
        return None;
    }
    let fields = Fields(map);
    Some(match (fields.u32(0), fields.u32(4)) {
        (0, new) => ((new >> 8) & 0xfff, (new & 0xff) | ((new >> 12) & 0xf_ff00)),
        (old, _) => ((old >> 8) & 0xff, old & 0xff),
    })
}

fn join16(high: u16, low: u16) -> u32 {
    (u32::from(high) << 16) | u32::from(low)
}
