use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, path::Path};

use super::{
    disk_image::Image,
    error::{ImageDamage, ImageError},
    layer::Layer,
    options::OpenOptions,
    walk::Holes,
};

/// Makes the top layer of an image one that is never written again, so that
/// children can be made of it: it is whole, safe from a loss of power, and
/// nobody has permission to write it.
///
/// # Errors
///
/// If the image is in use, damaged or was not closed properly, or the user may
/// not change its permissions. It is then as it was.
pub fn seal(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Layer, ImageError> {
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

/// Whether all that the top layer should have is in its file.
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
