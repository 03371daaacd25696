use super::Error;

/// The feature bits of the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// Programs that do not support these may read and write the file system.
    pub(super) compatible: u32,
    /// Programs that do not support these may neither read nor write.
    pub(super) incompatible: u32,
    /// Programs that do not support these may only read.
    pub(super) read_only: u32,
}

type Names = [(u32, &'static str)];

const HAS_JOURNAL: u32 = 0x4;
const SPARSE_SUPER2: u32 = 0x200;
const FAST_COMMIT: u32 = 0x400;

const FILE_TYPE: u32 = 0x2;
const NEEDS_RECOVERY: u32 = 0x4;
const META_BG: u32 = 0x10;
const SIXTY_FOUR_BIT: u32 = 0x80;
const MMP: u32 = 0x100;
const FLEX_BG: u32 = 0x200;
const CHECKSUM_SEED: u32 = 0x2000;
const LARGE_DIR: u32 = 0x4000;

const SPARSE_SUPER: u32 = 0x1;
const HUGE_FILE: u32 = 0x8;
const METADATA_CSUM: u32 = 0x400;

const COMPATIBLE: &Names = &[
    (0x1, "dir_prealloc"),
    (0x2, "imagic_inodes"),
    (HAS_JOURNAL, "has_journal"),
    (0x8, "ext_attr"),
    (0x10, "resize_inode"),
    (0x20, "dir_index"),
    (0x40, "lazy_bg"),
    (0x100, "snapshot_bitmap"),
    (SPARSE_SUPER2, "sparse_super2"),
    (FAST_COMMIT, "fast_commit"),
    (0x800, "stable_inodes"),
    (0x1000, "orphan_file"),
];

const INCOMPATIBLE: &Names = &[
    (0x1, "compression"),
    (FILE_TYPE, "filetype"),
    (NEEDS_RECOVERY, "needs_recovery"),
    (0x8, "journal_dev"),
    (META_BG, "meta_bg"),
    (0x40, "extent"),
    (SIXTY_FOUR_BIT, "64bit"),
    (MMP, "mmp"),
    (FLEX_BG, "flex_bg"),
    (0x400, "ea_inode"),
    (0x1000, "dirdata"),
    (CHECKSUM_SEED, "metadata_csum_seed"),
    (LARGE_DIR, "large_dir"),
    (0x8000, "inline_data"),
    (0x10000, "encrypt"),
    (0x20000, "casefold"),
];

const READ_ONLY: &Names = &[
    (SPARSE_SUPER, "sparse_super"),
    (0x2, "large_file"),
    (0x4, "btree_dir"),
    (HUGE_FILE, "huge_file"),
    (0x10, "uninit_bg"),
    (0x20, "dir_nlink"),
    (0x40, "extra_isize"),
    (0x80, "snapshot"),
    (0x100, "quota"),
    (0x200, "bigalloc"),
    (METADATA_CSUM, "metadata_csum"),
    (0x800, "replica"),
    (0x1000, "read-only"),
    (0x2000, "project"),
    (0x4000, "shared_blocks"),
    (0x8000, "verity"),
    (0x10000, "orphan_present"),
];

/// The supported incompatible features. Of the others, `compression` and
/// `dirdata` were never in the kernel, and a `journal_dev` contains no files.
const READABLE: u32 = FILE_TYPE
    | NEEDS_RECOVERY
    | META_BG
    | 0x40
    | SIXTY_FOUR_BIT
    | MMP
    | FLEX_BG
    | 0x400
    | CHECKSUM_SEED
    | LARGE_DIR
    | 0x8000
    | 0x10000
    | 0x20000;

impl Features {
    /// Fails with the name of the first unsupported feature.
    pub(super) fn check(self) -> Result<(), Error> {
        let foreign = names(INCOMPATIBLE, self.incompatible & !READABLE, 'I');
        match foreign.into_iter().next() {
            Some(feature) => Err(Error::Unsupported { feature }),
            None => Ok(()),
        }
    }

    /// Returns the names of all features, as in `dumpe2fs`.
    pub(super) fn names(self) -> Vec<String> {
        let mut all = names(COMPATIBLE, self.compatible, 'C');
        all.extend(names(INCOMPATIBLE, self.incompatible, 'I'));
        all.extend(names(READ_ONLY, self.read_only, 'R'));
        all
    }

    pub(super) fn journal(self) -> bool {
        self.compatible & HAS_JOURNAL != 0
    }

    pub(super) fn fast_commit(self) -> bool {
        self.compatible & FAST_COMMIT != 0
    }

    pub(super) fn sparse_super2(self) -> bool {
        self.compatible & SPARSE_SUPER2 != 0
    }

    /// Whether directory entries record the type of their inode.
    pub(super) fn file_type(self) -> bool {
        self.incompatible & FILE_TYPE != 0
    }

    pub(super) fn needs_recovery(self) -> bool {
        self.incompatible & NEEDS_RECOVERY != 0
    }

    pub(super) fn meta_groups(self) -> bool {
        self.incompatible & META_BG != 0
    }

    pub(super) fn sixty_four_bit(self) -> bool {
        self.incompatible & SIXTY_FOUR_BIT != 0
    }

    pub(super) fn multiple_mount_protection(self) -> bool {
        self.incompatible & MMP != 0
    }

    /// Whether bitmaps and inode tables can be outside of their group.
    pub(super) fn flexible_groups(self) -> bool {
        self.incompatible & FLEX_BG != 0
    }

    pub(super) fn checksum_seed(self) -> bool {
        self.incompatible & CHECKSUM_SEED != 0
    }

    pub(super) fn large_directories(self) -> bool {
        self.incompatible & LARGE_DIR != 0
    }

    pub(super) fn sparse_super(self) -> bool {
        self.read_only & SPARSE_SUPER != 0
    }

    pub(super) fn huge_files(self) -> bool {
        self.read_only & HUGE_FILE != 0
    }

    pub(super) fn checksums(self) -> bool {
        self.read_only & METADATA_CSUM != 0
    }
}

fn names(known: &Names, bits: u32, set: char) -> Vec<String> {
    (0..u32::BITS)
        .filter(|place| bits & (1 << place) != 0)
        .map(|place| {
            known
                .iter()
                .find(|(bit, _)| *bit == 1 << place)
                .map_or_else(
                    || format!("FEATURE_{set}{place}"),
                    |(_, name)| (*name).to_owned(),
                )
        })
        .collect()
}
