//! The agent as an ordinary program, with a listening Unix socket as its
//! standard input: this is how most tests run it. In a guest it is `init.rs`.

use std::{
    io::{IsTerminal, stdin},
    process::ExitCode,
};

use vmcell_agent::{Agent, AgentConfig, Console, Ending, Errno, boot::RootDisk, standard_input};

fn main() -> ExitCode {
    match run() {
        Ok(Ending::PowerOff | Ending::Signal) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vmcell-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Ending, Errno> {
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
        has_clock: false,
        cgroups: None,
        listener: Some(standard_input()?),
        ports: Vec::new(),
        console: Console::silent(),
        is_init: false,
        root_disk: RootDisk::None,
        resume_grace_ms,
    })?;
    agent.run()
}
