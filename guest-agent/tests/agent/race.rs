//! Runs code against a thread that interferes with it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Stops the thread, whether the work has returned or panicked.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Repeats `action` on another thread while `work` runs.
pub(crate) fn race_against<T>(mut action: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                action();
            }
        });
        let _guard = StopOnDrop(&is_over);
        work()
    })
}
