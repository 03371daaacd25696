use vmcell_wire::files::{FileKind, Time};

/// What a receiver has at a path already.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// What it is.
    pub kind: FileKind,
    /// Its permissions.
    pub mode: u16,
    /// Its length.
    pub size: u64,
    /// When it was last changed.
    pub modified: Time,
    /// Its owner and group, if they matter.
    pub owner: Option<(u32, u32)>,
    /// What a link points to.
    pub target: &'a [u8],
    /// The SHA-256 of a file. If it is there, it decides instead of the time.
    pub digest: Option<[u8; 32]>,
}

/// Looks up what a receiver has at a path from the top of the tree.
pub type Lookup<'a> = &'a dyn Fn(&[u8]) -> Option<Known<'a>>;

/// What the host has there, as far as a stat tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) kind: FileKind,
    pub(super) mode: u16,
    pub(super) size: u64,
    pub(super) modified: Time,
    pub(super) owner: (u32, u32),
}

/// Whether an entry must be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// It is the same.
    None,
    /// It is the same if its bytes have this digest.
    UnlessDigest([u8; 32]),
    /// It is the same if it points there.
    UnlessTarget,
    /// It differs.
    Some,
}

impl Known<'_> {
    /// Compares. By its time, an entry counts as the same that has changed
    /// within the resolution of the receiver's clock and kept its length.
    pub(super) fn differs_from(&self, found: &Found) -> Difference {
        if self.kind != found.kind || self.owner.is_some_and(|owner| owner != found.owner) {
            return Difference::Some;
        }
        let same_mode = self.mode == found.mode;
        let same_time = self.modified == found.modified;
        match found.kind {
            FileKind::Symlink => Difference::UnlessTarget,
            FileKind::File if !same_mode || self.size != found.size => Difference::Some,
            FileKind::File => match self.digest {
                Some(digest) => Difference::UnlessDigest(digest),
                None if same_time => Difference::None,
                None => Difference::Some,
            },
            FileKind::Directory if same_mode && same_time => Difference::None,
            _ => Difference::Some,
        }
    }
}
