use std::collections::HashSet;

use super::{
    Damage, DamageKind, Directory, DirectoryEntry, Error, Ext4, Inode, Kind, Limit, Structure,
    error::shown,
};

/// An entry found by a walk.
#[derive(Debug)]
#[non_exhaustive]
pub struct WalkEntry {
    /// The path relative to the start of the walk, without a leading slash.
    pub path: Vec<u8>,
    /// The directory entry.
    pub entry: DirectoryEntry,
    /// The inode, or why it cannot be read.
    pub inode: Result<Inode, Error>,
}

/// A directory that a walk could not read completely.
#[derive(Debug, thiserror::Error)]
#[error("a part of {} is missing", shown(path))]
#[non_exhaustive]
pub struct WalkError {
    /// The path of the directory, as in [`WalkEntry`].
    pub path: Vec<u8>,
    /// What is wrong with it.
    #[source]
    pub error: Error,
}

/// All entries below a directory, each directory before its contents. Returned
/// by [`Ext4::walk`].
///
/// Each directory is entered only once, so hard links to directories cannot
/// make the walk endless.
pub struct Walk<'a> {
    ext4: &'a Ext4,
    levels: Vec<Level<'a>>,
    path: Vec<u8>,
    entered: HashSet<u32>,
    entries: u64,
    /// The directory returned last, to be entered next.
    next: Option<Inode>,
}

struct Level<'a> {
    directory: Directory<'a>,
    inode: u32,
    /// The length of the directory's path.
    path: usize,
}

impl Ext4 {
    /// Walks over all entries below a directory.
    pub fn walk(&self, directory: &Inode) -> Walk<'_> {
        Walk {
            ext4: self,
            levels: Vec::new(),
            path: Vec::new(),
            entered: HashSet::new(),
            entries: 0,
            next: Some(directory.clone()),
        }
    }
}

impl Walk<'_> {
    /// Skips the contents of the directory that was returned last.
    pub fn skip_directory(&mut self) {
        self.next = None;
    }

    fn enter(&mut self, inode: &Inode) -> Result<(), Error> {
        if !self.entered.insert(inode.number) {
            let damage = Damage::new(Structure::Directory, DamageKind::Loop);
            return Err(damage.of(inode.number).into());
        }
        let limit = self.ext4.options.limits.depth;
        if self.levels.len() >= limit {
            return Err(Error::Limit {
                what: Limit::Depth,
                limit: super::fields::to_u64(limit),
                inode: inode.number,
            });
        }
        self.levels.push(Level {
            directory: self.ext4.directory(inode)?,
            inode: inode.number,
            path: self.path.len(),
        });
        Ok(())
    }

    fn problem(&self, error: Error) -> WalkError {
        WalkError {
            path: self.path.clone(),
            error,
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<WalkEntry, WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(inode) = self.next.take()
            && let Err(error) = self.enter(&inode)
        {
            return Some(Err(self.problem(error)));
        }
        loop {
            let level = self.levels.last_mut()?;
            self.path.truncate(level.path);
            let limit = self.ext4.options.limits.entries;
            let entry = match level.directory.next() {
                Some(Ok(entry)) if self.entries < limit => entry,
                Some(Ok(_)) => {
                    let inode = level.inode;
                    self.levels.clear();
                    return Some(Err(self.problem(Error::Limit {
                        what: Limit::Entries,
                        limit,
                        inode,
                    })));
                }
                Some(Err(error)) => return Some(Err(self.problem(error))),
                None => {
                    self.levels.pop();
                    continue;
                }
            };
            self.entries = self.entries.saturating_add(1);
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(&entry.name);
            let inode = self.ext4.inode(entry.inode);
            self.next = match &inode {
                Ok(inode) if inode.kind == Kind::Directory => Some(inode.clone()),
                _ => None,
            };
            return Some(Ok(WalkEntry {
                path: self.path.clone(),
                entry,
                inode,
            }));
        }
    }
}
