use std::{
    fs, io,
    ops::ControlFlow,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::{Template, on_thread};
use crate::{
    backend::{PartKind, SavedMachine},
    disk::image::{Format, Image, OpenOptions, merge_layers},
    error::Error,
    snapshot::SnapshotError,
    vm::{Vm, VmBuilder},
};

impl Template {
    /// Starts a VM of this template that keeps its disk. The disk of the template is copied
    /// to `copy`, a layer above `image`, which is another name of the image of the template.
    /// Then `make_disk` is called, which may add a layer above the copy, and `configure`,
    /// which says what the disk is.
    pub(crate) async fn start_on_copy(
        &self,
        image: &Path,
        copy: &Path,
        make_disk: impl Fn() -> Result<(), Error> + Clone + Send + 'static,
        configure: impl Fn(VmBuilder) -> VmBuilder,
    ) -> Result<Vm, Error> {
        let vm = self.copied(image, copy, make_disk.clone()).await?;
        match configure(vm).start().await {
            Err(Error::Snapshot(SnapshotError::Differs { what, .. })) => {
                self.make_again(what).await?;
                let vm = self.copied(image, copy, make_disk).await?;
                configure(vm).start().await
            }
            started => started,
        }
    }

    /// Copies the disk, and returns a VM with the memory that fits it.
    async fn copied(
        &self,
        image: &Path,
        copy: &Path,
        make_disk: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> Result<VmBuilder, Error> {
        let loaded = self.loaded().clone();
        let (machine, template) = (loaded.machine.clone(), self.path().to_owned());
        let (image, copy) = (image.to_owned(), copy.to_owned());
        on_thread(move || {
            copy_layers(&machine, &template, image, &copy)?;
            make_disk()
        })
        .await?;
        Ok(self.shared.builder.vm_from(loaded.without_disk().into()))
    }
}

/// Writes the layers of a saved VM to a new file, as one layer above `image`.
fn copy_layers(
    machine: &SavedMachine,
    template: &Path,
    image: PathBuf,
    to: &Path,
) -> Result<(), Error> {
    const DOING: &str = "copy the disk of a template";
    match fs::remove_file(to) {
        // Of an earlier attempt.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::host(DOING)(error)),
    }
    let layers = machine.parts.iter();
    let layers = layers.filter(|(part, _)| part.kind == PartKind::Layer);
    let layers: Vec<_> = layers
        .map(|(part, file)| (template.join(&part.name), file))
        .collect();
    let below = layers.iter().skip(1);
    let below = below.map(|(path, _)| (path.clone(), Format::Qcow2));
    let below: Vec<_> = below.chain([(image, Format::Raw)]).collect();
    let Some((top, _)) = layers.first() else {
        return Err(Error::unexpected_reply());
    };
    let whole = Image::open_layers((top, Format::Qcow2), &below, OpenOptions::new())?;
    let go_on = &mut |_| ControlFlow::Continue(());
    merge_layers(&whole, layers.len(), to, u64::MAX, go_on)?;
    for (path, file) in &layers {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let here = fs::metadata(path).map(identity);
        let loaded = file.metadata().map(identity);
        // The memory would not fit.
        if here.map_err(Error::host(DOING))? != loaded.map_err(Error::host(DOING))? {
            return Err(Error::Snapshot(SnapshotError::Differs {
                what: "the template, which another program has made again,",
                saved: "another one".to_owned(),
                here: path.display().to_string(),
            }));
        }
    }
    Ok(())
}
