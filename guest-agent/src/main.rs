//! PID 1 of a vmcell guest, or an ordinary program with a listening Unix
//! socket as its standard input.

use std::{
    io::{IsTerminal, stdin},
    process::ExitCode,
};

use vmcell_agent::{
    Agent, AgentConfig, Console, Ending, Errno,
    boot::{self, Booted},
    standard_input,
};

fn main() -> ExitCode {
    if std::process::id() == 1 {
        run_as_init()
    }
    match run_as_program() {
        Ok(Ending::PowerOff | Ending::Signal) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vmcell-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Never returns: a kernel whose PID 1 ends panics.
fn run_as_init() -> ! {
    let booted = boot::boot();
    let console = Console::open();
    match booted {
        Ok(booted) => {
            if let Err(error) = serve_guest(booted) {
                console.error(format_args!("the agent failed: {error}"));
            }
        }
        Err(error) => console.error(format_args!("{error}")),
    }
    boot::halt(&console)
}

fn serve_guest(booted: Booted) -> Result<Ending, Errno> {
    let agent = Agent::new(AgentConfig {
        boot_id: booted.boot_id,
        reset_key: booted.reset_key,
        cgroups: Some(boot::CGROUPS),
        listener: None,
        ports: booted.ports,
        console: booted.console,
        is_init: true,
        resume_grace_ms: AgentConfig::RESUME_GRACE_MS,
    })?;
    agent.run()
}

fn run_as_program() -> Result<Ending, Errno> {
    let grace = match std::env::args().nth(1) {
        None => Some(AgentConfig::RESUME_GRACE_MS),
        Some(argument) => argument.parse().ok(),
    };
    let (Some(resume_grace_ms), false) = (grace, stdin().is_terminal()) else {
        eprintln!(
            "usage: vmcell-agent [MILLISECONDS], with a listening Unix socket as standard input;\n\
             so long a process waits for a lost link to come back"
        );
        return Err(Errno::NOTSOCK);
    };
    let agent = Agent::new(AgentConfig {
        boot_id: [0; 16],
        reset_key: [0; 16],
        cgroups: None,
        listener: Some(standard_input()?),
        ports: Vec::new(),
        console: Console::silent(),
        is_init: false,
        resume_grace_ms,
    })?;
    agent.run()
}
