//! Somebody who does something again and again while something else is done.

use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a meddler, whether what it meddles with is done or has panicked.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Meddles on a thread of its own for as long as `work` takes.
pub(crate) fn while_meddling<T>(mut meddle: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                meddle();
            }
        });
        let _ending = Ending(&is_over);
        work()
    })
}
