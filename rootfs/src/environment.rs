use std::fmt;

use crate::{Cache, CachedImage, Error, Progress, recipe};

/// An environment with a name, whose image is built on its first use.
///
/// ```no_run
/// use vmcell_rootfs::Environment;
///
/// let environment = Environment::from_name("base").ok_or("there is none")?;
/// let image = environment.build(|_| {})?;
/// println!("{}", image.path.display());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Environment {
    /// [`recipe::base`]
    Base,
    /// [`recipe::debian`]
    Debian,
    /// [`recipe::debian_dev`]
    DebianDev,
}

impl Environment {
    /// All environments.
    pub const ALL: [Self; 3] = [Self::Base, Self::Debian, Self::DebianDev];

    /// Returns the environment with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Debian => "debian",
            Self::DebianDev => "debian-dev",
        }
    }

    /// Returns what is in it, in a few words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Base => "BusyBox: a shell and small tools; boots fastest",
            Self::Debian => "Debian 12 with apt, curl and Python",
            Self::DebianDev => "debian with compilers, git, pip, Node.js, npm, ripgrep and jq",
        }
    }

    /// Returns its image, if it was built already.
    ///
    /// # Errors
    /// As for [`Cache::lookup`].
    pub fn cached(self, cache: &Cache) -> Result<Option<CachedImage>, Error> {
        match self {
            Self::Base => cache.lookup(&recipe::base()),
            Self::Debian => cache.lookup(&recipe::debian()),
            Self::DebianDev => cache.lookup(&recipe::debian_dev()),
        }
    }

    /// Returns its image, which is built and cached if it does not exist.
    ///
    /// # Errors
    /// As for `cached_with` of its recipe.
    pub fn build(self, progress: impl FnMut(Progress)) -> Result<CachedImage, Error> {
        self.build_in(&Cache::user()?, progress)
    }

    /// Returns its image in a cache, which is built if it does not exist.
    ///
    /// # Errors
    /// As for [`Cache::image`].
    pub fn build_in(
        self,
        cache: &Cache,
        progress: impl FnMut(Progress),
    ) -> Result<CachedImage, Error> {
        match self {
            Self::Base => cache.image_with(&recipe::base(), progress),
            Self::Debian => cache.image_with(&recipe::debian(), progress),
            Self::DebianDev => cache.image_with(&recipe::debian_dev(), progress),
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
