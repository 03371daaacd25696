use std::path::Path;

use oci_spec::image::{
    Descriptor, ImageConfiguration, ImageIndex, ImageManifest, MediaType, Platform,
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    Defaults, ImageProblem, ImageSource, blobs::Blobs, compression::Compression,
    layered_tree::LayeredTree, verified::Verified,
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
}

/// A layer, whose bytes must have a digest when they are unpacked.
#[derive(Clone, Debug)]
struct Layer {
    place: Place,
    unpacked: Digest,
}

#[derive(Clone, Debug)]
enum Place {
    Blob {
        digest: Digest,
        size: u64,
        compression: Compression,
    },
    /// A file of an archive of Docker.
    File(String),
}

/// What `manifest.json` of an archive of Docker says about an image.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerImage {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
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
        let opened = match source {
            ImageSource::Layout { folder, tag } => {
                Self::in_layout(source, Blobs::in_folder(folder), tag.as_deref())
            }
            ImageSource::LayoutArchive { file, tag } => Blobs::in_archive(file)
                .and_then(|blobs| Self::in_layout(source, blobs, tag.as_deref())),
            ImageSource::DockerArchive { file, tag } => Blobs::in_archive(file)
                .and_then(|blobs| Self::in_docker_archive(source, blobs, tag.as_deref())),
        };
        opened.map_err(|problem| Error::Image {
            image: source.to_string(),
            problem,
        })
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

    fn in_layout(
        source: &ImageSource,
        blobs: Blobs,
        tag: Option<&str>,
    ) -> Result<Self, ImageProblem> {
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
        source: &ImageSource,
        blobs: Blobs,
        mut manifests: Vec<Descriptor>,
    ) -> Result<Self, ImageProblem> {
        for _ in 0..MAX_INDEXES {
            let chosen = choose(&manifests)?;
            let digest = digest_of(chosen)?;
            match chosen.media_type() {
                MediaType::ImageManifest => {}
                MediaType::Other(name)
                    if name == "application/vnd.docker.distribution.manifest.v2+json" => {}
                MediaType::ImageIndex => {
                    manifests = nested(&blobs, digest, chosen.size())?;
                    continue;
                }
                MediaType::Other(name)
                    if name == "application/vnd.docker.distribution.manifest.list.v2+json" =>
                {
                    manifests = nested(&blobs, digest, chosen.size())?;
                    continue;
                }
                other => return Err(ImageProblem::MediaType(other.to_string())),
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
        source: &ImageSource,
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
        source: &ImageSource,
        blobs: Blobs,
        tag: Option<&str>,
    ) -> Result<Self, ImageProblem> {
        let manifest = blobs.file("manifest", Path::new("manifest.json"))?;
        let manifest = manifest.ok_or_else(|| {
            ImageProblem::Source("it has no manifest.json: was it written by `docker save`?".into())
        })?;
        let images: Vec<DockerImage> = parse("manifest", &manifest)?;
        let tags = || {
            let tags = images
                .iter()
                .flat_map(|image| image.repo_tags.iter().flatten());
            tags.cloned().collect::<Vec<_>>()
        };
        let image = match (tag, &images[..]) {
            (None, [image]) => image,
            (None, _) => return Err(ImageProblem::SeveralTags { tags: tags() }),
            (Some(tag), images) => {
                let has_tag =
                    |image: &&DockerImage| image.repo_tags.iter().flatten().any(|it| it == tag);
                let found = images.iter().find(has_tag);
                found.ok_or_else(|| ImageProblem::NoTag {
                    tag: tag.to_owned(),
                    tags: tags(),
                })?
            }
        };
        let config = blobs.file("configuration", Path::new(&image.config))?;
        let config = config.ok_or_else(|| ImageProblem::MissingBlob(image.config.clone()))?;
        let id = Digest(Sha256::digest(&config).into());
        let layers = image.layers.iter().cloned().map(Place::File).collect();
        Self::new(source, blobs, id, None, &config, layers)
    }

    fn new(
        source: &ImageSource,
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
            source: source.to_string(),
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
        })
    }
}

/// The architecture of this machine, as images name it.
const ARCHITECTURE: &str = match () {
    () if cfg!(target_arch = "aarch64") => "arm64",
    () if cfg!(target_arch = "riscv64") => "riscv64",
    () => "amd64",
};

/// Returns the one for this machine. Those that name no platform are for all.
fn choose(manifests: &[Descriptor]) -> Result<&Descriptor, ImageProblem> {
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

fn nested(blobs: &Blobs, digest: Digest, size: u64) -> Result<Vec<Descriptor>, ImageProblem> {
    let index = blobs.document("index", digest, size)?;
    let index: ImageIndex = parse("index", &index)?;
    Ok(index.manifests().clone())
}

fn parse<T: for<'a> Deserialize<'a>>(
    document: &'static str,
    bytes: &[u8],
) -> Result<T, ImageProblem> {
    serde_json::from_slice(bytes).map_err(|error| ImageProblem::Document {
        document,
        reason: error.to_string(),
    })
}

fn digest_of(descriptor: &Descriptor) -> Result<Digest, ImageProblem> {
    parse_digest(descriptor.digest().as_ref())
}

fn parse_digest(text: &str) -> Result<Digest, ImageProblem> {
    let digest = text.strip_prefix("sha256:").and_then(Digest::parse);
    digest.ok_or_else(|| ImageProblem::DigestAlgorithm(text.to_owned()))
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
            let added = match self.open_layer(layer) {
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

    /// Times of files are kept up to that at which the image was made.
    fn image_builder(&self) -> ImageBuilder {
        let created = self.created.map(OffsetDateTime::unix_timestamp);
        let created = created.and_then(|created| i32::try_from(created).ok());
        let created = created.and_then(|created| u32::try_from(created).ok());
        let earliest = Timestamps::DEFAULT_EPOCH;
        let epoch = created.map_or(earliest, |created| created.max(earliest));
        ImageBuilder::new().timestamps(Timestamps::ClampTo(epoch))
    }
}

impl OciImage {
    /// Opens the archive of a layer.
    fn open_layer(&self, layer: &Layer) -> Result<impl std::io::Read, ImageProblem> {
        let unreadable = |error: std::io::Error| {
            let inside = ImageProblem::inside(&error);
            inside
                .unwrap_or_else(|| ImageProblem::Source(format!("a layer cannot be read: {error}")))
        };
        let archive = match &layer.place {
            Place::Blob {
                digest,
                size,
                compression,
            } => compression.reader(self.blobs.open(*digest, *size)?),
            Place::File(name) => {
                let file = self.blobs.open_file(Path::new(name)).map_err(unreadable)?;
                let file = file.ok_or_else(|| ImageProblem::MissingBlob(name.clone()))?;
                let mut file = std::io::BufReader::new(file);
                let compression = Compression::detect(&mut file).map_err(unreadable)?;
                compression.reader(file)
            }
        };
        let archive = archive.map_err(unreadable)?;
        Ok(Verified::new(archive, layer.unpacked, None))
    }
}

/// Why a layer is not added.
enum LayerError {
    Image(ImageProblem),
    /// It has nothing to do with the image.
    Host(Error),
}

fn in_layer(number: usize, error: Error) -> LayerError {
    let reason = match &error {
        Error::ArchiveUnreadable { source } => match ImageProblem::inside(source) {
            Some(problem) => return LayerError::Image(problem),
            None => source.to_string(),
        },
        Error::Archive { .. } | Error::Path { .. } => error.to_string(),
        _ => return LayerError::Host(error),
    };
    LayerError::Image(ImageProblem::Layer {
        number: number + 1,
        reason,
    })
}
