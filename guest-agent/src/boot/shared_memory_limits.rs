//! Limits of the memory that is not freed when processes end.
//!
//! When memory runs out, the kernel kills processes until there is enough. That
//! does not free what outlives processes: shared memory, message queues and
//! semaphores of System V (sysvipc(7)), and files in tmpfs. By default their
//! limits are higher than the memory of the VM, so any user could take all of it
//! for good. So 32 MiB are a reserve for the kernel, the agent and root, and at
//! most about five eighths of the rest can be used that way.
//!
//! | limit | part of the memory beyond the reserve |
//! |---|---|
//! | `/dev/shm` (tmpfs) | a quarter, and a file or directory for each 16 KiB of that |
//! | `/run` (tmpfs, writable by root) | an eighth, and the same |
//! | `kernel.shmall`, `kernel.shmmax` | a quarter |
//! | `kernel.msgmni` | a queue for each 32 MiB, at least 2: a queue can take 1 MiB, if its messages are empty |
//! | `kernel.sem` | a 32nd for semaphores of 64 bytes, and a 32nd for sets of 512 bytes |
//!
//! Root can raise the limits in the guest: `sysctl -w`, or
//! `mount -o remount,size=... /dev/shm`.
//!
//! The kernel's own reserves do not help. `vm.admin_reserve_kbytes` and
//! `vm.user_reserve_kbytes` only have an effect without overcommit, which many
//! programs need, and `vm.min_free_kbytes` is for the kernel itself.

use alloc::{ffi::CString, format, string::String};

use rustix::{
    fs::{Mode, OFlags, open},
    io::{Errno, write},
    system::sysinfo,
};

/// The limits for a machine with a given amount of memory.
pub(super) struct SharedMemoryLimits {
    /// The memory beyond the reserve, in bytes.
    spare: u64,
}

const PAGE: u64 = 4096;
const MIB: u64 = 1024 * 1024;

/// The memory that the limits leave free. Of the smallest VM, which has 64 MiB, the
/// kernel itself takes 13 before it counts the memory.
const RESERVE: u64 = 32 * MIB;
const MIN_SPARE: u64 = 4 * MIB;

/// How many bytes of a tmpfs there are for each file or directory. One takes about
/// 1 KiB of the kernel's memory that does not count as the size of the tmpfs.
const BYTES_PER_INODE: u64 = 16 * 1024;

const SEMAPHORE: u64 = 64;
const SEMAPHORE_SET: u64 = 512;

/// Limits that keep the kernel's default.
const SEMAPHORES_PER_SET: u64 = 32_000;
const SEMAPHORE_OPERATIONS: u64 = 500;
const MAX_SETS: u64 = 32_000;

impl SharedMemoryLimits {
    pub(super) fn for_this_machine() -> Self {
        let memory = sysinfo();
        Self::of(memory.totalram.saturating_mul(memory.mem_unit.into()))
    }

    fn of(total: u64) -> Self {
        Self {
            spare: total.saturating_sub(RESERVE).max(MIN_SPARE),
        }
    }

    /// Returns the mount options of `/dev/shm`.
    pub(super) fn shared_memory_mount(&self) -> Result<CString, Errno> {
        mount_options("1777", self.spare.div_euclid(4))
    }

    /// Returns the mount options of `/run`.
    pub(super) fn run_mount(&self) -> Result<CString, Errno> {
        mount_options("0755", self.spare.div_euclid(8))
    }

    /// Sets the kernel's parameters. `/proc` must be mounted.
    pub(super) fn set_parameters(&self) -> Result<(), Errno> {
        for (name, value) in self.parameters() {
            set_parameter(name, &value)?;
        }
        Ok(())
    }

    fn parameters(&self) -> [(&'static str, String); 4] {
        let quarter = self.spare.div_euclid(4);
        let queues = self.spare.div_euclid(32 * MIB).max(2);
        let semaphores = self.spare.div_euclid(32 * SEMAPHORE);
        let sets = self.spare.div_euclid(32 * SEMAPHORE_SET).min(MAX_SETS);
        [
            ("shmall", format!("{}", quarter.div_euclid(PAGE))),
            ("shmmax", format!("{quarter}")),
            ("msgmni", format!("{queues}")),
            (
                "sem",
                format!("{SEMAPHORES_PER_SET} {semaphores} {SEMAPHORE_OPERATIONS} {sets}"),
            ),
        ]
    }
}

fn mount_options(mode: &str, size: u64) -> Result<CString, Errno> {
    let files = size.div_euclid(BYTES_PER_INODE);
    let options = format!("mode={mode},size={size},nr_inodes={files}");
    CString::new(options).map_err(|_| Errno::INVAL)
}

fn set_parameter(name: &str, value: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = match open(format!("/proc/sys/kernel/{name}"), flags, Mode::empty()) {
        // A kernel without System V IPC has nothing to limit.
        Err(Errno::NOENT) => return Ok(()),
        file => file?,
    };
    write(file, value.as_bytes()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_from_the_memory() {
        let memory = SharedMemoryLimits::of(512 * MIB);
        let of_shared = memory.shared_memory_mount().unwrap();
        assert_eq!(
            of_shared.to_str(),
            Ok("mode=1777,size=125829120,nr_inodes=7680")
        );
        assert_eq!(
            memory.parameters(),
            [
                ("shmall", String::from("30720")),
                ("shmmax", String::from("125829120")),
                ("msgmni", String::from("15")),
                ("sem", String::from("32000 245760 500 30720")),
            ]
        );
        let small = SharedMemoryLimits::of(50 * MIB);
        let [_, _, (_, queues), (_, semaphores)] = small.parameters();
        assert_eq!((&*queues, &*semaphores), ("2", "32000 9216 500 1152"));
    }
}
