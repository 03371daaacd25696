use std::collections::HashMap;

use crate::transfer::{TreeError, TreeLimit, budget::limit_exceeded};

/// The approximate limit for the memory of all paths.
const MAX_NAMES: u64 = 256 << 20;

/// The approximate memory of a map entry in addition to its path.
const ENTRY_OVERHEAD: u64 = 64;

/// The paths of an archive so far, with a value each, in bounded memory.
#[derive(Debug)]
pub(super) struct PathMap<T> {
    paths: HashMap<Box<[u8]>, T>,
    used_bytes: u64,
}

impl<T> PathMap<T> {
    pub(super) fn new() -> Self {
        Self {
            paths: HashMap::new(),
            used_bytes: 0,
        }
    }

    pub(super) fn get(&self, path: &[u8]) -> Option<&T> {
        self.paths.get(path)
    }

    /// Sets the value of a path, and returns the previous one.
    pub(super) fn insert(&mut self, path: &[u8], value: T) -> Result<Option<T>, TreeError> {
        self.charge(path, path.len())?;
        Ok(self.paths.insert(path.into(), value))
    }

    /// Counts memory that belongs to a path.
    pub(super) fn charge(&mut self, path: &[u8], bytes: usize) -> Result<(), TreeError> {
        self.used_bytes += ENTRY_OVERHEAD + bytes as u64;
        if self.used_bytes > MAX_NAMES {
            return Err(limit_exceeded(TreeLimit::Names, MAX_NAMES, path));
        }
        Ok(())
    }
}
