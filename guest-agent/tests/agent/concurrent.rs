//! Runs an action repeatedly on another thread while a test works.

use std::sync::atomic::{AtomicBool, Ordering};

/// Stops the thread when the work is done or has panicked.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Repeats `action` on another thread for as long as `work` runs.
pub(crate) fn with_concurrent<T>(mut action: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                action();
            }
        });
        let _stop = StopOnDrop(&is_over);
        work()
    })
}
