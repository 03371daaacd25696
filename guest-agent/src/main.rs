//! The agent as an ordinary program, with a listening Unix socket as its
//! standard input: most tests run it this way. In a guest, `init.rs` is used.

use std::{
    io::{IsTerminal, stdin},
    process::ExitCode,
};

use vmcell_agent::{Agent, AgentConfig, Console, Errno, StopReason, boot::RootDisk, stdin_copy};

fn main() -> ExitCode {
    match run() {
        Ok(StopReason::PowerOff | StopReason::Signal) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vmcell-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<StopReason, Errno> {
    let grace = match std::env::args().nth(1) {
        None => Some(AgentConfig::RESUME_GRACE_MS),
        Some(argument) => argument.parse().ok(),
    };
    let (Some(resume_grace_ms), false) = (grace, stdin().is_terminal()) else {
        eprintln!(
            "usage: vmcell-agent [MILLISECONDS], with a listening Unix socket as standard input;\n\
             MILLISECONDS: how long a process waits to be resumed after its link was lost"
        );
        return Err(Errno::NOTSOCK);
    };
    let agent = Agent::new(AgentConfig {
        boot_id: [0; 16],
        reset_key: [0; 16],
        has_clock: false,
        cgroups: None,
        listener: Some(stdin_copy()?),
        ports: Vec::new(),
        console: Console::silent(),
        is_init: false,
        root_disk: RootDisk::None,
        resume_grace_ms,
    })?;
    agent.run()
}
