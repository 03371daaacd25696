use std::time::Instant;

use super::{Error, Ext4, Inode, Kind, error::shown};

/// Maximum number of symlinks in a lookup, as in the kernel.
const MAX_SYMLINKS: usize = 40;

/// Which symlinks of a path are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// None. A symlink that is not the last component is an error.
    Never,
    /// All except the last component.
    #[default]
    Parents,
    /// All, including the last component.
    All,
}

impl Ext4 {
    /// Looks up a path and returns its inode. The path starts at the root, with
    /// or without a leading slash; neither `..` nor a symlink leads out of it.
    /// Names are compared byte by byte, also in case-insensitive directories.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::IsSymlink`],
    /// [`Error::TooManySymlinks`], [`Error::Limit`]; [`Error::Damaged`], also
    /// if the name may be in a part of a directory that cannot be read.
    pub fn lookup(&self, path: &[u8], follow: SymlinkPolicy) -> Result<Inode, Error> {
        // The parents of the current directory, and the remaining names in
        // reverse order.
        let mut above = Vec::new();
        let mut here = self.root()?;
        let mut names = names(path);
        let mut symlinks = 0_usize;

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
                .ok_or_else(|| Error::NotFound { path: shown(path) })?;
            let inode = self.inode(entry.inode)?;
            if inode.kind != Kind::Symlink || (names.is_empty() && follow != SymlinkPolicy::All) {
                above.push(std::mem::replace(&mut here, inode));
                continue;
            }
            if follow == SymlinkPolicy::Never {
                return Err(Error::IsSymlink { path: shown(path) });
            }
            symlinks = symlinks.saturating_add(1);
            if symlinks > MAX_SYMLINKS {
                return Err(Error::TooManySymlinks { path: shown(path) });
            }
            let target = self.read_link(&inode)?;
            if target.starts_with(b"/") {
                above.clear();
                here = self.root()?;
            }
            names.extend(self::names(&target));
        }
        Ok(here)
    }
}

/// Returns the names of a path in reverse order. A trailing slash adds `.`, so
/// that the last name must be a directory.
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
