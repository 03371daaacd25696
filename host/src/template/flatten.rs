use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use super::{Template, on_thread};
use crate::{
    backend::{PartKind, SavedMachine},
    disk::image::{Format, Image, OpenOptions, flatten},
    error::Error,
};

impl Template {
    /// Writes the disk of the template as a raw ext4 image, for VMs to boot from. The
    /// image must not exist yet.
    ///
    /// What is only in the memory of the template has to get to its disk first, so this
    /// starts a VM of it and stops that. Its processes run for a moment.
    ///
    /// # Errors
    /// Those of [`start`](Self::start), [`Error::Gone`] if the VM could not be stopped
    /// cleanly, [`Error::Disk`] if the image cannot be written. Nothing is left behind.
    ///
    /// # Cancel safety
    /// If the future is dropped, the image is there as a whole or not at all.
    pub async fn flatten(&self, to: impl Into<PathBuf>) -> Result<(), Error> {
        let to = to.into();
        let folder = on_thread(|| tempfile::tempdir().map_err(Error::host("flatten a template")));
        let folder = folder.await?;
        let layer = folder.path().join("layer");
        let vm = self.start_with(|vm| vm.layer(layer.clone())).await?;
        vm.stop().await?;
        let machine = self.loaded().machine.clone();
        let template = self.path().to_owned();
        on_thread(move || {
            let backing = backing_files(&machine, &template);
            // Not every backend has layers.
            let format = match machine.has(PartKind::Disk) {
                true => Format::Raw,
                false => Format::Qcow2,
            };
            let image = Image::open_layers((&layer, format), &backing, OpenOptions::new())?;
            flatten(&image, to, u64::MAX, &mut |_| ControlFlow::Continue(()))?;
            drop(folder);
            Ok(())
        })
        .await
    }
}

/// Returns the files below the layer of a VM.
fn backing_files(machine: &SavedMachine, template: &Path) -> Vec<(PathBuf, Format)> {
    let layers = machine.parts.iter().map(|(part, _)| part);
    let layers = layers.filter(|part| part.kind == PartKind::Layer);
    let layers = layers.map(|part| (template.join(&part.name), Format::Qcow2));
    let image = machine
        .image
        .iter()
        .map(|image| (image.clone(), Format::Raw));
    layers.chain(image).collect()
}
