//! Templates: VMs that are prepared once and started many times.
//!
//! ```no_run
//! # async fn example() -> Result<(), vmcell::Error> {
//! use vmcell::{Template, Vm};
//!
//! let template = Template::builder(Vm::builder().image("debian.ext4"))
//!     .prepare("python with json", |vm| async move {
//!         vm.exec(["python3", "-c", "import json"]).await?;
//!         Ok(())
//!     })
//!     .get()
//!     .await?;
//! for _ in 0..20 {
//!     let vm = template.start().await?;
//!     vm.exec(["python3", "-c", "import json; print(json.dumps([1]))"]).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A template is a [snapshot](crate::snapshot) in the user's cache, with the memory in
//! a file of its own. Its VMs share that memory and the disk until they write to them,
//! and each has an identity of its own, as every VM that is restored.
//!
//! It is made by the first program that needs it. Others that need the same one
//! meanwhile wait for it. It is made again when anything has changed that it was made
//! of: the image, the kernel, the agent, the machine, the key of its preparation, or
//! vmcell itself.
//!
//! ```text
//!  cache/templates/NAME          the snapshot
//!  cache/templates/NAME.lock     locked while it is made or removed; modified when it is used
//! ```

mod builder;
mod cache;
mod disk_copy;
mod flatten;
mod info;
mod key;
mod recent;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use builder::TemplateBuilder;
pub use info::TemplateInfo;
pub(crate) use key::KeyParts;

use self::cache::TemplateCache;
use crate::{
    error::Error,
    snapshot::{LoadedSnapshot, SnapshotError, SnapshotOptions, keep_image},
    vm::{Vm, VmBuilder},
};

/// A prepared VM, from which others are started: see the [module](self). Handles are
/// cheap to clone.
#[derive(Clone, Debug)]
pub struct Template {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    path: PathBuf,
    builder: TemplateBuilder,
    loaded: Mutex<Arc<LoadedSnapshot>>,
}

impl Template {
    /// How long templates without a [name](TemplateBuilder::name) are kept after their last use.
    pub const KEPT_UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);

    /// Returns a builder of a template of this VM. The VM must boot from an image.
    pub fn builder(vm: VmBuilder) -> TemplateBuilder {
        TemplateBuilder::new(vm)
    }

    fn new(
        builder: TemplateBuilder,
        name: String,
        path: PathBuf,
        loaded: Arc<LoadedSnapshot>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                name,
                path,
                builder,
                loaded: Mutex::new(loaded),
            }),
        }
    }

    /// Returns its name, which is also that of its folder.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the path of its folder.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Returns a builder of a VM of this template, for settings such as its id and its
    /// host name.
    pub fn vm(&self) -> VmBuilder {
        let loaded = self.loaded().clone();
        self.shared.builder.vm_from(loaded)
    }

    /// Returns the digest of the image below it.
    #[cfg(feature = "tool")]
    pub(crate) fn image_sha256(&self) -> Option<crate::sparse::Digest> {
        self.loaded().image_sha256
    }

    fn loaded(&self) -> MutexGuard<'_, Arc<LoadedSnapshot>> {
        let loaded = self.shared.loaded.lock();
        loaded.unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a VM of this template. If it does not fit this machine any more, because
    /// the VMM has got another version, it is made again first.
    ///
    /// # Errors
    /// Those of [`VmBuilder::start`], and of [`TemplateBuilder::get`] if it is made again.
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM ends and nothing is left behind.
    pub async fn start(&self) -> Result<Vm, Error> {
        self.start_with(|vm| vm).await
    }

    /// Same as [`start`](Self::start), with a closure that configures the VM.
    ///
    /// # Errors
    /// Same as [`start`](Self::start).
    ///
    /// # Cancel safety
    /// Same as [`start`](Self::start).
    pub async fn start_with(&self, change: impl Fn(VmBuilder) -> VmBuilder) -> Result<Vm, Error> {
        match change(self.vm()).start().await {
            Err(Error::Snapshot(SnapshotError::Differs { what, .. })) => {
                self.make_again(what).await?;
                change(self.vm()).start().await
            }
            started => started,
        }
    }

    async fn make_again(&self, changed: &str) -> Result<(), Error> {
        tracing::info!(changed, template = self.name(), "making the template again");
        let loaded = self.shared.builder.make_again(&self.shared.name).await?;
        *self.loaded() = loaded;
        Ok(())
    }

    /// Saves a VM that runs, such as that of a [workspace](crate::workspace), as a template
    /// with this name. The VM stands still meanwhile, and the template does not need it
    /// afterwards. Nothing makes such a template again.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no template can have this name, or another one has it, and
    /// those of [`Vm::snapshot_with`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM goes on, and the template is there or not.
    pub async fn save(
        vm: &Vm,
        name: &str,
        options: SnapshotOptions,
    ) -> Result<TemplateInfo, Error> {
        let name = cache::checked_name(name)?.to_owned();
        let (cache, locked) = {
            let name = name.clone();
            on_thread(move || {
                let cache = TemplateCache::of_user()?;
                let locked = cache.lock(&name)?;
                Ok((cache, locked))
            })
            .await?
        };
        if locked.has_template() {
            return Err(Error::Invalid(format!(
                "there is a template {name:?}: remove it, or choose another name"
            )));
        }
        vm.snapshot_with(cache.path(&name), options).await?;
        on_thread(move || {
            keep_image(&cache.path(&name))?;
            let found = cache.find(name);
            drop(locked);
            found.ok_or(Error::Busy("another program has removed the template"))
        })
        .await
    }

    /// Returns the templates of this user, by name.
    ///
    /// # Errors
    /// [`Error::Missing`] if the user has no cache folder.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list() -> Result<Vec<TemplateInfo>, Error> {
        on_thread(|| Ok(TemplateCache::of_user()?.list())).await
    }

    /// Returns the template with this name, or `None` if there is none. Its VMs are
    /// started with [`VmBuilder::snapshot`] and its path.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no template can have this name.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn find(name: &str) -> Result<Option<TemplateInfo>, Error> {
        let name = cache::checked_name(name)?.to_owned();
        on_thread(move || Ok(TemplateCache::of_user()?.find(name))).await
    }

    /// Removes the template with this name. VMs that were started from it go on.
    /// Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::Host`] if it cannot be removed.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be removed.
    pub async fn remove(name: &str) -> Result<bool, Error> {
        let name = cache::checked_name(name)?.to_owned();
        on_thread(move || TemplateCache::of_user()?.remove(&name)).await
    }

    /// Removes the templates that were not used for this long, and those whose image is
    /// gone. Returns what was removed.
    ///
    /// # Errors
    /// [`Error::Host`] if one cannot be removed.
    ///
    /// # Cancel safety
    /// If the future is dropped, some may be removed.
    pub async fn prune(unused_for: Duration) -> Result<Vec<TemplateInfo>, Error> {
        on_thread(move || TemplateCache::of_user()?.prune(|info| info.is_unused_for(unused_for)))
            .await
    }
}

/// Runs what may block on a thread for it.
async fn on_thread<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    crate::on_thread::on_thread("use a template", run).await
}
