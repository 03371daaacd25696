//! Drops all capabilities: capabilities(7).

use std::io;

use rustix::{
    io::Errno,
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};
use vmcell_launcher::{Layer, LayerStatus};

/// Makes sure that no program gets capabilities by being executed, not even as root. Who may not
/// do this need not: a process that gains no privileges gets none so either.
pub(crate) fn drop_bounding_set() -> io::Result<()> {
    for capability in CapabilitySet::all() {
        match remove_capability_from_bounding_set(capability) {
            // The kernel may not know it.
            Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Drops those that this process has, and forbids to gain any by executing a program.
pub(crate) fn drop_all() -> io::Result<LayerStatus> {
    let none = CapabilitySet::empty();
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    set_no_new_privs(true)?;
    Ok(LayerStatus::active(Layer::Capabilities, "none"))
}
