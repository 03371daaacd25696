use std::{io, os::fd::AsFd as _};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Signal, set_parent_process_death_signal},
};

use crate::descriptors::Descriptors;

/// Makes the kernel kill this process when the thread that started it ends: `PR_SET_PDEATHSIG`
/// of prctl(2). The kernel forgets it when a process changes its user, so that comes before.
pub(crate) fn die_with_it(descriptors: &Descriptors) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before the call above, and then nobody has the other end of the socket.
    let mut ends = [PollFd::from_borrowed_fd(
        descriptors.report.as_fd(),
        PollFlags::empty(),
    )];
    poll(&mut ends, Some(&Timespec::default()))?;
    match ends[0].revents().contains(PollFlags::HUP) {
        true => Err(io::ErrorKind::BrokenPipe.into()),
        false => Ok(()),
    }
}
