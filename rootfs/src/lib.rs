//! Makes ext4 disk images for microVMs, byte for byte reproducible and without root.
//!
//! ```no_run
//! use vmcell_rootfs::{ImageBuilder, Owner, Tree};
//!
//! # fn main() -> Result<(), vmcell_rootfs::Error> {
//! // The stock image: built once (well under a second), then taken from the cache.
//! let base = vmcell_rootfs::recipe::base().cached()?;
//! println!("boot {}", base.path.display());
//!
//! // A custom image, built from a directory.
//! let mut tree = Tree::from_dir("./my-rootfs")?;
//! tree.file("/etc/motd", 0o644, "made by vmcell\n")?;
//! tree.set_owner("/home/cell", Owner { uid: 1000, gid: 1000 })?;
//! let image = ImageBuilder::new().label("mine").build(&tree, "mine.ext4")?;
//! println!("{} bytes, UUID {}", image.size, image.uuid);
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! A [`Tree`] lists the contents of an image. It is read from a directory or a tar archive,
//! assembled entry by entry, or both. Owners and device nodes in it need no privileges, because
//! its entries are never created on the host. An [`ImageBuilder`] formats a sparse file with
//! `mke2fs`, fills it with `debugfs`, entry by entry in sorted order, and checks the result with
//! `e2fsck`. All three programs belong to e2fsprogs.
//!
//! Equal trees give equal bytes: the order of creation, inode numbers, every timestamp, the
//! UUID, the hash seed and the features are set here, never by the host's clock, locale,
//! `mke2fs.conf` or file system. Only another version of e2fsprogs may lay an image out
//! differently, so the [`Cache`] includes its version in an image's digest.
//!
//! A [`Recipe`] describes how to assemble a root file system, and the [`Cache`] keeps one image
//! per recipe and set of inputs. [`recipe::base`] works offline: a static busybox and two users.
//! [`recipe::debian`] is a small Debian with bash, Python and an editor; to build it takes
//! `mmdebstrap` and a mirror.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod archive;
#[cfg(feature = "tokio")]
mod background;

mod cache;
pub mod catalog;
mod contents;
mod debugfs;
mod digest;
mod e2fsck;
mod environment;
mod error;
mod image;
mod kept_files;
mod mke2fs;
mod node;
pub mod oci;
mod progress;
pub mod recipe;
#[cfg(feature = "registry")]
pub mod registry;
mod scan;
mod scratch;
mod script;
mod size;
mod staging;
mod superblock;
mod timestamps;
mod tools;
mod tree;
mod unpacker;
mod uuid;

pub use cache::{Cache, CachedImage, Origin};
pub use digest::{Digest, Fingerprint};
pub use environment::Environment;
pub use error::{ArchiveProblem, Error, PathProblem};
pub use image::{Image, ImageBuilder};
pub use node::{Content, Kind, Node, Owner};
pub use progress::{Progress, Stage};
pub use recipe::Recipe;
pub use scan::Ownership;
pub use size::Size;
pub use timestamps::Timestamps;
pub use tools::Tools;
pub use tree::Tree;
pub use uuid::Uuid;
