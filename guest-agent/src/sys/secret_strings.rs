use core::ffi::{CStr, c_char};

use rustix::io::Errno;
use vmcell_wire::{PackedStrings, SecretVariable};
use zeroize::Zeroize as _;

use super::Mapping;

/// The secret variables of a child as it gets them. No other memory of the agent has
/// them, and no fork of it has a copy of this one. It is erased when it is dropped.
pub(super) struct SecretStrings(Mapping);

impl SecretStrings {
    /// Restores the secret variables of an environment; `None` if it has none.
    pub(super) fn restore(env: PackedStrings<'_>) -> Result<Option<Self>, Errno> {
        let variables = || env.iter().filter_map(parse);
        let lengths = variables().map(|variable| variable.byte_len().saturating_add(1));
        let length = lengths.fold(0, usize::saturating_add);
        if length == 0 {
            return Ok(None);
        }
        let mut memory = Mapping::new(length)?;
        let restored = variables().flat_map(|variable| variable.bytes().chain([0]));
        for (to, byte) in memory.as_mut_slice().iter_mut().zip(restored) {
            *to = byte;
        }
        Ok(Some(Self(memory)))
    }

    /// Returns pointers to the variables, which are valid as long as this is.
    pub(super) fn pointers(&self) -> impl Iterator<Item = *const c_char> {
        let strings = PackedStrings::from_bytes(self.0.as_slice()).unwrap_or_default();
        strings.iter().map(CStr::as_ptr)
    }
}

impl Drop for SecretStrings {
    fn drop(&mut self) {
        self.0.as_mut_slice().zeroize();
    }
}

/// Returns whether a variable has to be restored.
pub(super) fn is_secret(entry: &CStr) -> bool {
    parse(entry).is_some()
}

fn parse(entry: &CStr) -> Option<SecretVariable<'_>> {
    SecretVariable::parse(entry.to_bytes())
}
