use std::{fmt, time::Duration};

use clap::{Parser, Subcommand, ValueEnum};

/// Uses vmcell at random, and checks that nothing is left behind.
#[derive(Clone, Debug, Parser)]
#[command(name = "vmcell-soak")]
pub(crate) struct Arguments {
    /// For how long rounds are begun
    #[arg(long, default_value_t = 1.0)]
    hours: f64,

    /// What all choices follow from; printed, and another one each time by default
    #[arg(long, global = true)]
    pub(crate) seed: Option<u64>,

    /// Runs only this round of the seed, to repeat a failure
    #[arg(long)]
    pub(crate) round: Option<u64>,

    /// What runs the VMs
    #[arg(long, global = true, default_value_t = Kind::Qemu)]
    pub(crate) backend: Kind,

    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// What runs the VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Qemu,
    Process,
}

/// A process that the program starts itself as.
#[derive(Clone, Copy, Debug, Subcommand)]
#[command(hide = true)]
pub(crate) enum Role {
    #[command(hide = true)]
    Worker,
    #[command(hide = true)]
    Program {
        #[arg(long)]
        seed: u64,
    },
    #[command(hide = true)]
    Keeper,
}

impl Arguments {
    pub(crate) fn time(&self) -> Duration {
        Duration::try_from_secs_f64(self.hours * 3600.0).unwrap_or(Duration::MAX)
    }

    /// Those that other processes get.
    pub(crate) fn to_words(&self, seed: u64) -> Vec<String> {
        let mut words = vec![
            format!("--hours={}", self.hours),
            format!("--seed={seed}"),
            format!("--backend={}", self.backend),
        ];
        words.extend(self.round.map(|round| format!("--round={round}")));
        words
    }
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Process => "process",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
