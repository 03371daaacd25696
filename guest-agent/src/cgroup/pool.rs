use alloc::{collections::VecDeque, ffi::CString, format, rc::Rc};

use rustix::{
    fd::OwnedFd,
    fs::{Access, CWD, Mode, OFlags, access},
    io::Errno,
};
use vmcell_wire::CgroupLimits;

use super::{
    Cgroup,
    changes::Changes,
    open, outsiders,
    tree::{self, MAX_DEPTH, MAX_DESCENDANTS},
    write,
};
use crate::clock::Moment;

/// All cgroups of children.
///
/// Making one takes longer than starting a small program, so empty ones are
/// used again, and the next one is made while nobody waits for it. One in which
/// anything was changed is never used again.
pub(crate) struct Cgroups {
    root: OwnedFd,
    /// Where the children's cgroups are; none before the first is needed.
    parent: Option<Parent>,
    made: u64,
    spare: VecDeque<Cgroup>,
    /// None: the kernel cannot tell what was changed, so none is used again.
    changes: Option<Changes>,
    /// They are of no more use and could not be removed yet.
    unremoved: VecDeque<Cgroup>,
    /// Whether that is because there are many cgroups below them.
    has_many: bool,
    /// Whether the kernel has cgroup namespaces, so that each child gets one.
    has_namespaces: bool,
}

struct Parent {
    directory: Rc<OwnedFd>,
    /// How many processes a child without limits may have; none before the
    /// controllers are enabled.
    pids: Option<u64>,
    counts_memory: bool,
}

/// The cgroup of all children, in the root.
pub(crate) const PARENT: &str = "vmcell";

/// What keeps children from starving the agent, and costs next to nothing.
const CONTROLLERS: [&str; 2] = ["+pids", "+cpu"];

/// What costs everybody something, and is only enabled when it is needed.
const MEMORY: [&str; 1] = ["+memory"];

/// What all children together weigh against a thread of the kernel, which weighs
/// 100: what is written to the disk gets a quarter of the processor beside a
/// command. A worker weighs 33 (`worker/run.rs`).
const WEIGHT: &str = "300";

/// The agent's own: it weighs 1160. If the children want the whole processor,
/// it still gets four fifths of it when it has something to do.
const NICENESS: i32 = -11;

/// How many unused cgroups are kept.
const MAX_SPARE: usize = 4;

/// How many cgroups are removed at once. There may be more below one that a
/// command had; somebody waits meanwhile.
const REMOVED: u32 = 64;

impl Cgroups {
    /// Makes children's cgroups under the root of the hierarchy, `path`.
    pub(crate) fn new(path: &str) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: rustix::fs::openat(CWD, path, flags, Mode::empty())?,
            parent: None,
            made: 0,
            spare: VecDeque::new(),
            changes: Changes::new().ok(),
            unremoved: VecDeque::new(),
            has_many: false,
            has_namespaces: access("/proc/self/ns/cgroup", Access::EXISTS).is_ok(),
        })
    }

    /// An empty cgroup for a new process.
    pub(crate) fn take(&mut self) -> Result<Cgroup, Errno> {
        while let Some(cgroup) = self.spare.pop_front() {
            if self.is_unchanged(&cgroup) {
                return Ok(cgroup);
            }
            self.remove(cgroup);
        }
        self.make()
    }

    /// A new cgroup with limits.
    pub(crate) fn take_limited(&mut self, limits: &CgroupLimits) -> Result<Cgroup, Errno> {
        self.enable_controllers();
        if limits.memory > 0 {
            self.count_memory()?;
        }
        let mut cgroup = self.make()?;
        if let Err(error) = cgroup.limit(limits) {
            self.remove(cgroup);
            return Err(error);
        }
        Ok(cgroup)
    }

    /// Takes back the empty cgroup of a process that has been reported.
    pub(crate) fn give_back(&mut self, cgroup: Cgroup) {
        let is_usable = cgroup.open.is_some() && cgroup.watch.is_some() && !cgroup.spent;
        if is_usable && self.spare.len() < MAX_SPARE {
            self.spare.push_back(cgroup);
        } else {
            self.remove(cgroup);
        }
    }

    /// Closes the cgroup of a process that has ended and left descendants, which
    /// then costs no descriptor.
    pub(crate) fn close(&mut self, cgroup: &mut Cgroup) {
        cgroup.open = None;
        if let (Some(watch), Some(changes)) = (cgroup.watch.take(), &mut self.changes) {
            changes.forget(watch);
        }
    }

    /// Whether some process that is in no cgroup of a command may be a descendant
    /// of one that was started at this moment, or whether that cannot be known.
    pub(crate) fn has_lost_some_since(started: Moment) -> bool {
        outsiders::may_descend_from_one_started_at(started)
    }

    /// Whether there is more to remove at once.
    pub(crate) fn is_untidy(&self) -> bool {
        self.has_many
    }

    /// Removes some of what could not be removed before.
    pub(crate) fn tidy(&mut self) {
        self.has_many = false;
        if let Some(cgroup) = self.unremoved.pop_front() {
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
        let mut steps = REMOVED;
        match tree::remove(&cgroup.parent, &name, &mut steps) {
            Ok(()) => {}
            // Somebody is still on the way out, or has moved in.
            Err(Errno::BUSY) => self.unremoved.push_back(cgroup),
            Err(Errno::AGAIN) => {
                self.has_many = true;
                self.unremoved.push_front(cgroup);
            }
            // It stays behind; nothing is lost.
            Err(_) => {}
        }
    }

    /// Whether [`prepare`](Self::prepare) has been called.
    pub(crate) fn is_prepared(&self) -> bool {
        self.parent
            .as_ref()
            .is_some_and(|parent| parent.pids.is_some())
    }

    /// Does what somebody would else wait for. For quiet moments.
    pub(crate) fn prepare(&mut self) {
        if !self.is_prepared() {
            self.enable_controllers();
        }
        if self.made == 0
            && let Ok(cgroup) = self.make()
        {
            self.spare.push_back(cgroup);
        }
    }

    /// Lets the kernel count and limit what children use. It takes some time
    /// (20 ms under emulation), which the first command of a VM need not wait
    /// for: what it has used by then is not counted, and that is all.
    fn enable_controllers(&mut self) {
        let Ok(parent) = self.parent() else {
            return;
        };
        if parent.pids.is_some() {
            return;
        }
        // All children together leave an eighth to the kernel and the agent,
        // and one of them leaves half of the rest to the others. So a fork
        // bomb keeps nobody from starting the command that ends it.
        let threads = most_threads().unwrap_or(FEW_THREADS);
        let all = threads.saturating_sub(threads.div_euclid(8));
        let pids = all.div_euclid(2).max(1);
        parent.pids = Some(pids);
        // What the kernel does not have, it does not have.
        enable(&CONTROLLERS, &self.root);
        if let Some(parent) = &self.parent {
            enable(&CONTROLLERS, &parent.directory);
            let _ = write(&parent.directory, "cpu.weight", WEIGHT);
            let _ = rustix::process::nice(NICENESS);
            let _ = write(&parent.directory, "pids.max", &format!("{all}"));
            for number in 1..=self.made {
                let file = format!("{number}/pids.max");
                let _ = write(&parent.directory, &file, &format!("{pids}"));
            }
        }
    }

    /// Lets the kernel count memory. What was used before is not counted.
    fn count_memory(&mut self) -> Result<(), Errno> {
        if self.parent()?.counts_memory {
            return Ok(());
        }
        enable(&MEMORY, &self.root);
        let parent = self.parent()?;
        enable(&MEMORY, &parent.directory);
        parent.counts_memory = true;
        Ok(())
    }

    fn make(&mut self) -> Result<Cgroup, Errno> {
        self.made = self.made.saturating_add(1);
        let (number, has_namespace) = (self.made, self.has_namespaces);
        let parent = self.parent()?;
        let mut cgroup = Cgroup::create(&parent.directory, number)?;
        cgroup.has_namespace = has_namespace;
        if let Some(pids) = parent.pids {
            // Without the controller there is no such file, and no limit.
            let _ = cgroup.write("pids.max", &format!("{pids}"));
        }
        // What is made below must be removed one day.
        let _ = cgroup.write("cgroup.max.descendants", &format!("{MAX_DESCENDANTS}"));
        // From here on it is the child's. One that cannot be watched is used once.
        if let (Some(changes), Some(open)) = (&self.changes, &cgroup.open) {
            cgroup.watch = changes.watch(&open.directory).ok();
        }
        Ok(cgroup)
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
            counts_memory: false,
        })
    }
}

/// What the kernel does not have is noticed when a limit is to be set.
fn enable(controllers: &[&str], directory: &OwnedFd) {
    let file = "cgroup.subtree_control";
    if write(directory, file, &controllers.join(" ")).is_err() {
        // One that the kernel lacks spoils the others.
        for controller in controllers {
            let _ = write(directory, file, controller);
        }
    }
}

/// A guess for a kernel that does not say how many threads it can have.
const FEW_THREADS: u64 = 512;

/// How many threads the kernel can have: as many as fit into an eighth of the
/// memory, and never more than there are numbers for.
fn most_threads() -> Option<u64> {
    const NUMBERS: u64 = 32 * 1024;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open("/proc/sys/kernel/threads-max", flags, Mode::empty()).ok()?;
    let mut text = [0; 32];
    let count = rustix::io::read(&file, &mut text).ok()?;
    let text = core::str::from_utf8(text.get(..count)?).ok()?;
    Some(text.trim().parse::<u64>().ok()?.min(NUMBERS))
}
