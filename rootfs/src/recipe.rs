//! Descriptions of environments.
//!
//! ```no_run
//! # fn main() -> Result<(), vmcell_rootfs::Error> {
//! let image = vmcell_rootfs::recipe::base().cached()?;
//! println!("{} ({})", image.path.display(), image.digest);
//! # Ok(())
//! # }
//! ```

mod base;
mod busybox;

pub use base::{Base, base};

use crate::{Error, Fingerprint, ImageBuilder, Tree};

/// A description of an environment, from which a [`Cache`](crate::Cache) makes an image.
///
/// Telling what goes in is kept apart from putting it together, so that a finished image is
/// found without the work: [`fingerprint`](Recipe::fingerprint) must be quick, and
/// [`tree`](Recipe::tree) may download and unpack. A recipe that needs temporary files owns
/// their folder: it lives until the image is made.
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

    /// The parameters of the image. Its seed is replaced by the cache.
    fn image(&self) -> ImageBuilder {
        ImageBuilder::new()
    }
}
