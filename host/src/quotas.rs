use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// What a VM may use of this machine, besides its memory: see [`VmBuilder::quotas`].
///
/// | quota | default | what happens when it is used up |
/// |---|---|---|
/// | [`layer_bytes`](Self::layer_bytes) | what the size of the disk allows | writes of the guest fail with I/O errors; the VM goes on |
/// | [`cpu_time`](Self::cpu_time) | not limited | the VM ends: [`End::CpuTimeUsed`](crate::End::CpuTimeUsed) |
/// | [`cpu_milli`](Self::cpu_milli) | its virtual processors and one more, where its VMM is [confined](crate::confinement) by a cgroup with the controller `cpu`; otherwise not limited | the VM is slower |
/// | [`disk_rate`](Self::disk_rate) | not limited | the VM is slower |
/// | [`link_rate`](Self::link_rate) | not limited | the VM is slower |
///
/// ```no_run
/// # async fn example() -> Result<(), vmcell::Error> {
/// use std::time::Duration;
/// use vmcell::{Quotas, Vm};
///
/// let quotas = Quotas::new()
///     .layer_bytes(256 << 20)
///     .cpu_time(Duration::from_secs(60))
///     .link_rate(10 << 20);
/// let vm = Vm::builder().image("base.ext4").quotas(quotas).start().await?;
/// # Ok(())
/// # }
/// ```
///
/// Quotas count from the start of a VM, whether it boots or is restored. A backend that cannot
/// enforce a quota does not start the VM: [`Error::Quota`].
///
/// [`VmBuilder::quotas`]: crate::VmBuilder::quotas
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
#[non_exhaustive]
pub struct Quotas {
    /// See [`layer_bytes`](Self::layer_bytes()).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_bytes: Option<u64>,
    /// See [`cpu_time`](Self::cpu_time()).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// See [`cpu_milli`](Self::cpu_milli()).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u32>,
    /// See [`disk_rate`](Self::disk_rate()).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_rate: Option<u64>,
    /// See [`link_rate`](Self::link_rate()).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_rate: Option<u64>,
}

impl Quotas {
    /// The least [`layer_bytes`](Self::layer_bytes()). A guest needs some MiB to boot.
    pub const MIN_LAYER_BYTES: u64 = 16 << 20;

    /// The least [`cpu_milli`](Self::cpu_milli()).
    pub const MIN_CPU_MILLI: u32 = 10;

    /// The least [`disk_rate`](Self::disk_rate()) and [`link_rate`](Self::link_rate()). With
    /// less, requests on a busy VM would exceed their timeouts.
    pub const MIN_RATE: u64 = 64 << 10;

    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many bytes the file may have that the VM writes its changes of the disk to: its
    /// layer. If it goes on in another layer, because of a snapshot of its
    /// [workspace](crate::workspace), both together may have so many.
    ///
    /// A write beyond it fails in the guest with an I/O error, as on a disk that is broken.
    /// What the guest has synced before stays on the disk and can be read, but the file system
    /// is read-only if its journal could not be written, and then
    /// [`Vm::stop`](crate::Vm::stop) fails with [`End::NotClean`](crate::End::NotClean).
    /// [`Health::quotas`](crate::Health::quotas) says whether it is used up. A disk that is kept
    /// may need a larger one to boot again then, as its journal is written back.
    ///
    /// A [disk](crate::VmBuilder::disk) that is larger already does not grow. Layers that the VM
    /// only reads do not count. The disk of a VM of Firecracker or Cloud Hypervisor has no
    /// layers and cannot grow: a VM whose disk is larger is not started. With the backend
    /// `process`, it is the size of the memory that takes all changes, in whole MiB.
    pub fn layer_bytes(mut self, bytes: u64) -> Self {
        self.layer_bytes = Some(bytes);
        self
    }

    /// Sets how much processor time the VM may use in total, in whole seconds, of all its
    /// virtual processors and of the VMM itself. When it is used up, the VM is killed, and ends
    /// with [`End::CpuTimeUsed`](crate::End::CpuTimeUsed).
    ///
    /// A program that implements a device of the VM, for the link
    /// [hybrid-vsock](crate::LinkKind::HybridVsock) of QEMU, may use as much again. The backend
    /// `process` cannot limit it.
    pub fn cpu_time(mut self, time: Duration) -> Self {
        let begun = u64::from(time.subsec_nanos() > 0);
        self.cpu_seconds = Some(time.as_secs().saturating_add(begun));
        self
    }

    /// Sets how much processor time the VM may use per second, in thousandths of a processor:
    /// 1500 is one and a half. It takes a cgroup (version 2) of this user to which the
    /// controller `cpu` is delegated; a VM is not started without one.
    pub fn cpu_milli(mut self, thousandths: u32) -> Self {
        self.cpu_milli = Some(thousandths);
        self
    }

    /// Sets how many bytes the VM may read and write per second on its disk, together. A tenth
    /// of a second's bytes may be read or written at once, or more, depending on the VMM. The
    /// backend `process` cannot limit it.
    pub fn disk_rate(mut self, bytes_per_second: u64) -> Self {
        self.disk_rate = Some(bytes_per_second);
        self
    }

    /// Sets how many bytes per second the link carries from the guest, and how many to it.
    /// Output of commands, files, connections to ports and to the network all go over the link,
    /// those of programs that are [attached](crate::Vm::attach) too. The bytes of a quarter of a
    /// second are carried at once.
    ///
    /// This program reads later, so that programs in the guest have to wait when they write.
    pub fn link_rate(mut self, bytes_per_second: u64) -> Self {
        self.link_rate = Some(bytes_per_second);
        self
    }

    /// Returns whether all have their defaults.
    pub(crate) fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    /// Checks what can be checked without a backend.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let least = |name: &str, value: Option<u64>, least: u64, unit: &str| match value {
            Some(value) if value < least => Err(Error::Invalid(format!(
                "{value} {unit} are too little for the quota {name}: choose at least {least}"
            ))),
            _ => Ok(()),
        };
        least(
            Self::LAYER,
            self.layer_bytes,
            Self::MIN_LAYER_BYTES,
            "bytes",
        )?;
        least(Self::CPU_TIME, self.cpu_seconds, 1, "seconds")?;
        let (milli, min_milli) = (self.cpu_milli.map(u64::from), Self::MIN_CPU_MILLI);
        least(Self::CPU_RATE, milli, min_milli.into(), "thousandths")?;
        let unit = "bytes per second";
        least(Self::DISK_RATE, self.disk_rate, Self::MIN_RATE, unit)?;
        least(Self::LINK_RATE, self.link_rate, Self::MIN_RATE, unit)
    }

    /// Fails if a quota was set that is not among those that a backend enforces. The link is
    /// limited by this program.
    pub(crate) fn check_enforced(&self, enforced: &Self, backend: &str) -> Result<(), Error> {
        let missing = [
            (
                Self::LAYER,
                self.layer_bytes.is_some() && enforced.layer_bytes.is_none(),
            ),
            (
                Self::CPU_TIME,
                self.cpu_seconds.is_some() && enforced.cpu_seconds.is_none(),
            ),
            (
                Self::CPU_RATE,
                self.cpu_milli.is_some() && enforced.cpu_milli.is_none(),
            ),
            (
                Self::DISK_RATE,
                self.disk_rate.is_some() && enforced.disk_rate.is_none(),
            ),
        ];
        match missing.into_iter().find(|(_, is_missing)| *is_missing) {
            Some((quota, _)) => Err(Error::Quota {
                quota,
                reason: format!(
                    "the backend {backend} does not enforce it: choose the backend qemu"
                ),
            }),
            None => Ok(()),
        }
    }

    // The names of the quotas in errors.
    pub(crate) const LAYER: &str = "layer_bytes";
    pub(crate) const CPU_TIME: &str = "cpu_time";
    pub(crate) const CPU_RATE: &str = "cpu_milli";
    pub(crate) const DISK_RATE: &str = "disk_rate";
    pub(crate) const LINK_RATE: &str = "link_rate";
}

/// The quotas of a VM that runs, and how much it has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaUsage {
    /// The quotas that were set.
    pub quotas: Quotas,
    /// How many bytes its layers may have: what was set, or the default. `None` if the backend
    /// does not say.
    pub layer_limit: Option<u64>,
    /// How many bytes the files of its layers have. Space in them that the guest has freed
    /// counts, and is used again.
    pub layer_bytes: Option<u64>,
    /// Whether the layer cannot grow: the guest gets I/O errors if it writes more.
    pub is_layer_full: bool,
}

impl QuotaUsage {
    pub(crate) fn without_layer(quotas: Quotas) -> Self {
        Self {
            quotas,
            layer_limit: quotas.layer_bytes,
            layer_bytes: None,
            is_layer_full: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_nothing_is_set_and_a_record_without_quotas_is_read() {
        let quotas = Quotas::new();
        assert!(quotas.validate().is_ok());
        assert_eq!(serde_json::to_string(&quotas).unwrap(), "{}");
        assert_eq!(serde_json::from_str::<Quotas>("{}").unwrap(), quotas);
    }

    #[test]
    fn a_record_has_what_was_set() {
        let quotas = Quotas::new()
            .layer_bytes(64 << 20)
            .cpu_time(Duration::from_millis(1500))
            .cpu_milli(500)
            .disk_rate(1 << 20)
            .link_rate(2 << 20);
        let text = serde_json::to_string(&quotas).unwrap();
        assert_eq!(
            text,
            r#"{"layer_bytes":67108864,"cpu_seconds":2,"cpu_milli":500,"disk_rate":1048576,"link_rate":2097152}"#
        );
        assert_eq!(serde_json::from_str::<Quotas>(&text).unwrap(), quotas);
    }

    #[test]
    fn too_little_is_refused() {
        for (quotas, name) in [
            (Quotas::new().layer_bytes(1 << 20), "layer_bytes"),
            (Quotas::new().cpu_time(Duration::ZERO), "cpu_time"),
            (Quotas::new().cpu_milli(9), "cpu_milli"),
            (Quotas::new().disk_rate(1), "disk_rate"),
            (Quotas::new().link_rate(0), "link_rate"),
        ] {
            let error = quotas.validate().unwrap_err();
            assert_eq!(error.code(), "invalid");
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn a_quota_that_no_backend_enforces_is_an_error() {
        let set = Quotas::new().cpu_milli(500).link_rate(1 << 20);
        let error = set.check_enforced(&Quotas::new(), "mine").unwrap_err();
        assert_eq!(error.code(), "quota");
        assert!(error.to_string().contains("the backend mine"), "{error}");
        assert!(
            set.check_enforced(&Quotas::new().cpu_milli(500), "mine")
                .is_ok()
        );
    }
}
