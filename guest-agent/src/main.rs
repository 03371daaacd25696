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
        cgroups: Some(boot::CGROUPS),
        listener: None,
        ports: booted.ports,
        console: booted.console,
        is_init: true,
    })?;
    agent.run()
}

fn run_as_program() -> Result<Ending, Errno> {
    if stdin().is_terminal() {
        eprintln!("usage: vmcell-agent, with a listening Unix socket as standard input");
        return Err(Errno::NOTSOCK);
    }
    let agent = Agent::new(AgentConfig {
        boot_id: [0; 16],
        cgroups: None,
        listener: Some(standard_input()?),
        ports: Vec::new(),
        console: Console::silent(),
        is_init: false,
    })?;
    agent.run()
}
