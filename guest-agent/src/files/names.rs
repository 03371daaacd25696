use alloc::{string::String, vec::Vec};

use crate::user;

/// The names of owners and groups, as the image's own databases have them.
///
/// They are read once for a job, and what was looked up is remembered: a tree
/// has many entries and few owners.
pub(crate) struct Names {
    passwd: Vec<u8>,
    group: Vec<u8>,
    owners: Remembered,
    groups: Remembered,
}

/// Names by number.
#[derive(Default)]
struct Remembered(Vec<(u32, String)>);

/// More are not remembered.
const MAX_REMEMBERED: usize = 32;

/// A longer name is as good as none.
const MAX_NAME: usize = 256;

impl Names {
    /// Where a database cannot be read, nobody has a name.
    pub(crate) fn read() -> Self {
        Self::new(user::read_passwd(), user::read_group())
    }

    fn new(passwd: Vec<u8>, group: Vec<u8>) -> Self {
        Self {
            passwd,
            group,
            owners: Remembered::default(),
            groups: Remembered::default(),
        }
    }

    /// The names of a user and a group; empty if they have none.
    pub(crate) fn of(&mut self, uid: u32, gid: u32) -> (&str, &str) {
        let owner = self
            .owners
            .find(uid, || user::name_of_user(uid, &self.passwd));
        let group = self
            .groups
            .find(gid, || user::name_of_group(gid, &self.group));
        (owner, group)
    }
}

impl Remembered {
    fn find<'a>(&mut self, id: u32, look_up: impl FnOnce() -> Option<&'a [u8]>) -> &str {
        if !self.0.iter().any(|(known, _)| *known == id) {
            if self.0.len() >= MAX_REMEMBERED {
                self.0.clear();
            }
            let name = look_up()
                .filter(|name| name.len() <= MAX_NAME)
                .and_then(|name| core::str::from_utf8(name).ok())
                .unwrap_or_default();
            self.0.push((id, String::from(name)));
        }
        self.0
            .iter()
            .find(|(known, _)| *known == id)
            .map_or("", |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let passwd =
            b"root:x:0:0::/:\nalice:x:1000:100::/:\nagain:x:1000:1::/:\nb\xffd:x:7:7::/:\n";
        Names::new(passwd.to_vec(), b"root:x:0:\nusers:x:100:alice\n".to_vec())
    }

    #[test]
    fn the_first_name_of_a_number_is_its_name() {
        assert_eq!(names().of(1000, 100), ("alice", "users"));
        assert_eq!(names().of(0, 0), ("root", "root"));
    }

    #[test]
    fn a_number_without_a_name_or_with_one_that_is_no_text_has_none() {
        assert_eq!(names().of(4242, 4242), ("", ""));
        assert_eq!(names().of(7, 7), ("", ""));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_right() {
        let mut names = names();
        for number in 0..5000 {
            let (owner, _) = names.of(number, number);
            let expected = match number {
                0 => "root",
                1000 => "alice",
                _ => "",
            };
            assert_eq!(owner, expected);
        }
        assert!(names.owners.0.len() <= MAX_REMEMBERED);
    }
}
