//! The code that a child runs before its program. It shares the agent's memory,
//! which the agent uses at the same time: see [`launch`](super::launch).

use core::ffi::{c_char, c_int, c_void};

use rustix::{fd::RawFd, io::Errno};
use vmcell_wire::Stage;

use super::{
    cgroup_namespace::{CgroupNamespace, enter_cgroup_namespace},
    limit::ResourceLimit,
    raw::call,
    signals::{KernelAction, SignalSet},
};

/// Why a child could not execute its program, and at which stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildFailure {
    pub(crate) stage: Stage,
    pub(crate) errno: Errno,
}

/// What a child has to set up. All pointers refer to memory that is lent to it.
pub(super) struct ChildSetup {
    pub(super) candidates: *const *const c_char,
    pub(super) argv: *const *const c_char,
    pub(super) env: *const *const c_char,
    /// Null: the agent's directory.
    pub(super) cwd: *mut u8,
    pub(super) make_cwd: bool,
    pub(super) rlimits: *const [ResourceLimit],
    pub(super) nice: Option<i8>,
    /// The uid and gid.
    pub(super) user: Option<(u32, u32)>,
    pub(super) groups: *const [u32],
    pub(super) umask: Option<u16>,
    pub(super) descriptors: [RawFd; 3],
    pub(super) exec_pipe: RawFd,
    pub(super) terminal: bool,
    /// Signals that the agent ignores, and the program shall not.
    pub(super) ignored_signals: SignalSet,
    pub(super) cgroup_namespace: CgroupNamespace,
    pub(super) failure: Option<ChildFailure>,
}

impl ChildSetup {
    pub(super) const EMPTY: Self = Self {
        candidates: core::ptr::null(),
        argv: core::ptr::null(),
        env: core::ptr::null(),
        cwd: core::ptr::null_mut(),
        make_cwd: false,
        rlimits: &[],
        nice: None,
        user: None,
        groups: &[],
        umask: None,
        descriptors: [-1; 3],
        exec_pipe: -1,
        terminal: false,
        ignored_signals: 0,
        cgroup_namespace: CgroupNamespace::Shared,
        failure: None,
    };
}

/// Everything that the child does before its program.
///
/// # Safety
/// The argument must be a [`ChildSetup`] that is lent to this child.
pub(super) unsafe extern "C" fn child_main(setup: *mut c_void) -> ! {
    let setup: *mut ChildSetup = setup.cast();
    // SAFETY: `launch` lends a valid setup for as long as the child runs this.
    let failure = unsafe { prepare_and_exec(&*setup) };
    // SAFETY: as above, and the reference of the line before is gone.
    unsafe { (*setup).failure = Some(failure) };
    // SAFETY: plain exit of the child. The code 127 is not used, since the
    // agent reports the failure itself.
    let _ = unsafe { call(libc::SYS_exit, [127, 0, 0, 0, 0]) };
    // SAFETY: exit(2) does not return.
    unsafe { core::hint::unreachable_unchecked() }
}

/// Returns only if the program cannot be executed.
unsafe fn prepare_and_exec(setup: &ChildSetup) -> ChildFailure {
    // SAFETY: `launch` initialised all of it.
    match unsafe { prepare(setup) } {
        // SAFETY: as above.
        Ok(()) => unsafe { exec(setup) },
        Err(failure) => failure,
    }
}

unsafe fn prepare(setup: &ChildSetup) -> Result<(), ChildFailure> {
    let at = |stage| move |errno| ChildFailure { stage, errno };
    // SAFETY: raw system calls on values that `launch` initialised. None of
    // them allocates, locks or calls back.
    unsafe {
        // Before setsid: the agent expects only processes of its own session
        // in its cgroup namespace.
        enter_cgroup_namespace(setup.cgroup_namespace).map_err(at(Stage::Cgroup))?;
        call(libc::SYS_setsid, [0; 5]).map_err(at(Stage::Setup))?;
        for (source, target) in setup.descriptors.iter().zip(0..) {
            // The agent's own 0, 1 and 2 are always open, so source and
            // target differ and the copy loses the close-on-exec flag.
            let arguments = [as_register(*source), target, 0, 0, 0];
            call(libc::SYS_dup3, arguments).map_err(at(Stage::Setup))?;
        }
        close_inherited_descriptors(setup.exec_pipe);
        if setup.terminal {
            let (stdin, steal) = (0, 0);
            let request = usize::try_from(libc::TIOCSCTTY).unwrap_or(0);
            let arguments = [stdin, request, steal, 0, 0];
            call(libc::SYS_ioctl, arguments).map_err(at(Stage::Terminal))?;
        }
        for limit in &*setup.rlimits {
            let values = limit.values.as_ptr().expose_provenance();
            let old = 0;
            let arguments = [CURRENT_PROCESS, usize::from(limit.resource), values, old, 0];
            call(libc::SYS_prlimit64, arguments).map_err(at(Stage::Limits))?;
        }
        if let Some(nice) = setup.nice {
            let kind = 0; // PRIO_PROCESS
            let arguments = [kind, CURRENT_PROCESS, as_register(nice.into()), 0, 0];
            call(libc::SYS_setpriority, arguments).map_err(at(Stage::Limits))?;
        }
        if let Some((uid, gid)) = setup.user {
            become_user(uid, gid, &*setup.groups).map_err(at(Stage::User))?;
        }
        if let Some(umask) = setup.umask {
            // It cannot fail.
            let _ = call(libc::SYS_umask, [usize::from(umask), 0, 0, 0, 0]);
        }
        if !setup.cwd.is_null() {
            change_directory(setup.cwd, setup.make_cwd).map_err(at(Stage::WorkingDirectory))?;
        }
        stop_ignoring(setup.ignored_signals);
        unblock_signals();
    }
    Ok(())
}

/// Executes the first candidate that exists. Returns only on failure.
unsafe fn exec(setup: &ChildSetup) -> ChildFailure {
    let (argv, env) = (
        setup.argv.expose_provenance(),
        setup.env.expose_provenance(),
    );
    let mut denied = None;
    let mut candidate = setup.candidates;
    // SAFETY: the array ends with a null pointer, the other arrays as well.
    unsafe {
        while !(*candidate).is_null() {
            let path = (*candidate).expose_provenance();
            let outcome = call(libc::SYS_execve, [path, argv, env, 0, 0]);
            // It returns only if it fails.
            let errno = outcome.err().unwrap_or(Errno::NOSYS);
            let failure = ChildFailure {
                stage: Stage::Exec,
                errno,
            };
            match errno {
                Errno::NOENT | Errno::NOTDIR => {}
                Errno::ACCESS => denied = Some(failure),
                _ => return failure,
            }
            candidate = candidate.add(1);
        }
    }
    denied.unwrap_or(ChildFailure {
        stage: Stage::Exec,
        errno: Errno::NOENT,
    })
}

/// The pid that means the calling process in these system calls.
const CURRENT_PROCESS: usize = 0;

/// Converts a number to a register value, of which the kernel reads the lower
/// half.
#[expect(clippy::cast_sign_loss, reason = "the bits are what counts")]
const fn as_register(number: c_int) -> usize {
    number as isize as usize
}

/// Closes the child's copies of the agent's descriptors, but for one. A child
/// can be stopped before it executes its program, and would otherwise keep
/// pipes and connections open that the agent has closed.
unsafe fn close_inherited_descriptors(kept: RawFd) {
    let first = 3;
    let last = libc::c_uint::MAX as usize;
    let kept = as_register(kept);
    // SAFETY: nothing of the child uses them, and it has a table of its own.
    unsafe {
        if kept > first {
            let _ = call(
                libc::SYS_close_range,
                [first, kept.wrapping_sub(1), 0, 0, 0],
            );
        }
        let _ = call(libc::SYS_close_range, [kept.wrapping_add(1), last, 0, 0, 0]);
    }
}

/// Changes the user and groups. Uses raw system calls, because the C library
/// would apply the change to all threads that it knows, which are the agent's.
///
/// The child has the agent's memory until its execve. A change of user makes
/// that memory not dumpable (prctl(2), PR_SET_DUMPABLE), so that the user's
/// other processes can neither read it nor trace the child.
unsafe fn become_user(uid: u32, gid: u32, groups: &[u32]) -> Result<(), Errno> {
    let (uid, gid) = (uid as usize, gid as usize);
    let list = groups.as_ptr().expose_provenance();
    // SAFETY: plain values, and as many groups as the kernel is told.
    unsafe {
        call(libc::SYS_setgroups, [groups.len(), list, 0, 0, 0])?;
        call(libc::SYS_setresgid, [gid, gid, gid, 0, 0])?;
        call(libc::SYS_setresuid, [uid, uid, uid, 0, 0])?;
    }
    Ok(())
}

/// Changes to a directory. With `make`, a missing one is created first, with
/// its parents; an existing parent is accepted, whatever it is.
unsafe fn change_directory(path: *mut u8, make: bool) -> Result<(), Errno> {
    const MODE: usize = 0o777;
    let address = path.expose_provenance();
    // SAFETY: `path` ends with a zero byte and is ours to write to.
    unsafe {
        match call(libc::SYS_chdir, [address, 0, 0, 0, 0]) {
            Err(Errno::NOENT) if make => {}
            outcome => return outcome.map(|_| ()),
        }
        let mut place = path;
        while *place != 0 {
            place = place.add(1);
            if *place == b'/' || *place == 0 {
                // Truncate the path here temporarily.
                let byte = core::mem::replace(&mut *place, 0);
                let made = call(libc::SYS_mkdir, [address, MODE, 0, 0, 0]);
                *place = byte;
                if !matches!(made, Ok(_) | Err(Errno::EXIST)) {
                    return made.map(|_| ());
                }
            }
        }
        call(libc::SYS_chdir, [address, 0, 0, 0, 0]).map(|_| ())
    }
}

/// The size of a signal set, as the kernel is told.
const SET_SIZE: usize = size_of::<SignalSet>();

/// Resets these signals to their default action: those that are ignored stay so
/// in `execve(2)`. Handlers are gone already: see `clone.rs`.
unsafe fn stop_ignoring(mut signals: SignalSet) {
    let default = KernelAction::DEFAULT;
    let action = (&raw const default).expose_provenance();
    while signals != 0 {
        let signal = signals.trailing_zeros().wrapping_add(1) as usize;
        signals &= signals.wrapping_sub(1);
        // SAFETY: it points to an action of the kernel's form.
        let _ = unsafe { call(libc::SYS_rt_sigaction, [signal, action, 0, SET_SIZE, 0]) };
    }
}

/// Unblocks all signals. The program may block them for signalfd, and the mask
/// survives `execve(2)`.
unsafe fn unblock_signals() {
    let nothing_blocked: SignalSet = 0;
    let set = (&raw const nothing_blocked).expose_provenance();
    let how = as_register(libc::SIG_SETMASK);
    // SAFETY: it points to a signal set of the size that the kernel is told.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, [how, set, 0, SET_SIZE, 0]) };
}
