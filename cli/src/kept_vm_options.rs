//! The options that `vmcell vm` and `vmcell workspace` have in common.

use std::{ffi::OsString, time::Duration};

use clap::Args;
use vmcell::workspace::NewWorkspace;

use crate::{
    command::{CommandOptions, PreparedCommand},
    environment,
    network_options::NetworkOptions,
    quota_options::QuotaOptions,
    size_options::SizeOptions,
};

/// The options of a new one.
#[derive(Debug, Args)]
pub(crate) struct NewOptions {
    /// Environment to boot: a name of `vmcell env list`, the path of an ext4 image, or where the
    /// image of a container is, as for `vmcell env import`. Commands have its user and its
    /// variables.
    #[arg(value_name = "ENVIRONMENT", default_value = "base")]
    environment: OsString,
    #[command(flatten)]
    size: SizeOptions,
    #[command(flatten)]
    quotas: QuotaOptions,
    #[command(flatten)]
    network: NetworkOptions,
}

impl NewOptions {
    /// Returns what is created. Builds the image of the environment, if it does not exist.
    pub(crate) fn prepare(
        self,
        id: Option<String>,
        ttl_seconds: u64,
    ) -> anyhow::Result<NewWorkspace> {
        let variables = self.network.variables();
        let network = self.network.policy(false)?;
        let found = environment::find(&self.environment)?;
        let mut new = NewWorkspace::new(found.image)
            .environment(self.environment.to_string_lossy())
            .vcpus(self.size.vcpu_count)
            .memory_mib(self.size.mem_mib)
            .quotas(self.quotas.quotas())
            .lifetime(Duration::from_secs(ttl_seconds));
        if let Some(id) = id {
            new = new.id(id);
        }
        for (name, value) in found.defaults.variables().chain(variables.iter().copied()) {
            new = new.env(name, value);
        }
        if let Some(user) = found.defaults.user {
            new = new.user(user);
        }
        if let Some(mib) = self.size.disk_mib {
            new = new.disk_mib(mib);
        }
        if let Some(policy) = network {
            new = new.network(policy);
        }
        Ok(new)
    }
}

/// The command of `exec`, with its options.
#[derive(Debug, Args)]
pub(crate) struct CommandArguments {
    #[command(flatten)]
    pub(crate) options: CommandOptions,
    /// Command and its arguments, run without a shell, in /workspace unless
    /// `--cwd` says otherwise. Options of `exec` come before it.
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl CommandArguments {
    /// Reads the files that the options name.
    pub(crate) fn prepare(self) -> anyhow::Result<PreparedCommand> {
        self.options.prepare(self.command)
    }
}
