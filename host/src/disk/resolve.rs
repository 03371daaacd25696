use super::{
    Disk, DiskError,
    budget::Budget,
    ext4::{Follow, Inode, Kind},
    path::shown,
};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

impl Disk {
    /// What a path leads to. It is resolved here and not by the reader, since
    /// that knows no limit of time, and every name on the way can be in a huge
    /// directory.
    pub(super) fn resolve(
        &self,
        path: &[u8],
        follow: Follow,
        budget: &Budget,
    ) -> Result<Inode, DiskError> {
        let at = |error| DiskError::at(path, error);
        let mut above = Vec::new();
        let mut here = self.ext4.root().map_err(at)?;
        // The names still to go, the next one last.
        let mut names = names(path);
        let mut links = 0;

        while let Some(name) = names.pop() {
            budget.check_time(path)?;
            if here.kind != Kind::Directory {
                return Err(DiskError::WrongKind {
                    path: shown(path),
                    wanted: "directory",
                });
            }
            match name.as_slice() {
                b"." => continue,
                b".." => {
                    here = above.pop().unwrap_or(here);
                    continue;
                }
                _ => {}
            }
            let directory = self.ext4.directory(&here).map_err(at)?;
            let Some(entry) = directory.find(&name).map_err(at)? else {
                return Err(DiskError::NotFound { path: shown(path) });
            };
            let inode = self.ext4.inode(entry.inode).map_err(at)?;
            if inode.kind != Kind::Link || (names.is_empty() && follow != Follow::All) {
                above.push(std::mem::replace(&mut here, inode));
                continue;
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(DiskError::TooManyLinks { path: shown(path) });
            }
            let target = self.ext4.link(&inode).map_err(at)?;
            if target.starts_with(b"/") {
                above.clear();
                here = self.ext4.root().map_err(at)?;
            }
            names.extend(self::names(&target));
        }
        Ok(here)
    }
}

/// The names of a path, the last one first.
fn names(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .rev()
        .collect()
}
