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
mod find_options;
mod flatten;
mod grep;
mod image;
mod info;
mod interrupt;
mod listing;
mod ls;
mod problems;
mod seal;
mod sha256;
mod stat;
mod tree;

use std::{env, process::ExitCode};

use clap::{CommandFactory, Parser};
use vmcell_cli::options::manual;

use arguments::{Arguments, CliCommand};

fn main() -> ExitCode {
    let command = Arguments::parse_from(find_options::normalize(env::args_os())).command;
    let json = command.json();
    let outcome = match command {
        CliCommand::Ls(arguments) => ls::ls(&arguments),
        CliCommand::Tree(arguments) => tree::tree(&arguments),
        CliCommand::Cat(arguments) => cat::cat(&arguments),
        CliCommand::Stat(arguments) => stat::stat(&arguments),
        CliCommand::Find(arguments) => find::find(&arguments),
        CliCommand::Grep(arguments) => grep::grep(&arguments),
        CliCommand::Du(arguments) => du::du(&arguments),
        CliCommand::Sha256(arguments) => sha256::sha256(&arguments),
        CliCommand::Export(arguments) => export::export(&arguments),
        CliCommand::Diff(arguments) => diff::diff(&arguments),
        CliCommand::Info(arguments) => info::info(&arguments),
        CliCommand::Flatten(arguments) => flatten::flatten(&arguments),
        CliCommand::Child(arguments) => child::child(&arguments),
        CliCommand::Seal(arguments) => seal::seal(&arguments),
        CliCommand::Completions(arguments) => manual::completions(Arguments::command(), &arguments),
        CliCommand::Man(arguments) => manual::man(Arguments::command(), &arguments),
    };
    let code = outcome.unwrap_or_else(|error| failure::report_error(&error, json));
    code.into()
}
