/// How many cells a byte of output may change, beyond those of its own row.
const CELLS_PER_BYTE: usize = 128;

/// How many cells can be saved up: two of the largest screens.
const MAX_CELLS: usize = 2 << 20;

/// Limits the work of sequences that change many rows.
///
/// Such a sequence has a few bytes and changes up to a million cells. Each byte of
/// output earns a number of cells, which a sequence spends. A sequence that costs
/// more than was earned has no effect, and the screen is incomplete.
///
/// Programs do not notice: they write text between such sequences, and on a screen
/// of the usual size, hundreds are saved up. Since bytes are counted, not time, the
/// screen is the same wherever the output is cut and however fast it is processed.
#[derive(Debug)]
pub(super) struct WorkBudget {
    cells: usize,
    /// Bytes that were not yet converted to cells.
    bytes: usize,
}

impl Default for WorkBudget {
    fn default() -> Self {
        Self {
            cells: MAX_CELLS,
            bytes: 0,
        }
    }
}

impl WorkBudget {
    #[inline]
    pub(super) fn earn(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Spends cells. Returns false, and spends nothing, if there are too few.
    pub(super) fn spend(&mut self, cells: usize) -> bool {
        let earned = std::mem::take(&mut self.bytes).saturating_mul(CELLS_PER_BYTE);
        self.cells = self.cells.saturating_add(earned).min(MAX_CELLS);
        match self.cells.checked_sub(cells) {
            Some(rest) => {
                self.cells = rest;
                true
            }
            None => false,
        }
    }
}
