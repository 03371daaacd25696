//! What a new VM may use of this machine.

use std::time::Duration;

use clap::{Args, value_parser};
use vmcell::Quotas;
use vmcell_cli::options::size;

use crate::limits::parse_cpus;

/// Given to each option: one for all would last beyond them.
const HELP_HEADING: &str = "Quotas of the VM";

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct QuotaOptions {
    /// Most bytes that the VM writes to its layer above the image, with a suffix
    /// (k, m, g): 16m or more. Beyond it, writes in the VM fail. Default: what
    /// the size of the disk allows.
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive, help_heading = HELP_HEADING)]
    layer_max: Option<u64>,
    /// Processor time of the VM in total, in seconds. When it is used up, the VM
    /// is ended. Default: not limited.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), help_heading = HELP_HEADING)]
    cpu_seconds: Option<u64>,
    /// Number of this machine's CPUs that the VM may use, for example 1.5. It
    /// takes a cgroup with the controller `cpu`. Default: one more than its
    /// virtual CPUs, where there is such a cgroup.
    #[arg(long, value_name = "N", value_parser = parse_cpus, help_heading = HELP_HEADING)]
    vm_cpus: Option<u32>,
    /// Bytes that the VM reads and writes per second on its disk, with a suffix
    /// (k, m, g): 64k or more. Default: not limited.
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive, help_heading = HELP_HEADING)]
    disk_rate: Option<u64>,
    /// Bytes per second from the VM, and to it, for all output, files, ports and
    /// network together, with a suffix (k, m, g): 64k or more. Default: not
    /// limited.
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive, help_heading = HELP_HEADING)]
    link_rate: Option<u64>,
}

impl QuotaOptions {
    /// Returns whether any of the options was given.
    pub(crate) fn is_set(self) -> bool {
        self.quotas() != Quotas::new()
    }

    /// Returns the quotas.
    pub(crate) fn quotas(self) -> Quotas {
        let mut quotas = Quotas::new();
        if let Some(bytes) = self.layer_max {
            quotas = quotas.layer_bytes(bytes);
        }
        if let Some(seconds) = self.cpu_seconds {
            quotas = quotas.cpu_time(Duration::from_secs(seconds));
        }
        if let Some(thousandths) = self.vm_cpus {
            quotas = quotas.cpu_milli(thousandths);
        }
        if let Some(bytes) = self.disk_rate {
            quotas = quotas.disk_rate(bytes);
        }
        if let Some(bytes) = self.link_rate {
            quotas = quotas.link_rate(bytes);
        }
        quotas
    }
}
