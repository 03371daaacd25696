use core::mem::MaybeUninit;

use rustix::{
    fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    io::Errno,
};

/// SIGCHLD, SIGTERM and SIGINT as a readable descriptor: signalfd(2).
pub(crate) struct SignalFd(OwnedFd);

/// Resets every signal to its default action, which children inherit, and
/// blocks them all permanently, so that none interrupts the agent and a write
/// to a closed pipe only returns an error.
pub(crate) fn reset_and_block_signals() -> Result<(), Errno> {
    let mut all = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set, sigprocmask reads it.
    let result = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_BLOCK, all.as_ptr(), core::ptr::null_mut())
    };
    super::check(result.into())?;
    for signal in 1..=LAST_SIGNAL {
        reset(signal);
    }
    Ok(())
}

/// The kernel's `_NSIG`.
const LAST_SIGNAL: libc::c_int = 64;

/// Resets a signal to its default action. The C library reserves two signals
/// and rejects them, so this is a raw rt_sigaction(2). It fails only for
/// SIGKILL and SIGSTOP, whose action is always the default.
fn reset(signal: libc::c_int) {
    /// `struct sigaction` as the kernel has it.
    #[repr(C)]
    struct KernelAction {
        handler: libc::sighandler_t,
        flags: u64,
        restorer: usize,
        mask: u64,
    }
    let default = KernelAction {
        handler: libc::SIG_DFL,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    // SAFETY: the structure is the kernel's, and 8 is the size of its mask.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            &raw const default,
            core::ptr::null_mut::<KernelAction>(),
            size_of::<u64>(),
        )
    };
}

impl SignalFd {
    /// Watches for ended children and for SIGTERM and SIGINT.
    pub(crate) fn new() -> Result<Self, Errno> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set that the others use.
        let result = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        super::check(result.into())?;
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(result) }))
    }

    /// Takes the pending signals. Returns whether one asks the agent to
    /// terminate.
    pub(crate) fn drain(&self) -> Result<bool, Errno> {
        const RECORD: usize = size_of::<libc::signalfd_siginfo>();
        // More records than signals are watched, so one read takes them all.
        let mut records = [0; 4 * RECORD];
        let count = match rustix::io::read(&self.0, &mut records) {
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Err(error),
        };
        let mut numbers = records.chunks_exact(RECORD).take(count / RECORD);
        Ok(numbers.any(|record| {
            // The first field is the signal's number.
            let number = record.first_chunk().copied().map(u32::from_ne_bytes);
            number != Some(libc::SIGCHLD.unsigned_abs())
        }))
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
