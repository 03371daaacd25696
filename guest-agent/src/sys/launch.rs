//! From a plan to a running program.
//!
//! A child shares the agent's memory until it executes its program, because to
//! copy the page tables takes longer than all else. But the agent does not wait
//! for it: a user can stop a child that has become that user (SIGSTOP), and an
//! open file can hold up its execve(2) (a lease, a file system in user space).
//! So whatever the child needs is copied into memory that is lent to it. It
//! touches nothing else, and the kernel tells when it has left.
//!
//! ```text
//!  launch ──> Launch: the child prepares itself ──> finish: executed, or why not
//!  Lent ·············· lent to the child ················> the next launch
//! ```

use core::{
    ffi::{CStr, c_char},
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

use alloc::{boxed::Box, vec::Vec};
use rustix::{
    fd::{AsRawFd, BorrowedFd},
    io::Errno,
    process::Pid,
};
use vmcell_wire::{Packed, Stage};

use super::{
    Mapping,
    child::{ChildFailure, Orders, child_main},
    clone::clone_sharing_memory,
    contain::CgroupNamespace,
};

/// Everything a child needs, made ready before it exists: after the clone
/// nothing can be allocated. What is not asked for costs no system call.
pub(crate) struct ChildPlan<'a> {
    /// The paths to try in order, as `execvp(3)` would.
    pub(crate) candidates: Packed<'a>,
    pub(crate) argv: Packed<'a>,
    /// The environment, in two parts.
    pub(crate) env: [Packed<'a>; 2],
    /// Without a zero byte. None: where the agent is, which is `/`.
    pub(crate) cwd: Option<&'a [u8]>,
    pub(crate) make_cwd: bool,
    pub(crate) stdin: BorrowedFd<'a>,
    pub(crate) stdout: BorrowedFd<'a>,
    pub(crate) stderr: BorrowedFd<'a>,
    /// The one descriptor of the agent that it keeps, until it executes its
    /// program or ends: the other end of this pipe tells when.
    pub(crate) alive: BorrowedFd<'a>,
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

/// What is lent to a child until it has executed its program or ended. The
/// agent goes on meanwhile, so it must neither move nor change any of it.
struct Lent {
    /// Not zero while the child uses all this; the kernel writes here.
    runs: AtomicU32,
    stack: Mapping,
    /// What the pointers point to: strings with their zero bytes.
    strings: Vec<u8>,
    pointers: Vec<*const c_char>,
    cwd: Vec<u8>,
    rlimits: Vec<ResourceLimit>,
    groups: Vec<u32>,
    orders: Orders,
}

/// Enough for a child that only makes system calls.
const STACK_SIZE: usize = 64 * 1024;

/// How much memory for strings and pointers is kept for the next child.
const RETAINED: usize = 16 * 1024;
const RETAINED_POINTERS: usize = 1024;

/// How many unused sets of memory are kept for the next children.
const MAX_SPARE: usize = 4;

/// More strings than this are not lent at once. Only children that hang in the
/// kernel, where nothing ends them, can add up to that.
const MAX_LENT: usize = 16 * 1024 * 1024;

/// Starts children, and has the memory that they prepare themselves in.
pub(crate) struct Launcher {
    #[expect(clippy::vec_box, reason = "children have pointers into it")]
    spare: Vec<Box<Lent>>,
    lent_bytes: usize,
}

/// A child that may not have executed its program yet, and so uses memory of
/// the agent.
pub(crate) struct Launch(NonNull<Lent>);

impl Launch {
    fn lent(&self) -> *mut Lent {
        self.0.as_ptr()
    }

    /// Whether the child still prepares itself.
    fn is_under_way(&self) -> bool {
        // SAFETY: the memory lives as long as the launch. Only the kernel writes
        // to this field, and it is atomic.
        unsafe { (*self.lent()).runs.load(Ordering::Acquire) != 0 }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if !self.is_under_way() {
            // SAFETY: it comes from a box, which nobody else has, and the child
            // has no use for it any more. While it has, the memory is not freed.
            drop(unsafe { Box::from_raw(self.lent()) });
        }
    }
}

impl Launcher {
    pub(crate) const fn new() -> Self {
        Self {
            spare: Vec::new(),
            lent_bytes: 0,
        }
    }

    /// Starts a child that executes the plan, and does not wait for it.
    pub(crate) fn launch(&mut self, plan: &ChildPlan<'_>) -> Result<(Pid, Launch), ChildFailure> {
        let failed = |errno| ChildFailure {
            stage: Stage::Clone,
            errno,
        };
        let mut lent = match self.spare.pop() {
            Some(lent) => lent,
            None => Box::new(Lent::new().map_err(failed)?),
        };
        lent.fill(plan);
        let bytes = self.lent_bytes.saturating_add(lent.strings.len());
        if bytes > MAX_LENT {
            return Err(failed(Errno::AGAIN));
        }
        let launch = Launch(NonNull::from(Box::leak(lent)));
        let lent = launch.lent();
        // SAFETY: `child_main` never returns and only makes system calls on its
        // own stack. `Launch` keeps the memory where it is while the child runs
        // this, and only one child has it.
        let pid = unsafe {
            clone_sharing_memory(
                &mut (*lent).stack,
                &(*lent).runs,
                plan.cgroup,
                child_main,
                (&raw mut (*lent).orders).cast(),
            )
        };
        match pid {
            Ok(pid) => {
                self.lent_bytes = bytes;
                Ok((pid, launch))
            }
            Err(errno) => {
                // SAFETY: as above. There is no child that would set it.
                unsafe { (*lent).runs.store(0, Ordering::Relaxed) };
                Err(failed(errno))
            }
        }
    }

    /// How a launch ended: the child has executed its program, or was ended
    /// before it could, or tells why it cannot.
    ///
    /// # Errors
    /// The launch, while it is under way.
    pub(crate) fn finish(&mut self, launch: Launch) -> Result<Result<(), ChildFailure>, Launch> {
        if launch.is_under_way() {
            return Err(launch);
        }
        let lent = launch.lent();
        core::mem::forget(launch);
        // SAFETY: as in `drop`.
        let mut lent = unsafe { Box::from_raw(lent) };
        self.lent_bytes = self.lent_bytes.saturating_sub(lent.strings.len());
        let failure = lent.orders.failure;
        if self.spare.len() < MAX_SPARE {
            lent.strings.clear();
            lent.strings.shrink_to(RETAINED);
            lent.pointers.clear();
            lent.pointers.shrink_to(RETAINED_POINTERS);
            self.spare.push(lent);
        }
        Ok(failure.map_or(Ok(()), Err))
    }
}

impl Lent {
    fn new() -> Result<Self, Errno> {
        Ok(Self {
            runs: AtomicU32::new(0),
            stack: Mapping::new(STACK_SIZE)?,
            strings: Vec::new(),
            pointers: Vec::new(),
            cwd: Vec::new(),
            rlimits: Vec::new(),
            groups: Vec::new(),
            orders: Orders::NOTHING,
        })
    }

    /// Copies a plan, and makes orders of it.
    fn fill(&mut self, plan: &ChildPlan<'_>) {
        let [env, more_env] = plan.env;
        let lists = [&[plan.candidates][..], &[plan.argv], &[env, more_env]];
        self.strings.clear();
        for list in lists.iter().copied().flatten() {
            self.strings.extend_from_slice(list.as_bytes());
        }
        self.pointers.clear();
        let mut rest = &self.strings[..];
        for parts in lists {
            // The null-terminated array of pointers that `execve(2)` takes.
            for list in parts {
                let (strings, others) = rest.split_at_checked(list.byte_len()).unwrap_or_default();
                let strings = Packed::from_bytes(strings).unwrap_or_default();
                self.pointers.extend(strings.iter().map(CStr::as_ptr));
                rest = others;
            }
            self.pointers.push(core::ptr::null());
        }
        let mut arrays = self.pointers.split_inclusive(|pointer| pointer.is_null());
        let mut next_array = || arrays.next().map_or(core::ptr::null(), <[_]>::as_ptr);
        let [candidates, argv, env] = [next_array(), next_array(), next_array()];
        self.cwd.clear();
        self.cwd.extend_from_slice(plan.cwd.unwrap_or_default());
        self.cwd.push(0);
        self.rlimits.clear();
        self.rlimits.extend_from_slice(plan.rlimits);
        self.groups.clear();
        let groups = plan.credentials.map_or(&[][..], |user| user.groups);
        self.groups.extend_from_slice(groups);
        self.orders = Orders {
            candidates,
            argv,
            env,
            cwd: match plan.cwd {
                Some(_) => self.cwd.as_mut_ptr(),
                None => core::ptr::null_mut(),
            },
            make_cwd: plan.make_cwd,
            rlimits: &raw const *self.rlimits,
            nice: plan.nice,
            user: plan.credentials.map(|user| (user.uid, user.gid)),
            groups: &raw const *self.groups,
            umask: plan.umask,
            descriptors: [
                plan.stdin.as_raw_fd(),
                plan.stdout.as_raw_fd(),
                plan.stderr.as_raw_fd(),
            ],
            alive: plan.alive.as_raw_fd(),
            terminal: plan.terminal,
            cgroup_namespace: plan.cgroup_namespace,
            failure: None,
        };
    }
}
