//! Waits for the socket of a VMM that was just started.

use std::{
    io,
    mem::MaybeUninit,
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify::{self, CreateFlags, WatchFlags},
    io::{Errno, retry_on_intr},
};

use crate::socket_path::SocketPath;

/// How long a VMM may take to open its socket.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait between the two calls with which a program opens a socket: bind(2)
/// creates the file, and nothing reports listen(2), which follows at once.
const LISTEN_DELAY: Duration = Duration::from_millis(1);

/// Waits until a VMM listens on its socket. `output` is a stream that the VMM closes when it
/// ends.
pub(super) fn wait_until_listening(socket: &Path, output: &UnixStream) -> io::Result<()> {
    let folder = socket.parent().unwrap_or(Path::new("/"));
    // Before the first attempt, so that no file is missed.
    let created = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&created, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&created, &mut buffer);
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = match connect(socket) {
            Ok(()) => return Ok(()),
            Err(_) if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => left,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => LISTEN_DELAY,
            Err(error) => return Err(error),
        };
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        let mut waiting = [
            PollFd::new(&created, PollFlags::IN),
            // Only its end is reported.
            PollFd::new(output, PollFlags::empty()),
        ];
        retry_on_intr(|| poll(&mut waiting, Some(&timeout)))?;
        if waiting[1].revents().contains(PollFlags::HUP) {
            return Err(io::Error::other("it has ended"));
        }
        while match reader.next() {
            Ok(_) => true,
            Err(Errno::AGAIN) => false,
            Err(error) => return Err(error.into()),
        } {}
    }
}

fn connect(socket: &Path) -> io::Result<()> {
    let address = SocketPath::open(socket)?;
    UnixStream::connect(address.path()).map(drop)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

    use super::*;

    #[test]
    fn a_socket_is_noticed_that_is_there_or_comes_later() {
        let (output, _vmm) = UnixStream::pair().unwrap();
        // It comes before the wait, during it, and between its steps.
        for number in 0..100 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("api");
            let listener = thread::scope(|scope| {
                let waiting = scope.spawn(|| wait_until_listening(&path, &output));
                for other in 0..number {
                    std::fs::write(folder.path().join(other.to_string()), "").unwrap();
                }
                let listener = UnixListener::bind(&path).unwrap();
                waiting.join().unwrap().unwrap();
                listener
            });
            wait_until_listening(&path, &output).unwrap();
            drop(listener);
        }
    }

    #[test]
    fn a_program_that_ends_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (output, vmm) = UnixStream::pair().unwrap();
        drop(vmm);
        let error = wait_until_listening(&folder.path().join("api"), &output).unwrap_err();
        assert_eq!(error.to_string(), "it has ended");
        let error = wait_until_listening(&folder.path().join("no/api"), &output).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
