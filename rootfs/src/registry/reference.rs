use std::fmt;

use crate::Digest;

/// The name of an image in a registry, as `[REGISTRY/]REPOSITORY[:TAG][@sha256:DIGEST]`.
///
/// ```
/// use vmcell_rootfs::registry::Reference;
///
/// let short: Reference = "alpine".parse().unwrap();
/// assert_eq!(short.to_string(), "docker.io/library/alpine:latest");
/// let other: Reference = "localhost:5000/team/tool:1.2".parse().unwrap();
/// assert_eq!(other.registry(), "localhost:5000");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// The registry of names without one, and where its images without a folder are.
const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_FOLDER: &str = "library";
const DEFAULT_TAG: &str = "latest";

/// The longest name: that of Docker.
const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;

/// A text is no name of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name of an image: write REGISTRY/REPOSITORY:TAG, or REGISTRY/REPOSITORY@sha256:DIGEST"
)]
pub struct BadReference(String);

impl std::str::FromStr for Reference {
    type Err = BadReference;

    fn from_str(text: &str) -> Result<Self, BadReference> {
        Self::parse(text).ok_or_else(|| BadReference(text.to_owned()))
    }
}

impl Reference {
    fn parse(text: &str) -> Option<Self> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(Digest::parse(digest.strip_prefix("sha256:")?)?)),
            None => (text, None),
        };
        // A colon before the last slash is that of a port.
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if is_registry(first) => (first, rest.to_owned()),
            Some(_) => (DEFAULT_REGISTRY, name.to_owned()),
            None => (DEFAULT_REGISTRY, format!("{DEFAULT_FOLDER}/{name}")),
        };
        let tag = match (tag, digest) {
            (None, None) => Some(DEFAULT_TAG),
            (tag, _) => tag,
        };
        let is_good = is_host(registry)
            && repository.len() <= MAX_NAME
            && repository.split('/').all(is_component)
            && tag.is_none_or(is_tag);
        is_good.then(|| Self {
            registry: registry.to_owned(),
            repository,
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// Returns the reference if a text begins with a registry, and so is no name of anything else.
    pub fn with_registry(text: &str) -> Option<Self> {
        let (first, _) = text.split_once('/')?;
        is_registry(first).then(|| Self::parse(text)).flatten()
    }

    /// Returns the name that users would give it: the last part of the repository.
    pub fn short_name(&self) -> &str {
        let last = self.repository.rsplit('/').next();
        last.unwrap_or(&self.repository)
    }

    /// Returns the registry, with its port if it has one.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns the digest, if it was given.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns what its manifest is asked for by: the digest, or else the tag.
    pub(super) fn version(&self) -> String {
        match (self.digest, &self.tag) {
            (Some(digest), _) => format!("sha256:{digest}"),
            (None, Some(tag)) => tag.clone(),
            (None, None) => DEFAULT_TAG.to_owned(),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match self.digest {
            Some(digest) => write!(f, "@sha256:{digest}"),
            None => Ok(()),
        }
    }
}

/// Returns whether the first part of a name is a registry, and not a folder of the default one.
fn is_registry(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost"
}

fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.ends_with(']') || host.starts_with('[') => (name, Some(port)),
        _ => (host, None),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_address = |name: &str| {
        let inner = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
    };
    let name_is_good = !name.is_empty() && (name.bytes().all(is_name) || is_address(name));
    name_is_good && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// Letters in lower case and digits, with `.`, `_`, `__` or dashes between them.
fn is_component(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let separators =
        text.split(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    let is_separator =
        |text: &str| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|&byte| is_plain(byte))
        && bytes.last().is_some_and(|&byte| is_plain(byte))
        && separators.into_iter().all(is_separator)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = tag.as_bytes();
    bytes.len() <= MAX_TAG
        && bytes.first().is_some_and(|&byte| is_word(byte))
        && bytes
            .iter()
            .all(|&byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_as_users_expect() {
        let digest = "a".repeat(64);
        for (text, whole) in [
            ("alpine", "docker.io/library/alpine:latest".to_owned()),
            ("team/tool:1", "docker.io/team/tool:1".to_owned()),
            ("ghcr.io/a/b/c", "ghcr.io/a/b/c:latest".to_owned()),
            ("localhost/a", "localhost/a:latest".to_owned()),
            ("127.0.0.1:5000/a", "127.0.0.1:5000/a:latest".to_owned()),
            ("[::1]:5000/a:b", "[::1]:5000/a:b".to_owned()),
            (
                &format!("a@sha256:{digest}"),
                format!("docker.io/library/a@sha256:{digest}"),
            ),
            (
                &format!("r.io/a:t@sha256:{digest}"),
                format!("r.io/a:t@sha256:{digest}"),
            ),
            ("r.io/a__b/c--d.e_f", "r.io/a__b/c--d.e_f:latest".to_owned()),
        ] {
            let reference: Reference = text.parse().unwrap();
            assert_eq!(reference.to_string(), whole);
            assert_eq!(whole.parse(), Ok(reference));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "",
            "/",
            "A",
            "r.io/",
            "r.io/../x",
            "r.io/a//b",
            "r.io/.a",
            "r.io/a..b",
            "r.io/a:",
            "r.io/a:b c",
            "r.io:0/a",
            "r.io:99999/a",
            "r.io/a@sha256:00",
            "r.io/a@md5:00",
            "evil.io?x=/a",
            "user@host.io/a",
            "http://r.io/a",
        ] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }
}
