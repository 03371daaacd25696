use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// Where an image of a container is, as `oci:DIR[:TAG]`, `oci-archive:FILE[:TAG]` or
/// `docker-archive:FILE[:NAME]`.
///
/// ```
/// use vmcell_rootfs::oci::ImageSource;
///
/// let source = ImageSource::parse("oci:/tmp/image:latest".as_ref());
/// let expected = ImageSource::Layout { folder: "/tmp/image".into(), tag: Some("latest".into()) };
/// assert_eq!(source, Some(expected));
/// assert_eq!(ImageSource::parse("debian".as_ref()), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageSource {
    /// A folder with the layout of OCI.
    Layout {
        /// The folder.
        folder: PathBuf,
        /// Which of its images.
        tag: Option<String>,
    },
    /// A tar archive of such a folder.
    LayoutArchive {
        /// The archive.
        file: PathBuf,
        /// Which of its images.
        tag: Option<String>,
    },
    /// What `docker save` writes.
    DockerArchive {
        /// The archive.
        file: PathBuf,
        /// Which of its images, as `NAME:TAG`.
        tag: Option<String>,
    },
}

impl ImageSource {
    /// Returns the source that a text names, if it begins as one does.
    pub fn parse(text: &OsStr) -> Option<Self> {
        let bytes = text.as_bytes();
        let at = bytes.iter().position(|&byte| byte == b':')?;
        let (kind, rest) = (&bytes[..at], &bytes[at + 1..]);
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        // Names have no colon, but tags do in archives of Docker.
        let (file, tag) = match rest.iter().position(|&byte| byte == b':') {
            Some(at) => {
                let tag = String::from_utf8_lossy(&rest[at + 1..]).into_owned();
                (path(&rest[..at]), Some(tag))
            }
            None => (path(rest), None),
        };
        match kind {
            b"oci" => Some(Self::Layout { folder: file, tag }),
            b"oci-archive" => Some(Self::LayoutArchive { file, tag }),
            b"docker-archive" => Some(Self::DockerArchive { file, tag }),
            _ => None,
        }
    }
}

impl fmt::Display for ImageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, path, tag) = match self {
            Self::Layout { folder, tag } => ("oci", folder, tag),
            Self::LayoutArchive { file, tag } => ("oci-archive", file, tag),
            Self::DockerArchive { file, tag } => ("docker-archive", file, tag),
        };
        write!(f, "{kind}:{}", path.display())?;
        match tag {
            Some(tag) => write!(f, ":{tag}"),
            None => Ok(()),
        }
    }
}
