//! Starts programs.
//!
//! A child shares the agent's memory until it executes its program, because
//! copying the page tables would take longer than everything else. But the
//! agent does not wait for it: a user can stop a child that has switched to
//! that user (SIGSTOP), and an open file can delay its execve(2) (a lease, a
//! file system in user space). So everything that the child needs is copied
//! into memory that is lent to it. It touches nothing else, and the kernel
//! reports when the child no longer uses it.
//!
//! ```text
//!  launch ──> Launch: the child prepares itself ──> finish: executed, or why not
//!  ChildMemory ······· lent to the child ················> the next launch
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
use vmcell_wire::{PackedStrings, Stage};

use super::{
    Mapping,
    cgroup_namespace::CgroupNamespace,
    child::{ChildFailure, ChildSetup, child_main},
    clone::clone_sharing_memory,
    limit::ResourceLimit,
    secret_strings::{SecretStrings, is_secret},
    signals::SignalSet,
};

/// Everything a child needs, prepared before it exists: after the clone nothing
/// can be allocated. Settings that are absent cost no system call.
pub(crate) struct ChildPlan<'a> {
    /// The paths to try in order, as `execvp(3)` would.
    pub(crate) candidates: PackedStrings<'a>,
    pub(crate) argv: PackedStrings<'a>,
    /// The environment, in two parts.
    pub(crate) env: [PackedStrings<'a>; 2],
    /// Without a zero byte. `None`: the agent's directory.
    pub(crate) cwd: Option<&'a [u8]>,
    pub(crate) make_cwd: bool,
    pub(crate) stdin: BorrowedFd<'a>,
    pub(crate) stdout: BorrowedFd<'a>,
    pub(crate) stderr: BorrowedFd<'a>,
    /// The only descriptor of the agent that the child keeps, until its execve
    /// or exit closes it. The agent watches the other end of this pipe.
    pub(crate) exec_pipe: BorrowedFd<'a>,
    /// Whether its standard input is a terminal, which becomes the controlling
    /// terminal of its session.
    pub(crate) terminal: bool,
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
    pub(crate) cgroup_namespace: CgroupNamespace,
    pub(crate) rlimits: &'a [ResourceLimit],
    pub(crate) nice: Option<i8>,
    /// `None`: those of the agent.
    pub(crate) credentials: Option<Credentials<'a>>,
    pub(crate) umask: Option<u16>,
    /// Signals that the agent ignores, and the program shall not.
    pub(crate) ignored_signals: SignalSet,
}

/// The user and groups of a child: credentials(7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credentials<'a> {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: &'a [u32],
}

/// Memory that is lent to a child until it has executed its program or ended.
/// The agent runs meanwhile, so it must neither move nor change any of it.
struct ChildMemory {
    /// Not zero while the child uses the memory; the kernel clears it.
    in_use: AtomicU32,
    stack: Mapping,
    /// The strings that the pointers refer to, with their zero bytes.
    strings: Vec<u8>,
    secrets: Option<SecretStrings>,
    pointers: Vec<*const c_char>,
    cwd: Vec<u8>,
    rlimits: Vec<ResourceLimit>,
    groups: Vec<u32>,
    setup: ChildSetup,
}

/// Enough for a child that only makes system calls.
const STACK_SIZE: usize = 64 * 1024;

/// How much capacity for strings and pointers is retained for the next child.
const RETAINED_CAPACITY: usize = 16 * 1024;
const RETAINED_POINTERS: usize = 1024;

/// How many unused [`ChildMemory`] are kept for the next children.
const MAX_SPARE: usize = 4;

/// The maximum size of all lent strings. Only children that hang in the kernel,
/// where they cannot be killed, can add up to that.
const MAX_LENT_BYTES: usize = 16 * 1024 * 1024;

/// Starts children, and owns the memory that they use until their execve.
pub(crate) struct Launcher {
    #[expect(clippy::vec_box, reason = "children have pointers into it")]
    spare: Vec<Box<ChildMemory>>,
    lent_bytes: usize,
}

/// A child that may not have executed its program yet, and so may use memory of
/// the agent.
pub(crate) struct Launch(NonNull<ChildMemory>);

impl Launch {
    fn memory(&self) -> *mut ChildMemory {
        self.0.as_ptr()
    }

    /// Returns whether the child still uses the memory.
    fn is_pending(&self) -> bool {
        // SAFETY: the memory lives as long as the launch. Only the kernel writes
        // to this field, and it is atomic.
        unsafe { (*self.memory()).in_use.load(Ordering::Acquire) != 0 }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if !self.is_pending() {
            // SAFETY: it comes from a box that has no other owner, and the
            // child no longer uses it. While it does, the memory is leaked
            // instead.
            drop(unsafe { Box::from_raw(self.memory()) });
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
        let mut memory = match self.spare.pop() {
            Some(memory) => memory,
            None => Box::new(ChildMemory::new().map_err(failed)?),
        };
        memory.fill(plan).map_err(failed)?;
        let bytes = self.lent_bytes.saturating_add(memory.strings.len());
        if bytes > MAX_LENT_BYTES {
            return Err(failed(Errno::AGAIN));
        }
        let launch = Launch(NonNull::from(Box::leak(memory)));
        let memory = launch.memory();
        // SAFETY: `child_main` never returns and only makes system calls on its
        // own stack. `Launch` keeps the memory where it is while the child runs
        // this, and only one child has it.
        let pid = unsafe {
            clone_sharing_memory(
                &mut (*memory).stack,
                &(*memory).in_use,
                plan.cgroup,
                child_main,
                (&raw mut (*memory).setup).cast(),
            )
        };
        match pid {
            Ok(pid) => {
                self.lent_bytes = bytes;
                Ok((pid, launch))
            }
            Err(errno) => {
                // SAFETY: as above. There is no child that would set it.
                unsafe { (*memory).in_use.store(0, Ordering::Relaxed) };
                Err(failed(errno))
            }
        }
    }

    /// Returns how a launch ended: the child has executed its program, was
    /// killed before it could, or reports why it cannot.
    ///
    /// # Errors
    /// The launch, while it is pending.
    pub(crate) fn finish(&mut self, launch: Launch) -> Result<Result<(), ChildFailure>, Launch> {
        if launch.is_pending() {
            return Err(launch);
        }
        let memory = launch.memory();
        core::mem::forget(launch);
        // SAFETY: as in `drop`.
        let mut memory = unsafe { Box::from_raw(memory) };
        self.lent_bytes = self.lent_bytes.saturating_sub(memory.strings.len());
        memory.secrets = None;
        let failure = memory.setup.failure;
        if self.spare.len() < MAX_SPARE {
            memory.strings.clear();
            memory.strings.shrink_to(RETAINED_CAPACITY);
            memory.pointers.clear();
            memory.pointers.shrink_to(RETAINED_POINTERS);
            self.spare.push(memory);
        }
        Ok(failure.map_or(Ok(()), Err))
    }
}

impl ChildMemory {
    fn new() -> Result<Self, Errno> {
        Ok(Self {
            in_use: AtomicU32::new(0),
            stack: Mapping::new(STACK_SIZE)?,
            strings: Vec::new(),
            secrets: None,
            pointers: Vec::new(),
            cwd: Vec::new(),
            rlimits: Vec::new(),
            groups: Vec::new(),
            setup: ChildSetup::EMPTY,
        })
    }

    /// Copies a plan and fills in the setup.
    fn fill(&mut self, plan: &ChildPlan<'_>) -> Result<(), Errno> {
        let [env, more_env] = plan.env;
        self.secrets = SecretStrings::restore(env)?;
        self.strings.clear();
        for list in [plan.candidates, plan.argv, env, more_env] {
            self.strings.extend_from_slice(list.as_bytes());
        }
        self.pointers.clear();
        let mut rest = &self.strings[..];
        let mut copy_of = |list: PackedStrings<'_>| {
            let (strings, others) = rest.split_at_checked(list.byte_len()).unwrap_or_default();
            rest = others;
            PackedStrings::from_bytes(strings).unwrap_or_default()
        };
        // The null-terminated arrays of pointers that `execve(2)` takes.
        for list in [plan.candidates, plan.argv] {
            let strings = copy_of(list).iter();
            self.pointers.extend(strings.map(CStr::as_ptr));
            self.pointers.push(core::ptr::null());
        }
        for list in [env, more_env] {
            let strings = copy_of(list).iter();
            let ordinary = strings.filter(|string| !is_secret(string));
            self.pointers.extend(ordinary.map(CStr::as_ptr));
        }
        let secrets = self.secrets.iter().flat_map(SecretStrings::pointers);
        self.pointers.extend(secrets);
        self.pointers.push(core::ptr::null());
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
        self.setup = ChildSetup {
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
            exec_pipe: plan.exec_pipe.as_raw_fd(),
            terminal: plan.terminal,
            ignored_signals: plan.ignored_signals,
            cgroup_namespace: plan.cgroup_namespace,
            failure: None,
        };
        Ok(())
    }
}
