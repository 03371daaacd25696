//! The stock recipe `base`.

use std::path::PathBuf;

use super::busybox::Busybox;
use crate::{
    Cache, CachedImage, Error, Fingerprint, ImageBuilder, Owner, Progress, Recipe, Size, Tools,
    Tree,
};

/// Part of the digest. To be changed whenever the contents of the image change.
const GENERATION: &str = "2";

/// The unprivileged user `cell`.
pub(super) const CELL_OWNER: Owner = Owner {
    uid: 1000,
    gid: 1000,
};

/// Default size of the file system. A new image takes a few MB on the host.
const SIZE: Size = Size::Exact(2 << 30);

/// Content of `/etc/hostname`.
pub(super) const HOSTNAME: &str = "vmcell\n";
/// Content of `/etc/resolv.conf`. The agent covers it with its own where a guest has a network,
/// and would have to create it first.
pub(super) const RESOLVER: &str = "";

/// Content of `/etc/hosts`.
pub(super) const HOSTS: &str = "127.0.0.1 localhost\n\
                                127.0.1.1 vmcell\n\
                                ::1 localhost ip6-localhost ip6-loopback\n";

/// Directories with the usual modes.
const DIRECTORIES: &[(&str, u16)] = &[
    ("/dev", 0o755),
    ("/home/cell", 0o755),
    ("/lib", 0o755),
    ("/media", 0o755),
    ("/mnt", 0o755),
    ("/opt", 0o755),
    ("/proc", 0o555),
    ("/root", 0o700),
    ("/run", 0o755),
    ("/srv", 0o755),
    ("/sys", 0o555),
    ("/tmp", 0o1777),
    ("/usr/bin", 0o755),
    ("/usr/lib", 0o755),
    ("/usr/local/bin", 0o755),
    ("/usr/local/lib", 0o755),
    ("/usr/sbin", 0o755),
    ("/usr/share", 0o755),
    ("/var/cache", 0o755),
    ("/var/lib", 0o755),
    ("/var/log", 0o755),
    ("/var/tmp", 0o1777),
    ("/workspace", 0o755),
];

/// Files with their modes. Passwords are locked: the agent starts programs as any user without
/// a password.
const FILES: &[(&str, u16, &str)] = &[
    (
        "/etc/group",
        0o644,
        "root:x:0:\n\
         tty:x:5:\n\
         cell:x:1000:\n\
         nogroup:x:65534:\n",
    ),
    ("/etc/hostname", 0o644, HOSTNAME),
    ("/etc/hosts", 0o644, HOSTS),
    ("/etc/resolv.conf", 0o644, RESOLVER),
    (
        "/etc/nsswitch.conf",
        0o644,
        "passwd: files\n\
         group: files\n\
         shadow: files\n\
         hosts: files dns\n",
    ),
    (
        "/etc/os-release",
        0o644,
        "ID=vmcell-base\n\
         NAME=\"vmcell base\"\n\
         PRETTY_NAME=\"vmcell base (busybox)\"\n\
         VERSION_ID=1\n",
    ),
    (
        "/etc/passwd",
        0o644,
        "root:x:0:0:root:/root:/bin/sh\n\
         cell:x:1000:1000:cell:/home/cell:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    ),
    (
        "/etc/profile",
        0o644,
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         export PAGER=less\n\
         umask 022\n\
         if [ \"$(id -u)\" = 0 ]; then\n\
         \tPS1='\\h:\\w# '\n\
         else\n\
         \tPS1='\\h:\\w$ '\n\
         fi\n",
    ),
    (
        "/etc/shadow",
        0o600,
        "root:!:20089:0:99999:7:::\n\
         cell:!:20089:0:99999:7:::\n\
         nobody:!:20089:0:99999:7:::\n",
    ),
    ("/etc/shells", 0o644, "/bin/sh\n/bin/ash\n"),
];

/// Returns the default recipe: a static busybox with all its applets, the users `root` and `cell`
/// (1000:1000), and an empty `/workspace` owned by `cell`.
///
/// ```
/// use vmcell_rootfs::recipe;
///
/// let base = recipe::base().busybox("/opt/busybox/busybox");
/// ```
#[must_use]
pub fn base() -> Base {
    Base {
        busybox: None,
        size: SIZE,
        tools: Tools::system(),
    }
}

/// The recipe that [`base`] returns.
///
/// ```
/// use vmcell_rootfs::{Size, Tools, recipe};
///
/// let base = recipe::base()
///     .busybox("/opt/busybox")
///     .size(Size::Exact(8 << 30))
///     .tools(Tools::in_folders(["/opt/e2fsprogs/sbin"]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    busybox: Option<PathBuf>,
    size: Size,
    tools: Tools,
}

impl Base {
    /// Uses this busybox instead of the one in `VMCELL_BUSYBOX` or the installed one.
    #[must_use]
    pub fn busybox(mut self, path: impl Into<PathBuf>) -> Self {
        self.busybox = Some(path.into());
        self
    }

    /// Sets the size of the file system; the default is 2 GiB.
    #[must_use]
    pub fn size(mut self, size: Size) -> Self {
        self.size = size;
        self
    }

    /// Sets the folders to search for e2fsprogs.
    #[must_use]
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    /// Returns the image in the user's cache, and builds it if it is not there.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let image = vmcell_rootfs::recipe::base().cached()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::BusyboxMissing`], [`Error::BusyboxNotStatic`], [`Error::BusyboxUnusable`], and
    /// those of [`Cache::image`].
    pub fn cached(&self) -> Result<CachedImage, Error> {
        Cache::user()?.image(self)
    }

    /// As [`Base::cached`], for asynchronous programs: the work is done on a thread of
    /// tokio for blocking work.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), vmcell_rootfs::Error> {
    /// let image = vmcell_rootfs::recipe::base().cached_async().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Base::cached`].
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
    /// let image = vmcell_rootfs::recipe::base().cached_with(|progress| eprintln!("{progress:?}"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Base::cached`].
    pub fn cached_with(&self, progress: impl FnMut(Progress)) -> Result<CachedImage, Error> {
        Cache::user()?.image_with(self, progress)
    }
}

impl Recipe for Base {
    fn name(&self) -> &str {
        "base"
    }

    fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), Error> {
        let busybox = Busybox::open(self.busybox.as_deref())?;
        inputs
            .field("generation", GENERATION)
            .field("busybox", busybox.bytes);
        Ok(())
    }

    fn tree(&self) -> Result<Tree, Error> {
        let busybox = Busybox::open(self.busybox.as_deref())?;
        let mut tree = Tree::new();
        for (path, mode) in DIRECTORIES {
            tree.directory(path, *mode)?;
        }
        for (path, mode, text) in FILES {
            tree.file(path, *mode, *text)?;
        }
        // busybox reads the mount table from `/etc/mtab`.
        tree.symlink("/etc/mtab", "../proc/self/mounts")?;
        tree.symlink("/var/run", "../run")?;
        for applet in busybox.applets()? {
            tree.symlink(applet.path, applet.target)?;
        }
        tree.file("/bin/busybox", 0o755, busybox.bytes)?;
        tree.set_owner("/home/cell", CELL_OWNER)?;
        tree.set_owner("/workspace", CELL_OWNER)?;
        Ok(tree)
    }

    fn image_builder(&self) -> ImageBuilder {
        ImageBuilder::new()
            .label("vmcell-base")
            .size(self.size)
            .tools(self.tools.clone())
    }
}
