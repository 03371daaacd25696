use alloc::{string::String, vec::Vec};

use crate::user;

/// The names of users and groups in the image's own databases.
///
/// The databases are read once for a job, and results are cached: a tree has many
/// entries and few owners.
pub(crate) struct OwnerNames {
    passwd: Vec<u8>,
    group: Vec<u8>,
    owners: NameCache,
    groups: NameCache,
}

/// Names by id.
#[derive(Default)]
struct NameCache(Vec<(u32, String)>);

/// How many names are cached; then the cache starts anew.
const MAX_CACHED: usize = 32;

/// Longer names are ignored.
const MAX_NAME: usize = 256;

impl OwnerNames {
    /// Reads the databases. One that cannot be read counts as empty.
    pub(crate) fn read() -> Self {
        Self::new(user::read_passwd(), user::read_group())
    }

    fn new(passwd: Vec<u8>, group: Vec<u8>) -> Self {
        Self {
            passwd,
            group,
            owners: NameCache::default(),
            groups: NameCache::default(),
        }
    }

    /// Returns the names of a user and a group, empty if they have none.
    pub(crate) fn look_up(&mut self, uid: u32, gid: u32) -> (&str, &str) {
        let owner = self
            .owners
            .find(uid, || user::name_of_user(uid, &self.passwd));
        let group = self
            .groups
            .find(gid, || user::name_of_group(gid, &self.group));
        (owner, group)
    }
}

impl NameCache {
    fn find<'a>(&mut self, id: u32, find_name: impl FnOnce() -> Option<&'a [u8]>) -> &str {
        if !self.0.iter().any(|(known, _)| *known == id) {
            if self.0.len() >= MAX_CACHED {
                self.0.clear();
            }
            let name = find_name()
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

    fn names() -> OwnerNames {
        let passwd =
            b"root:x:0:0::/:\nalice:x:1000:100::/:\nagain:x:1000:1::/:\nb\xffd:x:7:7::/:\n";
        OwnerNames::new(passwd.to_vec(), b"root:x:0:\nusers:x:100:alice\n".to_vec())
    }

    #[test]
    fn the_first_name_of_a_number_is_its_name() {
        assert_eq!(names().look_up(1000, 100), ("alice", "users"));
        assert_eq!(names().look_up(0, 0), ("root", "root"));
    }

    #[test]
    fn a_number_without_a_name_or_with_one_that_is_no_text_has_none() {
        assert_eq!(names().look_up(4242, 4242), ("", ""));
        assert_eq!(names().look_up(7, 7), ("", ""));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_right() {
        let mut names = names();
        for number in 0..5000 {
            let (owner, _) = names.look_up(number, number);
            let expected = match number {
                0 => "root",
                1000 => "alice",
                _ => "",
            };
            assert_eq!(owner, expected);
        }
        assert!(names.owners.0.len() <= MAX_CACHED);
    }
}
