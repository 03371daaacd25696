//! The stock recipe `debian`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::base::{CELL_OWNER, HOSTNAME, HOSTS, RESOLVER};
use super::mmdebstrap::Mmdebstrap;
use crate::{
    Cache, CachedImage, Content, Error, Fingerprint, ImageBuilder, Kind, PathProblem, Progress,
    Recipe, Size, Timestamps, Tools, Tree,
};

/// Part of the digest. To be changed whenever the contents of the image change.
const GENERATION: &str = "3";

/// The release of Debian.
const SUITE: &str = "bookworm";

/// Packages to install besides the essential ones, which include bash, coreutils and ncurses.
const PACKAGES: [&str; 8] = [
    "apt",
    "ca-certificates",
    "curl",
    "htop",
    "less",
    "procps",
    "python3",
    "vim-tiny",
];

/// Default size of the file system. A new image takes about 100 MB on the host.
const SIZE: Size = Size::Exact(4 << 30);

/// Paths removed from the tree: not needed in a guest, or specific to the building host.
const REMOVED_PATHS: &[&str] = &[
    "/boot",
    "/etc/apt",
    "/etc/dpkg/dpkg.cfg.d/99mmdebstrap",
    "/usr/share/bug",
    "/usr/share/doc",
    "/usr/share/doc-base",
    "/usr/share/info",
    "/usr/share/lintian",
    "/usr/share/locale",
    "/usr/share/man",
    "/var/cache/apt",
    "/var/cache/debconf/config.dat-old",
    "/var/cache/debconf/templates.dat-old",
    "/var/lib/apt",
    "/var/log/apt",
];

/// Folders that apt needs.
const APT_FOLDERS: &[&str] = &[
    "/etc/apt/apt.conf.d",
    "/etc/apt/preferences.d",
    "/etc/apt/sources.list.d",
    "/var/cache/apt/archives/partial",
    "/var/lib/apt/lists/partial",
    "/var/log/apt",
];

/// The package sources of the guest: the public ones, whatever the host's are.
const SOURCES: &str = "\
Types: deb
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
";

/// Returns the recipe for interactive use: a small Debian with bash, Python, curl, apt, less,
/// vim and htop, the users `root` and `cell` (1000:1000), and an empty `/workspace` owned by `cell`.
///
/// `mmdebstrap` installs it from the host's package sources, with the host's apt configuration;
/// `VMCELL_DEBIAN_MIRROR` or [`Debian::mirror`] sets another mirror. Without root it needs user
/// namespaces and the package `uidmap`.
///
/// The digest covers the release, the list of packages, and the mirror if one was chosen. It does
/// not cover package versions, so two machines, or one machine in two months, may build different
/// images under one digest. With the same versions they are identical. Remove the image from the
/// cache to build it again.
///
/// ```no_run
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let image = vmcell_rootfs::recipe::debian().cached()?;
/// println!("boot {}", image.path.display());
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn debian() -> Debian {
    Debian {
        name: "debian",
        mirror: None,
        packages: Vec::new(),
        size: SIZE,
        tools: Tools::system(),
    }
}

/// Packages of `debian-dev` besides those of `debian`.
const DEV_PACKAGES: [&str; 8] = [
    "build-essential",
    "git",
    "jq",
    "nodejs",
    "npm",
    "python3-pip",
    "python3-venv",
    "ripgrep",
];

/// Default size of the file system of `debian-dev`.
const DEV_SIZE: Size = Size::Exact(16 << 30);

/// Returns the recipe for software development: [`debian`] with compilers, git, pip and venv for
/// Python, Node.js with npm, ripgrep and jq. The file system has 16 GiB; the image takes about
/// 900 MB on the host.
///
/// ```no_run
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let image = vmcell_rootfs::recipe::debian_dev().cached()?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn debian_dev() -> Debian {
    Debian {
        name: "debian-dev",
        ..debian().packages(DEV_PACKAGES).size(DEV_SIZE)
    }
}

/// The recipe that [`debian`] and [`debian_dev`] return.
///
/// ```
/// use vmcell_rootfs::{Size, recipe};
///
/// let debian = recipe::debian()
///     .mirror("http://mirror.example/debian")
///     .size(Size::Exact(16 << 30));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debian {
    name: &'static str,
    mirror: Option<String>,
    packages: Vec<String>,
    size: Size,
    tools: Tools,
}

impl Debian {
    /// Uses this mirror instead of the one in `VMCELL_DEBIAN_MIRROR` or the host's: a URL, or a
    /// line as in sources.list(5).
    #[must_use]
    pub fn mirror(mut self, mirror: impl Into<String>) -> Self {
        self.mirror = Some(mirror.into());
        self
    }

    /// Installs more packages, and what they need.
    ///
    /// ```
    /// let debian = vmcell_rootfs::recipe::debian().packages(["git", "npm"]);
    /// ```
    #[must_use]
    pub fn packages(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.packages.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the size of the file system; the default is 4 GiB.
    #[must_use]
    pub fn size(mut self, size: Size) -> Self {
        self.size = size;
        self
    }

    /// Sets the folders to search for e2fsprogs, `mmdebstrap` and `apt-config`.
    #[must_use]
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    /// Returns the image in the user's cache, and builds it if it is not there, which takes about
    /// a minute.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let image = vmcell_rootfs::recipe::debian().cached()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ToolMissing`] without `mmdebstrap`, [`Error::BootstrapFailed`], and those of
    /// [`Cache::image`].
    pub fn cached(&self) -> Result<CachedImage, Error> {
        Cache::user()?.image(self)
    }

    /// As [`Debian::cached`], for asynchronous programs: the work is done on a thread of
    /// tokio for blocking work.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), vmcell_rootfs::Error> {
    /// let image = vmcell_rootfs::recipe::debian().cached_async().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Debian::cached`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// If the future is dropped, the image is still built and cached.
    #[cfg(feature = "tokio")]
    pub async fn cached_async(&self) -> Result<CachedImage, Error> {
        crate::background::cached(self.clone()).await
    }

    /// Returns the image in the user's cache, and builds it with progress reports if needed.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let image =
    ///     vmcell_rootfs::recipe::debian().cached_with(|progress| eprintln!("{progress:?}"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Debian::cached`].
    pub fn cached_with(&self, progress: impl FnMut(Progress)) -> Result<CachedImage, Error> {
        Cache::user()?.image_with(self, progress)
    }

    fn all_packages(&self) -> impl Iterator<Item = &str> {
        let more = self.packages.iter().map(String::as_str);
        PACKAGES.into_iter().chain(more)
    }

    /// Returns the mirror set by the caller, else the one in the environment.
    fn chosen_mirror(&self) -> Option<String> {
        let named = || env::var("VMCELL_DEBIAN_MIRROR").ok();
        let chosen = self.mirror.clone().or_else(named);
        chosen.filter(|mirror| !mirror.is_empty())
    }
}

impl Recipe for Debian {
    fn name(&self) -> &str {
        self.name
    }

    fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), Error> {
        inputs
            .field("generation", GENERATION)
            .field("suite", SUITE)
            .field("architecture", env::consts::ARCH);
        for package in self.all_packages() {
            inputs.field("package", package);
        }
        if let Some(mirror) = self.chosen_mirror() {
            inputs.field("mirror", mirror);
        }
        Ok(())
    }

    fn tree(&self) -> Result<Tree, Error> {
        self.tree_with(&mut |_| {})
    }

    fn tree_with(&self, progress: &mut dyn FnMut(f32)) -> Result<Tree, Error> {
        let mirror = self.chosen_mirror();
        let packages: Vec<_> = self.all_packages().collect();
        let mmdebstrap = Mmdebstrap {
            tools: &self.tools,
            suite: SUITE,
            packages: &packages,
            mirror: mirror.as_deref(),
            epoch: Timestamps::default().epoch()?,
        };
        let mut tree = mmdebstrap.run(progress)?;
        adapt_for_guest(&mut tree)?;
        Ok(tree)
    }

    fn image_builder(&self) -> ImageBuilder {
        ImageBuilder::new()
            .label("vmcell-debian")
            .size(self.size)
            .tools(self.tools.clone())
    }
}

/// Turns a plain Debian into a guest: removes what is not needed, adds the user `cell`.
fn adapt_for_guest(tree: &mut Tree) -> Result<(), Error> {
    for path in REMOVED_PATHS {
        tree.remove(path)?;
    }
    for path in ["/dev", "/home/cell", "/workspace"] {
        tree.directory(path, 0o755)?;
    }
    for path in APT_FOLDERS {
        tree.directory(path, 0o755)?;
    }
    tree.file("/etc/apt/sources.list.d/debian.sources", 0o644, SOURCES)?;
    tree.file("/etc/hostname", 0o644, HOSTNAME)?;
    tree.file("/etc/hosts", 0o644, HOSTS)?;
    tree.file("/etc/resolv.conf", 0o644, RESOLVER)?;
    // An empty file means that the first boot initializes it, see machine-id(5).
    tree.file("/etc/machine-id", 0o444, "")?;
    // Debian's `vim-tiny` does not install the command `vim`.
    tree.symlink("/usr/local/bin/vim", "/usr/bin/vim.tiny")?;

    append(
        tree,
        "/etc/passwd",
        "cell:*:1000:1000:cell:/home/cell:/bin/bash\n",
    )?;
    append(tree, "/etc/group", "cell:*:1000:\n")?;
    let skeleton = Path::new("etc/skel");
    let files: Vec<_> = tree
        .iter()
        .filter_map(|(path, node)| {
            let name = path.strip_prefix(skeleton).ok()?;
            let is_within = !name.as_os_str().is_empty();
            is_within.then(|| (Path::new("home/cell").join(name), node.clone()))
        })
        .collect();
    for (path, node) in files {
        tree.insert(path, node)?;
    }
    tree.set_owner("/home/cell", CELL_OWNER)?;
    tree.set_owner("/workspace", CELL_OWNER)
}

/// Appends a line to an existing file.
fn append(tree: &mut Tree, path: &str, line: &str) -> Result<(), Error> {
    let missing = || Error::Path {
        path: PathBuf::from(path),
        problem: PathProblem::Missing,
    };
    let mut node = tree.get(path).cloned().ok_or_else(missing)?;
    let mut text = match node.kind {
        Kind::File(Content::Bytes(bytes)) => bytes,
        Kind::File(Content::HostFile(file)) => {
            fs::read(&file).map_err(|source| Error::Read { path: file, source })?
        }
        _ => return Err(missing()),
    };
    text.extend_from_slice(line.as_bytes());
    node.kind = Kind::File(Content::Bytes(text));
    tree.insert(path, node)
}
