use rustix::{
    fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    io::Errno,
};

/// SIGCHLD, SIGTERM and SIGINT as a readable descriptor: signalfd(2).
pub(crate) struct SignalFd(OwnedFd);

/// A set of signals, in the kernel's form: signal 1 is the lowest bit.
pub(crate) type SignalSet = u64;

/// Resets every signal to its default action, which children inherit, and
/// blocks them all permanently, so that none interrupts the agent and a write
/// to a closed pipe only returns an error.
pub(crate) fn reset_and_block_signals() -> Result<(), Errno> {
    change_mask(Some(SignalSet::MAX))?;
    for signal in 1..=LAST_SIGNAL {
        let _ = action(signal, Some(&KernelAction::DEFAULT));
    }
    Ok(())
}

/// Sets the blocked signals of this thread, if a set is given, and returns the
/// set before: rt_sigprocmask(2).
pub(super) fn change_mask(blocked: Option<SignalSet>) -> Result<SignalSet, Errno> {
    let mut before: SignalSet = 0;
    // SAFETY: both sets are there, and of the size that the kernel is told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            blocked
                .as_ref()
                .map_or(core::ptr::null(), core::ptr::from_ref),
            &raw mut before,
            size_of::<SignalSet>(),
        )
    };
    super::check(result).map(|_| before)
}

/// Returns the signals that this process ignores. Programs that it executes
/// would ignore them, too.
pub(crate) fn ignored_signals() -> SignalSet {
    let is_ignored = |signal: &libc::c_int| {
        action(*signal, None).is_ok_and(|action| action.handler == libc::SIG_IGN)
    };
    (1..=LAST_SIGNAL)
        .filter(is_ignored)
        .fold(0, |set, signal| set | bit_of(signal))
}

/// Returns whether a write to a closed pipe would end this process.
pub(crate) fn is_ended_by_sigpipe() -> Result<bool, Errno> {
    let blocked = change_mask(None)?;
    let is_default = action(libc::SIGPIPE, None)?.handler == libc::SIG_DFL;
    Ok(is_default && blocked & bit_of(libc::SIGPIPE) == 0)
}

/// Returns whether the kernel discards the exit statuses of this process's
/// children: sigaction(2), `SA_NOCLDWAIT`.
pub(crate) fn discards_exit_statuses() -> Result<bool, Errno> {
    let action = action(libc::SIGCHLD, None)?;
    let no_wait = u64::from(libc::SA_NOCLDWAIT.unsigned_abs());
    Ok(action.handler == libc::SIG_IGN || action.flags & no_wait != 0)
}

const fn bit_of(signal: libc::c_int) -> SignalSet {
    1u64.wrapping_shl(signal.unsigned_abs().wrapping_sub(1))
}

/// The kernel's `_NSIG`.
const LAST_SIGNAL: libc::c_int = 64;

/// `struct sigaction` as the kernel has it.
#[repr(C)]
pub(super) struct KernelAction {
    handler: libc::sighandler_t,
    flags: u64,
    restorer: usize,
    mask: SignalSet,
}

impl KernelAction {
    /// The default action of every signal.
    pub(super) const DEFAULT: Self = Self {
        handler: libc::SIG_DFL,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
}

/// Sets the action of a signal, if one is given, and returns the one before. The
/// C library reserves two signals and rejects them, so this is a raw
/// rt_sigaction(2). Setting fails only for SIGKILL and SIGSTOP, whose action is
/// always the default.
fn action(signal: libc::c_int, new: Option<&KernelAction>) -> Result<KernelAction, Errno> {
    let mut before = KernelAction::DEFAULT;
    // SAFETY: the structures are the kernel's, and 8 is the size of their masks.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            new.map_or(core::ptr::null(), core::ptr::from_ref),
            &raw mut before,
            size_of::<SignalSet>(),
        )
    };
    super::check(result).map(|_| before)
}

impl SignalFd {
    /// Watches for ended children and for SIGTERM and SIGINT.
    pub(crate) fn new() -> Result<Self, Errno> {
        let set = bit_of(libc::SIGCHLD) | bit_of(libc::SIGTERM) | bit_of(libc::SIGINT);
        // SAFETY: the set is there, and of the size that the kernel is told.
        let result = unsafe {
            libc::syscall(
                libc::SYS_signalfd4,
                -1,
                &raw const set,
                size_of::<SignalSet>(),
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            )
        };
        let number = super::check(result)?;
        let number = i32::try_from(number).map_err(|_| Errno::BADF)?;
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(number) }))
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
