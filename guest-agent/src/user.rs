//! Resolves `USER[:GROUP]` to numbers with the image's own databases, passwd(5)
//! and group(5).
//!
//! The image is not trusted, and a process may have changed it. So the databases
//! are only read if they are regular files of the root's own file system, up to a
//! limit, and malformed lines are ignored.

use alloc::{string::String, vec::Vec};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};
use vmcell_wire::{Failure, FailureKind, Stage};

use crate::sys::Credentials;

/// The identity that a process runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
    pub(crate) name: String,
    pub(crate) home: String,
}

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// How many bytes of a database are read; the rest is ignored.
const MAX_DATABASE: usize = 1024 * 1024;

/// How many supplementary groups a user can have; more are ignored.
const MAX_GROUPS: usize = 64;

impl User {
    /// Resolves `wanted`. Returns `None` for root: nothing has to be changed then.
    pub(crate) fn find(wanted: &str) -> Result<Option<Self>, Failure<'static>> {
        if matches!(wanted, "" | "root" | "0") {
            return Ok(None);
        }
        let passwd = read_database(PASSWD).map_err(|errno| unreadable(errno, PASSWD_TEXT))?;
        let group = read_database(GROUP).map_err(|errno| unreadable(errno, GROUP_TEXT))?;
        Self::look_up(wanted, &passwd, &group).map(Some)
    }

    pub(crate) fn credentials(&self) -> Credentials<'_> {
        Credentials {
            uid: self.uid,
            gid: self.gid,
            groups: &self.groups,
        }
    }

    /// Resolves `wanted` with the contents of the databases.
    pub(crate) fn look_up(
        wanted: &str,
        passwd: &[u8],
        group: &[u8],
    ) -> Result<Self, Failure<'static>> {
        let (user, group_wanted) = match wanted.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (wanted, None),
        };
        if user.is_empty() || group_wanted == Some("") {
            return Err(invalid("the user is not USER or USER:GROUP"));
        }
        let number = parse_id(user.as_bytes());
        let account = accounts(passwd).find(|account| match number {
            Some(number) => account.uid == number,
            None => account.name == user.as_bytes(),
        });
        // As in the database, even if it cannot be in the environment.
        let listed_name = account.as_ref().map_or(user.as_bytes(), |it| it.name);
        let (uid, own_gid, name, home) = match (&account, number) {
            (Some(account), _) => (
                account.uid,
                account.gid,
                utf8_or_empty(account.name),
                utf8_or_empty(account.home),
            ),
            (None, Some(number)) => (number, number, String::from(user), String::from("/")),
            (None, None) => return Err(unknown("no such user in /etc/passwd")),
        };
        let gid = match group_wanted {
            None => own_gid,
            Some(wanted) => match parse_id(wanted.as_bytes()) {
                Some(number) => number,
                None => groups(group)
                    .find(|entry| entry.name == wanted.as_bytes())
                    .map(|entry| entry.gid)
                    .ok_or_else(|| unknown("no such group in /etc/group"))?,
            },
        };
        let memberships = groups(group)
            .filter(|entry| entry.has_member(listed_name) && entry.gid != gid)
            .map(|entry| entry.gid);
        let mut supplementary = Vec::new();
        for gid in memberships {
            if supplementary.len() < MAX_GROUPS && !supplementary.contains(&gid) {
                supplementary.push(gid);
            }
        }
        Ok(Self {
            uid,
            gid,
            groups: supplementary,
            name,
            home: if home.is_empty() {
                String::from("/")
            } else {
                home
            },
        })
    }
}

/// Returns the contents of /etc/passwd, or nothing if it cannot be read.
pub(crate) fn read_passwd() -> Vec<u8> {
    read_database(PASSWD).unwrap_or_default()
}

/// Returns the contents of /etc/group, or nothing if it cannot be read.
pub(crate) fn read_group() -> Vec<u8> {
    read_database(GROUP).unwrap_or_default()
}

pub(crate) fn name_of_user(uid: u32, passwd: &[u8]) -> Option<&[u8]> {
    accounts(passwd)
        .find(|account| account.uid == uid)
        .map(|account| account.name)
}

pub(crate) fn name_of_group(gid: u32, group: &[u8]) -> Option<&[u8]> {
    groups(group)
        .find(|entry| entry.gid == gid)
        .map(|entry| entry.name)
}

/// A line of passwd(5).
struct Account<'a> {
    name: &'a [u8],
    uid: u32,
    gid: u32,
    home: &'a [u8],
}

/// A line of group(5).
struct Group<'a> {
    name: &'a [u8],
    gid: u32,
    members: &'a [u8],
}

impl Group<'_> {
    fn has_member(&self, name: &[u8]) -> bool {
        self.members
            .split(|byte| *byte == b',')
            .any(|member| member == name)
    }
}

fn accounts(passwd: &[u8]) -> impl Iterator<Item = Account<'_>> {
    records(passwd).filter_map(|mut fields| {
        let name = fields.next().filter(|name| !name.is_empty())?;
        let uid = parse_id(fields.nth(1)?)?;
        let gid = parse_id(fields.next()?)?;
        let home = fields.nth(1).unwrap_or_default();
        Some(Account {
            name,
            uid,
            gid,
            home,
        })
    })
}

fn groups(group: &[u8]) -> impl Iterator<Item = Group<'_>> {
    records(group).filter_map(|mut fields| {
        let name = fields.next().filter(|name| !name.is_empty())?;
        let gid = parse_id(fields.nth(1)?)?;
        let members = fields.next().unwrap_or_default();
        Some(Group { name, gid, members })
    })
}

/// Returns the fields of each line.
fn records(database: &[u8]) -> impl Iterator<Item = impl Iterator<Item = &[u8]>> {
    database
        .split(|byte| *byte == b'\n')
        .map(|line| line.split(|byte| *byte == b':'))
}

/// Parses a uid or a gid. The largest number is none: chown(2) takes it as "no
/// change".
fn parse_id(digits: &[u8]) -> Option<u32> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u32 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    (number != u32::MAX).then_some(number)
}

/// Returns a text for the environment, empty if it is not UTF-8 or has a zero byte,
/// which would end it.
fn utf8_or_empty(bytes: &[u8]) -> String {
    match core::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => String::from(text),
        _ => String::new(),
    }
}

/// Reads a database. A missing one is empty.
fn read_database(path: &str) -> Result<Vec<u8>, Errno> {
    // A FIFO, a device, a lease, or a file system that a process has mounted must
    // not block the agent.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
    let file = match openat2(CWD, path, flags, Mode::empty(), resolve) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let status = rustix::fs::fstat(&file)?;
    if !FileType::from_raw_mode(status.st_mode).is_file() {
        return Err(Errno::INVAL);
    }
    let size = usize::try_from(status.st_size).unwrap_or(usize::MAX);
    let mut bytes = alloc::vec![0; size.min(MAX_DATABASE)];
    let mut filled = 0usize;
    loop {
        match rustix::io::read(&file, bytes.get_mut(filled..).unwrap_or_default()) {
            Ok(0) => break,
            Ok(count) => filled = filled.saturating_add(count),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

const PASSWD_TEXT: &str = "/etc/passwd cannot be read";
const GROUP_TEXT: &str = "/etc/group cannot be read";

fn unreadable(errno: Errno, text: &'static str) -> Failure<'static> {
    let number = u16::try_from(errno.raw_os_error()).unwrap_or(0);
    Failure::from_errno(number, Stage::User, text)
}

fn unknown(text: &'static str) -> Failure<'static> {
    Failure::new(FailureKind::NotFound, Stage::User, text)
}

fn invalid(text: &'static str) -> Failure<'static> {
    Failure::new(FailureKind::Invalid, Stage::User, text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PASSWD: &[u8] = b"root:x:0:0:root:/root:/bin/sh\n\
        garbage\n\
        :x:7:7:no name:/:/bin/sh\n\
        negative:x:-1:1::/:\n\
        huge:x:4294967296:1::/:\n\
        none:x:4294967295:1::/:\n\
        alice:x:1000:100:Alice:/home/alice:/bin/sh\n\
        alice:x:1001:101:the second:/nowhere:/bin/sh\n\
        short:x:2000:2000\n";
    const GROUP: &[u8] = b"root:x:0:\n\
        audio:x:29:bob,alice\n\
        video:x:44:alice,\n\
        users:x:100:alice\n\
        malice:x:66:malice,alicex\n\
        audio2:x:29:alice\n";

    fn find(wanted: &str) -> Result<User, FailureKind> {
        User::look_up(wanted, PASSWD, GROUP).map_err(|failure| failure.kind)
    }

    #[test]
    fn a_name_is_found_with_all_its_groups() {
        let alice = find("alice").unwrap();
        assert_eq!((alice.uid, alice.gid), (1000, 100));
        assert_eq!(alice.groups, [29, 44]);
        assert_eq!((&*alice.name, &*alice.home), ("alice", "/home/alice"));
    }

    #[test]
    fn a_number_is_the_user_with_that_number() {
        assert_eq!(find("1000"), find("alice"));
    }

    #[test]
    fn a_user_whose_name_is_no_text_is_not_in_every_group_without_members() {
        let passwd = b"caf\xe9:x:1000:100::/home/cafe:/bin/sh\n";
        let group = b"root:x:0:\nshadow:x:42:\naudio:x:29:caf\xe9\nvideo:x:44:,\n";
        let user = User::look_up("1000", passwd, group).unwrap();
        assert_eq!((&*user.name, &user.groups[..]), ("", &[29][..]));
    }

    #[test]
    fn a_number_without_an_entry_stands_for_itself() {
        let nobody = find("4242").unwrap();
        assert_eq!((nobody.uid, nobody.gid), (4242, 4242));
        assert_eq!((&*nobody.name, &*nobody.home), ("4242", "/"));
        assert_eq!(find("4242:17").unwrap().gid, 17);
    }

    #[test]
    fn a_group_that_is_named_goes_before_the_users_own() {
        let alice = find("alice:video").unwrap();
        assert_eq!((alice.gid, &alice.groups[..]), (44, &[29, 100][..]));
        assert_eq!(find("root:audio").unwrap().gid, 29);
    }

    #[test]
    fn a_short_line_will_do() {
        assert_eq!(find("short").unwrap().home, "/");
    }

    #[test]
    fn what_does_not_exist_is_not_found() {
        for wanted in ["bob", "alice:nobody", "negative", "huge", "none", "garbage"] {
            assert_eq!(find(wanted), Err(FailureKind::NotFound), "{wanted}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_invalid() {
        for wanted in [":", "alice:", ":video"] {
            assert_eq!(find(wanted), Err(FailureKind::Invalid), "{wanted}");
        }
    }

    #[test]
    fn the_number_of_groups_is_bounded() {
        let group: String = (0..200)
            .map(|n| alloc::format!("g{n}:x:{n}:alice\n"))
            .collect();
        let alice = User::look_up("alice", PASSWD, group.as_bytes()).unwrap();
        assert_eq!(alice.groups.len(), MAX_GROUPS);
    }

    proptest! {
        #[test]
        fn garbage_is_survived(
            wanted in "[a-z0-9:]{0,8}",
            passwd in prop::collection::vec(any::<u8>(), 0..500),
            group in prop::collection::vec(any::<u8>(), 0..500),
        ) {
            let _ = User::look_up(&wanted, &passwd, &group);
        }
    }
}
