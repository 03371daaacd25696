//! A PID 1 of its own that embeds the agent: it boots the guest, and runs the
//! agent in a loop in which there is room for work of its own. It is built static,
//! for example for `x86_64-unknown-linux-musl`, and passed to `VmBuilder::agent`.

use std::error::Error;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vmcell_agent::{
    Console, Progress, boot,
    program::{Signals, dedicate, reap},
};

fn main() {
    let console = match run() {
        Ok(()) => Console::open(),
        Err(error) => {
            let console = Console::open();
            console.error(format_args!("own_init: {error}"));
            console
        }
    };
    // A kernel whose PID 1 returns from `main` panics.
    boot::halt(&console)
}

fn run() -> Result<(), Box<dyn Error>> {
    // Mounts the disk and the file systems of the kernel, and opens the ports.
    let booted = boot::boot()?;
    let dedicated = dedicate()?;
    let signals = Signals::new()?;
    let mut agent = booted.agent_builder().dedicated(dedicated).build()?;
    let mut others = 0;
    while agent.turn()? == Progress::Serving {
        let timeout = agent.timeout().map(Timespec::try_from).transpose()?;
        let mut wanted = [
            PollFd::new(&agent, PollFlags::IN),
            PollFd::new(&signals, PollFlags::IN),
        ];
        poll(&mut wanted, timeout.as_ref())?;
        if wanted[1].revents().is_empty() {
            continue;
        }
        signals.take()?;
        while let Some(exit) = reap()? {
            if !agent.child_ended(&exit) {
                others += 1;
                std::fs::write("/run/own-init", format!("{others} others ended\n"))?;
            }
        }
    }
    Ok(())
}
