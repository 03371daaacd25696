use alloc::{collections::VecDeque, format};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags},
    io::Errno,
};
use vmcell_wire::CgroupLimits;

use super::{Cgroup, open, write};

/// All cgroups of children.
///
/// Making one takes longer than starting a small program, so empty ones are
/// used again, and the next one is made while nobody waits for it.
pub(crate) struct Cgroups {
    root: OwnedFd,
    /// Where the children's cgroups are; none before the first is needed.
    parent: Option<Parent>,
    made: u64,
    spare: VecDeque<Cgroup>,
    /// Their process was reported, but descendants of it live on.
    lingering: VecDeque<Cgroup>,
}

struct Parent {
    directory: OwnedFd,
    /// How many processes a child without limits may have; none before the
    /// controllers are enabled.
    pids: Option<u64>,
    counts_memory: bool,
}

/// The cgroup of all children, in the root.
const PARENT: &str = "vmcell";

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

/// How many cgroups are looked at when some process has ended: a look is a
/// system call, and somebody waits.
const SWEPT: usize = 4;

impl Cgroups {
    /// Makes children's cgroups under the root of the hierarchy, `path`.
    pub(crate) fn new(path: &str) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: rustix::fs::openat(CWD, path, flags, Mode::empty())?,
            parent: None,
            made: 0,
            spare: VecDeque::new(),
            lingering: VecDeque::new(),
        })
    }

    /// An empty cgroup for a new process.
    pub(crate) fn take(&mut self) -> Result<Cgroup, Errno> {
        match self.spare.pop_front() {
            Some(cgroup) => Ok(cgroup),
            None => self.make(),
        }
    }

    /// A new cgroup with limits.
    pub(crate) fn take_limited(&mut self, limits: &CgroupLimits) -> Result<Cgroup, Errno> {
        self.enable_controllers();
        if limits.memory > 0 {
            self.count_memory()?;
        }
        let mut cgroup = self.make()?;
        if let Err(error) = cgroup.limit(limits) {
            self.give_back(cgroup, true);
            return Err(error);
        }
        Ok(cgroup)
    }

    /// Takes back the cgroup of a process that has been reported.
    pub(crate) fn give_back(&mut self, cgroup: Cgroup, is_empty: bool) {
        if !is_empty {
            self.lingering.push_back(cgroup);
        } else if self.spare.len() < MAX_SPARE && !cgroup.spent {
            self.spare.push_back(cgroup);
        } else if let Some(parent) = &self.parent {
            cgroup.remove(&parent.directory);
        }
    }

    /// Some process ended: looks whether it was the last of its cgroup.
    pub(crate) fn sweep(&mut self) {
        for _ in 0..self.lingering.len().min(SWEPT) {
            if let Some(cgroup) = self.lingering.pop_front() {
                let is_empty = cgroup.is_empty();
                self.give_back(cgroup, is_empty);
            }
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
        let name = format!("{}", self.made);
        let parent = self.parent()?;
        let cgroup = Cgroup::create(&parent.directory, name)?;
        if let Some(pids) = parent.pids {
            // Without the controller there is no such file, and no limit.
            let _ = write(&cgroup.directory, "pids.max", &format!("{pids}"));
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
        Ok(Self {
            directory: open(root, PARENT, OFlags::RDONLY | OFlags::DIRECTORY)?,
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
