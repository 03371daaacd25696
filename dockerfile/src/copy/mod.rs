//! What COPY and ADD copy: files of the context, of a disk, or of the Dockerfile itself.

mod archive;
mod context;
mod disk_files;
mod entry;
mod ignore;
mod selection;
mod source_tree;

pub(crate) use archive::{Packing, send};
pub(crate) use context::Context;
pub(crate) use selection::Selection;
