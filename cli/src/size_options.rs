//! Processors and memory of a new VM.

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
}
