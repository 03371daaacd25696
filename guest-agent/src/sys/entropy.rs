use rustix::{
    fd::{AsRawFd, OwnedFd},
    io::Errno,
};

/// Adds a seed to the kernel's random number generator and credits it as
/// entropy: random(4), `RNDADDENTROPY`.
pub(crate) fn add_entropy(random: &OwnedFd, seed: &[u8; 32]) -> Result<(), Errno> {
    /// `struct rand_pool_info` with its buffer.
    #[repr(C)]
    struct Pool {
        bits: libc::c_int,
        bytes: libc::c_int,
        buffer: [u8; 32],
    }
    const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
    let pool = Pool {
        bits: 256,
        bytes: 32,
        buffer: *seed,
    };
    // SAFETY: the kernel reads as many bytes as `bytes` says, which are there.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioctl,
            random.as_raw_fd(),
            RNDADDENTROPY,
            &raw const pool,
        )
    };
    super::check(result).map(|_| ())
}

/// Makes the kernel's random number generator use the entropy that was added to it:
/// random(4), `RNDRESEEDCRNG`.
pub(crate) fn reseed(random: &OwnedFd) -> Result<(), Errno> {
    const RNDRESEEDCRNG: libc::c_ulong = 0x5207;
    // SAFETY: it takes no argument.
    let result = unsafe { libc::syscall(libc::SYS_ioctl, random.as_raw_fd(), RNDRESEEDCRNG, 0) };
    super::check(result).map(|_| ())
}
