//! Files with holes: what a VM has not written takes no space, and no time to copy.
//!
//! A file is seen as a sequence of [runs](runs): its parts that are not zero. Its
//! packed form is all of them, one after the other. The [digest](digest) of a file is
//! that of its packed form, so that it does not depend on where a file system has
//! holes.

mod packed;
mod runs;

pub(crate) use packed::{Digest, copy_with_digest, digest, pack, unpack};
pub(crate) use runs::copy_into;
