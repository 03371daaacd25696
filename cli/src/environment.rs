//! Finds or builds the image of an environment.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::ensure;
use indicatif::{ProgressBar, ProgressStyle};
use vmcell_rootfs::Environment;

/// Returns the image of an environment, which is its name or the path of an
/// image. If it is not cached yet, it is built, with a progress bar on a
/// terminal.
pub(crate) fn image(name: &OsStr) -> anyhow::Result<PathBuf> {
    let known = name.to_str().and_then(Environment::from_name);
    let Some(environment) = known else {
        let path = Path::new(name);
        let is_name = path.components().count() == 1 && path.extension().is_none();
        ensure!(
            !is_name || path.exists(),
            "there is no environment {name:?}: choose base or debian, or the path of an ext4 image"
        );
        return Ok(path.to_owned());
    };
    // The bar goes to standard error, and only if that is a terminal.
    let bar = ProgressBar::new(100).with_style(style());
    let image = environment.build(|progress| {
        bar.enable_steady_tick(Duration::from_millis(100));
        bar.set_message(progress.stage.to_string());
        bar.set_position((progress.fraction * 100.0) as u64);
    });
    bar.finish_and_clear();
    Ok(image?.path)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("building the environment {bar:30} {percent}% {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
