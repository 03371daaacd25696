//! `vmcell env import`: makes an environment from the image of a container.

use anyhow::Context as _;
use vmcell_rootfs::{
    catalog::Catalog,
    oci::{ImageSource, OciImage},
};

use super::{arguments::ImportArguments, info};
use crate::environment::BuildBar;

pub(super) async fn import(arguments: ImportArguments) -> anyhow::Result<u8> {
    let source = ImageSource::parse(&arguments.source).with_context(|| {
        format!(
            "{:?} is no source: write oci:DIR, oci-archive:FILE or docker-archive:FILE",
            arguments.source
        )
    })?;
    let catalog = Catalog::user()?;
    let bar = BuildBar::new();
    let entry = OciImage::open(&source)
        .and_then(|image| catalog.import(&arguments.name, &image, |progress| bar.show(progress)));
    bar.finish();
    info::print_new(&entry?, arguments.json).await
}
