//! Uses VMs, workspaces, clones, terminals and ports for hours, in an order that a seed
//! chooses, kills programs and VMMs meanwhile, and checks after each round that nothing is left
//! and that no byte is missing.
//!
//! ```text
//!  supervisor   folders of its own; adopts and reaps what programs leave
//!    └── worker     rounds, one after the other, and the checks after each
//!          ├── VMMs
//!          ├── program    with VMs of its own, which is killed
//!          └── keeper     runs a workspace, and is killed
//! ```

mod activity;
mod arguments;
mod interference;
mod leftovers;
mod memory;
mod pattern;
mod processes;
mod random;
mod round;
mod scenario;
mod setup;
mod step;
mod supervisor;
mod sys;
mod worker;

use std::process::ExitCode;

use clap::Parser as _;
use vmcell::workspace::Keeper;

use crate::arguments::{Arguments, Role};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.role {
        None => supervisor::supervise(&arguments),
        Some(role) => run(role, &arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs one of the processes that this program starts itself as.
fn run(role: Role, arguments: &Arguments) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Runtime::new()?;
    match role {
        Role::Worker => runtime.block_on(worker::work(arguments)),
        Role::Program { seed } => runtime.block_on(scenario::program::run(arguments, seed)),
        Role::Keeper => {
            runtime.block_on(Keeper::keep(std::future::pending()))?;
            Ok(true)
        }
    }
}
