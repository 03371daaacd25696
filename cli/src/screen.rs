//! `vmcell screen`: prints the current screen of a terminal.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use vmcell::{
    Error, ExecFailureKind, ProcessSelector, Vm,
    terminal::{Screen, Terminal, TerminalInfo, TerminalOptions},
};
use vmcell_cli::{atomic_file, show};

use crate::{exit_code, failure::print_json, process_selector, runtime::block_on, target};

#[derive(Debug, Args)]
pub(crate) struct ScreenArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    id: String,
    /// Terminal: its tag, its ID in `vmcell ps ID`, or `pid:` and its PID in
    /// the guest.
    #[arg(value_name = "TAG", value_parser = process_selector::parse)]
    terminal: ProcessSelector,
    /// Print the screen as an SVG image.
    #[arg(long, conflicts_with_all = ["png", "scrollback", "json"])]
    svg: bool,
    /// Write the screen as a PNG image to FILE.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scrollback", "json"])]
    png: Option<PathBuf>,
    /// Also print the last N lines that have scrolled off the screen.
    #[arg(long, value_name = "N", default_value_t = 0)]
    scrollback: usize,
    /// Print the terminal's state and its screen as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn screen(arguments: ScreenArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let vm = target::attach(&arguments.id).await?;
        let view_only = TerminalOptions::new().view_only();
        let terminal = find(&vm, &arguments.terminal, view_only).await?;
        terminal.catch_up().await?;
        if arguments.json {
            let info = terminal.info().await?;
            let scrollback = terminal.scrollback(arguments.scrollback);
            print_json(&as_json(vm.id(), &info, &terminal.screen(), &scrollback));
            return Ok(0);
        }
        if let Some(path) = &arguments.png {
            let picture = terminal.screen().to_picture().to_png();
            atomic_file::write_private(path, &picture)
                .with_context(|| format!("picture {}", path.display()))?;
            return Ok(0);
        }
        if arguments.svg {
            return print(&terminal.screen().to_svg());
        }
        let mut lines = terminal.scrollback(arguments.scrollback);
        lines.push(terminal.screen().text());
        print(&lines.join("\n"))
    })
}

/// Returns the terminal with this name. Never creates one.
pub(crate) async fn find(
    vm: &Vm,
    selector: &ProcessSelector,
    options: TerminalOptions,
) -> anyhow::Result<Terminal> {
    let terminals = vm.terminals();
    match terminals.attach_with(selector.clone(), options).await {
        Err(Error::Exec(failure)) if is_not_a_terminal(failure.kind) => {}
        found => return Ok(found?),
    }
    let terminals = terminals.list().await?;
    let tags: Vec<_> = terminals.into_iter().map(|terminal| terminal.tag).collect();
    let existing = match tags.is_empty() {
        true => "it has no terminals".to_owned(),
        false => format!("it has {}", tags.join(", ")),
    };
    anyhow::bail!("{selector} is not a terminal of the VM: {existing}")
}

fn is_not_a_terminal(kind: ExecFailureKind) -> bool {
    matches!(kind, ExecFailureKind::NotFound | ExecFailureKind::Invalid)
}

fn print(text: &str) -> anyhow::Result<u8> {
    match writeln!(io::stdout(), "{text}") {
        Ok(()) => Ok(0),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit_code::BROKEN_PIPE),
        Err(error) => Err(error).context("standard output"),
    }
}

fn as_json(vm: &str, info: &TerminalInfo, screen: &Screen, scrollback: &[String]) -> Value {
    #[derive(Serialize)]
    struct Shown<'a> {
        sandbox_id: &'a str,
        #[serde(flatten)]
        info: &'a TerminalInfo,
        #[serde(flatten)]
        screen: &'a Screen,
        scrollback: &'a [String],
    }
    show::json::value(Shown {
        sandbox_id: vm,
        info,
        screen,
        scrollback,
    })
}
