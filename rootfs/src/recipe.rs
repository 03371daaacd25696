//! Descriptions of environments.
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
pub use debian::{Debian, debian};

use crate::{Error, Fingerprint, ImageBuilder, Tree};

/// A description of an environment, from which a [`Cache`](crate::Cache) makes an image.
///
/// Telling what goes in is kept apart from putting it together, so that a finished image is
/// found without the work: [`fingerprint`](Recipe::fingerprint) must be quick, and
/// [`tree`](Recipe::tree) may download and unpack. Temporary files that it needs must be there
/// until the image is made; those of [`Tree::from_tar`] are as long as the tree is.
///
/// ```
/// use vmcell_rootfs::{Error, Fingerprint, Recipe, Tree};
///
/// /// An environment that holds one static program.
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
    /// The name that its images begin with.
    fn name(&self) -> &str;

    /// Adds everything that decides what [`tree`](Recipe::tree) returns, a generation of the
    /// recipe itself included. The parameters of [`image`](Recipe::image) are added already.
    ///
    /// # Errors
    /// If an input is missing.
    fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), Error>;

    /// Puts the environment together.
    ///
    /// # Errors
    /// If an input is missing or unusable.
    fn tree(&self) -> Result<Tree, Error>;

    /// Puts the environment together as [`tree`](Recipe::tree) does, and reports the part (0 to 1)
    /// that is done. Worth writing for a recipe that takes its time.
    ///
    /// # Errors
    /// As [`tree`](Recipe::tree).
    fn tree_with(&self, progress: &mut dyn FnMut(f32)) -> Result<Tree, Error> {
        let _ = progress;
        self.tree()
    }

    /// The parameters of the image. Its seed is replaced by the cache.
    fn image(&self) -> ImageBuilder {
        ImageBuilder::new()
    }
}
