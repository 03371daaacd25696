use std::time::Instant;

use super::{Error, Ext4, Inode, Kind, error::shown};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// Which symlinks a path may lead through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// None: a link that is not the last name is an error.
    Never,
    /// Those on the way, but not one that the path itself leads to.
    #[default]
    Parents,
    /// All.
    All,
}

impl Ext4 {
    /// What a path leads to. Whether it starts with `/` or not, it starts at
    /// the root; neither `..` nor a link leads out of it. Names are compared
    /// byte by byte, also in a directory that does not care about case.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`], [`Error::NotDirectory`], [`Error::Link`],
    /// [`Error::TooManyLinks`], [`Error::Limit`]; [`Error::Damaged`] also if the
    /// name may be in a part of a directory that cannot be read.
    pub fn lookup(&self, path: &[u8], follow: SymlinkPolicy) -> Result<Inode, Error> {
        // The directories on the way, and the names still to go, the next one
        // last.
        let mut above = Vec::new();
        let mut here = self.root()?;
        let mut names = names(path);
        let mut links = 0_usize;

        let since = Instant::now();
        while let Some(name) = names.pop() {
            self.options.limits.check_time(since, here.number)?;
            if here.kind != Kind::Directory {
                return Err(Error::NotDirectory { path: shown(path) });
            }
            match name.as_slice() {
                b"." => continue,
                b".." => {
                    here = above.pop().unwrap_or(here);
                    continue;
                }
                _ => {}
            }
            let entry = self
                .directory(&here)?
                .find(&name)?
                .ok_or_else(|| Error::Missing { path: shown(path) })?;
            let inode = self.inode(entry.inode)?;
            if inode.kind != Kind::Link || (names.is_empty() && follow != SymlinkPolicy::All) {
                above.push(std::mem::replace(&mut here, inode));
                continue;
            }
            if follow == SymlinkPolicy::Never {
                return Err(Error::Link { path: shown(path) });
            }
            links = links.saturating_add(1);
            if links > MOST_LINKS {
                return Err(Error::TooManyLinks { path: shown(path) });
            }
            let target = self.link(&inode)?;
            if target.starts_with(b"/") {
                above.clear();
                here = self.root()?;
            }
            names.extend(self::names(&target));
        }
        Ok(here)
    }
}

/// The names of a path, the last one first. A slash at the end asks for what is
/// in a directory.
fn names(path: &[u8]) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = path
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    if path.ends_with(b"/") {
        names.push(b".".to_vec());
    }
    names.reverse();
    names
}
