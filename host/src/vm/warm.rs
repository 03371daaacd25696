//! VMs that start from a template.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use super::{Vm, VmBuilder};
#[cfg(feature = "broker")]
use crate::broker::BrokerSettings;
use crate::{
    acceleration::AccelerationChoice,
    agent,
    backend::{Backend, Feature},
    error::Error,
    link::LinkKind,
    quotas::Quotas,
    snapshot::LoadedSnapshot,
    template::{KeyParts, Template},
};

impl VmBuilder {
    /// Returns the builder of the VM that a template with this key is made of.
    pub(crate) fn into_template(self, key: String) -> Self {
        Self {
            id: None,
            listed: false,
            hostname: None,
            warm: false,
            template_key: Some(key),
            // Each VM of the template has its own.
            quotas: Quotas::new(),
            // Same.
            #[cfg(feature = "broker")]
            broker: BrokerSettings::default(),
            ..self
        }
    }

    /// Returns the builder of a VM of a template.
    pub(crate) fn with_template(self, template: Arc<LoadedSnapshot>) -> Self {
        Self {
            id: None,
            hostname: None,
            image: None,
            warm: false,
            template: Some(template),
            ..self
        }
    }

    /// Sets where the layer of the VM is written.
    pub(crate) fn layer(mut self, path: PathBuf) -> Self {
        self.layer = Some(path);
        self
    }

    /// Returns the key of a template of this VM on this backend, prepared in these steps.
    pub(crate) fn template_key(
        &self,
        backend: &dyn Backend,
        steps: &[String],
    ) -> Result<String, Error> {
        let Some(image) = &self.image else {
            return Err(Error::Invalid(
                "a template needs a VM that boots from an image".to_owned(),
            ));
        };
        let acceleration = match self.acceleration {
            Some(acceleration) => acceleration,
            None => AccelerationChoice::detect().acceleration,
        };
        let agent = match &self.agent {
            Some(path) => Cow::Owned(agent::read(path)?),
            None => Cow::Borrowed(agent::EMBEDDED),
        };
        let mut parts = KeyParts::default();
        parts.add("vmcell", env!("CARGO_PKG_VERSION").as_bytes());
        let machine = format!(
            "{} {} {} {:?} {acceleration} {} {:?}",
            backend.name(),
            self.vcpus,
            self.memory_mib,
            self.disk_mib,
            self.randomise_addresses,
            self.kernel_arguments
        );
        parts.add("machine", machine.as_bytes());
        parts.add("agent", &agent);
        let kernel = backend.kernel(self.kernel.as_deref())?;
        let files = [("kernel", kernel), ("image", image.clone())].into_iter();
        let program = backend.program().map(|program| ("VMM", program));
        for (name, path) in files.chain(program) {
            let added = parts.add_file(name, &path);
            added.map_err(|error| Error::BadFile {
                what: name,
                path: path.clone(),
                reason: error.to_string(),
            })?;
        }
        for step in steps {
            parts.add("step", step.as_bytes());
        }
        Ok(parts.key())
    }

    /// Returns the kernel that it would boot, if its backend boots one.
    #[cfg(feature = "tool")]
    pub(crate) async fn kernel_path(&self) -> Option<PathBuf> {
        let chosen = self
            .backends
            .chosen(self.backend.as_deref(), self.host_compat);
        let (backend, _) = chosen.await.ok()?;
        backend.kernel(self.kernel.as_deref()).ok()
    }

    /// Returns the agent that it would run.
    #[cfg(feature = "tool")]
    pub(crate) fn agent_bytes(&self) -> Result<Cow<'static, [u8]>, Error> {
        match &self.agent {
            Some(path) => Ok(Cow::Owned(agent::read(path)?)),
            None => Ok(Cow::Borrowed(agent::EMBEDDED)),
        }
    }

    /// Returns the backend that it would run on, if that can take snapshots.
    pub(crate) async fn backend_with_snapshots(&self) -> Result<Arc<dyn Backend>, Error> {
        let chosen = self
            .backends
            .chosen(self.backend.as_deref(), self.host_compat);
        let (backend, features) = chosen.await?;
        match features.contains(&Feature::Snapshot) {
            true => Ok(backend),
            false => Err(Error::BackendLacks {
                backend: backend.name().to_owned(),
                feature: Feature::Snapshot,
                remedy: "choose the backend qemu, or enable the API of firecracker or \
                         cloud_hypervisor with `with_api`",
            }),
        }
    }

    /// Returns whether the VM can be started from a template.
    pub(crate) async fn can_be_warm(&self) -> bool {
        let is_plain = self.image.is_some()
            && self.disk.is_none()
            && self.directory.is_none()
            && matches!(self.link, None | Some(LinkKind::Serial));
        is_plain && self.backend_with_snapshots().await.is_ok()
    }
}

/// Starts a VM from a template, if it can be, which is made first if it is not there.
pub(super) async fn start(builder: VmBuilder) -> Result<Vm, Error> {
    let cold = VmBuilder {
        warm: false,
        ..builder.clone()
    };
    if !builder.can_be_warm().await {
        tracing::debug!("the VM cannot be started from a template");
        return super::start::start(cold).await;
    }
    let (id, hostname) = (builder.id, builder.hostname);
    let template = Template::builder(cold).get().await?;
    template
        .start_with(move |vm| VmBuilder {
            id: id.clone(),
            hostname: hostname.clone(),
            ..vm
        })
        .await
}
