//! `vmcell metrics`: what a VM has used of this machine.

mod chart;
mod prometheus;
mod series;
mod svg;

use std::{
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use vmcell::metrics::{Metrics, MetricsTier};
use vmcell_cli::{
    atomic_file,
    options::size::human_readable,
    show::{self, SafeStdout, Table},
};
use vmcell_tree::Date;

use crate::{failure::print_json, runtime::block_on, shell, target};

use series::Charts;

#[derive(Debug, Args)]
pub(crate) struct MetricsArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    id: String,
    /// How far back: 10m by the second, 2h by 10 seconds, or 24h by 2 minutes.
    #[arg(long, value_name = "TIER", default_value_t = MetricsTier::TenMinutes)]
    tier: MetricsTier,
    /// Print the samples as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the last second in the text format of Prometheus.
    #[arg(long, conflicts_with_all = ["json", "tier"])]
    prometheus: bool,
    /// Print all samples of all tiers as JSON, and forget them: each is printed
    /// once, whoever asks.
    #[arg(long, conflicts_with_all = ["tier", "prometheus", "svg"])]
    flush: bool,
    /// Write charts as an SVG image to FILE, or to standard output if it is `-`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "prometheus"])]
    svg: Option<PathBuf>,
}

pub(crate) fn metrics(arguments: MetricsArguments) -> anyhow::Result<u8> {
    if arguments.flush {
        return block_on(flush(&arguments.id));
    }
    let metrics = block_on(async {
        let vm = target::attach(&arguments.id).await?;
        let metrics = vm.metrics(arguments.tier).await?;
        if !metrics.samples.is_empty() {
            return Ok(metrics);
        }
        // The VM has just been started.
        vm.next_sample().await?;
        Ok(vm.metrics(arguments.tier).await?)
    })?;
    let id = &arguments.id;
    if arguments.json {
        print_json(&as_json(id, &metrics));
        return Ok(0);
    }
    if arguments.prometheus {
        return print(&prometheus::text(id, metrics.samples.last()));
    }
    if let Some(path) = &arguments.svg {
        let picture = svg::picture(id, &Charts::new(&metrics));
        if path == Path::new("-") {
            return print(&picture);
        }
        atomic_file::write_public(path, picture.as_bytes())
            .with_context(|| format!("picture {}", path.display()))?;
        return Ok(0);
    }
    if io::stdout().is_terminal() {
        let columns = shell::terminal_size().map_or(80, |size| size.columns);
        return print(&chart::text(&Charts::new(&metrics), columns.into()));
    }
    table(&metrics).print_to_stdout()?;
    Ok(0)
}

async fn flush(id: &str) -> anyhow::Result<u8> {
    let all = target::attach(id).await?.flush_metrics().await?;
    print_json(&json!({
        "sandbox_id": id,
        "10m": show::json::value(&all.ten_minutes),
        "2h": show::json::value(&all.two_hours),
        "24h": show::json::value(&all.one_day),
    }));
    Ok(0)
}

fn print(text: &str) -> anyhow::Result<u8> {
    let mut out = SafeStdout::new();
    let written = out.write_all(text.as_bytes());
    out.finish(written)
}

fn as_json(id: &str, metrics: &Metrics) -> Value {
    let mut object = show::json::value(metrics);
    object["sandbox_id"] = id.into();
    object["resolution_seconds"] = metrics.tier.resolution().as_secs().into();
    object
}

fn table(metrics: &Metrics) -> Table<7> {
    let mut table = Table::new([
        "TIME",
        "CPU",
        "MEMORY",
        "DISK",
        "PROCESSES",
        "RECEIVED",
        "SENT",
    ]);
    for sample in &metrics.samples {
        table.add([
            Date::of(sample.time).short(),
            format!("{:.1}%", sample.cpu_percent),
            human_readable(sample.memory_bytes),
            sample.disk_bytes.map_or("-".to_owned(), human_readable),
            sample.processes.map_or("-".to_owned(), |it| it.to_string()),
            human_readable(sample.received_bytes),
            human_readable(sample.sent_bytes),
        ]);
    }
    table
}

#[cfg(test)]
mod samples;
