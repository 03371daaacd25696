use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// One resource limit: setrlimit(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rlimit {
    /// The kernel's number of the resource.
    pub resource: u8,
    /// The soft limit, which is enforced; `u64::MAX` is no limit.
    pub soft: u64,
    /// The hard limit, up to which the process may raise the soft limit.
    pub hard: u64,
}

/// A packed list of resource limits, 17 bytes each, little-endian.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Rlimits<'a>(&'a [u8]);

const RECORD_SIZE: usize = 17;

impl<'a> Rlimits<'a> {
    /// Iterates over the limits in order.
    pub fn iter(self) -> impl Iterator<Item = Rlimit> + Clone + use<'a> {
        self.0.chunks_exact(RECORD_SIZE).filter_map(|record| {
            let (resource, rest) = record.split_first()?;
            let (soft, hard) = rest.split_first_chunk()?;
            Some(Rlimit {
                resource: *resource,
                soft: u64::from_le_bytes(*soft),
                hard: u64::from_le_bytes(*hard.first_chunk()?),
            })
        })
    }
}

impl fmt::Debug for Rlimits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Rlimits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Rlimits<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&'a [u8]>::deserialize(deserializer)?;
        if !bytes.len().is_multiple_of(RECORD_SIZE) {
            return Err(de::Error::custom("a limit is cut off"));
        }
        Ok(Self(bytes))
    }
}

/// Builds [`Rlimits`].
///
/// ```
/// use vmcell_wire::{Rlimit, RlimitsBuf};
///
/// let files = Rlimit { resource: 7, soft: 64, hard: u64::MAX };
/// let mut limits = RlimitsBuf::new();
/// limits.push(files);
/// assert_eq!(limits.as_rlimits().iter().collect::<Vec<_>>(), [files]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RlimitsBuf(Vec<u8>);

impl RlimitsBuf {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a limit.
    pub fn push(&mut self, limit: Rlimit) {
        self.0.push(limit.resource);
        self.0.extend_from_slice(&limit.soft.to_le_bytes());
        self.0.extend_from_slice(&limit.hard.to_le_bytes());
    }

    /// Returns the list for use in a message.
    pub fn as_rlimits(&self) -> Rlimits<'_> {
        Rlimits(&self.0)
    }
}
