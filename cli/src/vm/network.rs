//! `vmcell vm network`: shows what the programs of a VM may reach.

use std::io::{self, Write};

use serde_json::{Value, json};
use vmcell::{
    Vm,
    network::{Decision, NetworkEvent, NetworkStatus, Verdict},
    workspace::WorkspaceState,
};
use vmcell_cli::show::SafeStdout;
use vmcell_tree::Date;

use super::find;
use crate::{
    failure::print_json,
    network::{event_as_text, status_as_json, write_policy, write_totals},
};

pub(super) async fn network(id: &str, json: bool) -> anyhow::Result<u8> {
    let vm = find(id).await?;
    let info = vm.info().await?;
    let usage = match info.state {
        WorkspaceState::Running => Some(Usage::of(&vm.vm().await?).await?),
        // Nobody has counted it.
        _ => None,
    };
    let policy = NetworkStatus::from(&info.network);
    if json {
        let mut object = as_json(&policy, usage.as_ref());
        object["vm_id"] = info.id.into();
        object["state"] = info.state.as_str().into();
        print_json(&object);
        return Ok(0);
    }
    let mut out = SafeStdout::new();
    let written = write(&mut out, &policy, usage.as_ref());
    out.finish(written)
}

/// What the programs of a running VM have used.
struct Usage {
    status: NetworkStatus,
    /// The last ones.
    denials: Vec<NetworkEvent>,
}

impl Usage {
    async fn of(vm: &Vm) -> anyhow::Result<Self> {
        let mut denials = vm.network_log().await?.take_recent();
        denials.retain(|event| denial(event).is_some());
        Ok(Self {
            status: vm.network_status().await?,
            denials,
        })
    }
}

fn denial(event: &NetworkEvent) -> Option<&Decision> {
    match event {
        NetworkEvent::Decided(decision) => match decision.verdict {
            Verdict::Denied { .. } => Some(decision),
            _ => None,
        },
        _ => None,
    }
}

fn write(out: &mut impl Write, policy: &NetworkStatus, usage: Option<&Usage>) -> io::Result<()> {
    write_policy(out, policy)?;
    let ports = match policy.published_ports {
        true => "can be published",
        false => "cannot be published",
    };
    writeln!(out, "{:12} {ports}", "ports")?;
    let Some(usage) = usage else {
        return Ok(());
    };
    write_totals(out, &usage.status)?;
    for event in &usage.denials {
        writeln!(out, "{}", event_as_text(event))?;
    }
    Ok(())
}

/// What is not known is null.
fn as_json(policy: &NetworkStatus, usage: Option<&Usage>) -> Value {
    let Some(usage) = usage else {
        let mut object = status_as_json(policy);
        for key in ["decisions", "denied", "sent", "received", "connections"] {
            object[key] = Value::Null;
        }
        object["denials"] = Value::Null;
        return object;
    };
    let mut object = status_as_json(&usage.status);
    let denials = usage.denials.iter().filter_map(denial).map(|decision| {
        json!({
            "time": Date::of(decision.time).rfc3339(),
            "wanted": decision.wanted.to_string(),
            "text": decision.verdict.to_string(),
        })
    });
    object["denials"] = denials.collect();
    object
}
