//! What documents say about each other.

use oci_spec::image::{Descriptor, MediaType, Platform};
use serde::Deserialize;

use super::ImageProblem;
use crate::Digest;

/// The architecture of this machine, as images name it.
pub(super) const ARCHITECTURE: &str = match () {
    () if cfg!(target_arch = "aarch64") => "arm64",
    () if cfg!(target_arch = "riscv64") => "riscv64",
    () => "amd64",
};

/// Returns whether a type is that of a manifest, of OCI or Docker.
pub(crate) fn is_manifest(media_type: &MediaType) -> bool {
    match media_type {
        MediaType::ImageManifest => true,
        MediaType::Other(name) => name == "application/vnd.docker.distribution.manifest.v2+json",
        _ => false,
    }
}

/// Returns whether a type is that of an index, of OCI or Docker.
pub(crate) fn is_index(media_type: &MediaType) -> bool {
    match media_type {
        MediaType::ImageIndex => true,
        MediaType::Other(name) => {
            name == "application/vnd.docker.distribution.manifest.list.v2+json"
        }
        _ => false,
    }
}

/// Returns the one for this machine. Those that name no platform are for all.
pub(crate) fn choose(manifests: &[Descriptor]) -> Result<&Descriptor, ImageProblem> {
    let fits = |platform: &Platform| {
        let names = (
            platform.os().to_string(),
            platform.architecture().to_string(),
        );
        names == ("linux".to_owned(), ARCHITECTURE.to_owned())
    };
    let platform = |manifest: &&Descriptor| manifest.platform().as_ref().is_none_or(fits);
    let found = manifests.iter().find(platform);
    found.ok_or_else(|| {
        let platforms = manifests.iter().filter_map(|it| it.platform().as_ref());
        ImageProblem::NoPlatform {
            architecture: ARCHITECTURE,
            platforms: platforms
                .map(|platform| format!("{}/{}", platform.os(), platform.architecture()))
                .collect(),
        }
    })
}

pub(crate) fn parse<T: for<'a> Deserialize<'a>>(
    document: &'static str,
    bytes: &[u8],
) -> Result<T, ImageProblem> {
    serde_json::from_slice(bytes).map_err(|error| ImageProblem::Document {
        document,
        reason: error.to_string(),
    })
}

pub(crate) fn digest_of(descriptor: &Descriptor) -> Result<Digest, ImageProblem> {
    parse_digest(descriptor.digest().as_ref())
}

pub(super) fn parse_digest(text: &str) -> Result<Digest, ImageProblem> {
    let digest = text.strip_prefix("sha256:").and_then(Digest::parse);
    digest.ok_or_else(|| ImageProblem::DigestAlgorithm(text.to_owned()))
}
