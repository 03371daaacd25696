//! `vmcell-disk`: inspects the disk of a stopped VM, or any raw or qcow2 image
//! with an ext2, ext3 or ext4 file system, without booting or mounting it.

mod arguments;
mod cat;
mod child;
mod diff;
mod diff_stat;
mod du;
mod export;
mod failure;
mod file_system;
mod find;
mod flatten;
mod grep;
mod image;
mod info;
mod interrupt;
mod layer;
mod listing;
mod ls;
mod problems;
mod seal;
mod sha256;
mod stat;
mod tree;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use vmcell_cli::options::manual;

use arguments::{Arguments, Task};

fn main() -> ExitCode {
    let task = Arguments::parse().task;
    let json = task.json();
    let outcome = match task {
        Task::Ls(arguments) => ls::ls(&arguments),
        Task::Tree(arguments) => tree::tree(&arguments),
        Task::Cat(arguments) => cat::cat(&arguments),
        Task::Stat(arguments) => stat::stat(&arguments),
        Task::Find(arguments) => find::find(&arguments),
        Task::Grep(arguments) => grep::grep(&arguments),
        Task::Du(arguments) => du::du(&arguments),
        Task::Sha256(arguments) => sha256::sha256(&arguments),
        Task::Export(arguments) => export::export(&arguments),
        Task::Diff(arguments) => diff::diff(&arguments),
        Task::Info(arguments) => info::info(&arguments),
        Task::Flatten(arguments) => flatten::flatten(&arguments),
        Task::Child(arguments) => child::child(&arguments),
        Task::Seal(arguments) => seal::seal(&arguments),
        Task::Completions(arguments) => manual::completions(Arguments::command(), &arguments),
        Task::Man(arguments) => manual::man(Arguments::command(), &arguments),
    };
    let code = outcome.unwrap_or_else(|error| failure::report(&error, json));
    code.into()
}
