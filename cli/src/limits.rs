//! What a program of a guest may use, with all its descendants.

use clap::{Args, value_parser};
use vmcell::Command;
use vmcell_cli::options::size;

#[derive(Debug, Args)]
pub(crate) struct LimitOptions {
    /// How much memory the command may use, with all its descendants, in bytes
    /// or as in 64m (k, m, g). If it needs more, it is ended.
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive)]
    memory_max: Option<u64>,
    /// How many processes and threads the command may be.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pids_max: Option<u32>,
    /// How many processors the command may keep busy, such as 0.5.
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

/// Thousandths of a processor.
fn parse_cpus(text: &str) -> Result<u32, String> {
    let count: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    if (0.01..=1024.0).contains(&count) {
        Ok((count * 1000.0).round() as u32)
    } else {
        Err("choose 0.01 to 1024".to_owned())
    }
}
