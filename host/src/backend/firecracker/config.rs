//! Builds Firecracker's config file for a machine. Pure, and tested by its
//! text.

use serde::Serialize;

use crate::backend::{Machine, machine::KERNEL_ARGUMENTS};

/// The paths of a VM's files as Firecracker sees them.
#[derive(Debug)]
pub(super) struct Paths {
    pub(super) kernel: String,
    pub(super) initramfs: String,
    pub(super) disk: String,
    pub(super) vsock: String,
}

/// The guest's vsock CID. It is private to each VMM, so all VMs can have the
/// same.
const GUEST_CID: u32 = 3;

/// Returns the config file in the format of Firecracker's `--config-file`.
pub(super) fn config(machine: &Machine, paths: &Paths) -> String {
    let config = Config {
        boot_source: BootSource {
            kernel_image_path: &paths.kernel,
            initrd_path: &paths.initramfs,
            boot_args: kernel_arguments(machine),
        },
        drives: [Drive {
            drive_id: "root",
            path_on_host: &paths.disk,
            // The agent mounts it.
            is_root_device: false,
            is_read_only: false,
            // It is discarded with the VM and needs no flush.
            cache_type: "Unsafe",
            rate_limiter: machine.quotas.disk_rate.map(RateLimiter::new),
        }],
        machine_config: MachineConfig {
            vcpu_count: machine.vcpus(),
            mem_size_mib: machine.memory_mib(),
            smt: false,
        },
        vsock: Vsock {
            guest_cid: GUEST_CID,
            uds_path: &paths.vsock,
        },
    };
    // Everything in it can be serialised.
    serde_json::to_string_pretty(&config).unwrap_or_default()
}

/// Returns the name of a VM for Firecracker, which allows fewer characters than
/// vmcell.
pub(super) fn instance_id(id: &str) -> String {
    let allowed = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter,
        false => '-',
    };
    format!("vmcell-{}", id.chars().map(allowed).collect::<String>())
}

fn kernel_arguments(machine: &Machine) -> String {
    // A reset through the keyboard controller is what ends Firecracker.
    let ours = format!("{KERNEL_ARGUMENTS} reboot=k");
    match machine.kernel_arguments() {
        "" => ours,
        more => format!("{ours} {more}"),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Config<'a> {
    boot_source: BootSource<'a>,
    drives: [Drive<'a>; 1],
    machine_config: MachineConfig,
    vsock: Vsock<'a>,
}

#[derive(Serialize)]
struct BootSource<'a> {
    kernel_image_path: &'a str,
    initrd_path: &'a str,
    boot_args: String,
}

#[derive(Serialize)]
struct Drive<'a> {
    drive_id: &'a str,
    path_on_host: &'a str,
    is_root_device: bool,
    is_read_only: bool,
    cache_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limiter: Option<RateLimiter>,
}

#[derive(Serialize)]
struct RateLimiter {
    bandwidth: TokenBucket,
}

#[derive(Serialize)]
struct TokenBucket {
    size: u64,
    /// In milliseconds.
    refill_time: u64,
}

impl RateLimiter {
    /// A limit of bytes per second, of which a tenth may pass at once.
    fn new(rate: u64) -> Self {
        Self {
            bandwidth: TokenBucket {
                size: rate.div_ceil(10),
                refill_time: 100,
            },
        }
    }
}

#[derive(Serialize)]
struct MachineConfig {
    vcpu_count: u32,
    mem_size_mib: u32,
    smt: bool,
}

#[derive(Serialize)]
struct Vsock<'a> {
    guest_cid: u32,
    uds_path: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceleration::Acceleration;

    #[test]
    fn the_whole_config_file() {
        let paths = Paths {
            kernel: "/kernel".to_owned(),
            initramfs: "/proc/self/fd/4".to_owned(),
            disk: "/proc/self/fd/3".to_owned(),
            vsock: "/run/\"vm\"/v".to_owned(),
        };
        let machine = Machine::sample(Acceleration::Kvm);
        assert_eq!(
            config(&machine, &paths),
            r#"{
  "boot-source": {
    "kernel_image_path": "/kernel",
    "initrd_path": "/proc/self/fd/4",
    "boot_args": "console=ttyS0 quiet panic=-1 init_on_free=1 reboot=k debug"
  },
  "drives": [
    {
      "drive_id": "root",
      "path_on_host": "/proc/self/fd/3",
      "is_root_device": false,
      "is_read_only": false,
      "cache_type": "Unsafe"
    }
  ],
  "machine-config": {
    "vcpu_count": 2,
    "mem_size_mib": 256,
    "smt": false
  },
  "vsock": {
    "guest_cid": 3,
    "uds_path": "/run/\"vm\"/v"
  }
}"#
        );
    }

    #[test]
    fn a_disk_has_the_rate_of_its_quota() {
        let paths = Paths {
            kernel: "/kernel".to_owned(),
            initramfs: "/proc/self/fd/4".to_owned(),
            disk: "/proc/self/fd/3".to_owned(),
            vsock: "v".to_owned(),
        };
        let mut machine = Machine::sample(Acceleration::Kvm);
        machine.quotas = machine.quotas.disk_rate(10_000_000);
        let config: serde_json::Value = serde_json::from_str(&config(&machine, &paths)).unwrap();
        assert_eq!(
            config["drives"][0]["rate_limiter"],
            serde_json::json!({ "bandwidth": { "size": 1_000_000, "refill_time": 100 } })
        );
    }

    #[test]
    fn names_have_letters_digits_and_hyphens_only() {
        assert_eq!(instance_id("a.b_c-1"), "vmcell-a-b-c-1");
    }
}
