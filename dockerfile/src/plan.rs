use std::{
    collections::BTreeMap,
    fmt,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use tokio::task::spawn_blocking;
use vmcell::disk::image::flatten;
use vmcell_rootfs::{
    Digest, Fingerprint,
    catalog::{BuiltImage, Catalog, CatalogEntry, EnvironmentName},
    oci::Defaults,
};

use crate::{
    BuildError, BuildEvent,
    build::BuildOptions,
    copy::Context,
    layers::Layers,
    settings::{OuterArguments, Settings},
    stage::{Needed, Origin, Stages},
    stage_build::{StageBuild, StageDisk},
};

/// A Dockerfile that was read: see [`Build::plan`](crate::Build::plan).
pub struct Plan {
    pub(crate) source: PathBuf,
    pub(crate) context: Context,
    pub(crate) stages: Stages,
    /// What each stage begins with.
    pub(crate) bases: Vec<Origin>,
    pub(crate) outer: OuterArguments,
    pub(crate) target: usize,
    pub(crate) needed: Needed,
    pub(crate) options: BuildOptions,
}

/// An image that others are built on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseImage {
    /// The ext4 image. It must not change.
    pub path: PathBuf,
    /// How programs run in it.
    pub defaults: Defaults,
}

/// A stage that was built.
#[derive(Clone, Debug)]
pub(crate) struct BuiltStage {
    pub(crate) disk: StageDisk,
    pub(crate) settings: Settings,
}

impl Plan {
    /// Returns the names of the images that it needs, as FROM and `COPY --from` name them.
    pub fn images(&self) -> impl Iterator<Item = &str> {
        self.needed.images.iter().map(String::as_str)
    }

    /// Builds the environment, and gives it a name in a catalog. Steps that were done before are
    /// not done again, as long as nothing that they depend on has changed. A command that prints
    /// waits until its output was taken by `events`.
    ///
    /// # Errors
    /// [`BuildError::Command`] if a command fails, [`BuildError::NoImage`] if an image is not
    /// given, and others. Steps that were done before the error stay done; nothing else is left.
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM of the current step is ended and its disk is removed.
    pub async fn run(
        self,
        catalog: &Catalog,
        name: &str,
        images: &BTreeMap<String, BaseImage>,
        mut events: impl AsyncFnMut(BuildEvent<'_>),
    ) -> Result<CatalogEntry, BuildError> {
        // Before anything is done for it.
        if EnvironmentName::parse(name).is_none() {
            let name = name.to_owned();
            return Err(vmcell_rootfs::Error::EnvironmentName { name }.into());
        }
        let folder = catalog.cache().folder().to_owned();
        let layers = Layers::new(catalog.build_layers()?, folder);
        let disks = Disks::prepare(&self, catalog, images).await?;
        let count = self.count();
        let mut number = 0;
        let mut built: BTreeMap<usize, BuiltStage> = BTreeMap::new();
        for stage in &self.needed.stages {
            let Some(instructions) = self.stages.list.get(*stage) else {
                continue;
            };
            let mut building = StageBuild::new(&self, &layers, &disks, *stage, &built)?;
            for step in &instructions.steps {
                number += 1;
                let work = building.prepare(step, &built)?;
                let found = work.as_ref().and_then(|work| building.find(work));
                let event = BuildEvent::Step {
                    number,
                    count,
                    line: step.line,
                    text: &step.text,
                    cached: found.is_some(),
                };
                events(event).await;
                if let Some(work) = work {
                    building.finish(work, found, step.line, &mut events).await?;
                }
            }
            let result = building.into_built(&mut events).await?;
            built.insert(*stage, result);
        }
        let target = built.remove(&self.target).ok_or(BuildError::NoStage {
            name: self.target.to_string(),
        })?;
        events(BuildEvent::Writing).await;
        store(
            catalog.clone(),
            name.to_owned(),
            layers,
            target,
            self.source,
        )
        .await
    }

    fn count(&self) -> usize {
        let stages = self.needed.stages.iter();
        let stages = stages.filter_map(|stage| self.stages.list.get(*stage));
        stages.map(|stage| stage.steps.len()).sum()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("images", &self.needed.images)
            .finish_non_exhaustive()
    }
}

/// The disks of the images that a build begins with.
pub(crate) struct Disks(BTreeMap<Option<String>, (StageDisk, Defaults)>);

impl Disks {
    async fn prepare(
        plan: &Plan,
        catalog: &Catalog,
        images: &BTreeMap<String, BaseImage>,
    ) -> Result<Self, BuildError> {
        let mut disks = BTreeMap::new();
        for name in &plan.needed.images {
            let image = images
                .get(name)
                .ok_or_else(|| BuildError::NoImage { name: name.clone() })?;
            let disk = (StageDisk::of_image(&image.path)?, image.defaults.clone());
            disks.insert(Some(name.clone()), disk);
        }
        if !plan.needed.scratch {
            return Ok(Self(disks));
        }
        let cache = catalog.cache().clone();
        let scratch = spawn_blocking(move || cache.image(&crate::scratch::Scratch)).await;
        let scratch = scratch.map_err(std::io::Error::other);
        let scratch = scratch.map_err(BuildError::read("scratch"))??;
        disks.insert(
            None,
            (StageDisk::of_image(&scratch.path)?, Defaults::default()),
        );
        Ok(Self(disks))
    }

    /// Returns an image, or the empty one.
    pub(crate) fn get(&self, name: Option<&str>) -> Option<&(StageDisk, Defaults)> {
        self.0.get(&name.map(str::to_owned))
    }
}

/// Writes the disk image of a stage.
async fn store(
    catalog: Catalog,
    name: String,
    layers: Layers,
    stage: BuiltStage,
    source: PathBuf,
) -> Result<CatalogEntry, BuildError> {
    let mut inputs = Fingerprint::new("vmcell built image");
    inputs.field("disk", stage.disk.key.0);
    let built = BuiltImage {
        digest: inputs.digest(),
        source: format!("dockerfile:{}", source.display()),
        layers: stage.disk.steps.clone(),
        defaults: stage.settings.defaults,
    };
    let disk = stage.disk;
    let write = move |to: &Path| {
        let image = layers.image(&disk.path, &disk.base)?;
        flatten(&image, to, u64::MAX, &mut |_| ControlFlow::Continue(()))?;
        Ok(())
    };
    let stored = spawn_blocking(move || catalog.add_built(&name, built, write)).await;
    let stored = stored.map_err(std::io::Error::other);
    stored.map_err(BuildError::read("the built disk"))?
}

/// Returns the digest of what an image is: its name, and that it is still the same file.
pub(crate) fn image_key(path: &Path) -> std::io::Result<Digest> {
    use std::os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _};
    let metadata = path.metadata()?;
    let mut inputs = Fingerprint::new("vmcell base image");
    inputs
        .field("path", path.as_os_str().as_bytes())
        .field("inode", metadata.ino().to_le_bytes())
        .field("size", metadata.len().to_le_bytes())
        .field("modified", metadata.mtime().to_le_bytes())
        .field("nanoseconds", metadata.mtime_nsec().to_le_bytes());
    Ok(inputs.digest())
}
