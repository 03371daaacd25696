use std::{pin::pin, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::timeout;

/// What takes less than this is not worth a spinner.
const DELAY: Duration = Duration::from_millis(300);

/// A spinner with a message on standard error, if that is a terminal. It is
/// removed on drop.
#[derive(Debug)]
pub struct Spinner {
    bar: ProgressBar,
}

impl Spinner {
    /// Shows a spinner at once.
    pub fn show(message: impl Into<String>) -> Self {
        let style = ProgressStyle::with_template("{spinner} {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.set_message(message.into());
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self { bar }
    }

    /// Returns what sets another message.
    pub fn messages(&self) -> SpinnerMessages {
        SpinnerMessages(self.bar.clone())
    }

    /// Awaits a future, with a spinner if that takes long.
    ///
    /// # Cancel safety
    /// As that of the future. The spinner is removed.
    pub async fn show_during<F: Future>(message: impl Into<String>, future: F) -> F::Output {
        let mut future = pin!(future);
        if let Ok(output) = timeout(DELAY, &mut future).await {
            return output;
        }
        let _spinner = Self::show(message);
        future.await
    }
}

/// Sets the message of a [`Spinner`].
#[derive(Clone, Debug)]
pub struct SpinnerMessages(ProgressBar);

impl SpinnerMessages {
    /// Sets the message.
    pub fn set(&self, message: String) {
        self.0.set_message(message);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
