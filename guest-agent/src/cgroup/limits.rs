use alloc::format;

use rustix::{fs::OFlags, io::Errno};
use vmcell_wire::CgroupLimits;

use super::{Cgroup, open, write};

impl Cgroup {
    /// Sets what its processes may use together.
    pub(super) fn limit(&mut self, limits: &CgroupLimits) -> Result<(), Errno> {
        self.spent = true;
        if limits.memory > 0 {
            write(&self.directory, "memory.max", &format!("{}", limits.memory))?;
            // A tree without one of its processes is of no use to anybody.
            write(&self.directory, "memory.oom.group", "1")?;
            match write(&self.directory, "memory.swap.max", "0") {
                // The kernel has no swap.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            let events = open(&self.directory, "memory.events", OFlags::RDONLY)?;
            self.memory_events = Some(events);
        }
        if limits.pids > 0 {
            write(&self.directory, "pids.max", &format!("{}", limits.pids))?;
        }
        if limits.cpu_milli > 0 {
            // So many microseconds of each 100,000.
            let quota = u64::from(limits.cpu_milli).saturating_mul(100);
            // The kernel takes no less than a millisecond.
            let quota = quota.max(1000);
            write(&self.directory, "cpu.max", &format!("{quota} 100000"))?;
        }
        Ok(())
    }
}
