use alloc::format;

use rustix::{fs::OFlags, io::Errno};
use vmcell_wire::CgroupLimits;

use super::{Cgroup, open};

impl Cgroup {
    /// Limits what all processes in the cgroup may use together.
    pub(super) fn limit(&mut self, limits: &CgroupLimits) -> Result<(), Errno> {
        self.not_reusable = true;
        if limits.memory > 0 {
            self.write("memory.max", &format!("{}", limits.memory))?;
            // The whole tree ends, because the rest of it is rarely of use.
            self.write("memory.oom.group", "1")?;
            match self.write("memory.swap.max", "0") {
                // The kernel has no swap.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            if let Some(handles) = &mut self.handles {
                let events = open(&handles.directory, "memory.events", OFlags::RDONLY)?;
                handles.memory_events = Some(events);
            }
        }
        if limits.pids > 0 {
            self.write("pids.max", &format!("{}", limits.pids))?;
        }
        if limits.cpu_milli > 0 {
            // Microseconds of each period of 100,000.
            let quota = u64::from(limits.cpu_milli).saturating_mul(100);
            // The kernel rejects less than a millisecond.
            let quota = quota.max(1000);
            self.write("cpu.max", &format!("{quota} 100000"))?;
        }
        Ok(())
    }
}
