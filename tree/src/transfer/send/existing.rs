use vmcell_wire::files::{FileKind, Time};

/// An entry that the receiver already has.
#[derive(Clone, Copy, Debug)]
pub struct ExistingEntry<'a> {
    /// The kind of entry.
    pub kind: FileKind,
    /// The permission bits.
    pub mode: u16,
    /// The length in bytes.
    pub size: u64,
    /// The modification time.
    pub modified: Time,
    /// The owner and group, if they are to be compared.
    pub owner: Option<(u32, u32)>,
    /// The target of a symbolic link.
    pub target: &'a [u8],
    /// The SHA-256 of a file. If set, it is compared instead of the time.
    pub digest: Option<[u8; 32]>,
}

/// Returns the entry that the receiver has at a path, relative to the top of
/// the tree.
pub type ExistingLookup<'a> = &'a dyn Fn(&[u8]) -> Option<ExistingEntry<'a>>;

/// The fields of the host's `stat` that are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostFacts {
    pub(super) kind: FileKind,
    pub(super) mode: u16,
    pub(super) size: u64,
    pub(super) modified: Time,
    pub(super) owner: (u32, u32),
}

/// Whether an entry has to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// No: the entries are equal.
    Same,
    /// Only if its content does not have this digest.
    SameIfDigest([u8; 32]),
    /// Only if its target differs.
    SameIfTarget,
    /// Yes.
    Differs,
}

impl ExistingEntry<'_> {
    /// Compares the entry with the host's. When the time decides, a change is
    /// missed that keeps the length and happens within the resolution of the
    /// receiver's clock.
    pub(super) fn compare(&self, host: &HostFacts) -> Comparison {
        if self.kind != host.kind || self.owner.is_some_and(|owner| owner != host.owner) {
            return Comparison::Differs;
        }
        let same_mode = self.mode == host.mode;
        let same_time = self.modified == host.modified;
        match host.kind {
            FileKind::Symlink => Comparison::SameIfTarget,
            FileKind::File if !same_mode || self.size != host.size => Comparison::Differs,
            FileKind::File => match self.digest {
                Some(digest) => Comparison::SameIfDigest(digest),
                None if same_time => Comparison::Same,
                None => Comparison::Differs,
            },
            FileKind::Directory if same_mode && same_time => Comparison::Same,
            _ => Comparison::Differs,
        }
    }
}
