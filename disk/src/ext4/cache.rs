use std::{collections::HashMap, sync::Arc};

/// A least-recently-used cache of metadata chunks.
#[derive(Debug)]
pub(super) struct Cache {
    chunks: HashMap<u64, CachedChunk>,
    capacity: usize,
    /// Counts the lookups, to order them.
    clock: u64,
}

#[derive(Debug)]
struct CachedChunk {
    bytes: Arc<Vec<u8>>,
    used: u64,
}

impl Cache {
    /// Creates a cache of at most `capacity` chunks.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            chunks: HashMap::new(),
            capacity: capacity.max(1),
            clock: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.chunks.clear();
    }

    pub(super) fn get(&mut self, number: u64) -> Option<Arc<Vec<u8>>> {
        self.clock = self.clock.wrapping_add(1);
        let cached = self.chunks.get_mut(&number)?;
        cached.used = self.clock;
        Some(Arc::clone(&cached.bytes))
    }

    pub(super) fn insert(&mut self, number: u64, bytes: Arc<Vec<u8>>) {
        if self.chunks.len() >= self.capacity {
            // A linear search costs less than the read that just happened.
            let oldest = self.chunks.iter().min_by_key(|(_, cached)| cached.used);
            if let Some(oldest) = oldest.map(|(number, _)| *number) {
                self.chunks.remove(&oldest);
            }
        }
        let used = self.clock;
        self.chunks.insert(number, CachedChunk { bytes, used });
    }
}
