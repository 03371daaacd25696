//! `vmcell publish`: forwards ports of this machine to a VM.

use std::io::{self, Write};

use clap::Args;
use serde_json::json;
use vmcell::{
    Vm,
    port::{PortMapping, PublishedPort},
};
use vmcell_cli::signals::Signals;

use crate::{
    failure::{print_json, report},
    runtime::block_on,
    target,
};

#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    id: String,
    /// Port GUEST of the VM's loopback interface and the port HOST of 127.0.0.1
    /// that is forwarded to it. Default for HOST: a free port.
    #[arg(value_name = "[HOST:]GUEST", required = true)]
    ports: Vec<PortMapping>,
    /// Print the list of forwarded ports as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn publish(arguments: PublishArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let mut signals = Signals::new()?;
        let publishing = async {
            let vm = target::attach(&arguments.id).await?;
            let mut published = Vec::new();
            for mapping in arguments.ports {
                published.push(vm.ports().publish(mapping).await?);
            }
            print_ports(&vm, &published, arguments.json);
            let end = vm.ended().await;
            report(&format!("the VM is gone: {end}"));
            anyhow::Ok(0)
        };
        tokio::select! {
            ended = publishing => ended,
            code = signals.next() => Ok(code),
        }
    })
}

/// Returns a published port as text.
pub(crate) fn describe(port: &PublishedPort) -> String {
    format!("{} -> {}", port.address(), port.guest_port())
}

/// Returns a published port of another program as text.
pub(crate) fn describe_mapping(port: PortMapping) -> String {
    format!("127.0.0.1:{} -> {}", port.host.unwrap_or(0), port.guest)
}

/// Prints the published ports. A write error is ignored: the ports are open
/// anyway.
fn print_ports(vm: &Vm, ports: &[PublishedPort], json: bool) {
    if json {
        print_json(&json!({ "sandbox_id": vm.id(), "published": ports }));
        return;
    }
    for port in ports {
        let _ = writeln!(io::stdout(), "{}", describe(port));
    }
}
