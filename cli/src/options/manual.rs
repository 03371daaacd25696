//! Generates shell completions and manual pages.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{atomic_file, show::SafeStdout};

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// Shell to generate completions for.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// Write the pages of all commands into this directory instead of printing
    /// the main page.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints a program's completion script.
///
/// # Errors
/// If it cannot be printed.
pub fn completions(mut program: Command, arguments: &CompletionsArguments) -> anyhow::Result<u8> {
    let name = program.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, name, &mut text);
    print(&text)
}

/// Prints or writes the manual pages of a program.
///
/// # Errors
/// If they cannot be written. No partial page is left.
pub fn man(mut program: Command, arguments: &ManArguments) -> anyhow::Result<u8> {
    // `build` gives commands their full names: `vmcell-run`, not `run`.
    program = program.disable_help_subcommand(true);
    program.build();
    match &arguments.dir {
        None => print(&page(&program)?),
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| error_context(folder))?;
            write_all(&program, folder)?;
            Ok(0)
        }
    }
}

fn print(text: &[u8]) -> anyhow::Result<u8> {
    let mut out = SafeStdout::new();
    let written = out.write_all(text);
    out.finish(written)
}

/// Writes the pages of a program and of its commands.
fn write_all(program: &Command, folder: &Path) -> anyhow::Result<()> {
    let mut pending = vec![program.clone()];
    while let Some(command) = pending.pop() {
        let path = folder.join(Man::new(command.clone()).get_filename());
        atomic_file::write_public(&path, &page(&command)?).with_context(|| error_context(&path))?;
        let subcommand = command
            .get_subcommands()
            .filter(|subcommand| !subcommand.is_hide_set());
        pending.extend(subcommand.cloned());
    }
    Ok(())
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text)?;
    Ok(text)
}

fn error_context(path: &Path) -> String {
    format!("manual page {}", path.display())
}
