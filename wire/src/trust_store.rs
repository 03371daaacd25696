use serde::{Deserialize, Serialize};

use crate::packed::PackedStrings;
#[cfg(doc)]
use crate::request::Request;

/// The certificates that programs of the guest trust besides those of its image: see
/// [`Request::SetTrustStore`].
///
/// It lasts until the next one, or until the VM takes a [new identity](Request::Renew).
/// Nothing of it is on the disk. An empty one restores the trust store of the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustStore<'a> {
    /// Pairs of absolute paths: a file that the host has written, and the file of the image
    /// over which it is mounted.
    #[serde(borrow)]
    pub mounts: PackedStrings<'a>,
    /// The variables, as `NAME=value`, of later commands, terminals and services that have
    /// the default environment and do not set them themselves.
    #[serde(borrow)]
    pub env: PackedStrings<'a>,
}
