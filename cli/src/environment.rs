//! Finds or builds the image of an environment.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use vmcell_rootfs::{Error, Progress, recipe};

/// Returns the image of an environment. If it is not cached yet, it is built,
/// with a progress bar on a terminal.
pub(crate) fn image(environment: &OsStr) -> Result<PathBuf, Error> {
    // The bar goes to standard error, and only if that is a terminal.
    let bar = ProgressBar::new(100).with_style(style());
    let show = |progress: Progress| {
        bar.enable_steady_tick(Duration::from_millis(100));
        bar.set_message(progress.stage.to_string());
        bar.set_position((progress.fraction * 100.0) as u64);
    };
    let image = match environment.to_str() {
        Some("base") => recipe::base().cached_with(show),
        Some("debian") => recipe::debian().cached_with(show),
        _ => return Ok(PathBuf::from(environment)),
    };
    bar.finish_and_clear();
    Ok(image?.path)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("building the environment {bar:30} {percent}% {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
