//! Processors, memory and disk of a new VM.

use clap::Args;
use vmcell_cli::options::size;

#[derive(Debug, Args)]
pub(crate) struct SizeOptions {
    /// Number of virtual CPUs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) vcpu_count: u32,
    /// Memory of the VM in MiB, or with a suffix (m, g).
    #[arg(long, short, value_name = "N", default_value = "1024", value_parser = size::parse_mib)]
    pub(crate) mem_mib: u32,
    /// Size of the disk in MiB, or with a suffix (m, g). Default: that of the
    /// image, which is also the least.
    #[arg(long, value_name = "N", value_parser = size::parse_mib)]
    pub(crate) disk_mib: Option<u32>,
}
