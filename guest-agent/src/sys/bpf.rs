//! bpf(2), for programs of the type `sk_lookup`: they choose the socket of a
//! connection that begins.

use rustix::{
    fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    io::Errno,
};

/// An instruction: `struct bpf_insn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct BpfInstruction {
    pub(crate) code: u8,
    /// The destination in the low four bits, the source in the high ones.
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// Creates an array of sockets for programs to choose from.
pub(crate) fn socket_map(sockets: &[BorrowedFd<'_>]) -> Result<OwnedFd, Errno> {
    #[repr(C)]
    struct Create {
        kind: u32,
        key_size: u32,
        value_size: u32,
        entries: u32,
        flags: u32,
    }
    #[repr(C)]
    struct Update {
        map: u32,
        padding: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let create = Create {
        kind: MAP_TYPE_SOCKMAP,
        key_size: 4,
        value_size: 8,
        entries: sockets.len() as u32,
        flags: 0,
    };
    // SAFETY: it has no pointers.
    let map = descriptor(unsafe { bpf(MAP_CREATE, &create) }?)?;
    for (index, socket) in sockets.iter().enumerate() {
        let key = index as u32;
        let value = u64::from(number(socket));
        let update = Update {
            map: number(&map),
            padding: 0,
            key: &raw const key as u64,
            value: &raw const value as u64,
            flags: 0,
        };
        // SAFETY: the key has 4 bytes and the value 8, as the map was created, and
        // both outlive the call.
        unsafe { bpf(MAP_UPDATE, &update) }?;
    }
    Ok(map)
}

/// Loads a program. The kernel checks that it ends and accesses nothing that it must
/// not.
pub(crate) fn load_lookup_program(program: &[BpfInstruction]) -> Result<OwnedFd, Errno> {
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        instructions: u64,
        license: u64,
        log_level: u32,
        log_size: u32,
        log: u64,
        kernel_version: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        attach_type: u32,
    }
    let load = Load {
        kind: PROGRAM_TYPE_SK_LOOKUP,
        count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: c"MIT".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"vmcell_capture\0\0",
        interface: 0,
        attach_type: ATTACH_TYPE_SK_LOOKUP,
    };
    // SAFETY: so many instructions and the text, with a zero byte, are there.
    descriptor(unsafe { bpf(PROGRAM_LOAD, &load) }?)
}

/// Runs a program for every connection to this machine that begins in a network
/// namespace, until the returned link is closed.
pub(crate) fn attach_lookup_program(
    program: &OwnedFd,
    namespace: &OwnedFd,
) -> Result<OwnedFd, Errno> {
    let create = [
        number(program),
        number(namespace),
        ATTACH_TYPE_SK_LOOKUP,
        0, // flags
    ];
    // SAFETY: it has no pointers.
    descriptor(unsafe { bpf(LINK_CREATE, &create) }?)
}

/// Replaces the program of a link.
pub(crate) fn replace_lookup_program(link: &OwnedFd, program: &OwnedFd) -> Result<(), Errno> {
    let update = [
        number(link),
        number(program),
        0, // flags
        0, // the program before, which need not be named
    ];
    // SAFETY: it has no pointers.
    unsafe { bpf(LINK_UPDATE, &update) }.map(|_| ())
}

/// Makes the system call.
///
/// # Safety
/// The attributes are those of the command, as `union bpf_attr` has them, without
/// padding. Pointers in them are valid.
unsafe fn bpf<T>(command: libc::c_int, attributes: &T) -> Result<libc::c_long, Errno> {
    // SAFETY: the attributes are there, with this size. The rest is the caller's
    // promise.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            core::ptr::from_ref(attributes),
            size_of::<T>(),
        )
    };
    super::check(result)
}

fn descriptor(result: libc::c_long) -> Result<OwnedFd, Errno> {
    let number = libc::c_int::try_from(result).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel has just opened it, and nobody else has its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn number(descriptor: &impl AsRawFd) -> u32 {
    descriptor.as_raw_fd().unsigned_abs()
}

// Of linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;
const MAP_TYPE_SOCKMAP: u32 = 15;
const PROGRAM_TYPE_SK_LOOKUP: u32 = 30;
const ATTACH_TYPE_SK_LOOKUP: u32 = 36;
