use core::ops::BitOr;

use serde::{Deserialize, Serialize};

use crate::{
    error::WireError,
    limits::{MAX_BUILD, MAX_WINDOW},
};

/// The first bytes of every [`Hello`].
pub const MAGIC: [u8; 4] = *b"vmc1";

/// The generation of the protocol that this crate speaks.
///
/// Two peers use the smaller of their generations. A generation only adds to
/// the one before it.
pub const GENERATION: u16 = 1;

/// How each peer introduces itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello<'a> {
    /// [`MAGIC`].
    pub magic: [u8; 4],
    /// The newest generation that the sender speaks.
    pub generation: u16,
    /// What the sender is, for people: `vmcell-agent 0.1.0`.
    pub build: &'a str,
    /// What the sender can do beyond its generation.
    pub capabilities: Capabilities,
    /// How many bytes the peer may send on each channel of a new stream before
    /// it has been given credit.
    pub window: u32,
    /// The boot that the sender believes it is in. A host that did not start
    /// the VM sends zeros and learns it.
    pub boot_id: [u8; 16],
}

impl<'a> Hello<'a> {
    /// A hello of this crate's generation.
    pub fn new(build: &'a str, window: u32, boot_id: [u8; 16]) -> Self {
        Self {
            magic: MAGIC,
            generation: GENERATION,
            build,
            capabilities: Capabilities::OURS,
            window,
            boot_id,
        }
    }

    pub(crate) fn check(&self) -> Result<(), WireError> {
        if self.magic != MAGIC || self.generation == 0 {
            return Err(WireError::NotVmcell);
        }
        if self.build.len() > MAX_BUILD || self.window > MAX_WINDOW {
            return Err(WireError::Malformed);
        }
        Ok(())
    }
}

/// A set of features that not every peer of a generation has.
///
/// Unknown bits are kept and mean nothing, so a newer peer loses the features
/// that the older one lacks, and not the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities(u64);

impl Capabilities {
    /// What every agent can do.
    pub const NONE: Self = Self(0);
    /// Programs can be run and watched.
    pub const PROCESSES: Self = Self(1);
    /// The guest can be powered off in an orderly way.
    pub const POWER_OFF: Self = Self(1 << 1);
    /// Files can be read, written and watched.
    pub const FILES: Self = Self(1 << 2);
    /// Programs can be run on terminals.
    pub const TERMINALS: Self = Self(1 << 3);
    /// Services can be started and looked after.
    pub const SERVICES: Self = Self(1 << 4);
    /// Ports of the guest can be dialled.
    pub const PORTS: Self = Self(1 << 5);
    /// The guest's clock can be set.
    pub const CLOCK: Self = Self(1 << 6);
    /// Processes that commands left behind are listed, and can be killed.
    pub const TREES: Self = Self(1 << 7);

    /// Everything this version of the crate describes.
    pub const OURS: Self = Self(
        Self::PROCESSES.0
            | Self::POWER_OFF.0
            | Self::FILES.0
            | Self::TERMINALS.0
            | Self::SERVICES.0
            | Self::PORTS.0
            | Self::CLOCK.0
            | Self::TREES.0,
    );

    /// Each feature by the name that people know it by.
    const NAMES: [(Self, &'static str); 8] = [
        (Self::PROCESSES, "processes"),
        (Self::POWER_OFF, "power-off"),
        (Self::FILES, "files"),
        (Self::TERMINALS, "terminals"),
        (Self::SERVICES, "services"),
        (Self::PORTS, "ports"),
        (Self::CLOCK, "clock"),
        (Self::TREES, "trees"),
    ];

    /// The names of the features in this set. Those that this version of the
    /// crate does not know have none.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let known = Self::NAMES.into_iter();
        known.filter_map(move |(feature, name)| self.contains(feature).then_some(name))
    }

    /// Whether every feature of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The features that both sets have.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The features of this set that `other` lacks.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The set as it travels.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The set that these bits stand for.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl BitOr for Capabilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_name_and_no_other_bit_has_one() {
        let all = Capabilities::OURS.names().count();
        assert_eq!(all, Capabilities::OURS.bits().count_ones() as usize);
        let unknown = Capabilities::from_bits(1 << 63);
        assert_eq!(unknown.names().next(), None);
        let some = unknown | Capabilities::FILES | Capabilities::PORTS;
        assert!(some.names().eq(["files", "ports"]));
    }
}
