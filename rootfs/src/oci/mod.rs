//! Images of containers, as the Open Container Initiative and Docker specify them.
//!
//! An [`OciImage`] is a [`Recipe`](crate::Recipe) like any other: its layers become one tree, and
//! the tree an ext4 image, without root. Everything in an image may be an attack: each digest and
//! each size is compared while it is read, and no name or link leads out of the tree.

mod blobs;
mod compression;
mod defaults;
mod descriptor;
mod docker_archive;
mod image;
mod layer;
mod layered_tree;
mod linked_tree;
mod problem;
mod source;
mod tar_index;
mod verified;

pub use defaults::Defaults;
#[cfg(feature = "registry")]
pub(crate) use descriptor::{choose, digest_of, is_index, is_manifest, parse};
pub use image::OciImage;
pub use problem::ImageProblem;
pub use source::ImageSource;
