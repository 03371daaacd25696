use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use vmcell::{ProcessSelector, port::PortMapping};
use vmcell_cli::options::manual::{CompletionsArguments, ManArguments};

use crate::{
    command::CommandOptions,
    demo::DemoArguments,
    files::{
        CatArguments, CpArguments, DiffArguments, LsArguments, PatchArguments, PullArgument,
        StatArguments,
    },
    machine_options::MachineOptions,
    port::PublishArguments,
    process_name,
    screen::ScreenArguments,
    service::{HELP_HEADING, ServiceArguments, ServiceFlags},
    shell::ShellArguments,
    signal_name,
};

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
    /// Run a command in a VM that another program runs.
    Exec(ExecArguments),
    /// Open a terminal in a new VM, or in one that another program runs.
    Shell(ShellArguments),
    /// Print what the screen of a terminal looks like.
    Screen(ScreenArguments),
    /// List your VMs, or the processes of one.
    Ps(PsArguments),
    /// Print what a process has printed, as far as its VM has kept it.
    Logs(LogsArguments),
    /// Stop a VM in order: its processes are asked to end, its disk is made clean.
    Stop(StopArguments),
    /// End a VM, in order if its disk is kept, or a process with all its descendants.
    Kill(KillArguments),
    /// Start, list, watch and end the services of a VM.
    Service(ServiceArguments),
    /// Have ports of a VM answer on 127.0.0.1, until you press Ctrl-C.
    Publish(PublishArguments),
    /// Copy files into a VM, or out of it: one of SRC and DST is ID:PATH.
    Cp(CpArguments),
    /// List a directory of a VM.
    Ls(LsArguments),
    /// Print a file of a VM.
    Cat(CatArguments),
    /// Tell everything about a file of a VM.
    Stat(StatArguments),
    /// Apply a text patch to files of a VM: all of it, or nothing.
    Patch(PatchArguments),
    /// Print as a patch what has changed in a VM since it began its work.
    Diff(DiffArguments),
    /// Say what was found on this machine, boot a VM, and ask it who it is.
    Demo(DemoArguments),
    /// Say what this machine has and lacks for running VMs.
    Doctor(DoctorArguments),
    /// Print completions for a shell.
    Completions(CompletionsArguments),
    /// Print the manual page, or write those of all commands.
    Man(ManArguments),
}

impl Task {
    /// Whether failures are told as JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Run(arguments) => arguments.options.json,
            Self::Exec(arguments) => arguments.options.json,
            Self::Screen(arguments) => arguments.json,
            Self::Ps(arguments) => arguments.json,
            Self::Logs(arguments) => arguments.json,
            Self::Stop(arguments) => arguments.json,
            Self::Service(arguments) => arguments.json(),
            Self::Publish(arguments) => arguments.json,
            Self::Cp(arguments) => arguments.json,
            Self::Ls(arguments) => arguments.json,
            Self::Stat(arguments) => arguments.json,
            Self::Patch(arguments) => arguments.json,
            Self::Diff(arguments) => arguments.json,
            Self::Demo(arguments) => arguments.json,
            Self::Doctor(arguments) => arguments.json,
            Self::Shell(_) | Self::Kill(_) | Self::Cat(_) | Self::Completions(_) | Self::Man(_) => {
                false
            }
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  vmcell run -- uname -a
  vmcell run --push . --pull build=./build -- make
  vmcell run --service 'web=httpd -f -p 8080' --ready tcp:8080 --publish 8080 -- sh -c 'read line'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// The environment to boot: `base`, `debian`, or the path of an ext4 image.
    #[arg(value_name = "ENVIRONMENT", default_value = "base")]
    pub(crate) environment: OsString,
    /// Keep what the VM writes in this disk, and boot from it again next time.
    /// If it is not there, it is made of ENVIRONMENT. `vmcell-disk` looks into
    /// it.
    #[arg(long, value_name = "FILE")]
    pub(crate) disk: Option<PathBuf>,
    /// A name for the VM, by which other programs of yours find it.
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<String>,
    /// How many virtual processors the VM has.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) vcpu_count: u32,
    /// How much memory the VM has, in MiB.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) mem_mib: u32,
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
    /// Bring this into /workspace before the command, which then runs there: a
    /// directory's contents, a file, or the contents of a .tar, .tar.gz, .tgz or
    /// .tar.zst.
    #[arg(long, value_name = "PATH")]
    pub(crate) push: Vec<PathBuf>,
    /// Bring a file or directory out after the command, even if it failed: PATH
    /// (if relative, from /workspace on) becomes HOST. No part of HOST may be a
    /// symbolic link.
    #[arg(long, value_name = "PATH=HOST", value_parser = PullArgument::parser())]
    pub(crate) pull: Vec<PullArgument>,
    /// If a PATH of --pull is a symbolic link, make it one here. It leads
    /// wherever the VM says.
    #[arg(long, requires = "pull")]
    pub(crate) allow_symlink: bool,
    #[command(flatten)]
    pub(crate) services: ServiceFlags,
    /// Have port GUEST of the VM's loopback answer on port HOST of 127.0.0.1, or
    /// without HOST on a free one, which is told on standard error. It is open
    /// when the services are ready, until the VM ends.
    #[arg(long, value_name = "[HOST:]GUEST", help_heading = HELP_HEADING)]
    pub(crate) publish: Vec<PortMapping>,
    #[command(flatten)]
    pub(crate) options: CommandOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Let the command run in the background, with an empty standard input,
    /// and print its tag.
    #[arg(long, short, conflicts_with_all = ["stdin", "max_output_bytes"])]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) options: CommandOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PsArguments {
    /// The VM whose processes are wanted.
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print the list as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The process: its tag, its number in `vmcell ps ID`, or `pid:` and its
    /// process id in the guest.
    #[arg(value_name = "PROCESS", value_parser = process_name::parse)]
    pub(crate) process: ProcessSelector,
    /// Go on until the process ends.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print what there is as one JSON object, at the end.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print how it ended as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KillArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// A process of it, in place of all of it: its tag, its number in
    /// `vmcell ps ID`, or `pid:` and its process id in the guest.
    #[arg(value_name = "PROCESS", value_parser = process_name::parse)]
    pub(crate) process: Option<ProcessSelector>,
    /// Only send this signal to the process and its group: a name or a number.
    #[arg(long, short, value_name = "SIGNAL", requires = "process", value_parser = signal_name::parse)]
    pub(crate) signal: Option<u8>,
    /// End the VM at once, also if its disk is kept: as after a power cut, what
    /// was written in the last two seconds may be missing.
    #[arg(long, conflicts_with = "process")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Print the findings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
