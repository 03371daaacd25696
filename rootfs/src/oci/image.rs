use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use oci_spec::image::{Descriptor, ImageConfiguration, ImageIndex, ImageManifest};
use sha2::{Digest as _, Sha256};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    Defaults, ImageProblem, ImageSource,
    blobs::Blobs,
    compression::Compression,
    descriptor::{ARCHITECTURE, choose, digest_of, is_index, is_manifest, parse, parse_digest},
    docker_archive::DockerImage,
    layer::{Layer, LayerError, Place, in_layer},
    layered_tree::LayeredTree,
};
use crate::{Digest, Error, Fingerprint, ImageBuilder, Recipe, Timestamps, Tree};

/// An image of a container, whose documents were read and whose layers were not.
///
/// It is a [recipe](Recipe): a [cache](crate::Cache) makes a disk image of it, without root. The
/// same image gives the same bytes, however its layers were compressed.
///
/// ```no_run
/// use vmcell_rootfs::{Cache, oci::{ImageSource, OciImage}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let source = ImageSource::parse("oci:./image:latest".as_ref()).ok_or("no source")?;
/// let image = OciImage::open(&source)?;
/// let disk = Cache::user()?.image(&image)?;
/// println!("{} runs {:?}", disk.path.display(), image.defaults().command_line(&[]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OciImage {
    source: String,
    blobs: Blobs,
    id: Digest,
    manifest: Option<Digest>,
    created: Option<OffsetDateTime>,
    defaults: Defaults,
    layers: Vec<Layer>,
    /// Keeps the blobs of a pulled image from being pruned.
    lock: Option<Arc<File>>,
}

/// How deep indexes may be in indexes.
const MAX_INDEXES: usize = 4;
/// How many layers an image may have: Docker allows 127.
const MAX_LAYERS: usize = 1000;
/// The annotation with the tag of an image in a layout.
const TAG: &str = "org.opencontainers.image.ref.name";

impl OciImage {
    /// Reads the documents of an image.
    ///
    /// # Errors
    /// [`Error::Image`], with what is wrong.
    pub fn open(source: &ImageSource) -> Result<Self, Error> {
        let name = source.to_string();
        let opened = match source {
            ImageSource::Layout { folder, tag } => {
                Self::in_layout(&name, Blobs::in_folder(folder), tag.as_deref())
            }
            ImageSource::LayoutArchive { file, tag } => Blobs::in_archive(file)
                .and_then(|blobs| Self::in_layout(&name, blobs, tag.as_deref())),
            ImageSource::DockerArchive { file, tag } => Blobs::in_archive(file)
                .and_then(|blobs| Self::in_docker_archive(&name, blobs, tag.as_deref())),
        };
        opened.map_err(|problem| Error::Image {
            image: name,
            problem,
        })
    }

    /// Opens an image that was pulled into a folder.
    #[cfg(feature = "registry")]
    pub(crate) fn in_store(
        source: &str,
        folder: &Path,
        manifest: Descriptor,
        lock: File,
    ) -> Result<Self, ImageProblem> {
        let image = Self::from_manifests(source, Blobs::in_folder(folder), vec![manifest])?;
        Ok(Self {
            lock: Some(Arc::new(lock)),
            ..image
        })
    }

    /// Returns the digests of its blobs, if they were pulled into a cache.
    pub(crate) fn pulled_blobs(&self) -> Vec<Digest> {
        if self.lock.is_none() {
            return Vec::new();
        }
        let layers = self.layers.iter().filter_map(|layer| match layer.place {
            Place::Blob { digest, .. } => Some(digest),
            Place::File(_) => None,
        });
        let documents = [Some(self.id), self.manifest].into_iter().flatten();
        documents.chain(layers).collect()
    }

    /// Returns its digest: that of its configuration, which names the bytes of all its layers.
    pub fn id(&self) -> Digest {
        self.id
    }

    /// Returns the digest of its manifest. Archives of Docker have none.
    pub fn manifest(&self) -> Option<Digest> {
        self.manifest
    }

    /// Returns where it is from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns how programs run in it.
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    fn in_layout(source: &str, blobs: Blobs, tag: Option<&str>) -> Result<Self, ImageProblem> {
        let index = blobs.file("index", Path::new("index.json"))?;
        let index = index.ok_or_else(|| {
            ImageProblem::Source("it has no index.json: is it a layout of OCI?".into())
        })?;
        let index: ImageIndex = parse("index", &index)?;
        let tagged = |descriptor: &Descriptor| {
            let annotations = descriptor.annotations().as_ref()?;
            annotations.get(TAG).cloned()
        };
        let manifests = index.manifests();
        let tags = || manifests.iter().filter_map(tagged).collect();
        let chosen: Vec<_> = match tag {
            Some(tag) => {
                let mut found = manifests.iter();
                let found = found.find(|manifest| tagged(manifest).as_deref() == Some(tag));
                let found = found.ok_or_else(|| ImageProblem::NoTag {
                    tag: tag.to_owned(),
                    tags: tags(),
                })?;
                vec![found.clone()]
            }
            None if manifests.iter().filter_map(tagged).count() > 1 => {
                return Err(ImageProblem::SeveralTags { tags: tags() });
            }
            None => manifests.clone(),
        };
        Self::from_manifests(source, blobs, chosen)
    }

    /// Chooses the manifest for this machine.
    fn from_manifests(
        source: &str,
        blobs: Blobs,
        mut manifests: Vec<Descriptor>,
    ) -> Result<Self, ImageProblem> {
        for _ in 0..MAX_INDEXES {
            let chosen = choose(&manifests)?;
            let digest = digest_of(chosen)?;
            let media_type = chosen.media_type();
            if is_index(media_type) {
                manifests = nested(&blobs, digest, chosen.size())?;
                continue;
            }
            if !is_manifest(media_type) {
                return Err(ImageProblem::MediaType(media_type.to_string()));
            }
            let manifest = blobs.document("manifest", digest, chosen.size())?;
            let manifest: ImageManifest = parse("manifest", &manifest)?;
            return Self::from_manifest(source, blobs, digest, &manifest);
        }
        Err(ImageProblem::Document {
            document: "index",
            reason: "it has indexes in indexes".to_owned(),
        })
    }

    fn from_manifest(
        source: &str,
        blobs: Blobs,
        digest: Digest,
        manifest: &ImageManifest,
    ) -> Result<Self, ImageProblem> {
        let config = manifest.config();
        let id = digest_of(config)?;
        let config = blobs.document("configuration", id, config.size())?;
        let layers = manifest.layers().iter().map(|layer| {
            Ok(Place::Blob {
                digest: digest_of(layer)?,
                size: layer.size(),
                compression: Compression::of(layer.media_type())?,
            })
        });
        let layers = layers.collect::<Result<_, ImageProblem>>()?;
        Self::new(source, blobs, id, Some(digest), &config, layers)
    }

    fn in_docker_archive(
        source: &str,
        blobs: Blobs,
        tag: Option<&str>,
    ) -> Result<Self, ImageProblem> {
        let image = DockerImage::find(&blobs, tag)?;
        let config = blobs.file("configuration", Path::new(&image.config))?;
        let config = config.ok_or(ImageProblem::MissingBlob(image.config))?;
        let id = Digest(Sha256::digest(&config).into());
        let layers = image.layers.into_iter().map(Place::File).collect();
        Self::new(source, blobs, id, None, &config, layers)
    }

    fn new(
        source: &str,
        blobs: Blobs,
        id: Digest,
        manifest: Option<Digest>,
        config: &[u8],
        layers: Vec<Place>,
    ) -> Result<Self, ImageProblem> {
        let config: ImageConfiguration = parse("configuration", config)?;
        let wrong = |reason: &str| ImageProblem::Document {
            document: "configuration",
            reason: reason.to_owned(),
        };
        let platform = format!("{}/{}", config.os(), config.architecture());
        if platform != format!("linux/{ARCHITECTURE}") {
            return Err(ImageProblem::NoPlatform {
                architecture: ARCHITECTURE,
                platforms: vec![platform],
            });
        }
        let unpacked = config.rootfs().diff_ids();
        if unpacked.len() != layers.len() {
            return Err(wrong("it has another number of layers than the manifest"));
        }
        if layers.len() > MAX_LAYERS {
            return Err(wrong("it has too many layers"));
        }
        let layers = layers.into_iter().zip(unpacked).map(|(place, unpacked)| {
            let unpacked = parse_digest(unpacked.as_ref())?;
            Ok(Layer { place, unpacked })
        });
        let created = config.created().as_deref();
        Ok(Self {
            source: source.to_owned(),
            blobs,
            id,
            manifest,
            created: created.and_then(|created| OffsetDateTime::parse(created, &Rfc3339).ok()),
            defaults: config
                .config()
                .as_ref()
                .map(Defaults::of)
                .unwrap_or_default(),
            layers: layers.collect::<Result<_, ImageProblem>>()?,
            lock: None,
        })
    }
}

fn nested(blobs: &Blobs, digest: Digest, size: u64) -> Result<Vec<Descriptor>, ImageProblem> {
    let index = blobs.document("index", digest, size)?;
    let index: ImageIndex = parse("index", &index)?;
    Ok(index.manifests().clone())
}

impl Recipe for OciImage {
    fn name(&self) -> &str {
        "oci"
    }

    fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), Error> {
        inputs.field("generation", "1").field("image", self.id.0);
        Ok(())
    }

    fn tree(&self) -> Result<Tree, Error> {
        self.tree_with(&mut |_| {})
    }

    fn tree_with(&self, progress: &mut dyn FnMut(f32)) -> Result<Tree, Error> {
        let mut tree = LayeredTree::new()?;
        for (number, layer) in self.layers.iter().enumerate() {
            progress(number as f32 / self.layers.len() as f32);
            let added = match layer.open(&self.blobs) {
                Ok(archive) => tree.add(archive).map_err(|error| in_layer(number, error)),
                Err(problem) => Err(LayerError::Image(problem)),
            };
            added.map_err(|error| match error {
                LayerError::Image(problem) => Error::Image {
                    image: self.source.clone(),
                    problem,
                },
                LayerError::Host(error) => error,
            })?;
        }
        // As container runtimes do.
        if let Some(directory) = &self.defaults.working_dir {
            tree.add_directory(directory)?;
        }
        Ok(tree.into_tree())
    }

    /// Times of files are those of its layers.
    fn image_builder(&self) -> ImageBuilder {
        let created = self.created.map(OffsetDateTime::unix_timestamp);
        let created = created.and_then(|created| i32::try_from(created).ok());
        let created = created.and_then(|created| u32::try_from(created).ok());
        let earliest = Timestamps::DEFAULT_EPOCH;
        let epoch = created.map_or(earliest, |created| created.max(earliest));
        ImageBuilder::new().timestamps(Timestamps::Keep(epoch))
    }
}
