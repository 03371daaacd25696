use std::{fmt, future::Future, pin::Pin, sync::Arc};

use super::{
    Template,
    cache::{AUTOMATIC, TemplateCache, checked_name},
    on_thread,
};
use crate::{
    error::Error,
    snapshot::{LoadedSnapshot, SnapshotOptions},
    vm::{Vm, VmBuilder},
};

/// How to make a [`Template`].
#[derive(Clone, Debug)]
#[must_use]
pub struct TemplateBuilder {
    vm: VmBuilder,
    name: Option<String>,
    steps: Vec<Step>,
}

/// A step of the preparation.
#[derive(Clone)]
struct Step {
    key: String,
    run: Arc<dyn Fn(Vm) -> Preparing + Send + Sync>,
}

type Preparing = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.key)
    }
}

impl TemplateBuilder {
    pub(super) fn new(vm: VmBuilder) -> Self {
        Self {
            vm,
            name: None,
            steps: Vec::new(),
        }
    }

    /// Sets a name for the template, which keeps it until it is
    /// [removed](Template::remove). If there is another template with this name, this
    /// one takes its place.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a step that prepares the VM: push files, run commands, start a service and
    /// wait until it is ready. Steps run one after the other, and only if the template
    /// is not there already.
    ///
    /// `key` identifies what the step does. Change it whenever that changes, so that
    /// the template is made again.
    pub fn prepare<F, P>(mut self, key: impl Into<String>, step: F) -> Self
    where
        F: Fn(Vm) -> P + Send + Sync + 'static,
        P: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.steps.push(Step {
            key: key.into(),
            run: Arc::new(move |vm| Box::pin(step(vm))),
        });
        self
    }

    /// Returns the template. It is loaded from the cache, or made if it is not there or
    /// cannot be used: the VM boots, is prepared, and saved. Another program that makes
    /// the same one is waited for.
    ///
    /// # Errors
    /// Those of [`VmBuilder::start`], of the preparation, and of
    /// [`Vm::snapshot`]. Nothing is left behind.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing is left behind.
    pub async fn get(self) -> Result<Template, Error> {
        let key = self.key().await?;
        let name = match &self.name {
            Some(name) => checked_name(name)?.to_owned(),
            None => format!("{AUTOMATIC}{}", key.get(..24).unwrap_or_default()),
        };
        let cache = on_thread(TemplateCache::of_user).await?;
        let path = cache.path(&name);
        let loaded = match load(&cache, &name, &key).await? {
            Some(loaded) => loaded,
            None => self.make(&cache, &name, &key, false).await?,
        };
        Ok(Template::new(self, name, path, loaded))
    }

    /// Makes the template again, even if it is there.
    pub(super) async fn make_again(&self, name: &str) -> Result<Arc<LoadedSnapshot>, Error> {
        let key = self.key().await?;
        let cache = on_thread(TemplateCache::of_user).await?;
        self.make(&cache, name, &key, true).await
    }

    /// Makes the template, unless another program has made it meanwhile.
    async fn make(
        &self,
        cache: &TemplateCache,
        name: &str,
        key: &str,
        is_wanted_anew: bool,
    ) -> Result<Arc<LoadedSnapshot>, Error> {
        let locked = {
            let (cache, name) = (cache.clone(), name.to_owned());
            on_thread(move || cache.lock(&name)).await?
        };
        if !is_wanted_anew && let Some(loaded) = load(cache, name, key).await? {
            return Ok(loaded);
        }
        tracing::info!(name, "making a template");
        let vm = self.vm.clone().into_template(key.to_owned());
        let vm = vm.start().await?;
        for step in &self.steps {
            (step.run)(vm.clone()).await?;
        }
        // The first command of each copy is faster then. Not every image has this program;
        // the attempt is enough.
        let _ = vm.exec(["true"]).await;
        let locked = on_thread(move || locked.clear().map(|_| locked)).await?;
        let options = SnapshotOptions::new().end_vm(true);
        vm.snapshot_with(cache.path(name), options).await?;
        vm.ended().await;
        let loaded = load(cache, name, key).await?;
        let cache = cache.clone();
        on_thread(move || {
            drop(locked);
            cache.prune_automatic();
            Ok(())
        })
        .await?;
        loaded.ok_or(Error::Busy(
            "the template was removed as soon as it was made",
        ))
    }

    /// Returns a builder of a VM that is restored.
    pub(super) fn vm_from(&self, loaded: Arc<LoadedSnapshot>) -> VmBuilder {
        self.vm.clone().with_template(loaded)
    }

    async fn key(&self) -> Result<String, Error> {
        let backend = self.vm.backend_with_snapshots().await?;
        let vm = self.vm.clone();
        let steps: Vec<_> = self.steps.iter().map(|step| step.key.clone()).collect();
        on_thread(move || vm.template_key(&*backend, &steps)).await
    }
}

async fn load(
    cache: &TemplateCache,
    name: &str,
    key: &str,
) -> Result<Option<Arc<LoadedSnapshot>>, Error> {
    let (cache, name, key) = (cache.clone(), name.to_owned(), key.to_owned());
    on_thread(move || Ok(cache.load(&name, &key))).await
}
