use std::collections::HashMap;

use super::{Disk, ext4::SymlinkPolicy};
use vmcell_tree::printable_name;

/// Maximum number of bytes read from each account file. The rest is ignored.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Longer names are ignored.
const MAX_NAME: usize = 256;

/// User and group names from the disk's own `/etc/passwd` and `/etc/group`. The
/// guest controls both files, so the names are untrusted.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl Accounts {
    /// Reads both files. A file that cannot be read counts as empty.
    pub(super) fn read(disk: &Disk) -> Self {
        Self {
            users: parse(&read_start(disk, b"etc/passwd")),
            groups: parse(&read_start(disk, b"etc/group")),
        }
    }

    pub(super) fn user(&self, uid: u32) -> Option<String> {
        self.users.get(&uid).cloned()
    }

    pub(super) fn group(&self, gid: u32) -> Option<String> {
        self.groups.get(&gid).cloned()
    }
}

fn read_start(disk: &Disk, path: &[u8]) -> Vec<u8> {
    let Ok(inode) = disk.ext4.lookup(path, SymlinkPolicy::All) else {
        return Vec::new();
    };
    let size = usize::try_from(inode.size).unwrap_or(MAX_FILE_BYTES);
    let mut bytes = vec![0; size.min(MAX_FILE_BYTES)];
    let count = disk.ext4.read(&inode, 0, &mut bytes).unwrap_or(0);
    bytes.truncate(count);
    bytes
}

/// Parses lines of the form `name:password:number:...`. If a number occurs
/// twice, the first name wins.
fn parse(bytes: &[u8]) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b':');
        let (Some(name), Some(number)) = (fields.next(), fields.nth(1)) else {
            continue;
        };
        let number = str::from_utf8(number).ok();
        if let Some(number) = number.and_then(|number| number.parse().ok())
            && (1..=MAX_NAME).contains(&name.len())
        {
            let name = printable_name(name).into_owned();
            names.entry(number).or_insert(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_number_counts_and_lines_without_sense_do_not() {
        let names = parse(b"root:x:0:0::/:\n\n::5:\nagain:x:0:\nx\na:b:c\n\x1b[2J:x:7:\nlast:x:8");
        let name = |number| names.get(&number).map(String::as_str);
        assert_eq!(name(0), Some("root"));
        assert_eq!(name(5), None);
        assert_eq!(name(7), Some("\u{fffd}[2J"));
        assert_eq!(name(8), Some("last"));
        assert_eq!(names.len(), 3);
    }
}
