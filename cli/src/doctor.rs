//! `vmcell doctor`: what is there, what is missing, what to do.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use serde_json::json;
use vmcell::doctor::{Finding, Status, examine};
use vmcell_rootfs::{Cache, recipe};

use crate::arguments::DoctorArguments;

pub(crate) fn doctor(arguments: &DoctorArguments) -> ExitCode {
    let mut findings = examine();
    findings.push(environment());
    let able = findings
        .iter()
        .all(|finding| finding.status != Status::Missing);
    let printed = if arguments.json {
        print_json(&findings, able)
    } else {
        print_text(&findings, able)
    };
    match printed {
        Ok(()) if able => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn environment() -> Finding {
    let found = Cache::user().and_then(|cache| cache.lookup(&recipe::base()));
    match found {
        Ok(Some(image)) => {
            let detail = format!("base ({})", image.path.display());
            Finding::new("environment", Status::Good, detail)
        }
        Ok(None) => {
            let detail = "base will be made on the first run";
            Finding::new("environment", Status::Good, detail)
        }
        Err(error) => Finding::new("environment", Status::Missing, error.to_string()),
    }
}

fn print_json(findings: &[Finding], able: bool) -> io::Result<()> {
    let list: Vec<_> = findings
        .iter()
        .map(|finding| {
            json!({
                "name": finding.name,
                "status": word(finding.status),
                "detail": finding.detail,
            })
        })
        .collect();
    let report = json!({ "able": able, "findings": list });
    writeln!(io::stdout(), "{report:#}")
}

fn print_text(findings: &[Finding], able: bool) -> io::Result<()> {
    let mut stdout = io::stdout();
    let coloured = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for finding in findings {
        let word = word(finding.status);
        let (on, off) = match (coloured, finding.status) {
            (false, _) | (true, Status::Absent) => ("", ""),
            (true, Status::Good) => ("\x1b[32m", "\x1b[0m"),
            (true, Status::Poor) => ("\x1b[33m", "\x1b[0m"),
            (true, _) => ("\x1b[31m", "\x1b[0m"),
        };
        let Finding { name, detail, .. } = finding;
        writeln!(stdout, "{on}{word:8}{off}{name:18}{detail}")?;
    }
    let verdict = if able {
        "VMs can run here."
    } else {
        "VMs cannot run here yet."
    };
    writeln!(stdout, "{verdict}")
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Good => "good",
        Status::Poor => "poor",
        Status::Absent => "absent",
        _ => "missing",
    }
}
