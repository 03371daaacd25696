use std::{
    fmt, io,
    os::{linux::net::SocketAddrExt, unix::net::SocketAddr},
};

use rustix::process::geteuid;

/// Where a VM of a user is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    uid: u32,
    id: String,
}

/// Every name begins with this.
const PREFIX: &str = "vmcell";

impl Name {
    /// The most bytes that an id may have.
    const MAX_ID: usize = 48;

    /// The name of a VM of our own user. None if the id cannot be one.
    pub(crate) fn ours(id: &str) -> Option<Self> {
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

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(self.to_string())
    }

    /// Every name of our own user that somebody listens at. Whether it is one
    /// of our own programs, only a visit can tell.
    pub(super) fn all() -> io::Result<Vec<Self>> {
        let sockets = std::fs::read("/proc/net/unix")?;
        let mut names: Vec<_> = String::from_utf8_lossy(&sockets)
            .lines()
            .filter_map(Self::of_listener)
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// A line of `/proc/net/unix`: address, count, protocol, flags, type,
    /// state, inode, path.
    fn of_listener(line: &str) -> Option<Self> {
        const ACCEPTS_CONNECTIONS: &str = "00010000";
        let mut words = line.split_ascii_whitespace();
        let flags = words.nth(3)?;
        let path = words.nth(3)?.strip_prefix('@')?;
        let (prefix, rest) = path.split_once('/')?;
        let (uid, id) = rest.split_once('/')?;
        let name = Self::ours(id)?;
        let ours = prefix == PREFIX && uid.parse() == Ok(name.uid);
        (ours && flags == ACCEPTS_CONNECTIONS).then_some(name)
    }
}

impl fmt::Display for Name {
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
    fn only_listeners_of_our_own_user_count() {
        let uid = our_uid();
        let line = |flags: &str, path: &str| {
            format!("0000000000000000: 00000002 00000000 {flags} 0001 01 12345 {path}")
        };
        let name = Name::of_listener(&line("00010000", &format!("@vmcell/{uid}/web-1")));
        assert_eq!(name, Name::ours("web-1"));
        let refused = [
            line("00000000", &format!("@vmcell/{uid}/web-1")),
            line("00010000", &format!("@vmcell/{}/web-1", uid + 1)),
            line("00010000", &format!("vmcell/{uid}/web-1")),
            line("00010000", &format!("@vmcell/{uid}/we/b")),
            line("00010000", &format!("@other/{uid}/web-1")),
            "Num RefCount Protocol Flags Type St Inode Path".to_owned(),
            String::new(),
        ];
        for line in refused {
            assert_eq!(Name::of_listener(&line), None, "{line}");
        }
    }

    #[test]
    fn an_id_is_a_short_plain_word() {
        assert!(Name::ours("a.B-c_9").is_some());
        for id in ["", "a b", "a/b", "-rf", ".hidden", "ä", &"x".repeat(49)] {
            assert!(Name::ours(id).is_none(), "{id}");
        }
    }
}
