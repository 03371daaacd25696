use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, path::Path};

use super::{
    chain_walk::Holes,
    disk_image::Image,
    error::{ImageDamage, ImageError},
    layer::Layer,
    options::OpenOptions,
};

/// Seals the top layer of an image, so that it can be the base of children:
/// checks that it is complete, removes all write permissions and syncs it to
/// disk.
///
/// # Errors
///
/// If the image is in use, damaged or was not closed properly, or if its
/// permissions cannot be changed. The image is then unchanged.
pub fn seal(path: impl AsRef<Path>, options: OpenOptions) -> Result<Layer, ImageError> {
    let path = path.as_ref();
    let image = Image::open(path, options)?;
    check_top(&image, path)?;
    let top = &image.chain.top;
    let file = &top.source.file;
    file.set_permissions(Permissions::from_mode(0o444))
        .map_err(ImageError::write(path))?;
    file.sync_all().map_err(ImageError::write(path))?;
    top.describe().map_err(ImageError::read(path))
}

/// Checks that all data of the top layer is within its file.
fn check_top(image: &Image, path: &Path) -> Result<(), ImageError> {
    let header = &image.chain.top.header;
    if header.as_ref().is_some_and(|header| !header.clean) {
        return Err(ImageError::Damaged {
            path: path.to_owned(),
            damage: ImageDamage::Unclean,
        });
    }
    let mut at = 0;
    while at < image.size() {
        let extent = image.lookup(0, at, image.size(), Holes::ReadAsData);
        at = extent.map_err(ImageError::from_reading(path))?.end;
    }
    Ok(())
}
