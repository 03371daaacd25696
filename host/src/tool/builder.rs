use std::{
    collections::BTreeMap,
    error::Error as StdError,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use super::{Tool, ToolPolicy, handle::Shared};
use crate::{
    error::Error,
    receipt::ReceiptLog,
    secret::{Secret, SecretProvider},
    vm::{Vm, VmBuilder},
    workspace::Workspaces,
};

/// How to make a [`Tool`].
#[must_use]
pub struct ToolBuilder {
    policy: ToolPolicy,
    vm: VmBuilder,
    state_folder: Option<PathBuf>,
    environments: Option<Arc<FindEnvironment>>,
    secrets: BTreeMap<String, Secret>,
    provider: Option<Arc<dyn SecretProvider>>,
}

/// Returns the image of an environment.
pub(super) type FindEnvironment =
    dyn Fn(&str) -> Result<PathBuf, Box<dyn StdError + Send + Sync>> + Send + Sync;

impl ToolBuilder {
    pub(super) fn new(policy: ToolPolicy) -> Self {
        Self {
            policy,
            vm: Vm::builder(),
            state_folder: None,
            environments: None,
            secrets: BTreeMap::new(),
            provider: None,
        }
    }

    /// Sets how the images of [environments](super::ToolImage::environment) are found. It may
    /// build them, and is called on a thread for it.
    pub fn environments<E>(
        mut self,
        find: impl Fn(&str) -> Result<PathBuf, E> + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.environments = Some(Arc::new(move |name: &str| find(name).map_err(Into::into)));
        self
    }

    /// Adds a secret of the application, for the [grant](super::SecretGrant::application) with
    /// its name.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secrets.insert(secret.name().to_owned(), secret);
        self
    }

    /// Sets who has the other secrets of the application.
    pub fn secret_provider(mut self, provider: impl SecretProvider + 'static) -> Self {
        self.provider = Some(Arc::new(provider));
        self
    }

    /// Sets how VMs are started that are not kept: their backend, kernel, and how they reach
    /// the network. Image, memory, processors and network policy are those of the policy.
    pub fn vm(mut self, vm: VmBuilder) -> Self {
        self.vm = vm;
        self
    }

    /// Sets the folder of the receipts and of the workspaces that are kept; that of the user
    /// by default.
    pub fn state_folder(mut self, path: impl AsRef<Path>) -> Self {
        self.state_folder = Some(path.as_ref().to_owned());
        self
    }

    /// Makes the tool. Nothing is started.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the policy is, [`Error::Host`] if the state folder cannot be
    /// used.
    pub fn build(self) -> Result<Tool, Error> {
        let invalid = |error: super::ToolPolicyError| Error::Invalid(error.to_string());
        self.policy.check().map_err(invalid)?;
        let log = match &self.state_folder {
            Some(folder) => ReceiptLog::at(folder.join("receipts")),
            None => ReceiptLog::open(),
        };
        let log = log.map_err(|error| {
            Error::host("open the log of receipts")(std::io::Error::other(error))
        })?;
        let workspaces = match &self.state_folder {
            Some(folder) => Workspaces::at(folder)?,
            None => Workspaces::open()?,
        };
        Ok(Tool::new(Shared {
            policy_digest: self.policy.digest(),
            policy: self.policy,
            vm: self.vm,
            log,
            workspaces,
            environments: self.environments,
            secrets: self.secrets,
            provider: self.provider,
            templates: Mutex::default(),
        }))
    }
}

impl fmt::Debug for ToolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBuilder")
            .field("policy", &self.policy)
            .field("secrets", &self.secrets.keys())
            .finish_non_exhaustive()
    }
}
