use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use vmcell::tree::TreeProgress;

use super::name;

/// A progress bar on standard error, if that is a terminal. It is removed on
/// drop.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Creates a bar for a number of bytes, or a spinner if the number is
    /// unknown.
    pub fn new(bytes: Option<u64>) -> Self {
        let bar = match bytes {
            Some(bytes) => ProgressBar::new(bytes).with_style(style(
                "{bar:30} {percent}% {bytes} {bytes_per_sec} {wide_msg}",
                ProgressStyle::default_bar,
            )),
            None => ProgressBar::new_spinner().with_style(style(
                "{spinner} {bytes} {bytes_per_sec} {wide_msg}",
                ProgressStyle::default_spinner,
            )),
        };
        Self { bar }
    }

    /// Sets how many bytes are done.
    pub fn set_position(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    /// Returns a callback for the progress of a transfer. `None` if the bar is
    /// hidden.
    pub fn callback(&self) -> Option<impl FnMut(TreeProgress<'_>) + Send + use<>> {
        if self.bar.is_hidden() {
            return None;
        }
        self.bar.enable_steady_tick(Duration::from_millis(100));
        let bar = self.bar.clone();
        Some(move |progress: TreeProgress<'_>| {
            let path = name::printable_bytes(progress.path);
            bar.set_position(progress.bytes);
            bar.set_message(format!("{} entries {path}", progress.entries));
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str, fallback: fn() -> ProgressStyle) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| fallback())
}
