use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

/// Run untrusted work inside microVMs.
#[derive(Debug, Parser)]
#[command(name = "vmcell", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Boot a VM, run a command in it, and leave nothing behind.
    Run(RunArguments),
    /// Say what this machine has and lacks for running VMs.
    Doctor(DoctorArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The environment to boot: `base`, or the path of an ext4 image.
    #[arg(value_name = "ENVIRONMENT", default_value = "base")]
    pub(crate) environment: OsString,
    /// How many virtual processors the VM has.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) vcpu_count: u32,
    /// How much memory the VM has, in MiB.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) mem_mib: u32,
    /// How long the command may take. Without it, as long as it likes.
    #[arg(long, value_name = "N")]
    pub(crate) timeout_seconds: Option<u64>,
    /// Set a variable of the command's environment.
    #[arg(long = "env", value_name = "K=V", value_parser = parse_variable)]
    pub(crate) variables: Vec<(String, String)>,
    /// Print the result as JSON when the command has ended.
    #[arg(long)]
    pub(crate) json: bool,
    /// The command, executed as it is, without a shell.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Print the findings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=value".to_owned()),
    }
}
