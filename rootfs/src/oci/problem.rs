use std::io;

use crate::Digest;

/// What is wrong with an image of a container.
///
/// Its texts name parts of the image, and replace control characters in these names by U+FFFD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageProblem {
    /// It is not there, or is not what it is said to be.
    #[error("{}", one_line(.0))]
    Source(String),
    /// Nothing has this tag.
    #[error("it has no image {tag:?}, but {}", list(.tags))]
    NoTag {
        /// The tag that was asked for.
        tag: String,
        /// Those that there are.
        tags: Vec<String>,
    },
    /// It has several images.
    #[error("it has several images: name one of {}", list(.tags))]
    SeveralTags {
        /// Their tags.
        tags: Vec<String>,
    },
    /// It is for other machines.
    #[error("it has nothing for linux/{architecture}, but for {}", list(.platforms))]
    NoPlatform {
        /// The architecture of this machine.
        architecture: &'static str,
        /// What it is for.
        platforms: Vec<String>,
    },
    /// A document is not what the specification says.
    #[error("its {document} is wrong: {}", one_line(.reason))]
    Document {
        /// Which one.
        document: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A document is too large.
    #[error("its {document} has more than {limit} bytes")]
    DocumentTooLarge {
        /// Which one.
        document: &'static str,
        /// How large it may be.
        limit: u64,
    },
    /// A blob is missing.
    #[error("its blob {} is missing: fetch or export it again", one_line(.0))]
    MissingBlob(String),
    /// A blob has other bytes.
    #[error("a blob has the digest sha256:{found} in place of sha256:{expected}: fetch it again")]
    Digest {
        /// The digest that it must have.
        expected: Digest,
        /// The one that it has.
        found: Digest,
    },
    /// A blob has another size.
    #[error("the blob sha256:{digest} has {found} bytes or more in place of {expected}")]
    Size {
        /// Which one.
        digest: Digest,
        /// The size that it must have.
        expected: u64,
        /// How much was read.
        found: u64,
    },
    /// A digest is none of SHA-256.
    #[error("the digest {0:?} is none of SHA-256")]
    DigestAlgorithm(String),
    /// A part has a type that is not known.
    #[error("it has a part of the unknown type {0:?}")]
    MediaType(String),
    /// A layer is no archive, or has something that cannot be in an image.
    #[error("its layer {number} is wrong: {}", one_line(.reason))]
    Layer {
        /// Which one, from 1.
        number: usize,
        /// What is wrong.
        reason: String,
    },
    /// A registry does not give it.
    #[error("{}", one_line(.0))]
    Registry(String),
    /// A layer is to be fetched from elsewhere.
    #[error("it has a layer that its vendor does not allow to distribute")]
    ForeignLayer,
}

fn list(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        names => one_line(&names.join(", ")),
    }
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

impl ImageProblem {
    /// Returns the problem that an error of reading a blob has inside.
    pub(super) fn inside(error: &io::Error) -> Option<Self> {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error.get_ref()?);
        while let Some(error) = source {
            if let Some(problem) = error.downcast_ref::<Self>() {
                return Some(problem.clone());
            }
            source = match error.downcast_ref::<io::Error>() {
                Some(nested) => nested.get_ref().map(|inner| inner as _),
                None => error.source(),
            };
        }
        None
    }
}
