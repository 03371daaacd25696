//! Resource limits of a command and its descendants.

use clap::{Args, value_parser};
use vmcell::Command;
use vmcell_cli::options::size;

#[derive(Debug, Args)]
pub(crate) struct LimitOptions {
    /// Memory limit of the command and its descendants, in bytes or with a
    /// suffix (k, m, g). Beyond it, the command is killed.
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive)]
    memory_max: Option<u64>,
    /// Maximum number of processes and threads of the command.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pids_max: Option<u32>,
    /// Number of CPUs the command may use, for example 0.5.
    #[arg(long, value_name = "N", value_parser = parse_cpus)]
    cpus: Option<u32>,
}

impl LimitOptions {
    pub(crate) fn apply_to(self, mut command: Command) -> Command {
        if let Some(bytes) = self.memory_max {
            command = command.memory_max(bytes);
        }
        if let Some(count) = self.pids_max {
            command = command.pids_max(count);
        }
        if let Some(thousandths) = self.cpus {
            command = command.cpu_milli(thousandths);
        }
        command
    }
}

/// Parses a number of CPUs. Returns thousandths of a CPU.
pub(crate) fn parse_cpus(text: &str) -> Result<u32, String> {
    let count: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (0.01..=1024.0).contains(&count) {
        Ok((count * 1000.0).round() as u32)
    } else {
        Err("expected 0.01 to 1024".to_owned())
    }
}
