//! Recipes: descriptions of root file systems, from which the cache builds images.
//!
//! ```no_run
//! # fn main() -> Result<(), vmcell_rootfs::Error> {
//! let image = vmcell_rootfs::recipe::base().cached()?;
//! println!("{} ({})", image.path.display(), image.digest);
//! # Ok(())
//! # }
//! ```

mod apt;
mod base;
mod busybox;
mod debian;
mod mmdebstrap;

pub use base::{Base, base};
pub use debian::{Debian, debian, debian_dev};

use crate::{Error, Fingerprint, ImageBuilder, Tree};

/// A description of a root file system, from which a [`Cache`](crate::Cache) builds an image.
///
/// Identifying the inputs is separate from assembling the tree, so that a cached image is found
/// quickly: [`fingerprint`](Recipe::fingerprint) must be fast, and [`tree`](Recipe::tree) may
/// download and unpack. Host files that the tree refers to must exist until the image is built;
/// those of [`Tree::from_tar`] live as long as the tree.
///
/// ```
/// use vmcell_rootfs::{Error, Fingerprint, Recipe, Tree};
///
/// /// A root file system with one static program.
/// struct Single(Vec<u8>);
///
/// impl Recipe for Single {
///     fn name(&self) -> &str {
///         "single"
///     }
///
///     fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), Error> {
///         inputs.field("generation", "1").field("program", &self.0);
///         Ok(())
///     }
///
///     fn tree(&self) -> Result<Tree, Error> {
///         let mut tree = Tree::new();
///         tree.file("/program", 0o755, self.0.clone())?;
///         Ok(tree)
///     }
/// }
/// ```
pub trait Recipe {
    /// Returns the name of the recipe, with which the names of its images begin.
    fn name(&self) -> &str;

    /// Adds every input that affects what [`tree`](Recipe::tree) returns, including a version of
    /// the recipe itself. The cache adds the parameters of
    /// [`image_builder`](Recipe::image_builder).
    ///
    /// # Errors
    /// If an input is missing.
    fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), Error>;

    /// Assembles the tree.
    ///
    /// # Errors
    /// If an input is missing or unusable.
    fn tree(&self) -> Result<Tree, Error>;

    /// Assembles the tree as [`tree`](Recipe::tree) does, and reports the fraction (0 to 1) that
    /// is done. To be implemented by recipes that take long.
    ///
    /// # Errors
    /// As [`tree`](Recipe::tree).
    fn tree_with(&self, progress: &mut dyn FnMut(f32)) -> Result<Tree, Error> {
        let _ = progress;
        self.tree()
    }

    /// Returns the parameters of the image. The cache replaces the seed.
    fn image_builder(&self) -> ImageBuilder {
        ImageBuilder::new()
    }
}
