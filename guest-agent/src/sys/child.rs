//! From a plan to a running program.

use core::ffi::{CStr, c_char, c_int, c_void};

use alloc::vec::Vec;
use rustix::{
    fd::{AsRawFd, BorrowedFd, RawFd},
    io::Errno,
    process::Pid,
};
use vmcell_wire::{Packed, Stage};

use super::{
    Mapping,
    clone::clone_sharing_memory,
    contain::{CgroupNamespace, enter_cgroup_namespace},
};

/// Everything a child needs, made ready before it exists: after the clone
/// nothing can be allocated. What is not asked for costs no system call.
pub(crate) struct ChildPlan<'a> {
    /// The paths to try in order, as `execvp(3)` would.
    pub(crate) candidates: Packed<'a>,
    pub(crate) argv: Packed<'a>,
    /// The environment, in two parts.
    pub(crate) env: [Packed<'a>; 2],
    /// Ends with a zero byte. None: where the agent is, which is `/`. The child
    /// writes to it while it makes directories.
    pub(crate) cwd: Option<&'a mut [u8]>,
    pub(crate) make_cwd: bool,
    pub(crate) stdin: BorrowedFd<'a>,
    pub(crate) stdout: BorrowedFd<'a>,
    pub(crate) stderr: BorrowedFd<'a>,
    /// Its standard input is a terminal, which becomes the controlling terminal
    /// of its session.
    pub(crate) terminal: bool,
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
    pub(crate) cgroup_namespace: CgroupNamespace,
    pub(crate) rlimits: &'a [ResourceLimit],
    pub(crate) nice: Option<i8>,
    /// None: as the agent, which is root.
    pub(crate) credentials: Option<Credentials<'a>>,
    pub(crate) umask: Option<u16>,
}

/// One call of prlimit(2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceLimit {
    pub(crate) resource: u8,
    /// Soft and hard.
    pub(crate) values: [u64; 2],
}

/// Who a child becomes: credentials(7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credentials<'a> {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: &'a [u32],
}

/// Why there is no program, and how far the child got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildFailure {
    pub(crate) stage: Stage,
    pub(crate) errno: Errno,
}

/// What is lent to a child while it prepares itself, and used for the next one
/// again.
pub(crate) struct Nursery {
    stack: Mapping,
    pointers: Vec<*const c_char>,
}

/// Enough for a child that only makes system calls.
const STACK_SIZE: usize = 64 * 1024;

impl Nursery {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            stack: Mapping::new(STACK_SIZE)?,
            pointers: Vec::new(),
        })
    }
}

/// Executes the plan.
pub(crate) fn spawn(plan: ChildPlan<'_>, nursery: &mut Nursery) -> Result<Pid, ChildFailure> {
    let Nursery { stack, pointers } = nursery;
    pointers.clear();
    let [env, more_env] = plan.env;
    for parts in [&[plan.candidates][..], &[plan.argv], &[env, more_env]] {
        // The null-terminated array of pointers that `execve(2)` takes.
        for list in parts {
            pointers.extend(list.iter().map(CStr::as_ptr));
        }
        pointers.push(core::ptr::null());
    }
    let mut lists = pointers.split_inclusive(|pointer| pointer.is_null());
    let mut next_list = || lists.next().map_or(core::ptr::null(), <[_]>::as_ptr);
    let mut orders = Orders {
        candidates: next_list(),
        argv: next_list(),
        env: next_list(),
        cwd: plan
            .cwd
            .filter(|path| path.ends_with(&[0]))
            .map_or(core::ptr::null_mut(), <[u8]>::as_mut_ptr),
        make_cwd: plan.make_cwd,
        rlimits: plan.rlimits,
        nice: plan.nice,
        credentials: plan.credentials,
        umask: plan.umask,
        descriptors: [
            plan.stdin.as_raw_fd(),
            plan.stdout.as_raw_fd(),
            plan.stderr.as_raw_fd(),
        ],
        terminal: plan.terminal,
        cgroup_namespace: plan.cgroup_namespace,
        failure: None,
    };
    let orders_address: *mut Orders<'_> = &raw mut orders;
    // SAFETY: `child_main` keeps the rules of vfork and never returns; the
    // vectors and the orders outlive the call, during which the agent sleeps
    // until the child has no more use for them.
    let pid =
        unsafe { clone_sharing_memory(stack, plan.cgroup, child_main, orders_address.cast()) }
            .map_err(|errno| ChildFailure {
                stage: Stage::Clone,
                errno,
            })?;
    // SAFETY: the child, which wrote here, has executed or exited.
    match unsafe { (*orders_address).failure } {
        None => Ok(pid),
        // The child has exited; the reaper will collect it as any orphan.
        Some(failure) => Err(failure),
    }
}

struct Orders<'a> {
    candidates: *const *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
    cwd: *mut u8,
    make_cwd: bool,
    rlimits: &'a [ResourceLimit],
    nice: Option<i8>,
    credentials: Option<Credentials<'a>>,
    umask: Option<u16>,
    descriptors: [RawFd; 3],
    terminal: bool,
    cgroup_namespace: CgroupNamespace,
    failure: Option<ChildFailure>,
}

/// The child's whole life before its program. It shares the agent's memory.
unsafe extern "C" fn child_main(orders: *mut c_void) -> ! {
    let orders: *mut Orders<'_> = orders.cast();
    // SAFETY: `spawn` lends valid orders for as long as the child runs this.
    let failure = unsafe { prepare_and_exec(&*orders) };
    // SAFETY: as above, and the reference of the line before is gone.
    unsafe { (*orders).failure = Some(failure) };
    // SAFETY: plain exit of the child; 127 is seen by nobody, since the agent
    // reports the failure itself.
    unsafe { libc::syscall(libc::SYS_exit, 127) };
    // SAFETY: exit(2) does not return.
    unsafe { core::hint::unreachable_unchecked() }
}

/// Returns only if there is no program to run.
unsafe fn prepare_and_exec(orders: &Orders<'_>) -> ChildFailure {
    let failed = |stage| ChildFailure {
        stage,
        errno: super::last_error(),
    };
    // SAFETY: raw system calls on values that `spawn` made ready. None of them
    // allocates, locks or calls back.
    unsafe {
        // Before it leaves the agent's session, by which the agent knows who is
        // in its cgroup namespace for good reason.
        if let Err(errno) = enter_cgroup_namespace(orders.cgroup_namespace) {
            return ChildFailure {
                stage: Stage::Cgroup,
                errno,
            };
        }
        if libc::syscall(libc::SYS_setsid) < 0 {
            return failed(Stage::Setup);
        }
        for (source, target) in orders.descriptors.iter().zip(0..) {
            let target: c_int = target;
            // The agent's own 0, 1 and 2 are always open, so source and
            // target differ and the copy loses the close-on-exec flag.
            if libc::syscall(libc::SYS_dup3, *source, target, 0) < 0 {
                return failed(Stage::Setup);
            }
        }
        if orders.terminal {
            let (stdin, steal): (c_int, c_int) = (0, 0);
            if libc::syscall(libc::SYS_ioctl, stdin, libc::TIOCSCTTY, steal) < 0 {
                return failed(Stage::Terminal);
            }
        }
        for limit in orders.rlimits {
            let resource = c_int::from(limit.resource);
            let old = core::ptr::null_mut::<c_void>();
            let values = limit.values.as_ptr();
            if libc::syscall(libc::SYS_prlimit64, OURSELVES, resource, values, old) < 0 {
                return failed(Stage::Limits);
            }
        }
        if let Some(nice) = orders.nice {
            let nice = c_int::from(nice);
            let kind: c_int = 0; // PRIO_PROCESS
            if libc::syscall(libc::SYS_setpriority, kind, OURSELVES, nice) < 0 {
                return failed(Stage::Limits);
            }
        }
        if let Some(credentials) = &orders.credentials
            && !become_user(credentials)
        {
            return failed(Stage::User);
        }
        if let Some(umask) = orders.umask {
            // It cannot fail.
            libc::syscall(libc::SYS_umask, c_int::from(umask));
        }
        if !orders.cwd.is_null() && !enter(orders.cwd, orders.make_cwd) {
            return failed(Stage::WorkingDirectory);
        }
        unblock_signals();
        let mut denied = None;
        let mut candidate = orders.candidates;
        while !(*candidate).is_null() {
            libc::syscall(libc::SYS_execve, *candidate, orders.argv, orders.env);
            let failure = failed(Stage::Exec);
            match failure.errno {
                Errno::NOENT | Errno::NOTDIR => {}
                Errno::ACCESS => denied = Some(failure),
                _ => return failure,
            }
            candidate = candidate.add(1);
        }
        denied.unwrap_or(ChildFailure {
            stage: Stage::Exec,
            errno: Errno::NOENT,
        })
    }
}

/// In system calls that mean the caller when they are given no process.
const OURSELVES: c_int = 0;

/// Raw calls, because the C library would make every thread that it believes
/// to have, which are the agent's, follow.
///
/// The child has the agent's memory until it executes. A change of user makes
/// that memory not dumpable (prctl(2), PR_SET_DUMPABLE), so that the user's
/// other processes can neither read it nor trace the child.
unsafe fn become_user(credentials: &Credentials<'_>) -> bool {
    let Credentials { uid, gid, groups } = *credentials;
    // SAFETY: plain values, and as many groups as the kernel is told.
    unsafe {
        libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0
            && libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0
            && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
    }
}

/// Enters a directory. With `make`, one that is not there is made first, with
/// its parents; a parent that is there already is fine, whatever it is.
unsafe fn enter(path: *mut u8, make: bool) -> bool {
    // SAFETY: `path` ends with a zero byte and is ours to write to.
    unsafe {
        if libc::syscall(libc::SYS_chdir, path) == 0 {
            return true;
        }
        if !make || super::last_error() != Errno::NOENT {
            return false;
        }
        let mut place = path;
        while *place != 0 {
            place = place.add(1);
            if *place == b'/' || *place == 0 {
                // Cut the path off here for a moment.
                let byte = core::mem::replace(&mut *place, 0);
                let made = libc::syscall(libc::SYS_mkdir, path, 0o777 as c_int) == 0;
                let there = made || super::last_error() == Errno::EXIST;
                *place = byte;
                if !there {
                    return false;
                }
            }
        }
        libc::syscall(libc::SYS_chdir, path) == 0
    }
}

/// Undoes what the agent did to its own signals: everything is blocked for the
/// sake of signalfd, and that survives `execve(2)`.
unsafe fn unblock_signals() {
    const SET_SIZE: usize = 8;
    let nothing_blocked = 0u64;
    let nowhere = core::ptr::null_mut::<c_void>();
    // SAFETY: it points to a signal set of the size that the kernel is told.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const nothing_blocked,
            nowhere,
            SET_SIZE,
        );
    }
}
