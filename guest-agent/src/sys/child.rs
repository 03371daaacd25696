//! What a child does before its program. It shares the agent's memory, and the
//! agent uses it at the same time: see [`launch`](super::launch).

use core::ffi::{c_char, c_int, c_void};

use rustix::{fd::RawFd, io::Errno};
use vmcell_wire::Stage;

use super::{
    contain::{CgroupNamespace, enter_cgroup_namespace},
    launch::ResourceLimit,
    raw::call,
};

/// Why there is no program, and how far the child got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildFailure {
    pub(crate) stage: Stage,
    pub(crate) errno: Errno,
}

/// What a child is to do. All pointers are to memory that is lent to it.
pub(super) struct Orders {
    pub(super) candidates: *const *const c_char,
    pub(super) argv: *const *const c_char,
    pub(super) env: *const *const c_char,
    /// Null: where the agent is.
    pub(super) cwd: *mut u8,
    pub(super) make_cwd: bool,
    pub(super) rlimits: *const [ResourceLimit],
    pub(super) nice: Option<i8>,
    /// And a group.
    pub(super) user: Option<(u32, u32)>,
    pub(super) groups: *const [u32],
    pub(super) umask: Option<u16>,
    pub(super) descriptors: [RawFd; 3],
    pub(super) alive: RawFd,
    pub(super) terminal: bool,
    pub(super) cgroup_namespace: CgroupNamespace,
    pub(super) failure: Option<ChildFailure>,
}

impl Orders {
    pub(super) const NOTHING: Self = Self {
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
        alive: -1,
        terminal: false,
        cgroup_namespace: CgroupNamespace::Shared,
        failure: None,
    };
}

/// The child's whole life before its program.
///
/// # Safety
/// The argument must be [`Orders`] that are lent to this child.
pub(super) unsafe extern "C" fn child_main(orders: *mut c_void) -> ! {
    let orders: *mut Orders = orders.cast();
    // SAFETY: `launch` lends valid orders for as long as the child runs this.
    let failure = unsafe { prepare_and_exec(&*orders) };
    // SAFETY: as above, and the reference of the line before is gone.
    unsafe { (*orders).failure = Some(failure) };
    // SAFETY: plain exit of the child; 127 is seen by nobody, since the agent
    // reports the failure itself.
    let _ = unsafe { call(libc::SYS_exit, [127, 0, 0, 0, 0]) };
    // SAFETY: exit(2) does not return.
    unsafe { core::hint::unreachable_unchecked() }
}

/// Returns only if there is no program to run.
unsafe fn prepare_and_exec(orders: &Orders) -> ChildFailure {
    // SAFETY: `launch` made all of it ready.
    match unsafe { prepare(orders) } {
        // SAFETY: as above.
        Ok(()) => unsafe { exec(orders) },
        Err(failure) => failure,
    }
}

unsafe fn prepare(orders: &Orders) -> Result<(), ChildFailure> {
    let at = |stage| move |errno| ChildFailure { stage, errno };
    // SAFETY: raw system calls on values that `launch` made ready. None of them
    // allocates, locks or calls back.
    unsafe {
        // Before it leaves the agent's session, by which the agent knows who is
        // in its cgroup namespace for good reason.
        enter_cgroup_namespace(orders.cgroup_namespace).map_err(at(Stage::Cgroup))?;
        call(libc::SYS_setsid, [0; 5]).map_err(at(Stage::Setup))?;
        for (source, target) in orders.descriptors.iter().zip(0..) {
            // The agent's own 0, 1 and 2 are always open, so source and
            // target differ and the copy loses the close-on-exec flag.
            let arguments = [word(*source), target, 0, 0, 0];
            call(libc::SYS_dup3, arguments).map_err(at(Stage::Setup))?;
        }
        close_the_agents_descriptors(orders.alive);
        if orders.terminal {
            let (stdin, steal) = (0, 0);
            let request = usize::try_from(libc::TIOCSCTTY).unwrap_or(0);
            let arguments = [stdin, request, steal, 0, 0];
            call(libc::SYS_ioctl, arguments).map_err(at(Stage::Terminal))?;
        }
        for limit in &*orders.rlimits {
            let values = limit.values.as_ptr().expose_provenance();
            let old = 0;
            let arguments = [OURSELVES, usize::from(limit.resource), values, old, 0];
            call(libc::SYS_prlimit64, arguments).map_err(at(Stage::Limits))?;
        }
        if let Some(nice) = orders.nice {
            let kind = 0; // PRIO_PROCESS
            let arguments = [kind, OURSELVES, word(nice.into()), 0, 0];
            call(libc::SYS_setpriority, arguments).map_err(at(Stage::Limits))?;
        }
        if let Some((uid, gid)) = orders.user {
            become_user(uid, gid, &*orders.groups).map_err(at(Stage::User))?;
        }
        if let Some(umask) = orders.umask {
            // It cannot fail.
            let _ = call(libc::SYS_umask, [usize::from(umask), 0, 0, 0, 0]);
        }
        if !orders.cwd.is_null() {
            enter(orders.cwd, orders.make_cwd).map_err(at(Stage::WorkingDirectory))?;
        }
        unblock_signals();
    }
    Ok(())
}

/// Executes the first candidate that there is. Returns only if that fails.
unsafe fn exec(orders: &Orders) -> ChildFailure {
    let (argv, env) = (
        orders.argv.expose_provenance(),
        orders.env.expose_provenance(),
    );
    let mut denied = None;
    let mut candidate = orders.candidates;
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

/// In system calls that mean the caller when they are given no process.
const OURSELVES: usize = 0;

/// A number as the kernel takes it from a register, of which it looks at the
/// lower half.
#[expect(clippy::cast_sign_loss, reason = "the bits are what counts")]
const fn word(number: c_int) -> usize {
    number as isize as usize
}

/// Closes the child's copies of what the agent has open, but for one. A child
/// can be stopped before it executes anything, and would else keep others from
/// seeing the end of a pipe or of a connection that the agent has closed.
unsafe fn close_the_agents_descriptors(kept: RawFd) {
    let first = 3;
    let last = libc::c_uint::MAX as usize;
    let kept = word(kept);
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

/// Raw calls, because the C library would make every thread that it believes
/// to have, which are the agent's, follow.
///
/// The child has the agent's memory until it executes. A change of user makes
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

/// Enters a directory. With `make`, one that is not there is made first, with
/// its parents; a parent that is there already is fine, whatever it is.
unsafe fn enter(path: *mut u8, make: bool) -> Result<(), Errno> {
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
                // Cut the path off here for a moment.
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

/// Undoes what the agent did to its own signals: everything is blocked for the
/// sake of signalfd, and that survives `execve(2)`.
unsafe fn unblock_signals() {
    const SET_SIZE: usize = 8;
    let nothing_blocked = 0u64;
    let set = (&raw const nothing_blocked).expose_provenance();
    let how = word(libc::SIG_SETMASK);
    // SAFETY: it points to a signal set of the size that the kernel is told.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, [how, set, 0, SET_SIZE, 0]) };
}
