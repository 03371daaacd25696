use std::collections::HashMap;

use crate::transfer::{TreeError, TreeLimit, budget::exceeded};

/// How much memory names may take, roughly.
const MAX_NAMES: u64 = 256 << 20;

/// What a map takes for a name beside its bytes.
const OVERHEAD: u64 = 64;

/// The paths of an archive so far, in bounded memory.
#[derive(Debug)]
pub(super) struct Names<T> {
    known: HashMap<Box<[u8]>, T>,
    used: u64,
}

impl<T> Names<T> {
    pub(super) fn new() -> Self {
        Self {
            known: HashMap::new(),
            used: 0,
        }
    }

    pub(super) fn get(&self, path: &[u8]) -> Option<&T> {
        self.known.get(path)
    }

    /// Notes what is at a path; tells what was there before.
    pub(super) fn insert(&mut self, path: &[u8], value: T) -> Result<Option<T>, TreeError> {
        self.take_up(path, path.len())?;
        Ok(self.known.insert(path.into(), value))
    }

    /// Counts memory that goes with a path.
    pub(super) fn take_up(&mut self, path: &[u8], bytes: usize) -> Result<(), TreeError> {
        self.used += OVERHEAD + bytes as u64;
        if self.used > MAX_NAMES {
            return Err(exceeded(TreeLimit::Names, MAX_NAMES, path));
        }
        Ok(())
    }
}
