use std::{ffi::OsString, path::PathBuf};

use clap::Args;

use super::detach_key::DetachKey;
use crate::{
    command::parse_tag,
    machine_options::MachineOptions,
    start_options::{Variable, parse_variable},
};

#[derive(Debug, Args)]
pub(crate) struct ShellArguments {
    /// The VM, as `vmcell ps` lists it. Without it, one is booted, and ended
    /// with the shell.
    #[arg(value_name = "ID")]
    pub(super) vm: Option<String>,
    /// The environment to boot: `base`, `debian`, or the path of an ext4 image.
    #[arg(
        long,
        value_name = "ENVIRONMENT",
        default_value = "base",
        conflicts_with = "vm"
    )]
    pub(super) environment: OsString,
    /// Keep what the new VM writes in this disk, and boot from it again next
    /// time. If it is not there, it is made of ENVIRONMENT.
    #[arg(long, value_name = "FILE", conflicts_with = "vm")]
    pub(super) disk: Option<PathBuf>,
    /// A name for the new VM, by which other programs of yours find it.
    #[arg(long, value_name = "NAME", conflicts_with = "vm")]
    pub(super) id: Option<String>,
    /// How many virtual processors the new VM has.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "vm")]
    pub(super) vcpu_count: u32,
    /// How much memory the new VM has, in MiB.
    #[arg(long, value_name = "N", default_value_t = 1024, conflicts_with = "vm")]
    pub(super) mem_mib: u32,
    #[command(flatten)]
    pub(super) machine: MachineOptions,
    /// Bring this into /workspace of the new VM, where the shell then begins: a
    /// directory's contents, a file, or the contents of a .tar, .tar.gz, .tgz or
    /// .tar.zst.
    #[arg(long, value_name = "PATH", conflicts_with = "vm")]
    pub(super) push: Vec<PathBuf>,
    /// The terminal with this tag, whoever has opened it. If there is none, a
    /// new one gets the tag. Without it, a new one is opened.
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    pub(super) tag: Option<String>,
    /// Leave with this key, such as ctrl+a or f12, or with none. A terminal in
    /// another program's VM goes on, and `--tag` comes back to it. A VM of our
    /// own is ended.
    #[arg(long, value_name = "KEY", default_value = "ctrl+]", value_parser = DetachKey::parse)]
    pub(super) detach_key: DetachKey,
    /// Write down all that is printed in this new folder.
    #[arg(long, value_name = "DIR")]
    pub(super) record: Option<PathBuf>,
    #[command(flatten)]
    pub(super) program: ProgramOptions,
}

/// What a new terminal is opened with.
#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    /// Who the shell of a new terminal runs as, names or numbers. Without it,
    /// root.
    #[arg(long, value_name = "USER[:GROUP]")]
    pub(super) user: Option<String>,
    /// Where it begins. Without it, in `/`, or after `--push` in `/workspace`.
    #[arg(long, value_name = "DIR", visible_alias = "workdir")]
    pub(super) cwd: Option<OsString>,
    /// Set a variable of its environment.
    #[arg(long = "env", value_name = "K=V", value_parser = parse_variable)]
    pub(super) variables: Vec<Variable>,
    /// Another program in its place. Without it, bash, or sh where there is no
    /// bash.
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}
