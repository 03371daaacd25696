//! System calls that return their error by value, for children that share the
//! agent's memory: the C library stores errors in memory that the agent uses at
//! the same time.

use core::{arch::asm, ffi::c_long};

use rustix::io::Errno;

/// Makes a system call: syscall(2). Arguments that a call does not have are
/// ignored by the kernel.
///
/// # Safety
/// As for the system call itself.
pub(super) unsafe fn call(number: c_long, arguments: [usize; 5]) -> Result<usize, Errno> {
    let [a, b, c, d, e] = arguments;
    let result: isize;
    // SAFETY: the kernel changes no register but these, and no memory but that
    // of the call, which the caller guarantees to be valid.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    usize::try_from(result).map_err(|_| {
        let number = i32::try_from(result.wrapping_neg()).unwrap_or(0);
        Errno::from_raw_os_error(number)
    })
}
