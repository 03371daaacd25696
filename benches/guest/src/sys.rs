//! System calls of the guest program.
#![allow(unsafe_code)]

use std::{
    ffi::CStr,
    fs::File,
    io,
    net::TcpListener,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// Blocks forever.
pub(crate) fn pause_forever() -> ! {
    loop {
        // SAFETY: it only waits.
        unsafe { libc::pause() };
    }
}

/// Returns the monotonic clock in nanoseconds.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: one valid structure is passed, for the kernel to fill.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Waits for `events` of poll(2).
pub(crate) fn wait_for(file: &File, events: i16) {
    let mut wanted = libc::pollfd {
        fd: file.as_raw_fd(),
        events,
        revents: 0,
    };
    // SAFETY: one valid entry is passed.
    unsafe { libc::poll(&raw mut wanted, 1, -1) };
}

/// Connects to a port of the host: vsock(7). The socket is non-blocking.
pub(crate) fn connect_to_host(port: u32) -> io::Result<File> {
    // SAFETY: the address is a whole one of its family, for which zeros are
    // valid, and the descriptor is new, so nobody else owns it.
    unsafe {
        let socket = libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = File::from_raw_fd(socket);
        let mut address: libc::sockaddr_vm = std::mem::zeroed();
        address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
        address.svm_cid = libc::VMADDR_CID_HOST;
        address.svm_port = port;
        let size = size_of::<libc::sockaddr_vm>() as libc::socklen_t;
        if libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) < 0
            || libc::fcntl(socket.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) < 0
        {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }
}

pub(crate) fn mount(source: &CStr, target: &CStr, kind: &CStr) -> io::Result<()> {
    // SAFETY: valid strings, and no options.
    let result = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            0,
            std::ptr::null(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Forks, executes `program` without arguments and waits for it. The child inherits
/// the environment, so that it does the same work as a child of vmcell's agent.
pub(crate) fn fork_exec_wait(program: &CStr) -> io::Result<()> {
    let argv = [program.as_ptr(), std::ptr::null()];
    let mut status = 0;
    // SAFETY: the child only executes, and this program has one thread.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::execv(program.as_ptr(), argv.as_ptr());
            libc::_exit(127);
        }
        libc::waitpid(child, &raw mut status, 0);
    }
    if status != 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(())
}

/// Forks, and returns whether this is the child.
pub(crate) fn fork() -> io::Result<bool> {
    // SAFETY: this program has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child == 0),
    }
}

/// A child process.
pub(crate) struct Child(libc::pid_t);

impl Child {
    pub(crate) fn start(act: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        // SAFETY: this program has one thread, and the child never comes back.
        unsafe {
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => libc::_exit(act().is_err().into()),
                child => Ok(Self(child)),
            }
        }
    }

    /// Returns whether it has ended. Fails if it ended with an error.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        let mut status = 0;
        // SAFETY: one number is there to be filled.
        match unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) } {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(false),
            _ if status == 0 => Ok(true),
            _ => Err(io::ErrorKind::Other.into()),
        }
    }
}

/// Maps memory that is shared with forked children, and never unmaps it.
pub(crate) fn shared_memory(size: usize) -> io::Result<&'static mut [u8]> {
    // SAFETY: the memory is new, of this size, zeros, and never unmapped.
    unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts_mut(memory.cast(), size))
    }
}

/// Creates a pipe of this size. Returns its read end and its write end.
pub(crate) fn new_pipe(size: usize) -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors, which are new, so nobody else
    // owns them.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::fcntl(ends[0], libc::F_SETPIPE_SZ, size as libc::c_int);
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

/// Moves up to `most` bytes from a pipe to a file: splice(2).
pub(crate) fn splice_to(pipe: &File, to: &File, most: usize) -> io::Result<usize> {
    let flags = libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK;
    let (pipe, to) = (pipe.as_raw_fd(), to.as_raw_fd());
    let none = std::ptr::null_mut();
    // SAFETY: both are open, and there are no offsets.
    match unsafe { libc::splice(pipe, none, to, none, most, flags) } {
        -1 => Err(io::Error::last_os_error()),
        count => Ok(count as usize),
    }
}

/// Brings up the loopback interface: netdevice(7).
pub(crate) fn bring_up_loopback() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: the kernel reads one whole structure, for which zeros are valid.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        if libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        ) < 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Unlocks and opens the other side of a pseudoterminal: `TIOCGPTPEER`.
pub(crate) fn open_pty_peer(keyboard: &File) -> io::Result<OwnedFd> {
    let unlocked: libc::c_int = 0;
    // SAFETY: the first call reads one number, the second one answers with a
    // new descriptor or a negative number.
    unsafe {
        libc::ioctl(keyboard.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked);
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        match libc::ioctl(keyboard.as_raw_fd(), libc::TIOCGPTPEER, flags) {
            descriptor @ 0.. => Ok(OwnedFd::from_raw_fd(descriptor)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Enlarges the backlog of a listening socket.
pub(crate) fn enlarge_backlog(listener: &TcpListener) {
    // SAFETY: it listens already, and this changes a number.
    unsafe { libc::listen(listener.as_raw_fd(), 1024) };
}

/// Waits for input on many file descriptors: epoll(7).
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the kernel makes a new descriptor, or answers with a negative
        // number.
        match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            // SAFETY: it is new, so nobody else owns it.
            descriptor @ 0.. => Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Adds a descriptor, until it is closed.
    pub(crate) fn add(&self, descriptor: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: descriptor as u64,
        };
        // SAFETY: the kernel reads one valid structure.
        let result = unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                descriptor,
                &raw mut event,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Waits, and returns the descriptors that have input.
    pub(crate) fn wait(&self) -> impl Iterator<Item = RawFd> + use<> {
        const MAX_EVENTS: usize = 128;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MAX_EVENTS];
        // SAFETY: there is room for so many events.
        let count = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                MAX_EVENTS as libc::c_int,
                -1,
            )
        };
        let count = usize::try_from(count).unwrap_or(0);
        events
            .into_iter()
            .take(count)
            .map(|event| event.u64 as RawFd)
    }
}
