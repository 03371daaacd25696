//! Counts changed cells, so that tests can limit the work that output causes.

#[cfg(test)]
thread_local! {
    static CELLS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts cells that are moved, blanked or filled other than by text.
#[inline]
pub(super) fn count(cells: usize) {
    #[cfg(test)]
    CELLS.set(CELLS.get().saturating_add(cells));
    #[cfg(not(test))]
    let _ = cells;
}

/// Returns how many cells the current thread has changed since the last call.
#[cfg(test)]
pub(super) fn take() -> usize {
    CELLS.take()
}
