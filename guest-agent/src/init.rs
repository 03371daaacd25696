//! PID 1 of a vmcell guest.
//!
//! Built without Rust's standard library, whose backtraces of panics would be a
//! quarter of the program's code. Here a panic prints a line on the console and
//! ends the VM.
#![no_std]
#![no_main]
// For the symbols that the C library finds by name.
#![allow(unsafe_code)]

use core::{ffi::c_int, panic::PanicInfo};

use libc_alloc::LibcAlloc;
use vmcell_agent::{
    BuildError, Console,
    boot::{self, Booted},
    program::{self, OnTerminate, Signals},
};

// The standard library would link these libraries.
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

/// Called by the C library. Never returns as PID 1 of a VM: a kernel whose PID
/// 1 exits panics. A process that is not PID 1 becomes PID 1 of new namespaces.
// SAFETY: this is the only function of that name, with the signature that the C
// library expects.
#[unsafe(no_mangle)]
extern "C" fn main(_count: c_int, _arguments: *const *const u8) -> c_int {
    let is_vm = boot::is_init();
    let booted = match is_vm {
        true => boot::boot(),
        false => boot::namespaces::boot(),
    };
    let outcome = booted.map(serve);
    let console = match is_vm {
        true => Console::open(),
        false => Console::standard_error(),
    };
    let code = match outcome {
        Ok(Ok(())) => 0,
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
        // The kernel kills all other processes of the namespaces.
        false => code,
    }
}

/// Serves a booted guest until it is to be powered off.
fn serve(booted: Booted) -> Result<(), BuildError> {
    let dedicated = program::dedicate()?;
    let signals = Signals::new()?;
    let agent = booted.agent_builder().dedicated(dedicated).build()?;
    // A power-off sends SIGTERM to every process, and only PID 1 is exempt from
    // that.
    program::serve(agent, &signals, OnTerminate::Ignore)?;
    Ok(())
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let console = Console::open();
    console.error(format_args!("{info}"));
    if boot::is_init() {
        boot::halt(&console)
    }
    vmcell_agent::exit_immediately()
}

/// The precompiled core libraries were built for unwinding and refer to these
/// two symbols. A panic ends this program, so they are never called.
// SAFETY: these are the only symbols of their names, and they are never called.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

// SAFETY: as above. With glibc, libgcc_eh defines it.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    vmcell_agent::exit_immediately()
}
