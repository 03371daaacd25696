use std::collections::HashSet;

use super::{
    Damage, DamageKind, Directory, DirectoryEntry, Error, Ext4, Inode, Kind, Limit, Structure,
    error::shown,
};

/// Something that a walk came by.
#[derive(Debug)]
#[non_exhaustive]
pub struct WalkEntry {
    /// Its path from where the walk started, without a `/` in front.
    pub path: Vec<u8>,
    /// Its name in its directory.
    pub entry: DirectoryEntry,
    /// What it is, or why that cannot be told.
    pub inode: Result<Inode, Error>,
}

/// A part of a tree that a walk could not see.
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

/// All that is beneath a directory, each directory before what is in it.
///
/// A directory is entered once only: what hard links make endless ends here.
pub struct Walk<'a> {
    ext4: &'a Ext4,
    levels: Vec<Level<'a>>,
    path: Vec<u8>,
    entered: HashSet<u32>,
    entries: u64,
    /// A directory that was just told and is to be entered.
    next: Option<Inode>,
}

struct Level<'a> {
    directory: Directory<'a>,
    inode: u32,
    /// How long the path of the directory is.
    path: usize,
}

impl Ext4 {
    /// Goes through all that is beneath a directory.
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
    /// Does not enter the directory that was told last.
    pub fn skip(&mut self) {
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
                limit: super::fields::wide(limit),
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
