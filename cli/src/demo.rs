//! `vmcell demo`: checks this machine, then boots a VM and runs a command.

use std::{
    ffi::OsStr,
    io::{self, Write},
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::json;
use vmcell::{Health, Output, printable};
use vmcell_cli::{exit::BROKEN_PIPE, signals::Signals};

use crate::{
    boot_disk::BootDisk,
    doctor::{self, Findings},
    exit_code::{self, of_exit},
    failure::{print_json, report},
    runtime::block_on,
};

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Print everything as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The command that runs in the VM.
const COMMAND: [&str; 2] = ["uname", "-a"];

pub(crate) fn demo(arguments: &DemoArguments) -> anyhow::Result<u8> {
    let findings = doctor::findings();
    if !arguments.json {
        // Also printed where no VM can boot.
        findings.print(&mut io::stdout())?;
    }
    let boot_disk = BootDisk::prepare(OsStr::new("base"), None, None)?;
    let result = block_on(async {
        let mut signals = Signals::new()?;
        tokio::select! {
            result = DemoResult::measure(boot_disk) => Ok(Ok(result?)),
            code = signals.next() => Ok(Err(code)),
        }
    })?;
    match result {
        Ok(result) => result.report(&findings, arguments.json),
        Err(code) => Ok(code),
    }
}

/// What the command in the VM printed, and how long booting and running took.
struct DemoResult {
    health: Health,
    boot: Duration,
    command: Duration,
    output: Output,
}

impl DemoResult {
    async fn measure(boot_disk: BootDisk) -> anyhow::Result<Self> {
        let began = Instant::now();
        let vm = boot_disk.builder().start().await?;
        let boot = began.elapsed();
        let began = Instant::now();
        let output = vm.exec(COMMAND).await?;
        let command = began.elapsed();
        let health = vm.health().await;
        vm.kill().await?;
        Ok(Self {
            health,
            boot,
            command,
            output,
        })
    }

    fn report(&self, findings: &Findings, json: bool) -> anyhow::Result<u8> {
        if json {
            print_json(&self.as_json(findings));
        } else if let Err(error) = self.print(&mut io::stdout()) {
            return match error.kind() {
                io::ErrorKind::BrokenPipe => Ok(BROKEN_PIPE),
                _ => Err(error.into()),
            };
        }
        Ok(self
            .output
            .exit
            .as_ref()
            .map_or(exit_code::TOOL_FAILED, of_exit))
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Health {
            backend,
            acceleration,
            link,
            warnings,
            ..
        } = &self.health;
        warnings.iter().for_each(|warning| report(warning));
        writeln!(out, "backend       {backend}")?;
        if let Some(choice) = acceleration {
            writeln!(
                out,
                "acceleration  {}: {}",
                choice.acceleration, choice.reason
            )?;
        }
        writeln!(out, "link          {}: {}", link.kind, link.reason)?;
        writeln!(out, "booted in {} ms", self.boot.as_millis())?;
        writeln!(
            out,
            "`{}` took {} ms, and answered:",
            COMMAND.join(" "),
            self.command.as_millis()
        )?;
        // The guest must not control the user's terminal.
        write!(out, "{}", printable(&self.output.stdout))
    }

    fn as_json(&self, findings: &Findings) -> serde_json::Value {
        let Health {
            backend,
            acceleration,
            link,
            warnings,
            ..
        } = &self.health;
        json!({
            "findings": findings.as_json(),
            "backend": backend,
            "acceleration": acceleration,
            "link": link,
            "warnings": warnings,
            "boot_ms": milliseconds(self.boot),
            "command": COMMAND,
            "command_ms": milliseconds(self.command),
            "answer": String::from_utf8_lossy(&self.output.stdout),
        })
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
