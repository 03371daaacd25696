//! Digests of what a run is made of, computed while its VM starts.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
};

use tokio::task::JoinHandle;

use super::plan::Plan;
use crate::{
    receipt::{ContentDigest, OutputDigest},
    snapshot::file_digest,
    sparse::Digest,
    template::KeyParts,
    vm::VmBuilder,
};

/// What went into a run.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) image: Option<String>,
    pub(super) kernel: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) inputs: Vec<ContentDigest>,
    pub(super) stdin: Option<OutputDigest>,
}

/// Computes all digests, beside what the caller does. `image_digest` is that of the image, if
/// it is known.
pub(super) fn collect(
    vm: VmBuilder,
    image: PathBuf,
    image_digest: Option<Digest>,
    plan: &Plan,
) -> JoinHandle<Evidence> {
    let files = plan.files.iter();
    let files: Vec<_> = files
        .map(|file| (file.path.clone(), file.content.clone()))
        .collect();
    let stdin = plan.stdin.clone();
    tokio::spawn(async move {
        let kernel = vm.kernel_path().await;
        let computing = tokio::task::spawn_blocking(move || {
            let known = |path: &Path, digest: io::Result<Digest>| match digest {
                Ok(digest) => Some(digest.to_string()),
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "a file has no digest");
                    None
                }
            };
            let agent = vm.agent_bytes().ok();
            Evidence {
                image: match image_digest {
                    Some(digest) => Some(digest.to_string()),
                    None => known(&image, file_digest(&image)),
                },
                kernel: kernel.and_then(|path| known(&path, kernel_digest(&path))),
                agent: agent.map(|bytes| Digest::of_bytes(&bytes).to_string()),
                inputs: files
                    .into_iter()
                    .map(|(path, bytes)| content(path, &bytes))
                    .collect(),
                stdin: stdin.map(|bytes| stream(&bytes, 0)),
            }
        });
        // Fails only if the runtime shuts down, or if it panics.
        computing.await.unwrap_or_default()
    })
}

/// Returns the SHA-256 of a kernel. This program reads each one once.
fn kernel_digest(path: &Path) -> io::Result<Digest> {
    static DIGESTS: LazyLock<Mutex<HashMap<String, Digest>>> = LazyLock::new(Mutex::default);
    let digests = || DIGESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut key = KeyParts::default();
    key.add_file("kernel", path)?;
    let key = key.key();
    if let Some(digest) = digests().get(&key) {
        return Ok(*digest);
    }
    let digest = Digest::of_bytes(&std::fs::read(path)?);
    digests().insert(key, digest);
    Ok(digest)
}

pub(super) fn content(path: String, bytes: &[u8]) -> ContentDigest {
    ContentDigest {
        path,
        bytes: bytes.len() as u64,
        sha256: Digest::of_bytes(bytes).to_string(),
    }
}

pub(super) fn stream(bytes: &[u8], dropped_bytes: u64) -> OutputDigest {
    OutputDigest {
        bytes: bytes.len() as u64,
        sha256: Digest::of_bytes(bytes).to_string(),
        dropped_bytes,
    }
}
