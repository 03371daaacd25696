//! `vmcell network`: shows what the programs of a VM may reach, and what they did.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use vmcell::network::{NetworkEvent, NetworkStatus, OpenConnection, Verdict};
use vmcell_cli::{
    options::size::human_readable,
    show::{SafeStdout, Table},
    signals::Signals,
};
use vmcell_tree::Date;

use crate::{failure::print_json, ps, runtime::block_on, target};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct NetworkArguments {
    #[command(subcommand)]
    command: Option<NetworkCommand>,
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID", required = true)]
    id: Option<String>,
    /// Print the status as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum NetworkCommand {
    /// Print what programs of a VM wanted of the network: the last 1000 events.
    Log(LogArguments),
}

#[derive(Debug, Args)]
struct LogArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    id: String,
    /// Keep printing until the VM ends.
    #[arg(long, short)]
    follow: bool,
    /// Print each event as a JSON object on its line.
    #[arg(long)]
    json: bool,
}

impl NetworkArguments {
    /// Returns whether errors are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            Some(NetworkCommand::Log(arguments)) => arguments.json,
            None => self.json,
        }
    }
}

pub(crate) fn network(arguments: NetworkArguments) -> anyhow::Result<u8> {
    block_on(async move {
        match arguments.command {
            Some(NetworkCommand::Log(arguments)) => log(&arguments).await,
            None => status(&arguments.id.unwrap_or_default(), arguments.json).await,
        }
    })
}

async fn status(id: &str, json: bool) -> anyhow::Result<u8> {
    let vm = target::attach(id).await?;
    let status = vm.network_status().await?;
    if json {
        let mut object = status_as_json(&status);
        object["sandbox_id"] = vm.id().into();
        print_json(&object);
        return Ok(0);
    }
    let mut out = SafeStdout::new();
    let written = write_policy(&mut out, &status).and_then(|()| write_totals(&mut out, &status));
    out.finish(written)?;
    if !status.connections.is_empty() {
        let mut table = Table::new(["NUMBER", "HOST", "ADDRESS", "AGE", "SENT", "RECEIVED"]);
        for connection in &status.connections {
            table.add(row(connection));
        }
        table.print_to_stdout()?;
    }
    Ok(0)
}

/// Prints what programs may reach.
pub(crate) fn write_policy(out: &mut impl Write, status: &NetworkStatus) -> io::Result<()> {
    let public = match status.public {
        true => ", all public hosts",
        false => "",
    };
    writeln!(out, "{:12} {}{public}", "policy", status.policy)?;
    for (name, rules) in [("allow", &status.allow), ("deny", &status.deny)] {
        for rule in rules {
            writeln!(out, "{name:12} {rule}")?;
        }
    }
    Ok(())
}

/// Prints how much they have used.
pub(crate) fn write_totals(out: &mut impl Write, status: &NetworkStatus) -> io::Result<()> {
    let totals = status.totals;
    writeln!(out, "{:12} {}", "decisions", totals.decisions)?;
    writeln!(out, "{:12} {}", "denied", totals.denials)?;
    writeln!(out, "{:12} {}", "sent", human_readable(totals.sent))?;
    writeln!(out, "{:12} {}", "received", human_readable(totals.received))?;
    writeln!(out, "{:12} {}", "connections", status.connections.len())
}

fn row(connection: &OpenConnection) -> [String; 6] {
    let age = connection.began.elapsed().unwrap_or_default();
    [
        connection.number.to_string(),
        connection.wanted.to_string(),
        connection.address.to_string(),
        ps::human_readable(age),
        human_readable(connection.sent),
        human_readable(connection.received),
    ]
}

/// Returns a status, without the VM.
pub(crate) fn status_as_json(status: &NetworkStatus) -> Value {
    let connections = status.connections.iter().map(|connection| {
        json!({
            "number": connection.number,
            "host": connection.wanted.to_string(),
            "address": connection.address,
            "began": Date::of(connection.began).rfc3339(),
            "sent": connection.sent,
            "received": connection.received,
        })
    });
    json!({
        "network_policy": status.policy,
        "public": status.public,
        "published_ports": status.published_ports,
        "allow": status.allow,
        "deny": status.deny,
        "decisions": status.totals.decisions,
        "denied": status.totals.denials,
        "sent": status.totals.sent,
        "received": status.totals.received,
        "connections": connections.collect::<Vec<_>>(),
    })
}

async fn log(arguments: &LogArguments) -> anyhow::Result<u8> {
    let mut signals = Signals::new()?;
    let vm = target::attach(&arguments.id).await?;
    let mut log = vm.network_log().await?;
    for event in log.take_recent() {
        if print_event(&event, arguments.json).is_err() {
            return Ok(0);
        }
    }
    if !arguments.follow {
        return Ok(0);
    }
    let following = async {
        while let Some(event) = log.next().await {
            // A reader that has closed the pipe has read enough.
            if print_event(&event, arguments.json).is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = following => Ok(0),
        code = signals.next() => Ok(code),
    }
}

fn print_event(event: &NetworkEvent, json: bool) -> io::Result<()> {
    let line = match json {
        true => event_as_json(event).to_string(),
        false => event_as_text(event),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

pub(crate) fn event_as_text(event: &NetworkEvent) -> String {
    match event {
        NetworkEvent::Decided(decision) => format!(
            "{} {} {} {}",
            Date::of(decision.time).rfc3339(),
            decision.number,
            decision.wanted,
            decision.verdict
        ),
        NetworkEvent::Ended(end) => format!(
            "{:20} {} ended after {:.1} s, sent {}, received {}",
            "",
            end.number,
            end.duration.as_secs_f64(),
            human_readable(end.sent),
            human_readable(end.received)
        ),
        _ => String::new(),
    }
}

fn event_as_json(event: &NetworkEvent) -> Value {
    match event {
        NetworkEvent::Decided(decision) => {
            let (verdict, rule, address) = match &decision.verdict {
                Verdict::Allowed { rule, address } => ("allowed", rule.clone(), *address),
                Verdict::Failed { .. } => ("failed", None, None),
                _ => ("denied", None, None),
            };
            json!({
                "event": "decided",
                "number": decision.number,
                "time": Date::of(decision.time).rfc3339(),
                "wanted": decision.wanted.to_string(),
                "verdict": verdict,
                "rule": rule,
                "address": address,
                "text": decision.verdict.to_string(),
            })
        }
        NetworkEvent::Ended(end) => json!({
            "event": "ended",
            "number": end.number,
            "sent": end.sent,
            "received": end.received,
            "duration_seconds": end.duration.as_secs_f64(),
        }),
        _ => json!({ "event": "unknown" }),
    }
}
