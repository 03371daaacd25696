//! VMs that start from a template.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use super::{Vm, VmBuilder};
use crate::{
    acceleration::AccelerationChoice,
    agent,
    backend::Feature,
    error::Error,
    link::LinkKind,
    locate,
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

    /// Returns the key of a template of this VM, prepared in these steps.
    pub(crate) fn template_key(&self, steps: &[String]) -> Result<String, Error> {
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
            "{} {} {acceleration} {} {:?} {:?}",
            self.vcpus,
            self.memory_mib,
            self.randomise_addresses,
            self.kernel_arguments,
            self.backend
        );
        parts.add("machine", machine.as_bytes());
        parts.add("agent", &agent);
        let kernel = locate::kernel(self.kernel.as_deref())?;
        for (name, path) in [("kernel", &kernel), ("image", image)] {
            let added = parts.add_file(name, path);
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

    /// Returns whether the VM can be started from a template.
    async fn can_be_warm(&self) -> bool {
        let is_plain = self.image.is_some()
            && self.disk.is_none()
            && self.directory.is_none()
            && matches!(self.link, None | Some(LinkKind::Serial));
        is_plain
            && self
                .backends
                .features(self.backend.as_deref(), self.host_compat)
                .await
                .contains(&Feature::Snapshot)
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
