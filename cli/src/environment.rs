//! Finds or builds the image of an environment.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::ensure;
use indicatif::{ProgressBar, ProgressStyle};
use vmcell_rootfs::{Cache, CachedImage, Error, Progress, recipe};

/// An environment that is built on its first use.
#[derive(Clone, Copy)]
pub(crate) enum Environment {
    Base,
    Debian,
}

impl Environment {
    pub(crate) const ALL: [Self; 2] = [Self::Base, Self::Debian];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Debian => "debian",
        }
    }

    /// Returns its image, if it was built already.
    pub(crate) fn cached(self, cache: &Cache) -> Result<Option<CachedImage>, Error> {
        match self {
            Self::Base => cache.lookup(&recipe::base()),
            Self::Debian => cache.lookup(&recipe::debian()),
        }
    }

    fn build(self, progress: impl FnMut(Progress)) -> Result<CachedImage, Error> {
        match self {
            Self::Base => recipe::base().cached_with(progress),
            Self::Debian => recipe::debian().cached_with(progress),
        }
    }
}

/// Returns the image of an environment, which is its name or the path of an
/// image. If it is not cached yet, it is built, with a progress bar on a
/// terminal.
pub(crate) fn image(name: &OsStr) -> anyhow::Result<PathBuf> {
    let known = Environment::ALL
        .into_iter()
        .find(|known| name == known.name());
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
