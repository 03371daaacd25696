//! How many bytes a VM may write to its layers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    error::Error,
    metrics::DiskFile,
    quotas::{QuotaUsage, Quotas},
    vmm::VmmKiller,
};

/// How many bytes the layers of a VM may have together. It is enforced by the limit of the size
/// of each file that the VMM writes (`RLIMIT_FSIZE` of setrlimit(2)): only one layer grows at a
/// time.
#[derive(Clone, Debug)]
pub(crate) struct LayerQuota(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    disk: DiskFile,
    limit: Limit,
    /// The bytes of layers that the VM has written to before.
    earlier_bytes: u64,
    /// The most bytes of the layer that it writes to.
    file_limit: u64,
}

/// A limit of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// The caller has set one, for all of them.
    Together(u64),
    /// What the size of the disk allows, for each. Whoever has the VM go on in another layer
    /// decides how often.
    Each(u64),
    /// The disk is a file of this size, which does not grow.
    Whole(u64),
}

/// The size of a cluster of a layer: qcow2 allocates no less.
const CLUSTER: u64 = 64 << 10;

/// What a layer has besides the data: a table entry of eight bytes and a count of two for each
/// cluster, their rounding, and clusters that were lost when a VM was killed.
fn largest_layer(disk_size: u64) -> u64 {
    let tables = disk_size / CLUSTER * 10;
    disk_size.saturating_add(tables).saturating_add(64 << 20)
}

impl Limit {
    /// Returns the most bytes of a layer that has this length. It may be rewritten even if it
    /// is too long already.
    fn of_file(self, earlier_bytes: u64, length: u64) -> u64 {
        let limit = match self {
            Self::Together(bytes) => bytes.saturating_sub(earlier_bytes),
            Self::Each(bytes) | Self::Whole(bytes) => bytes,
        };
        limit.max(length)
    }
}

impl LayerQuota {
    /// The quota of a VM that writes to a layer of a disk of this size.
    pub(super) fn of_layers(quotas: &Quotas, disk: DiskFile, disk_size: u64) -> Self {
        let limit = match quotas.layer_bytes {
            Some(bytes) => Limit::Together(bytes),
            None => Limit::Each(largest_layer(disk_size)),
        };
        let file_limit = limit.of_file(0, disk.length().unwrap_or(0));
        Self::new(disk, limit, file_limit)
    }

    /// The quota of a VM whose disk is a file of this size, without layers.
    pub(super) fn of_raw_disk(
        quotas: &Quotas,
        disk: DiskFile,
        disk_size: u64,
        backend: &str,
    ) -> Result<Self, Error> {
        match quotas.layer_bytes {
            Some(bytes) if bytes < disk_size => Err(Error::Quota {
                quota: Quotas::LAYER,
                reason: format!(
                    "the disk of a VM of the backend {backend} is a copy of its image, which has \
                     {disk_size} bytes, and {bytes} are allowed: choose the backend qemu"
                ),
            }),
            _ => Ok(Self::new(disk, Limit::Whole(disk_size), disk_size)),
        }
    }

    fn new(disk: DiskFile, limit: Limit, file_limit: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            disk,
            limit,
            earlier_bytes: 0,
            file_limit,
        })))
    }

    /// Returns the most bytes of the file that the VM writes to.
    pub(super) fn file_limit(&self) -> u64 {
        self.lock().file_limit
    }

    /// Fails if the VM cannot go on in another layer, because its limit could not be lowered
    /// then.
    pub(super) fn check_switch(&self, vmm: &VmmKiller) -> Result<(), Error> {
        let state = self.lock();
        if !matches!(state.limit, Limit::Together(_)) {
            return Ok(());
        }
        let limited = vmm.limit_file_size(state.file_limit);
        limited.map_err(|error| Error::Quota {
            quota: Quotas::LAYER,
            reason: format!(
                "this program may not lower the limit of the VMM for another layer ({error}): \
                 give it CAP_SYS_RESOURCE, or set no such quota"
            ),
        })
    }

    /// Counts the layer that the VM has written to until now, which had this length, and limits
    /// the one of the disk, to which it has gone on.
    pub(super) fn switch(&self, old_length: u64, vmm: &VmmKiller) {
        let mut state = self.lock();
        if !matches!(state.limit, Limit::Together(_)) {
            return;
        }
        state.earlier_bytes = state.earlier_bytes.saturating_add(old_length);
        let length = state.disk.length().unwrap_or(0);
        let limit = state.limit.of_file(state.earlier_bytes, length);
        // It can only be lowered.
        state.file_limit = limit.min(state.file_limit);
        // It was checked before, so this fails only if the VMM is gone.
        if let Err(error) = vmm.limit_file_size(state.file_limit) {
            tracing::debug!(%error, "the layer of the VM is not limited");
        }
    }

    /// Returns how much of it is used.
    pub(crate) fn usage(&self, quotas: Quotas) -> QuotaUsage {
        let state = self.lock();
        let length = state.disk.length();
        let (limit, can_grow) = match state.limit {
            // A disk that was too large already does not grow.
            Limit::Together(bytes) | Limit::Each(bytes) => (bytes.max(state.file_limit), true),
            Limit::Whole(bytes) => (bytes, false),
        };
        let is_full = |length: u64| length.saturating_add(CLUSTER) > state.file_limit;
        QuotaUsage {
            quotas,
            layer_limit: Some(limit),
            layer_bytes: length.map(|length| state.earlier_bytes.saturating_add(length)),
            is_layer_full: can_grow && length.is_some_and(is_full),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn all_layers_share_what_was_set_and_none_gets_less_than_it_has() {
        let limit = Limit::Together(64 * MIB);
        assert_eq!(limit.of_file(0, MIB), 64 * MIB);
        assert_eq!(limit.of_file(40 * MIB, MIB), 24 * MIB);
        assert_eq!(limit.of_file(64 * MIB, MIB), MIB);
        assert_eq!(limit.of_file(0, 80 * MIB), 80 * MIB);
    }

    #[test]
    fn by_default_each_layer_may_have_the_whole_disk_and_its_tables() {
        let disk_size = 1024 * MIB;
        let largest = largest_layer(disk_size);
        assert!((disk_size + 64 * MIB..disk_size + 65 * MIB).contains(&largest));
        let limit = Limit::Each(largest);
        assert_eq!(limit.of_file(disk_size, MIB), largest);
        assert_eq!(largest_layer(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_raw_disk_that_is_larger_than_its_quota_is_an_error() {
        let disk = DiskFile::default;
        let quotas = Quotas::new().layer_bytes(64 * MIB);
        let refused = LayerQuota::of_raw_disk(&quotas, disk(), 65 * MIB, "firecracker");
        assert_eq!(refused.unwrap_err().code(), "quota");
        let quota = LayerQuota::of_raw_disk(&quotas, disk(), 64 * MIB, "firecracker").unwrap();
        let usage = quota.usage(quotas);
        assert_eq!(usage.layer_limit, Some(64 * MIB));
        assert!(!usage.is_layer_full);
        assert_eq!(quota.file_limit(), 64 * MIB);
    }

    #[test]
    fn a_layer_is_full_when_no_cluster_fits() {
        let layer = tempfile::tempfile().unwrap();
        let quotas = Quotas::new().layer_bytes(64 * MIB);
        let quota = LayerQuota::of_layers(&quotas, DiskFile::new(&layer), 1024 * MIB);
        layer.set_len(64 * MIB - CLUSTER).unwrap();
        assert!(!quota.usage(quotas).is_layer_full);
        layer.set_len(64 * MIB - 1).unwrap();
        let usage = quota.usage(quotas);
        assert!(usage.is_layer_full);
        assert_eq!(usage.layer_bytes, Some(64 * MIB - 1));
        assert_eq!(usage.layer_limit, Some(64 * MIB));
    }
}
