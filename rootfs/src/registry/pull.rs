use std::io::Read;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use oci_spec::image::{Descriptor, ImageIndex, ImageManifest, MediaType};
use sha2::{Digest as _, Sha256};
use ureq::http::{StatusCode, header::CONTENT_TYPE};

use super::Reference;
use super::blob_store::{BlobStore, FetchError, Rest};
use super::client::{Client, Wanted, body, cut_off, problem};
use crate::kept_files::KeptFiles;
use crate::oci::{ImageProblem, OciImage, choose, digest_of, is_index, is_manifest, parse};
use crate::{Cache, Digest, Error};

/// How images are pulled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PullOptions {
    /// Speak HTTP without encryption. Everybody on the way can read it, and what is not asked
    /// for by its digest can be replaced.
    pub plain_http: bool,
    /// The host that is asked in place of the registry, with its port if it has one.
    pub mirror: Option<String>,
}

impl PullOptions {
    /// Speaks HTTP without encryption: see [`plain_http`](Self::plain_http).
    #[must_use]
    pub fn plain_http(mut self, plain_http: bool) -> Self {
        self.plain_http = plain_http;
        self
    }

    /// Asks another host in place of the registry.
    #[must_use]
    pub fn mirror(mut self, mirror: impl Into<String>) -> Self {
        self.mirror = Some(mirror.into());
        self
    }
}

/// The largest document, as registries limit them.
const MAX_DOCUMENT: u64 = 4 << 20;
/// How many layers are fetched at once.
const MAX_AT_ONCE: usize = 4;
/// How deep indexes may be in indexes.
const MAX_INDEXES: usize = 4;

/// The types of manifests and indexes.
const DOCUMENTS: &str = "application/vnd.oci.image.index.v1+json, \
                         application/vnd.oci.image.manifest.v1+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json, \
                         application/vnd.docker.distribution.manifest.v2+json";

/// Fetches an image of a registry into the folder of a cache, and returns it. Layers that are
/// there already are not fetched again; what was interrupted goes on. `progress` is called with
/// how many bytes there are, and of how many.
///
/// # Errors
/// [`Error::Image`], with what is wrong; [`Error::Write`] if it cannot be stored.
pub fn pull(
    cache: &Cache,
    reference: &Reference,
    options: PullOptions,
    progress: impl FnMut(u64, u64),
) -> Result<OciImage, Error> {
    let puller = Puller {
        client: Client::new(options),
        store: BlobStore::in_layout(cache.folder()),
        reference,
    };
    // Nothing is pruned meanwhile.
    let lock = KeptFiles::blobs(cache.folder()).lock()?;
    let pulled = puller.pull(progress).and_then(|root| {
        let image = OciImage::in_store(&reference.to_string(), cache.folder(), root, lock);
        image.map_err(FetchError::Image)
    });
    pulled.map_err(|error| match error {
        FetchError::Host(error) => error,
        FetchError::Image(problem) => Error::Image {
            image: reference.to_string(),
            problem,
        },
    })
}

struct Puller<'a> {
    client: Client,
    store: BlobStore,
    reference: &'a Reference,
}

impl Puller<'_> {
    /// Fetches all of an image. Returns the descriptor of its manifest.
    fn pull(&self, mut progress: impl FnMut(u64, u64)) -> Result<Descriptor, FetchError> {
        let version = self.reference.version();
        let (mut descriptor, mut document) = self.document(&version, self.reference.digest())?;
        for _ in 0..MAX_INDEXES {
            if is_manifest(descriptor.media_type()) {
                let manifest: ImageManifest = parse("manifest", &document)?;
                self.fetch_all(&manifest, &mut progress)?;
                return Ok(descriptor);
            }
            if !is_index(descriptor.media_type()) {
                let media_type = descriptor.media_type().to_string();
                return Err(ImageProblem::MediaType(media_type).into());
            }
            let index: ImageIndex = parse("index", &document)?;
            let digest = digest_of(choose(index.manifests())?)?;
            (descriptor, document) = self.document(&format!("sha256:{digest}"), Some(digest))?;
        }
        Err(problem("its indexes are in indexes".to_owned()).into())
    }

    /// Fetches a manifest or an index, and keeps it.
    fn document(
        &self,
        version: &str,
        expected: Option<Digest>,
    ) -> Result<(Descriptor, Vec<u8>), FetchError> {
        let wanted = Wanted {
            path: format!("manifests/{version}"),
            accept: DOCUMENTS,
            offset: 0,
        };
        let response = self.client.get(self.reference, &wanted)?;
        let media_type = response.headers().get(CONTENT_TYPE);
        let media_type = media_type.and_then(|text| text.to_str().ok());
        let media_type = media_type.unwrap_or_default().split(';').next();
        let media_type = MediaType::from(media_type.unwrap_or_default().trim());
        let mut bytes = Vec::new();
        let read = body(response)
            .take(MAX_DOCUMENT + 1)
            .read_to_end(&mut bytes);
        read.map_err(|error| cut_off(self.reference, &error))?;
        if bytes.len() as u64 > MAX_DOCUMENT {
            return Err(ImageProblem::DocumentTooLarge {
                document: "manifest",
                limit: MAX_DOCUMENT,
            }
            .into());
        }
        let found = Digest(Sha256::digest(&bytes).into());
        if let Some(expected) = expected.filter(|&expected| expected != found) {
            return Err(ImageProblem::Digest { expected, found }.into());
        }
        self.store.add(found, &bytes).map_err(FetchError::Host)?;
        let name = format!("sha256:{found}");
        let name = name.parse::<oci_spec::image::Digest>();
        let name = name.map_err(|error| problem(error.to_string()))?;
        Ok((Descriptor::new(media_type, bytes.len() as u64, name), bytes))
    }

    /// Fetches the configuration and the layers, several at once.
    fn fetch_all(
        &self,
        manifest: &ImageManifest,
        progress: &mut impl FnMut(u64, u64),
    ) -> Result<(), FetchError> {
        let parts = [manifest.config()].into_iter().chain(manifest.layers());
        let mut blobs = Vec::new();
        for part in parts {
            // One that is there twice is fetched once.
            let blob = (digest_of(part)?, part.size());
            if !blobs.contains(&blob) {
                blobs.push(blob);
            }
        }
        let all = blobs.iter().map(|(_, size)| size).sum();
        let next = Mutex::new(blobs.into_iter());
        let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
        let done = AtomicU64::new(0);
        let (sender, results) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..MAX_AT_ONCE {
                let sender = sender.clone();
                let (take, done) = (&take, &done);
                scope.spawn(move || {
                    while let Some((digest, size)) = take() {
                        let fetched = self.fetch(digest, size, |bytes| {
                            done.fetch_add(bytes, Ordering::Relaxed);
                            let _ = sender.send(Ok(()));
                        });
                        // The others end what they have begun.
                        if fetched.is_err() {
                            while take().is_some() {}
                            let _ = sender.send(fetched);
                        }
                    }
                });
            }
            drop(sender);
            let mut outcome = Ok(());
            for result in results {
                progress(done.load(Ordering::Relaxed).min(all), all);
                outcome = outcome.and(result);
            }
            outcome
        })
    }

    fn fetch(&self, digest: Digest, size: u64, progress: impl Fn(u64)) -> Result<(), FetchError> {
        let open = |offset| {
            let wanted = Wanted {
                path: format!("blobs/sha256:{digest}"),
                accept: "*/*",
                offset,
            };
            let response = self.client.get(self.reference, &wanted)?;
            Ok(Rest {
                offset: match response.status() {
                    StatusCode::PARTIAL_CONTENT => offset,
                    _ => 0,
                },
                bytes: body(response),
            })
        };
        let cut_off = |error: &std::io::Error| cut_off(self.reference, error);
        self.store.fetch(digest, size, open, cut_off, progress)
    }
}
