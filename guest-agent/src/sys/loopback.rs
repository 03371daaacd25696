use core::ffi::c_short;

use rustix::{
    fd::AsRawFd,
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};

/// Brings up the interface `lo`, so that 127.0.0.1 works: netdevice(7).
pub(crate) fn raise_loopback() -> Result<(), Errno> {
    /// `struct ifreq`, in the form that carries flags.
    #[repr(C)]
    struct InterfaceFlags {
        name: [u8; 16],
        flags: c_short,
        padding: [u8; 22],
    }
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let request = InterfaceFlags {
        name: *b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        flags: c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(1),
        padding: [0; 22],
    };
    // SAFETY: the request is a whole `struct ifreq`, which the kernel reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioctl,
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS,
            &raw const request,
        )
    };
    super::check(result).map(|_| ())
}
