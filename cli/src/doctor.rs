//! `vmcell doctor`: what this machine has and lacks for running VMs.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use serde_json::{Value, json};
use vmcell::doctor::{CheckStatus, Finding, examine};
use vmcell_cli::show;
use vmcell_rootfs::{Cache, recipe};

use crate::arguments::DoctorArguments;

pub(crate) fn doctor(arguments: &DoctorArguments) -> ExitCode {
    let findings = findings();
    let written = if arguments.json {
        let report = json!({ "able": findings.can_run_vms(), "findings": findings.as_json() });
        writeln!(io::stdout(), "{}", show::json::lines(&report))
    } else {
        findings.print(&mut io::stdout())
    };
    match written {
        Ok(()) if findings.can_run_vms() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What was found on this machine.
pub(crate) struct Findings(Vec<Finding>);

/// Examines this machine.
pub(crate) fn findings() -> Findings {
    let mut findings = examine();
    findings.push(environment());
    Findings(findings)
}

impl Findings {
    /// Returns whether VMs can run here.
    fn can_run_vms(&self) -> bool {
        let mut findings = self.0.iter();
        findings.all(|finding| finding.status != CheckStatus::Missing)
    }

    pub(crate) fn as_json(&self) -> Value {
        json!(self.0)
    }

    pub(crate) fn print(&self, out: &mut (impl Write + IsTerminal)) -> io::Result<()> {
        let coloured =
            out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        for Finding {
            name,
            status,
            detail,
            ..
        } in &self.0
        {
            let status_text = status.name();
            let (colour, reset) = match (coloured, status) {
                (false, _) | (true, CheckStatus::Absent) => ("", ""),
                (true, CheckStatus::Good) => ("\x1b[32m", "\x1b[0m"),
                (true, CheckStatus::Poor) => ("\x1b[33m", "\x1b[0m"),
                (true, _) => ("\x1b[31m", "\x1b[0m"),
            };
            writeln!(out, "{colour}{status_text:8}{reset}{name:26}{detail}")?;
        }
        let verdict = match self.can_run_vms() {
            true => "VMs can run here.",
            false => "VMs cannot run here yet.",
        };
        writeln!(out, "{verdict}")
    }
}

fn environment() -> Finding {
    let found = Cache::user().and_then(|cache| cache.lookup(&recipe::base()));
    match found {
        Ok(Some(image)) => {
            let detail = format!("base ({})", image.path.display());
            Finding::new("environment", CheckStatus::Good, detail)
        }
        Ok(None) => {
            let detail = "base will be built on the first run";
            Finding::new("environment", CheckStatus::Good, detail)
        }
        Err(error) => Finding::new("environment", CheckStatus::Missing, error.to_string()),
    }
}
