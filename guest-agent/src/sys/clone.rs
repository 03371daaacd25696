//! clone3(2), in the two forms that the agent uses.

use core::{
    arch::asm,
    ffi::c_void,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    io::Errno,
    process::Pid,
};

use super::Mapping;

/// `struct clone_args` of `linux/sched.h`, as far as Linux 5.7 has it.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

impl CloneArgs {
    /// Puts the child into a cgroup from its first instruction on.
    fn put_into(&mut self, cgroup: BorrowedFd<'_>) {
        const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
        self.flags |= CLONE_INTO_CGROUP;
        self.cgroup = u64::from(cgroup.as_raw_fd().unsigned_abs());
    }
}

/// Starts a process that shares the agent's memory and runs `entry(argument)`
/// on `stack`, inside `cgroup` from its first instruction. Returns without
/// waiting for it. The kernel sets `in_use` to zero when the child no longer uses
/// the memory: it has executed a program or ended.
///
/// # Safety
/// `entry` must never return. It runs concurrently with the agent: no
/// allocation, no locks, no C library, no writes to memory but its own stack
/// and what `argument` lends it. `stack`, `in_use` and what `argument` lends must
/// stay in place, and `stack` must not be used otherwise, until `in_use` is zero.
pub(super) unsafe fn clone_sharing_memory(
    stack: &mut Mapping,
    in_use: &AtomicU32,
    cgroup: Option<BorrowedFd<'_>>,
    entry: unsafe extern "C" fn(*mut c_void) -> !,
    argument: *mut c_void,
) -> Result<Pid, Errno> {
    const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
    let stack = stack.as_mut_slice();
    let shared = libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID;
    in_use.store(1, Ordering::Relaxed);
    let mut arguments = CloneArgs {
        // No signal handler of the program may run in the child.
        flags: u64::from(shared.unsigned_abs()) | CLONE_CLEAR_SIGHAND,
        child_tid: in_use.as_ptr().expose_provenance() as u64,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        stack: stack.as_mut_ptr().addr() as u64,
        stack_size: stack.len() as u64,
        ..CloneArgs::default()
    };
    if let Some(cgroup) = cgroup {
        arguments.put_into(cgroup);
    }
    let mut result = libc::SYS_clone3;
    // SAFETY: the kernel starts the child behind `syscall` with its stack
    // pointer at the end of `stack`, which is aligned to a page, as the ABI
    // asks for at a call; every other register is the parent's. The child
    // leaves through `entry`, which never returns; the parent jumps over the
    // call and has lost nothing but the registers that syscall(2) names.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") result,
            in("rdi") &raw const arguments,
            in("rsi") size_of::<CloneArgs>(),
            in("r12") entry,
            in("r13") argument,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    match i32::try_from(result) {
        Ok(number @ 1..) => Pid::from_raw(number).ok_or(Errno::INVAL),
        Ok(number) => Err(Errno::from_raw_os_error(number.saturating_neg())),
        Err(_) => Err(Errno::INVAL),
    }
}

/// Creates a process that is PID 1 of new user, pid, mount, UTS, IPC and
/// network namespaces, with its own copy of this one's memory and descriptors,
/// in a cgroup if one is given. Returns `None` in the new process.
pub(crate) fn clone_into_namespaces(cgroup: Option<&OwnedFd>) -> Result<Option<Pid>, Errno> {
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWNET;
    let mut arguments = CloneArgs {
        flags: u64::from(namespaces.unsigned_abs()),
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        ..CloneArgs::default()
    };
    if let Some(cgroup) = cgroup {
        arguments.put_into(cgroup.as_fd());
    }
    // SAFETY: without a stack and shared memory this is a fork(2). There is one
    // thread, so no lock is held that the child would wait for. What the C
    // library remembers of threads is wrong in the child, and not used before
    // its next fork sets it right.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            size_of::<CloneArgs>(),
        )
    };
    let child = super::check(result)?;
    Ok(i32::try_from(child).ok().and_then(Pid::from_raw))
}
