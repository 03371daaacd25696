//! `--secret-env`: the secrets that one program in the guest gets.

use std::str::FromStr;

use clap::Args;
use vmcell::{
    Error, Vm,
    secret::{Secret, SecretError},
    workspace::{WorkspaceError, Workspaces},
};

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SecretOptions {
    /// Grant the secret NAME as the environment variable VAR, which is NAME by
    /// default. It is one that the workspace keeps, or a variable of your own
    /// environment. It is masked in all that programs of the VM print.
    #[arg(long = "secret-env", value_name = "NAME[=VAR]")]
    grants: Vec<SecretGrant>,
}

/// A secret, and the variable that it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SecretGrant {
    secret: String,
    variable: String,
}

impl FromStr for SecretGrant {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (secret, variable) = text.split_once('=').unwrap_or((text, text));
        if secret.is_empty() || variable.is_empty() || variable.contains('=') {
            return Err("expected NAME or NAME=VAR");
        }
        Ok(Self {
            secret: secret.to_owned(),
            variable: variable.to_owned(),
        })
    }
}

impl SecretOptions {
    /// Returns the variables with the secrets of the caller's environment.
    pub(crate) fn load(&self) -> Result<SecretVariables, Error> {
        let grants = self.grants.iter();
        let variables = grants.map(|grant| Ok((grant.variable.clone(), grant.secret_of_caller()?)));
        variables.collect()
    }

    /// Returns the variables with the secrets that the workspace of a VM keeps, if it is that
    /// of one, and with those of the caller's environment that it does not keep.
    pub(crate) async fn load_for(&self, vm: &Vm) -> Result<SecretVariables, Error> {
        if self.grants.is_empty() {
            return Ok(Vec::new());
        }
        let workspace = match Workspaces::open()?.get(vm.id()).await {
            Err(Error::Workspace(WorkspaceError::NotFound { .. })) => return self.load(),
            found => found?,
        };
        let mut variables = Vec::new();
        for grant in &self.grants {
            let secret = match workspace.secret(&grant.secret).await {
                Err(error @ Error::Workspace(WorkspaceError::NoSecret { .. })) => {
                    grant.secret_of_caller().map_err(|other| match other {
                        Error::Secret(SecretError::NoVariable { .. }) => error,
                        other => other,
                    })?
                }
                found => found?,
            };
            variables.push((grant.variable.clone(), secret));
        }
        Ok(variables)
    }
}

/// Names of variables, and the secrets that they are set to.
pub(crate) type SecretVariables = Vec<(String, Secret)>;

impl SecretGrant {
    fn secret_of_caller(&self) -> Result<Secret, Error> {
        Ok(Secret::from_env(&self.secret, &self.secret)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_names_a_secret_and_a_variable() {
        let grant = |text: &str| {
            let grant: SecretGrant = text.parse().ok()?;
            Some((grant.secret, grant.variable))
        };
        let both = |secret: &str, variable: &str| Some((secret.to_owned(), variable.to_owned()));
        assert_eq!(grant("TOKEN"), both("TOKEN", "TOKEN"));
        assert_eq!(grant("api-token=TOKEN"), both("api-token", "TOKEN"));
        for text in ["", "=", "TOKEN=", "=TOKEN", "a=b=c"] {
            assert_eq!(grant(text), None, "{text}");
        }
    }
}
