use std::path::Path;

use serde::Deserialize;

use super::{ImageProblem, blobs::Blobs, descriptor::parse};

/// What `manifest.json` of an archive of Docker says about an image.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DockerImage {
    pub(super) config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    pub(super) layers: Vec<String>,
}

impl DockerImage {
    /// Finds an image in an archive of Docker: the one with a tag, or the only one.
    pub(super) fn find(blobs: &Blobs, tag: Option<&str>) -> Result<Self, ImageProblem> {
        let manifest = blobs.file("manifest", Path::new("manifest.json"))?;
        let manifest = manifest.ok_or_else(|| {
            ImageProblem::Source("it has no manifest.json: was it written by `docker save`?".into())
        })?;
        let mut images: Vec<Self> = parse("manifest", &manifest)?;
        let has_tag = |image: &Self, tag| image.repo_tags.iter().flatten().any(|it| it == tag);
        let found = match tag {
            None if images.len() == 1 => Some(0),
            None => None,
            Some(tag) => images.iter().position(|image| has_tag(image, tag)),
        };
        if let Some(found) = found {
            return Ok(images.swap_remove(found));
        }
        let tags = images.into_iter().filter_map(|image| image.repo_tags);
        let tags = tags.flatten().collect();
        Err(match tag {
            None => ImageProblem::SeveralTags { tags },
            Some(tag) => ImageProblem::NoTag {
                tag: tag.to_owned(),
                tags,
            },
        })
    }
}
