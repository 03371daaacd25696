use std::{ffi::OsString, path::PathBuf};

use clap::Args;
use vmcell_cli::options::size;

use super::detach_key::DetachKey;
use crate::{
    command::parse_tag,
    machine_options::MachineOptions,
    network_options::NetworkOptions,
    quota_options::QuotaOptions,
    secret::SecretOptions,
    start_options::{Variable, parse_variable},
    vm_source::SourceOptions,
};

#[derive(Debug, Args)]
pub(crate) struct ShellArguments {
    /// ID of the VM, as listed by `vmcell ps`. Default: boot a new VM that ends
    /// with the shell.
    #[arg(value_name = "ID", conflicts_with_all = ["warm", "from"])]
    pub(super) vm: Option<String>,
    /// Environment to boot: `base`, `debian`, or the path of an ext4 image.
    #[arg(
        long,
        value_name = "ENVIRONMENT",
        default_value = "base",
        conflicts_with = "vm"
    )]
    pub(super) environment: OsString,
    /// Keep the new VM's writes in this disk and boot from it again next time.
    /// It is created from ENVIRONMENT if it does not exist.
    #[arg(long, value_name = "FILE", conflicts_with = "vm")]
    pub(super) disk: Option<PathBuf>,
    #[command(flatten)]
    pub(super) source: SourceOptions,
    /// Name of the new VM, by which your other programs find it.
    #[arg(
        long,
        value_name = "NAME",
        visible_alias = "name",
        conflicts_with = "vm"
    )]
    pub(super) id: Option<String>,
    /// Number of virtual CPUs of the new VM.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "vm")]
    pub(super) vcpu_count: u32,
    /// Memory of the new VM in MiB, or with a suffix (m, g).
    #[arg(
        long,
        short,
        value_name = "N",
        default_value = "1024",
        value_parser = size::parse_mib,
        conflicts_with = "vm"
    )]
    pub(super) mem_mib: u32,
    /// Size of the disk of the new VM in MiB, or with a suffix (m, g). Default: that of the
    /// image, which is also the least.
    #[arg(long, value_name = "N", value_parser = size::parse_mib, conflicts_with = "vm")]
    pub(super) disk_mib: Option<u32>,
    #[command(flatten)]
    pub(super) machine: MachineOptions,
    #[command(flatten)]
    pub(super) quotas: QuotaOptions,
    #[command(flatten)]
    pub(super) network: NetworkOptions,
    /// Copy PATH into /workspace of the new VM, and start the shell there. Of a
    /// directory, the contents are copied; a .tar, .tar.gz, .tgz or .tar.zst is
    /// unpacked.
    #[arg(long, value_name = "PATH", conflicts_with = "vm")]
    pub(super) push: Vec<PathBuf>,
    /// Attach to the terminal with this tag, or open a new one with it if there
    /// is none. Default: open a new terminal.
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    pub(super) tag: Option<String>,
    /// Key that detaches, for example ctrl+a or f12, or `none`. In a VM of
    /// another program the terminal keeps running, and `--tag` attaches to it
    /// again. A new VM is ended.
    #[arg(long, value_name = "KEY", default_value = "ctrl+]", value_parser = DetachKey::parse)]
    pub(super) detach_key: DetachKey,
    /// Record the terminal's output in this new directory.
    #[arg(long, value_name = "DIR")]
    pub(super) record: Option<PathBuf>,
    #[command(flatten)]
    pub(super) program: ProgramOptions,
}

/// The program of a new terminal, and how it is started.
#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    /// User and group the shell of a new terminal runs as, by name or number.
    /// Default: root.
    #[arg(long, value_name = "USER[:GROUP]")]
    pub(super) user: Option<String>,
    /// Working directory. Default: `/`, or `/workspace` with `--push`.
    #[arg(long, value_name = "DIR", visible_alias = "workdir")]
    pub(super) cwd: Option<OsString>,
    /// Set an environment variable.
    #[arg(long = "env", short = 'e', value_name = "K=V", value_parser = parse_variable)]
    pub(super) variables: Vec<Variable>,
    #[command(flatten)]
    pub(super) secrets: SecretOptions,
    /// Program to run instead of a shell. Default: bash, or sh if there is no
    /// bash.
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}
