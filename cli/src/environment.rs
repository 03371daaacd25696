//! Finds or builds the image of an environment.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::ensure;
use indicatif::{ProgressBar, ProgressStyle};
use vmcell_rootfs::{
    Cache, Error, Progress,
    catalog::Catalog,
    oci::{Defaults, ImageSource, OciImage},
    registry::{self, PullOptions, Reference},
};

/// An environment that a VM can boot.
pub(crate) struct FoundEnvironment {
    pub(crate) image: PathBuf,
    /// How programs run in it.
    pub(crate) defaults: Defaults,
}

/// Returns the image of an environment, as [`find`] does.
pub(crate) fn image(name: &OsStr) -> anyhow::Result<PathBuf> {
    Ok(find(name)?.image)
}

/// Finds an environment by its name, the path of an ext4 image, or where the image of a container
/// is. If its image is not cached yet, it is built, with a progress bar on a terminal.
pub(crate) fn find(name: &OsStr) -> anyhow::Result<FoundEnvironment> {
    let bar = BuildBar::new();
    let found = find_with(name, &bar);
    bar.finish();
    if let Some((image, defaults)) = found? {
        return Ok(FoundEnvironment { image, defaults });
    }
    let path = Path::new(name);
    let is_name = path.components().count() == 1 && path.extension().is_none();
    ensure!(
        !is_name || path.exists(),
        "there is no environment {name:?}: `vmcell env list` lists them; or give the path of an ext4 \
         image"
    );
    Ok(FoundEnvironment {
        image: path.to_owned(),
        defaults: Defaults::default(),
    })
}

fn find_with(name: &OsStr, bar: &BuildBar) -> Result<Option<(PathBuf, Defaults)>, Error> {
    if let Some(source) = ImageSource::parse(name) {
        let image = OciImage::open(&source)?;
        let disk = Cache::user()?.image_with(&image, |progress| bar.show(progress))?;
        return Ok(Some((disk.path, image.defaults().clone())));
    }
    let Some(name) = name.to_str() else {
        return Ok(None);
    };
    let catalog = Catalog::user()?;
    if Path::new(name).exists() {
        return catalog.image(name, |progress| bar.show(progress));
    }
    let Some(reference) = Reference::with_registry(name) else {
        return catalog.image(name, |progress| bar.show(progress));
    };
    // One that was pulled is used as it is: only `vmcell env pull` asks for a newer one.
    let source = reference.to_string();
    let mut known = catalog.list()?.into_iter();
    if let Some(entry) = known.find(|entry| entry.source == source) {
        return catalog.image(&entry.name, |progress| bar.show(progress));
    }
    let cache = Cache::user()?;
    let pulling = PullBar::new();
    let image = registry::pull(&cache, &reference, PullOptions::default(), |bytes, all| {
        pulling.show(bytes, all);
    });
    pulling.finish();
    let image = image?;
    let disk = cache.image_with(&image, |progress| bar.show(progress))?;
    Ok(Some((disk.path, image.defaults().clone())))
}

/// The progress of a pull on standard error, if that is a terminal.
pub(crate) struct PullBar(ProgressBar);

impl PullBar {
    pub(crate) fn new() -> Self {
        let template = "pulling the image {bar:30} {bytes}/{total_bytes} {bytes_per_sec}";
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(0).with_style(style))
    }

    pub(crate) fn show(&self, bytes: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(bytes);
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// The progress of a build on standard error, if that is a terminal.
pub(crate) struct BuildBar(ProgressBar);

impl BuildBar {
    pub(crate) fn new() -> Self {
        let template = "building the environment {bar:30} {percent}% {msg}";
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(100).with_style(style))
    }

    pub(crate) fn show(&self, progress: Progress) {
        self.0.enable_steady_tick(Duration::from_millis(100));
        self.0.set_message(progress.stage.to_string());
        self.0.set_position((progress.fraction * 100.0) as u64);
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
