//! Bounds on the memory that users can take without a process that holds it.
//!
//! When memory runs out, the kernel ends processes until there is enough. That
//! does not help against what outlives processes: shared memory, message queues
//! and semaphores of System V (sysvipc(7)), and files in memory. By default
//! their limits are higher than the memory of the VM, so any user could take
//! all of it for good. So 32 MiB are a reserve for the kernel, the agent and
//! root, and of the rest at most about five eighths can go there.
//!
//! | what | part of the memory beyond the reserve |
//! |---|---|
//! | `/dev/shm` (tmpfs) | a quarter, and a file or directory for each 16 KiB of that |
//! | `/run` (tmpfs, writable by root) | an eighth, and the same |
//! | `kernel.shmall`, `kernel.shmmax` | a quarter |
//! | `kernel.msgmni` | a queue for each 32 MiB, at least 2: a queue can take 1 MiB, if its messages are empty |
//! | `kernel.sem` | a 32nd for semaphores of 64 bytes, and a 32nd for sets of 512 bytes |
//!
//! Whoever needs more raises it as root in the guest: `sysctl -w`, or
//! `mount -o remount,size=... /dev/shm`.
//!
//! No reserve of the kernel does this. `vm.admin_reserve_kbytes` and
//! `vm.user_reserve_kbytes` count only where memory is not overcommitted, which
//! many programs need, and `vm.min_free_kbytes` is for the kernel itself.

use alloc::{ffi::CString, format, string::String};

use rustix::{
    fs::{Mode, OFlags, open},
    io::{Errno, write},
    system::sysinfo,
};

/// Limits that fit the memory of this machine.
pub(super) struct UnownedMemory {
    /// What is beyond the reserve, in bytes.
    spare: u64,
}

const PAGE: u64 = 4096;
const MIB: u64 = 1024 * 1024;

/// What is never counted on. Of the smallest VM, which has 64 MiB, the kernel
/// itself takes 13 before it counts the memory.
const RESERVE: u64 = 32 * MIB;
const MIN_SPARE: u64 = 4 * MIB;

/// As much of a tmpfs is for each file or directory, which takes about 1 KiB of
/// the kernel's memory that does not count as the size of the tmpfs.
const BYTES_FOR_FILE: u64 = 16 * 1024;

const SEMAPHORE: u64 = 64;
const SEMAPHORE_SET: u64 = 512;

/// The kernel's own limits, which stay.
const SEMAPHORES_OF_SET: u64 = 32_000;
const SEMAPHORE_OPERATIONS: u64 = 500;
const MAX_SETS: u64 = 32_000;

impl UnownedMemory {
    pub(super) fn of_this_machine() -> Self {
        let memory = sysinfo();
        Self::of(memory.totalram.saturating_mul(memory.mem_unit.into()))
    }

    fn of(total: u64) -> Self {
        Self {
            spare: total.saturating_sub(RESERVE).max(MIN_SPARE),
        }
    }

    /// The options of the mount of `/dev/shm`.
    pub(super) fn shared_memory_mount(&self) -> Result<CString, Errno> {
        mount_options("1777", self.spare.div_euclid(4))
    }

    /// The options of the mount of `/run`.
    pub(super) fn run_mount(&self) -> Result<CString, Errno> {
        mount_options("0755", self.spare.div_euclid(8))
    }

    /// Sets the kernel's parameters. `/proc` is mounted.
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
                format!("{SEMAPHORES_OF_SET} {semaphores} {SEMAPHORE_OPERATIONS} {sets}"),
            ),
        ]
    }
}

fn mount_options(mode: &str, size: u64) -> Result<CString, Errno> {
    let files = size.div_euclid(BYTES_FOR_FILE);
    let options = format!("mode={mode},size={size},nr_inodes={files}");
    CString::new(options).map_err(|_| Errno::INVAL)
}

fn set_parameter(name: &str, value: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = match open(format!("/proc/sys/kernel/{name}"), flags, Mode::empty()) {
        // A kernel without System V IPC has nothing to bound.
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
        let memory = UnownedMemory::of(512 * MIB);
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
        let small = UnownedMemory::of(50 * MIB);
        let [_, _, (_, queues), (_, semaphores)] = small.parameters();
        assert_eq!((&*queues, &*semaphores), ("2", "32000 9216 500 1152"));
    }
}
