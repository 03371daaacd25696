use core::ops::BitOr;

use serde::{Deserialize, Serialize};

use crate::{
    error::WireError,
    limits::{MAX_BUILD, MAX_WINDOW},
};

/// The first bytes of every [`Hello`].
pub const MAGIC: [u8; 4] = *b"vmc1";

/// The version of the protocol that this crate implements.
///
/// Two peers use the smaller of their generations. A generation only adds to
/// the one before it.
pub const GENERATION: u16 = 1;

/// The first message of each peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello<'a> {
    /// [`MAGIC`].
    pub magic: [u8; 4],
    /// The newest generation that the sender supports.
    pub generation: u16,
    /// The sender's name and version, for display: `vmcell-agent 0.1.0`.
    pub build: &'a str,
    /// The optional features that the sender supports.
    pub capabilities: Capabilities,
    /// How many bytes the peer may send on each channel of a new stream before
    /// it receives credit.
    pub window: u32,
    /// The boot to which the sender belongs. A host that did not start the VM
    /// sends zeros and reads it from the agent's hello.
    pub boot_id: [u8; 16],
}

impl<'a> Hello<'a> {
    /// Creates a hello of this crate's generation.
    pub fn new(build: &'a str, window: u32, boot_id: [u8; 16]) -> Self {
        Self {
            magic: MAGIC,
            generation: GENERATION,
            build,
            capabilities: Capabilities::ALL,
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

/// A set of features that not every peer of a generation supports.
///
/// Unknown bits are preserved and ignored: a newer and an older peer can still
/// connect, without the features that the older one lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities(u64);

impl Capabilities {
    /// No optional features.
    pub const NONE: Self = Self(0);
    /// Running programs and attaching to them.
    pub const PROCESSES: Self = Self(1);
    /// Orderly shutdown of the guest.
    pub const POWER_OFF: Self = Self(1 << 1);
    /// Reading, writing and watching files.
    pub const FILES: Self = Self(1 << 2);
    /// Running programs on terminals.
    pub const TERMINALS: Self = Self(1 << 3);
    /// Starting and supervising services.
    pub const SERVICES: Self = Self(1 << 4);
    /// Connecting to ports of the guest.
    pub const PORTS: Self = Self(1 << 5);
    /// Setting the guest's clock.
    pub const CLOCK: Self = Self(1 << 6);
    /// Listing and killing processes that outlived their command.
    pub const TREES: Self = Self(1 << 7);
    /// Reporting at power-off whether the disk is clean.
    pub const DISK_REPORT: Self = Self(1 << 8);
    /// Reporting whether a program is blocked in a read of its terminal.
    pub const TERMINAL_READS: Self = Self(1 << 9);
    /// Freezing all processes, and taking a new identity.
    pub const SNAPSHOTS: Self = Self(1 << 10);
    /// Taking connections of programs to other machines.
    pub const NETWORK: Self = Self(1 << 11);
    /// Counting the processes of commands.
    pub const PROCESS_COUNT: Self = Self(1 << 12);
    /// Understanding [secret variables](crate::SecretVariable).
    pub const SECRETS: Self = Self(1 << 13);
    /// Adding certificates to the trust store of programs.
    pub const TRUST_STORE: Self = Self(1 << 14);

    /// All features that this version of the crate defines.
    pub const ALL: Self = Self(
        Self::PROCESSES.0
            | Self::POWER_OFF.0
            | Self::FILES.0
            | Self::TERMINALS.0
            | Self::SERVICES.0
            | Self::PORTS.0
            | Self::CLOCK.0
            | Self::TREES.0
            | Self::DISK_REPORT.0
            | Self::TERMINAL_READS.0
            | Self::SNAPSHOTS.0
            | Self::NETWORK.0
            | Self::PROCESS_COUNT.0
            | Self::SECRETS.0
            | Self::TRUST_STORE.0,
    );

    /// The display name of each feature.
    const NAMES: [(Self, &'static str); 15] = [
        (Self::PROCESSES, "processes"),
        (Self::POWER_OFF, "power-off"),
        (Self::FILES, "files"),
        (Self::TERMINALS, "terminals"),
        (Self::SERVICES, "services"),
        (Self::PORTS, "ports"),
        (Self::CLOCK, "clock"),
        (Self::TREES, "trees"),
        (Self::DISK_REPORT, "disk-report"),
        (Self::TERMINAL_READS, "terminal-reads"),
        (Self::SNAPSHOTS, "snapshots"),
        (Self::NETWORK, "network"),
        (Self::PROCESS_COUNT, "process-count"),
        (Self::SECRETS, "secrets"),
        (Self::TRUST_STORE, "trust-store"),
    ];

    /// Returns the names of the features in this set. Skips bits that this
    /// version of the crate does not know.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let known = Self::NAMES.into_iter();
        known.filter_map(move |(feature, name)| self.contains(feature).then_some(name))
    }

    /// Returns whether every feature of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the features that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the features of this set that `other` lacks.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the set as it is encoded.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the set with these bits.
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
        let all = Capabilities::ALL.names().count();
        assert_eq!(all, Capabilities::ALL.bits().count_ones() as usize);
        let unknown = Capabilities::from_bits(1 << 63);
        assert_eq!(unknown.names().next(), None);
        let some = unknown | Capabilities::FILES | Capabilities::PORTS;
        assert!(some.names().eq(["files", "ports"]));
    }
}
