//! The agent as an ordinary program, with a listening Unix socket as its
//! standard input: most tests run it this way. In a guest, `init.rs` is used.

use std::{
    error::Error,
    io::{IsTerminal, stdin},
    process::ExitCode,
    time::Duration,
};

use vmcell_agent::{
    Agent, AgentBuilder, PowerControl, Reaping,
    program::{self, OnTerminate, Signals},
    stdin_copy,
};

const USAGE: &str = "usage: vmcell-agent [MILLISECONDS], with a listening Unix socket as \
                     standard input;\nMILLISECONDS: how long a process waits to be resumed \
                     after its link was lost";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vmcell-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let grace = match std::env::args().nth(1) {
        None => Some(AgentBuilder::RESUME_GRACE),
        Some(argument) => argument.parse().ok().map(Duration::from_millis),
    };
    let (Some(grace), false) = (grace, stdin().is_terminal()) else {
        return Err(USAGE.into());
    };
    let dedicated = program::dedicate()?;
    let signals = Signals::new()?;
    let agent = Agent::builder()
        .listener(stdin_copy()?)
        .reaping(Reaping::HandedOver)
        .power_control(EndOfProgram)
        .dedicated(dedicated)
        .resume_grace(grace)
        .build()?;
    program::serve(agent, &signals, OnTerminate::Stop)?;
    Ok(())
}

/// A power-off that only ends this program.
struct EndOfProgram;

impl PowerControl for EndOfProgram {
    /// Waits for orphaned descendants, too.
    fn have_others_ended(&mut self) -> bool {
        !program::has_children()
    }
}
