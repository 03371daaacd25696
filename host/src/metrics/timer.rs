use std::{
    io,
    task::{Context, Poll, ready},
    time::Duration,
};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::net::unix::pipe;

/// A timer of the kernel that expires again and again: timerfd_create(2).
///
/// It wakes a program that does nothing else once each time. A timer of tokio that is more
/// than 64 ms away wakes it twice: first in the 64 ms of its end, to sort it in there.
#[derive(Debug)]
pub(super) struct PeriodicTimer(
    /// No pipe, but it is read as one. tokio's type for all descriptors needs unsafe code.
    pipe::Receiver,
);

impl PeriodicTimer {
    /// Starts a timer that expires after `period` for the first time.
    pub(super) fn start(period: Duration) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let period = Timespec::try_from(period).map_err(io::Error::other)?;
        let times = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
        Ok(Self(pipe::Receiver::from_owned_fd_unchecked(timer)?))
    }

    /// Waits until it expires. If nobody has waited for a while, those times count as one.
    pub(super) fn poll_expired(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            // How often it has expired, in 8 bytes.
            match self.0.try_read(&mut [0; 8]) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Instant};

    use super::*;

    #[tokio::test]
    async fn it_expires_again_and_again_and_not_before_its_time() {
        let period = Duration::from_millis(20);
        let began = Instant::now();
        let timer = PeriodicTimer::start(period).unwrap();
        for expirations in 1..=3 {
            poll_fn(|context| timer.poll_expired(context))
                .await
                .unwrap();
            assert!(began.elapsed() >= expirations * period);
        }
    }
}
