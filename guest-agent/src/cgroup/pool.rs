use alloc::{collections::VecDeque, ffi::CString, format, rc::Rc};

use rustix::{
    fd::OwnedFd,
    fs::{Access, CWD, Mode, OFlags, access},
    io::Errno,
};
use vmcell_wire::CgroupLimits;

use super::{
    Cgroup, PARENT,
    changes::ChangeTracker,
    escaped, number_in, open,
    tree::{self, MAX_DEPTH, MAX_DESCENDANTS},
    write,
};
use crate::{clock::Moment, sys::CGROUPS};

/// All cgroups of children.
///
/// Creating one takes longer than starting a small program, so empty ones are
/// used again, and the first one is created in advance. One in which anything was
/// changed is never used again.
pub(crate) struct Cgroups {
    root: OwnedFd,
    /// The cgroup above the children's; `None` before the first is needed.
    parent: Option<Parent>,
    /// How many cgroups were created: the number of the last one.
    created: u64,
    spare: VecDeque<Cgroup>,
    /// `None` if changes cannot be detected: then no cgroup is used again.
    changes: Option<ChangeTracker>,
    /// Cgroups that could not be removed yet.
    leftovers: VecDeque<Cgroup>,
    /// Whether the first of them only has too many cgroups below it to be removed
    /// at once.
    has_more_to_remove: bool,
    /// Whether the kernel has cgroup namespaces: then each child gets one.
    has_namespaces: bool,
    /// Whether the root is where processes look for cgroups.
    is_default_mount: bool,
    /// Whether the agent may raise its priority.
    may_renice: bool,
}

struct Parent {
    directory: Rc<OwnedFd>,
    /// How many processes a child without limits may have; `None` before the
    /// controllers are enabled.
    pids: Option<u64>,
    has_memory_controller: bool,
}

/// Controllers that keep children from starving the agent, at nearly no cost.
const BASE_CONTROLLERS: [&str; 2] = ["+pids", "+cpu"];

/// The controller that slows down all processes; it is enabled when it is needed.
const MEMORY_CONTROLLER: [&str; 1] = ["+memory"];

/// The CPU weight of all children together. A kernel thread has 100, so one that
/// writes to the disk gets a quarter of the processor beside a busy command. A
/// worker has 33 (`worker/run.rs`).
const COMMANDS_CPU_WEIGHT: &str = "300";

/// The agent's niceness: a weight of 1160. If the children want the whole
/// processor, the agent still gets four fifths of it when it has work.
const AGENT_NICENESS: i32 = -11;

/// How many unused cgroups are kept.
const MAX_SPARE: usize = 4;

/// How many cgroups are removed at once. There may be more below that of a command,
/// and hosts wait meanwhile.
const MAX_REMOVALS: u32 = 64;

impl Cgroups {
    /// Opens `path`, the root of the hierarchy, below which children's cgroups are
    /// created. The agent's priority is raised above theirs only if it
    /// `may_renice` its process.
    pub(crate) fn new(path: &str, may_renice: bool) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: rustix::fs::openat(CWD, path, flags, Mode::empty())?,
            parent: None,
            created: 0,
            spare: VecDeque::new(),
            changes: ChangeTracker::new().ok(),
            leftovers: VecDeque::new(),
            has_more_to_remove: false,
            is_default_mount: path == CGROUPS,
            may_renice,
            has_namespaces: access("/proc/self/ns/cgroup", Access::EXISTS).is_ok(),
        })
    }

    /// Returns an empty cgroup for a new process.
    pub(crate) fn acquire(&mut self) -> Result<Cgroup, Errno> {
        while let Some(cgroup) = self.spare.pop_front() {
            if self.is_unchanged(&cgroup) {
                return Ok(cgroup);
            }
            self.remove(cgroup);
        }
        self.create()
    }

    /// Creates a cgroup with limits.
    pub(crate) fn acquire_limited(&mut self, limits: &CgroupLimits) -> Result<Cgroup, Errno> {
        self.enable_controllers();
        if limits.memory > 0 {
            self.enable_memory_controller()?;
        }
        let mut cgroup = self.create()?;
        if let Err(error) = cgroup.limit(limits) {
            self.remove(cgroup);
            return Err(error);
        }
        Ok(cgroup)
    }

    /// Takes back the empty cgroup of a process that has been reported.
    pub(crate) fn release(&mut self, cgroup: Cgroup) {
        let is_usable = cgroup.handles.is_some() && cgroup.watch.is_some() && !cgroup.not_reusable;
        if is_usable && self.spare.len() < MAX_SPARE {
            self.spare.push_back(cgroup);
        } else {
            self.remove(cgroup);
        }
    }

    /// Closes the descriptors of a cgroup whose process has ended and left
    /// descendants.
    pub(crate) fn close(&mut self, cgroup: &mut Cgroup) {
        cgroup.handles = None;
        if let (Some(watch), Some(changes)) = (cgroup.watch.take(), &mut self.changes) {
            changes.unwatch(watch);
        }
    }

    /// Returns whether a descendant of a command that was started at this moment may
    /// have left the cgroups of commands.
    pub(crate) fn may_have_escaped_since(started: Moment) -> bool {
        escaped::may_include_descendants_since(started)
    }

    /// Returns whether [`remove_leftovers`](Self::remove_leftovers) can remove more
    /// now.
    pub(crate) fn has_more_to_remove(&self) -> bool {
        self.has_more_to_remove
    }

    /// Removes some of the cgroups that could not be removed before.
    pub(crate) fn remove_leftovers(&mut self) {
        self.has_more_to_remove = false;
        if let Some(cgroup) = self.leftovers.pop_front() {
            self.remove(cgroup);
        }
    }

    fn is_unchanged(&mut self, cgroup: &Cgroup) -> bool {
        match (cgroup.watch, &mut self.changes) {
            (Some(watch), Some(changes)) => changes.is_unchanged(watch),
            _ => false,
        }
    }

    /// Removes an empty cgroup with all below it.
    fn remove(&mut self, mut cgroup: Cgroup) {
        self.close(&mut cgroup);
        let Ok(name) = CString::new(format!("{}", cgroup.number)) else {
            return;
        };
        let mut budget = MAX_REMOVALS;
        match tree::remove(&cgroup.parent, &name, &mut budget) {
            Ok(()) => {}
            // A process is still exiting, or was moved into it.
            Err(Errno::BUSY) => self.leftovers.push_back(cgroup),
            Err(Errno::AGAIN) => {
                self.has_more_to_remove = true;
                self.leftovers.push_front(cgroup);
            }
            // It stays, unused.
            Err(_) => {}
        }
    }

    /// Returns whether the controllers are enabled.
    pub(crate) fn is_prepared(&self) -> bool {
        self.parent
            .as_ref()
            .is_some_and(|parent| parent.pids.is_some())
    }

    /// Enables the controllers and creates the first cgroup. To be called when the
    /// agent is idle, so that no command waits for it.
    pub(crate) fn prepare(&mut self) {
        if !self.is_prepared() {
            self.enable_controllers();
        }
        if self.created == 0
            && let Ok(cgroup) = self.create()
        {
            self.spare.push_back(cgroup);
        }
    }

    /// Enables the controllers that limit children. That takes some time (20 ms
    /// under emulation), so the first command of a VM does not wait for it: only
    /// what it has used by then is not counted.
    fn enable_controllers(&mut self) {
        let Ok(parent) = self.parent() else {
            return;
        };
        if parent.pids.is_some() {
            return;
        }
        // An eighth of the threads is for the kernel and the agent, and one child
        // may have half of the rest. So a command that ends a fork bomb can be
        // started beside it.
        let threads = max_threads().unwrap_or(DEFAULT_MAX_THREADS);
        let all = threads.saturating_sub(threads.div_euclid(8));
        let pids = all.div_euclid(2).max(1);
        parent.pids = Some(pids);
        // Controllers that the kernel lacks are ignored.
        enable(&BASE_CONTROLLERS, &self.root);
        if let Some(parent) = &self.parent {
            enable(&BASE_CONTROLLERS, &parent.directory);
            let _ = write(&parent.directory, "cpu.weight", COMMANDS_CPU_WEIGHT);
            if self.may_renice {
                let _ = rustix::process::nice(AGENT_NICENESS);
            }
            let _ = write(&parent.directory, "pids.max", &format!("{all}"));
            for number in 1..=self.created {
                let file = format!("{number}/pids.max");
                let _ = write(&parent.directory, &file, &format!("{pids}"));
            }
        }
    }

    /// Enables the memory controller. Memory that is in use already is not counted.
    fn enable_memory_controller(&mut self) -> Result<(), Errno> {
        if self.parent()?.has_memory_controller {
            return Ok(());
        }
        enable(&MEMORY_CONTROLLER, &self.root);
        let parent = self.parent()?;
        enable(&MEMORY_CONTROLLER, &parent.directory);
        parent.has_memory_controller = true;
        Ok(())
    }

    fn create(&mut self) -> Result<Cgroup, Errno> {
        self.created = self.created.saturating_add(1);
        let number = self.created;
        let (has_namespace, is_default_mount) = (self.has_namespaces, self.is_default_mount);
        let parent = self.parent()?;
        let mut cgroup = Cgroup::create(&parent.directory, number)?;
        cgroup.has_namespace = has_namespace;
        cgroup.can_be_mounted = is_default_mount;
        if let Some(pids) = parent.pids {
            // Without the controller there is no such file, and no limit.
            let _ = cgroup.write("pids.max", &format!("{pids}"));
        }
        // The agent has to remove all cgroups below it.
        let _ = cgroup.write("cgroup.max.descendants", &format!("{MAX_DESCENDANTS}"));
        // All later changes are the child's. A cgroup that cannot be watched is
        // used once.
        if let (Some(changes), Some(handles)) = (&self.changes, &cgroup.handles) {
            cgroup.watch = changes.watch(&handles.directory).ok();
        }
        Ok(cgroup)
    }

    /// Returns the cgroup above the children's, and creates it if it does not exist
    /// yet.
    pub(crate) fn of_all(&mut self) -> Result<Rc<OwnedFd>, Errno> {
        Ok(Rc::clone(&self.parent()?.directory))
    }

    /// Returns how many processes and threads are in the cgroups of all children.
    ///
    /// # Errors
    /// `ENOENT` if the controller `pids` is missing or not enabled yet.
    pub(crate) fn count_processes(&self) -> Result<u32, Errno> {
        let parent = self.parent.as_ref().ok_or(Errno::NOENT)?;
        let file = open(&parent.directory, "pids.current", OFlags::RDONLY)?;
        number_in(&file, b"").ok_or(Errno::INVAL)
    }

    fn parent(&mut self) -> Result<&mut Parent, Errno> {
        match &mut self.parent {
            Some(parent) => Ok(parent),
            none => Ok(none.insert(Parent::create(&self.root)?)),
        }
    }
}

impl Parent {
    fn create(root: &OwnedFd) -> Result<Self, Errno> {
        match rustix::fs::mkdirat(root, PARENT, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        let directory = open(root, PARENT, OFlags::RDONLY | OFlags::DIRECTORY)?;
        // Below each child's.
        let depth = MAX_DEPTH.saturating_add(1);
        let _ = write(&directory, "cgroup.max.depth", &format!("{depth}"));
        Ok(Self {
            directory: Rc::new(directory),
            pids: None,
            has_memory_controller: false,
        })
    }
}

/// Enables controllers for the cgroups below. Missing ones are noticed when a
/// limit is set.
fn enable(controllers: &[&str], directory: &OwnedFd) {
    let file = "cgroup.subtree_control";
    if write(directory, file, &controllers.join(" ")).is_err() {
        // One that the kernel lacks makes the write fail for all.
        for controller in controllers {
            let _ = write(directory, file, controller);
        }
    }
}

/// The assumption for a kernel that does not report its limit.
const DEFAULT_MAX_THREADS: u64 = 512;

/// Returns how many threads the kernel can have: as many as fit into an eighth of
/// the memory, and at most as many as there are pids.
fn max_threads() -> Option<u64> {
    const MAX_PIDS: u64 = 32 * 1024;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open("/proc/sys/kernel/threads-max", flags, Mode::empty()).ok()?;
    let mut text = [0; 32];
    let count = rustix::io::read(&file, &mut text).ok()?;
    let text = core::str::from_utf8(text.get(..count)?).ok()?;
    Some(text.trim().parse::<u64>().ok()?.min(MAX_PIDS))
}
