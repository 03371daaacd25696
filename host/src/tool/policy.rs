use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    CallerGrants, DEFAULT_CALLER, NetworkGrant, SecretGrant, StatePolicy, ToolImage, ToolLanguage,
    ToolLimits, guest_path,
    names::{MAX_NAME, is_name},
};
use crate::{
    network::{NetworkPolicy, Rule},
    receipt::canonical,
    secret,
    sparse::Digest,
};

/// What an application allows: see the [module](super).
///
/// ```
/// use vmcell::tool::{CallerGrants, ToolImage, ToolPolicy};
///
/// let policy = ToolPolicy::from_toml(
///     r#"
///     [images.debian]
///     environment = "debian"
///
///     [languages.python]
///     image = "debian"
///
///     [network.pypi]
///     hosts = ["pypi.org:443", "files.pythonhosted.org:443"]
///
///     [callers.default]
///     network = ["pypi"]
///     "#,
/// )?;
/// let same = ToolPolicy::new()
///     .image("debian", ToolImage::environment("debian"))
///     .language("python", "debian")
///     .network_grant("pypi", ["pypi.org:443", "files.pythonhosted.org:443"])
///     .caller("default", CallerGrants::default().network("pypi"));
/// assert_eq!(policy, same);
/// # Ok::<(), vmcell::tool::ToolPolicyError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolPolicy {
    /// The images that requests can name.
    pub images: BTreeMap<String, ToolImage>,
    /// The languages that requests can name.
    pub languages: BTreeMap<String, ToolLanguage>,
    /// How much a request may ask for.
    pub limits: ToolLimits,
    /// The network grants by name.
    pub network: BTreeMap<String, NetworkGrant>,
    /// The secrets by name.
    pub secrets: BTreeMap<String, SecretGrant>,
    /// What may be kept.
    pub state: StatePolicy,
    /// What each caller may ask for. The caller `default` is there without a table, and may
    /// use all images, no network and no secrets.
    pub callers: BTreeMap<String, CallerGrants>,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolPolicyError {
    /// The file cannot be read.
    #[error("the policy {} cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not TOML, or not a policy.
    #[error("the policy is not valid: {0}")]
    Syntax(String),
    /// Its parts do not fit each other.
    #[error("the policy is not valid: {0}")]
    Invalid(String),
}

/// No file of a policy is longer.
const MAX_FILE: u64 = 1 << 20;

/// The most memory that a policy can set, so that a mistyped number does not end the host.
const MAX_MEMORY_MIB: u32 = 1 << 20;

impl ToolPolicy {
    /// Returns a policy that allows nothing: it has no images.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a policy from TOML.
    ///
    /// # Errors
    /// [`ToolPolicyError::Syntax`] and [`ToolPolicyError::Invalid`].
    pub fn from_toml(text: &str) -> Result<Self, ToolPolicyError> {
        let policy: Self = toml::from_str(text).map_err(|error| {
            // It shows the line of the file, whatever that has.
            let text = error.to_string();
            ToolPolicyError::Syntax(crate::printable(text.trim_end().as_bytes()).into_owned())
        })?;
        policy.check()?;
        Ok(policy)
    }

    /// Reads a policy from a TOML file. Relative paths in it start at its folder.
    ///
    /// # Errors
    /// As for [`from_toml`](Self::from_toml), and [`ToolPolicyError::File`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ToolPolicyError> {
        let path = path.as_ref();
        let read = || -> io::Result<String> {
            if std::fs::metadata(path)?.len() > MAX_FILE {
                return Err(io::Error::other("it is too long for a policy"));
            }
            std::fs::read_to_string(path)
        };
        let text = read().map_err(|source| ToolPolicyError::File {
            path: path.to_owned(),
            source,
        })?;
        let mut policy = Self::from_toml(&text)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let images = policy.images.values_mut().map(|image| &mut image.path);
        let secrets = policy.secrets.values_mut().map(|secret| &mut secret.file);
        for path in images.chain(secrets).flatten() {
            *path = folder.join(&*path);
        }
        Ok(policy)
    }

    /// Adds an image that requests can name.
    #[must_use]
    pub fn image(mut self, name: impl Into<String>, image: ToolImage) -> Self {
        self.images.insert(name.into(), image);
        self
    }

    /// Adds a language that requests can name.
    #[must_use]
    pub fn language(mut self, name: impl Into<String>, image: impl Into<String>) -> Self {
        let language = ToolLanguage {
            image: image.into(),
            ..ToolLanguage::default()
        };
        self.languages.insert(name.into(), language);
        self
    }

    /// Adds hosts that callers can be allowed to reach.
    #[must_use]
    pub fn network_grant(
        mut self,
        name: impl Into<String>,
        hosts: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let hosts = hosts.into_iter().map(Into::into).collect();
        self.network.insert(name.into(), NetworkGrant { hosts });
        self
    }

    /// Adds a secret that callers can be allowed to use.
    #[must_use]
    pub fn secret(mut self, name: impl Into<String>, secret: SecretGrant) -> Self {
        self.secrets.insert(name.into(), secret);
        self
    }

    /// Sets what a caller may ask for.
    #[must_use]
    pub fn caller(mut self, name: impl Into<String>, grants: CallerGrants) -> Self {
        self.callers.insert(name.into(), grants);
        self
    }

    /// Checks that its parts fit each other.
    ///
    /// # Errors
    /// [`ToolPolicyError::Invalid`]
    pub fn check(&self) -> Result<(), ToolPolicyError> {
        self.find_fault()
            .map_or(Ok(()), |fault| Err(ToolPolicyError::Invalid(fault)))
    }

    /// Returns the rules of a grant, which were checked.
    pub(super) fn rules(&self, grant: &str) -> impl Iterator<Item = Rule> {
        let grant = self.network.get(grant);
        let hosts = grant.into_iter().flat_map(|grant| &grant.hosts);
        hosts.filter_map(|host| host.parse().ok())
    }

    /// Returns what a caller may ask for; `None` if it may not ask at all.
    pub(super) fn caller_grants(&self, name: &str) -> Option<CallerGrants> {
        let grants = self.callers.get(name).cloned();
        grants.or_else(|| (name == DEFAULT_CALLER).then(CallerGrants::default))
    }

    /// Returns the digest of all of it.
    pub(super) fn digest(&self) -> String {
        // It has integers only, and all keys are text.
        let value = serde_json::to_value(self).unwrap_or_default();
        Digest::of_bytes(canonical(&value).unwrap_or_default().as_bytes()).to_string()
    }

    fn find_fault(&self) -> Option<String> {
        self.fault_of_names()
            .or_else(|| self.fault_of_images())
            .or_else(|| self.fault_of_limits())
            .or_else(|| self.fault_of_grants())
    }

    fn fault_of_names(&self) -> Option<String> {
        let names = [
            ("image", self.images.keys().collect::<Vec<_>>()),
            ("language", self.languages.keys().collect()),
            ("network grant", self.network.keys().collect()),
            ("caller", self.callers.keys().collect()),
        ];
        for (what, names) in names {
            if let Some(name) = names.into_iter().find(|name| !is_name(name)) {
                return Some(format!(
                    "{name:?} cannot be the name of a {what}: use 1 to {MAX_NAME} letters, digits, \
                     and `_-.+`"
                ));
            }
        }
        let mut secrets = self.secrets.keys();
        let wrong = secrets.find(|name| secret::checked_name((*name).clone()).is_err());
        wrong.map(|name| format!("{name:?} cannot be the name of a secret"))
    }

    fn fault_of_images(&self) -> Option<String> {
        for (name, image) in &self.images {
            if image.path.is_some() == image.environment.is_some() {
                return Some(format!("the image {name:?} needs an environment or a path"));
            }
        }
        for (name, language) in &self.languages {
            if !self.images.contains_key(&language.image) {
                let image = &language.image;
                return Some(format!(
                    "the language {name:?} has the image {image:?}, which is not in the policy"
                ));
            }
        }
        None
    }

    fn fault_of_limits(&self) -> Option<String> {
        let limits = &self.limits;
        let memory = self.images.values().filter_map(|image| image.memory_mib);
        let mut memory = memory.chain([limits.memory_mib]);
        if memory.any(|mib| !(crate::VmBuilder::MIN_MEMORY_MIB..=MAX_MEMORY_MIB).contains(&mib)) {
            return Some(format!(
                "the memory of a VM is {} to {MAX_MEMORY_MIB} MiB",
                crate::VmBuilder::MIN_MEMORY_MIB
            ));
        }
        if limits.default_timeout_seconds > limits.timeout_seconds
            || limits.default_output_bytes > limits.output_bytes
        {
            return Some("a default is above its limit".to_owned());
        }
        if limits.timeout_seconds == 0 || limits.default_timeout_seconds == 0 {
            return Some("a timeout of zero seconds lets nothing run".to_owned());
        }
        if limits.roots.is_empty() {
            return Some("without a root no file can be written".to_owned());
        }
        let mut roots = limits.roots.iter();
        roots.find_map(|root| guest_path::check_plain(root).err())
    }

    fn fault_of_grants(&self) -> Option<String> {
        for (name, grant) in &self.network {
            for host in &grant.hosts {
                if let Err(error) = host.parse::<Rule>() {
                    return Some(format!("the network grant {name:?}: {error}"));
                }
            }
        }
        for (name, secret) in &self.secrets {
            if secret.source_count() != 1 {
                return Some(format!(
                    "the secret {name:?} needs one of `env`, `file` and `application`"
                ));
            }
        }
        for (caller, grants) in &self.callers {
            let unknown = |names: &BTreeSet<String>, is_known: &dyn Fn(&str) -> bool| {
                names.iter().find(|name| !is_known(name)).cloned()
            };
            let unknown = unknown(&grants.network, &|name| self.network.contains_key(name))
                .or_else(|| unknown(&grants.secrets, &|name| self.secrets.contains_key(name)))
                .or_else(|| {
                    let images = grants.images.as_ref()?;
                    unknown(images, &|name| self.images.contains_key(name))
                });
            if let Some(name) = unknown {
                return Some(format!(
                    "the caller {caller:?} has {name:?}, which is not in the policy"
                ));
            }
        }
        None
    }
}

/// Returns a network policy of rules, or none that lets anything out.
pub(super) fn network_policy(rules: impl IntoIterator<Item = Rule>) -> NetworkPolicy {
    let mut rules = rules.into_iter().peekable();
    match rules.peek() {
        None => NetworkPolicy::off(),
        Some(_) => rules.fold(NetworkPolicy::rules(), NetworkPolicy::allow_rule),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, expected) in [
            ("[imagos.a]", "unknown field"),
            ("[images.a]", "needs an environment or a path"),
            ("[images.'a/b']\npath = 'x'", "cannot be the name"),
            ("[images.a]\npath = 'x'\nmemory_mib = 1", "the memory"),
            ("[images.a]\npath = 'x'\nsize = 1", "unknown field"),
            ("[languages.python]\nimage = 'a'", "not in the policy"),
            ("[network.a]\nhosts = ['https://a.b']", "network grant"),
            ("[secrets.a]", "needs one of"),
            ("[secrets.a]\nenv = 'A'\nfile = 'b'", "needs one of"),
            ("[secrets.'a b']\nenv = 'A'", "name of a secret"),
            ("[callers.a]\nnetwork = ['b']", "not in the policy"),
            ("[callers.a]\nimages = ['b']", "not in the policy"),
            ("[limits]\nfiles = -1", "invalid value"),
            ("[limits]\ntimeout_seconds = 1", "above its limit"),
            ("[limits]\nroots = ['work']", "not absolute"),
            ("[limits]\nroots = []", "without a root"),
            ("[state]\nretention = ['forever']", "unknown variant"),
        ] {
            let error = ToolPolicy::from_toml(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn an_error_that_shows_a_line_cannot_drive_a_terminal() {
        let error = ToolPolicy::from_toml("[images.a]\npath = '\x1b[2J'\n").unwrap_err();
        assert!(!error.to_string().contains('\x1b'), "{error}");
    }

    #[test]
    fn paths_start_at_the_folder_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        let text = "[images.a]\npath = 'a.ext4'\n[secrets.b]\nfile = '/etc/b'";
        std::fs::write(&path, text).unwrap();
        let policy = ToolPolicy::read(&path).unwrap();
        let image = policy.images["a"].path.clone();
        assert_eq!(image, Some(folder.path().join("a.ext4")));
        assert_eq!(policy.secrets["b"].file, Some("/etc/b".into()));
        assert_ne!(policy.digest(), ToolPolicy::new().digest());
        let missing = ToolPolicy::read(folder.path().join("missing")).unwrap_err();
        assert!(missing.to_string().contains("missing"));
    }
}
