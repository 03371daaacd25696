//! `vmcell publish`: ports of a VM on this machine.

use std::io::{self, Write};

use clap::Args;
use serde_json::{Value, json};
use vmcell::{
    Vm,
    port::{PortMapping, PublishedPort},
};
use vmcell_cli::signals::Signals;

use crate::{
    failure::{print_json, say},
    runtime::block_on,
};

#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    id: String,
    /// A port of the VM's loopback, and the port of 127.0.0.1 where it answers;
    /// without HOST, a free one.
    #[arg(value_name = "[HOST:]GUEST", required = true)]
    ports: Vec<PortMapping>,
    /// Print the list of open ports as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn publish(arguments: PublishArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let mut signals = Signals::new()?;
        let publishing = async {
            let vm = Vm::attach(&arguments.id).await?;
            let mut published = Vec::new();
            for mapping in arguments.ports {
                published.push(vm.ports().publish(mapping).await?);
            }
            tell(&vm, &published, arguments.json);
            let end = vm.ended().await;
            say(&format!("the VM is gone: {end}"));
            anyhow::Ok(0)
        };
        tokio::select! {
            ended = publishing => ended,
            code = signals.next() => Ok(code),
        }
    })
}

/// A port in words.
pub(crate) fn words(port: &PublishedPort) -> String {
    format!("{} -> {}", port.address(), port.guest_port())
}

/// What machines are told about a port.
pub(crate) fn as_json(port: &PublishedPort) -> Value {
    json!({ "host": port.host_port(), "guest": port.guest_port() })
}

/// Where nobody reads it, the ports are open all the same.
fn tell(vm: &Vm, ports: &[PublishedPort], json: bool) {
    if json {
        let list: Vec<_> = ports.iter().map(as_json).collect();
        print_json(&json!({ "sandbox_id": vm.id(), "published": list }));
        return;
    }
    for port in ports {
        let _ = writeln!(io::stdout(), "{}", words(port));
    }
}
