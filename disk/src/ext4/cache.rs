use std::{collections::HashMap, sync::Arc};

/// The pieces of metadata that were used last.
#[derive(Debug)]
pub(super) struct Cache {
    pieces: HashMap<u64, Kept>,
    most: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct Kept {
    bytes: Arc<Vec<u8>>,
    used: u64,
}

impl Cache {
    /// Keeps at most so many pieces.
    pub(super) fn new(most: usize) -> Self {
        Self {
            pieces: HashMap::new(),
            most: most.max(1),
            clock: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.pieces.clear();
    }

    pub(super) fn get(&mut self, number: u64) -> Option<Arc<Vec<u8>>> {
        self.clock = self.clock.wrapping_add(1);
        let kept = self.pieces.get_mut(&number)?;
        kept.used = self.clock;
        Some(Arc::clone(&kept.bytes))
    }

    pub(super) fn insert(&mut self, number: u64, bytes: Arc<Vec<u8>>) {
        if self.pieces.len() >= self.most {
            // A look at all costs less than the read that just happened.
            let oldest = self.pieces.iter().min_by_key(|(_, kept)| kept.used);
            if let Some(oldest) = oldest.map(|(number, _)| *number) {
                self.pieces.remove(&oldest);
            }
        }
        let used = self.clock;
        self.pieces.insert(number, Kept { bytes, used });
    }
}
