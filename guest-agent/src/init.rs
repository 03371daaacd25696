//! PID 1 of a vmcell guest.
//!
//! Without Rust's standard library, which would print a backtrace of a panic
//! with a quarter of the program's code. Here a panic is a line on the console
//! and the end of the VM.
#![no_std]
#![no_main]
// For what the C library is told by name.
#![allow(unsafe_code)]

use core::{ffi::c_int, panic::PanicInfo};

use libc_alloc::LibcAlloc;
use vmcell_agent::{Console, boot, serve_guest};

// The standard library would bring these along.
// SAFETY: nothing is declared here.
#[allow(clippy::duplicated_attributes)]
#[cfg_attr(
    target_env = "musl",
    link(name = "c", kind = "static", modifiers = "-bundle")
)]
#[cfg_attr(
    target_env = "gnu",
    link(name = "gcc_eh", kind = "static", modifiers = "-bundle")
)]
#[cfg_attr(
    target_env = "gnu",
    link(name = "gcc", kind = "static", modifiers = "-bundle")
)]
#[cfg_attr(
    target_env = "gnu",
    link(name = "c", kind = "static", modifiers = "-bundle")
)]
unsafe extern "C" {}

#[global_allocator]
static ALLOCATOR: LibcAlloc = LibcAlloc;

/// Called by the C library. Never returns as PID 1 of a VM: a kernel whose
/// PID 1 ends panics. Who is not PID 1 is to become that in namespaces.
// SAFETY: this is the one function of that name, as the C library wants it.
#[unsafe(no_mangle)]
extern "C" fn main(_count: c_int, _arguments: *const *const u8) -> c_int {
    let is_vm = boot::is_init();
    let booted = match is_vm {
        true => boot::boot(),
        false => boot::namespaces::boot(),
    };
    let outcome = booted.map(serve_guest);
    let console = match is_vm {
        true => Console::open(),
        false => Console::standard_error(),
    };
    let code = match outcome {
        Ok(Ok(_)) => 0,
        Ok(Err(error)) => {
            console.error(format_args!("the agent failed: {error}"));
            1
        }
        Err(error) => {
            console.error(format_args!("{error}"));
            1
        }
    };
    match is_vm {
        true => boot::halt(&console),
        // The kernel ends all others in the namespaces.
        false => code,
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let console = Console::open();
    console.error(format_args!("{info}"));
    if boot::is_init() {
        boot::halt(&console)
    }
    vmcell_agent::end_this_process()
}

/// The libraries that come with the compiler were made for programs that
/// unwind, and name these two. A panic ends this one, so nobody calls them.
// SAFETY: they are the only ones of their names, and never called.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

// SAFETY: as above. Where the C library is glibc, its own is there.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    vmcell_agent::end_this_process()
}
