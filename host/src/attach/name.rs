use std::fmt;

use rustix::process::geteuid;

/// The name of a VM: its user and its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VmName {
    uid: u32,
    id: String,
}

/// The first part of every address.
const PREFIX: &str = "vmcell";

impl VmName {
    /// The most bytes that an id may have.
    const MAX_ID: usize = 48;

    /// The name of a VM of our own user. `None` if the id is not valid.
    pub(crate) fn new(id: &str) -> Option<Self> {
        let permitted = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let valid = (1..=Self::MAX_ID).contains(&id.len())
            && !id.starts_with(['-', '.'])
            && id.bytes().all(permitted);
        valid.then(|| Self {
            uid: our_uid(),
            id: id.to_owned(),
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the default abstract address of the VM's socket: `vmcell/UID/ID`.
    pub(super) fn address(&self) -> String {
        self.to_string()
    }

    /// Returns an address that others cannot guess, for an id whose default
    /// address another user holds: `vmcell/UID/ID/RANDOM`.
    pub(super) fn fallback_address(&self, random: u64) -> String {
        format!("{self}/{random:016x}")
    }

    /// Parses an address. `None` if it is not that of a VM of our own user.
    pub(super) fn from_address(address: &str) -> Option<Self> {
        let mut parts = address.split('/');
        let prefix = parts.next()?;
        let uid = parts.next()?;
        let name = Self::new(parts.next()?)?;
        let has_no_more = parts.nth(1).is_none();
        (prefix == PREFIX && uid.parse() == Ok(name.uid) && has_no_more).then_some(name)
    }
}

impl fmt::Display for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}/{}/{}", self.uid, self.id)
    }
}

pub(super) fn our_uid() -> u32 {
    geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_vm_of_our_own_user() {
        let uid = our_uid();
        let name = VmName::new("web-1").unwrap();
        assert_eq!(VmName::from_address(&name.address()), Some(name.clone()));
        let fallback = name.fallback_address(7);
        assert_eq!(fallback, format!("vmcell/{uid}/web-1/0000000000000007"));
        assert_eq!(VmName::from_address(&fallback), Some(name));
        for other in [
            &format!("vmcell/{}/web-1", uid + 1),
            &format!("vmcell/{uid}"),
            &format!("vmcell/{uid}/we b"),
            &format!("vmcell/{uid}/web-1/7/8"),
            &format!("other/{uid}/web-1"),
            "",
        ] {
            assert_eq!(VmName::from_address(other), None, "{other}");
        }
    }

    #[test]
    fn an_id_is_a_short_plain_word() {
        assert!(VmName::new("a.B-c_9").is_some());
        for id in ["", "a b", "a/b", "-rf", ".hidden", "ä", &"x".repeat(49)] {
            assert!(VmName::new(id).is_none(), "{id}");
        }
    }
}
