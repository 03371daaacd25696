//! What is done with a VM: each activity checks every byte that it gets.

mod attached;
mod background;
pub(crate) mod files;
mod ports;
mod services;
mod streams;
mod terminals;

use std::fmt;

use anyhow::{Context as _, Result};
use vmcell::Vm;

use crate::{arguments::Kind, random::Random};

/// Something that is done with a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Output,
    Input,
    Timeouts,
    ManyCommands,
    Background,
    Tree,
    WholeFiles,
    Terminal,
    Port,
    Service,
    Client,
}

impl Activity {
    const ALL: [Self; 11] = [
        Self::Output,
        Self::Input,
        Self::Timeouts,
        Self::ManyCommands,
        Self::Background,
        Self::Tree,
        Self::WholeFiles,
        Self::Terminal,
        Self::Port,
        Self::Service,
        Self::Client,
    ];

    pub(crate) fn choose(random: &mut Random) -> Self {
        random.choose(&Self::ALL)
    }

    /// Whether it goes on when the link breaks. Requests on files and connections fail.
    pub(crate) fn survives_broken_links(self) -> bool {
        matches!(
            self,
            Self::Output
                | Self::Input
                | Self::Timeouts
                | Self::ManyCommands
                | Self::Background
                | Self::Terminal
        )
    }

    /// Does it. Several can be done with one VM at once.
    pub(crate) async fn run(self, vm: &Vm, kind: Kind, random: &mut Random) -> Result<()> {
        let done = match self {
            Self::Output => streams::output(vm, random).await,
            Self::Input => streams::input(vm, random).await,
            Self::Timeouts => streams::timeouts(vm, random).await,
            Self::ManyCommands => streams::many_commands(vm, random).await,
            Self::Background => background::observe(vm, kind, random).await,
            Self::Tree => files::tree(vm, random).await,
            Self::WholeFiles => files::whole_files(vm, random).await,
            Self::Terminal => terminals::calculate(vm, random).await,
            Self::Port => ports::echo(vm, random).await,
            Self::Service => services::supervise(vm, random).await,
            Self::Client => attached::use_as_client(vm, random).await,
        };
        done.with_context(|| format!("activity {self:?}"))
    }
}

/// The VM has ended while it was used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VmEnded;

impl fmt::Display for VmEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the VM has ended")
    }
}

impl std::error::Error for VmEnded {}

/// A port that no other activity of a VM uses.
fn guest_port(random: &mut Random) -> u16 {
    10_000 + random.below(50_000) as u16
}
