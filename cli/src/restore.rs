//! `vmcell restore`: starts a VM from a snapshot or a template, for other
//! commands to use.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use serde_json::json;
use vmcell::{EndKind, Vm};
use vmcell_cli::{show, signals::Signals};

use crate::{
    background,
    command::parse_seconds,
    exit_code::TOOL_FAILED,
    failure::report,
    network_options::NetworkOptions,
    new_vm::{NewVm, VmOptions, WorkResult},
    quota_options::QuotaOptions,
    runtime::block_on,
    vm_source::VmSource,
};

const EXAMPLES: &str = "\
Examples:
  vmcell restore --detach --id copy ./build.snapshot
  vmcell exec copy uname -a
  vmcell stop copy";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RestoreArguments {
    /// Path of a snapshot, or the name of a template.
    #[arg(value_name = "FROM")]
    from: OsString,
    /// Name of the VM, by which your other programs find it.
    #[arg(long, value_name = "NAME", visible_alias = "name")]
    id: Option<String>,
    /// Where the image of the VM is now, if it has been moved.
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Leave the VM running in the background, and print its ID when it runs.
    /// `vmcell stop ID` ends it.
    #[arg(long, short)]
    detach: bool,
    /// End the VM after this many seconds, with exit code 124.
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    ttl_seconds: Option<Duration>,
    /// Added by `--detach` to the program that runs in the background.
    #[arg(long, hide = true)]
    background: bool,
    #[command(flatten)]
    quotas: QuotaOptions,
    #[command(flatten)]
    network: NetworkOptions,
    /// Print the ID as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn restore(arguments: RestoreArguments) -> anyhow::Result<u8> {
    let source = VmSource::saved(&arguments.from, arguments.image)?;
    let json = arguments.json;
    let network = arguments.network.policy(false)?;
    if arguments.detach && !arguments.background {
        return background::start("restore", |id| print_id(id, json));
    }
    if arguments.background {
        background::enter()?;
    }
    let new = NewVm {
        source,
        options: VmOptions {
            id: arguments.id,
            quotas: arguments.quotas.quotas(),
            network,
            time_to_live: arguments.ttl_seconds,
            ..VmOptions::default()
        },
    };
    let is_background = arguments.background;
    block_on(async move {
        let mut signals = Signals::all()?;
        let work = async |vm: &Vm, signals: &mut Signals| {
            match is_background {
                true => background::detach(vm)?,
                false => print_id(vm.id(), json)?,
            }
            Ok(until_ended(vm, signals).await)
        };
        new.run(&mut signals, work).await
    })
}

/// Prints the ID on one line, which a script reads while the VM runs.
fn print_id(id: &str, json: bool) -> io::Result<()> {
    match json {
        true => {
            let line = show::json::line(&json!({ "sandbox_id": id }));
            writeln!(io::stdout(), "{line}")
        }
        false => writeln!(io::stdout(), "{id}"),
    }
}

async fn until_ended(vm: &Vm, signals: &mut Signals) -> WorkResult {
    let end = tokio::select! {
        end = vm.ended() => end,
        code = signals.next() => return code.into(),
    };
    match end.kind() {
        EndKind::Clean => 0.into(),
        _ => {
            report(&format!("the VM is gone: {end}"));
            TOOL_FAILED.into()
        }
    }
}
