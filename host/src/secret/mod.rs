//! Secrets: values that a program in a guest needs and that nobody else may see.
//!
//! ```no_run
//! # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
//! use vmcell::{Command, secret::Secret};
//!
//! let token = Secret::from_env("api-token", "API_TOKEN")?;
//! let command = Command::shell("curl -H \"Authorization: $TOKEN\" https://api.test")
//!     .secret_env("TOKEN", &token);
//! let output = vm.exec_command(command).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A secret is granted to one command, service or terminal, which gets it as an environment
//! variable. Nothing prints, serialises or stores its value, and its memory is zeroed when
//! the last handle is dropped. A program that has secrets should also
//! [disable its core dumps](disable_core_dumps).

mod core_dump;
mod error;
mod granted;
mod info;
mod provider;
mod source;
mod value;

pub use core_dump::disable_core_dumps;
pub(crate) use core_dump::disable_core_dumps_of;
pub use error::SecretError;
pub(crate) use granted::{GrantedSecrets, TooManySecrets, secrets_of};
pub use info::SecretInfo;
pub use provider::SecretProvider;
pub use source::SecretSource;
pub use value::SecretValue;

use std::{fmt, path::Path};

/// A value with a name: see the [module](self). Handles are cheap to clone.
#[derive(Clone)]
pub struct Secret {
    name: String,
    value: SecretValue,
    source: SecretSource,
}

impl Secret {
    /// The longest value, in bytes.
    pub const MAX_LENGTH: usize = 64 * 1024;

    /// The longest name.
    pub const MAX_NAME: usize = 64;

    /// Creates a secret from a value.
    ///
    /// # Errors
    /// [`SecretError`] if no secret can have this name or value. Nothing of the value is in
    /// the error.
    pub fn new(
        name: impl Into<String>,
        value: impl Into<SecretValue>,
    ) -> Result<Self, SecretError> {
        Self::checked(name.into(), value.into(), SecretSource::Literal)
    }

    /// Creates a secret from the content of a file, without the line end at its end.
    ///
    /// # Errors
    /// As for [`new`](Self::new), and [`SecretError::File`] if it cannot be read.
    pub fn from_file(name: impl Into<String>, path: impl AsRef<Path>) -> Result<Self, SecretError> {
        let name = checked_name(name.into())?;
        let value = SecretValue::read_line(&name, path.as_ref())?;
        Self::checked(name, value, SecretSource::File)
    }

    /// Creates a secret from a variable of this program's environment.
    ///
    /// # Errors
    /// As for [`new`](Self::new), and [`SecretError::NoVariable`] if it is not set.
    pub fn from_env(name: impl Into<String>, variable: &str) -> Result<Self, SecretError> {
        let name = checked_name(name.into())?;
        let Some(value) = std::env::var_os(variable) else {
            return Err(SecretError::NoVariable {
                name,
                variable: variable.to_owned(),
            });
        };
        let value = SecretValue::from_bytes(&name, value.into_encoded_bytes())?;
        Self::checked(name, value, SecretSource::Environment)
    }

    /// Asks a provider for a secret.
    ///
    /// # Errors
    /// As for [`new`](Self::new), and [`SecretError::Provider`] if the provider has none.
    ///
    /// # Cancel safety
    /// As safe as the provider is.
    pub async fn from_provider(
        name: impl Into<String>,
        provider: &dyn SecretProvider,
    ) -> Result<Self, SecretError> {
        let name = checked_name(name.into())?;
        match provider.value(&name).await {
            Ok(value) => Self::checked(name, value, SecretSource::Provider),
            Err(source) => Err(SecretError::Provider { name, source }),
        }
    }

    /// Reads a secret that was written to a file as it is.
    pub(crate) fn from_kept(info: &SecretInfo, path: &Path) -> Result<Self, SecretError> {
        let bytes = SecretValue::read(&info.name, path)?;
        let value = SecretValue::from_bytes(&info.name, bytes)?;
        Self::checked(info.name.clone(), value, info.source)
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what lists say about it.
    pub fn info(&self) -> SecretInfo {
        SecretInfo {
            name: self.name.clone(),
            source: self.source,
        }
    }

    /// Returns where it comes from.
    pub fn source(&self) -> SecretSource {
        self.source
    }

    pub(crate) fn value(&self) -> &SecretValue {
        &self.value
    }

    fn checked(
        name: String,
        value: SecretValue,
        source: SecretSource,
    ) -> Result<Self, SecretError> {
        let name = checked_name(name)?;
        match value.expose() {
            "" => Err(SecretError::Empty { name }),
            text if text.len() > Self::MAX_LENGTH => Err(SecretError::TooLong { name }),
            // No environment variable can contain it.
            text if text.contains('\0') => Err(SecretError::ZeroByte { name }),
            _ => Ok(Self {
                name,
                value,
                source,
            }),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("name", &self.name)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// Returns a name if a secret can have it.
pub(crate) fn checked_name(name: String) -> Result<String, SecretError> {
    let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_valid = (1..=Secret::MAX_NAME).contains(&name.len()) && name.bytes().all(is_permitted);
    match is_valid {
        true => Ok(name),
        false => Err(SecretError::Name),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::network::BoxFuture;

    const VALUE: &str = "s3cret-value";

    #[test]
    fn values_come_from_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (content, expected) in [
            (VALUE, VALUE),
            ("s3cret-value\n", VALUE),
            ("s3cret-value\r\n", VALUE),
            ("two\nlines\n\n", "two\nlines\n"),
        ] {
            fs::write(&path, content).unwrap();
            let secret = Secret::from_file("token", &path).unwrap();
            assert_eq!(secret.value().expose(), expected);
            assert_eq!(secret.source(), SecretSource::File);
        }
        // Every program has this one.
        let secret = Secret::from_env("path", "PATH").unwrap();
        assert_eq!(secret.value().expose(), std::env::var("PATH").unwrap());
        let secret = Secret::new("token", VALUE.to_owned()).unwrap();
        assert_eq!((secret.name(), secret.value().expose()), ("token", VALUE));
    }

    #[test]
    fn what_cannot_be_a_secret_is_refused_without_its_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, b"s3cret\xff").unwrap();
        let long = VALUE.repeat(Secret::MAX_LENGTH);
        fs::write(folder.path().join("long"), &long).unwrap();
        let missing = folder.path().join("missing");
        for error in [
            Secret::new("token", String::new()).unwrap_err(),
            Secret::new("token", "s3cret\0".to_owned()).unwrap_err(),
            Secret::new("token", long).unwrap_err(),
            // Who mixes them up must not see it either.
            Secret::new("s3cret value", "name".to_owned()).unwrap_err(),
            Secret::new("", VALUE.to_owned()).unwrap_err(),
            Secret::from_file("token", &path).unwrap_err(),
            Secret::from_file("token", folder.path().join("long")).unwrap_err(),
            Secret::from_file("token", &missing).unwrap_err(),
            Secret::from_env("token", "NO_SUCH_VARIABLE_OF_A_TEST").unwrap_err(),
        ] {
            let (text, debug) = (error.to_string(), format!("{error:?}"));
            assert!(
                !text.contains("s3cret") && !debug.contains("s3cret"),
                "{debug}"
            );
        }
    }

    #[tokio::test]
    async fn a_provider_is_asked_by_name() {
        struct Vault;

        impl SecretProvider for Vault {
            fn value<'a>(
                &'a self,
                name: &'a str,
            ) -> BoxFuture<'a, Result<SecretValue, Box<dyn std::error::Error + Send + Sync>>>
            {
                Box::pin(async move {
                    match name {
                        "token" => Ok(VALUE.to_owned().into()),
                        _ => Err("the vault is locked".into()),
                    }
                })
            }
        }

        let secret = Secret::from_provider("token", &Vault).await.unwrap();
        assert_eq!(secret.value().expose(), VALUE);
        assert_eq!(secret.source(), SecretSource::Provider);
        let error = Secret::from_provider("other", &Vault).await.unwrap_err();
        assert!(error.to_string().contains("other"));
        let error = std::error::Error::source(&error).unwrap();
        assert_eq!(error.to_string(), "the vault is locked");
    }

    #[test]
    fn it_is_printed_without_its_value() {
        let secret = Secret::new("token", VALUE.to_owned()).unwrap();
        let printed = format!("{secret:?} {:#?} {:?}", secret, secret.value());
        assert!(printed.contains("token") && printed.contains("Literal"));
        assert!(!printed.contains("s3cret"), "{printed}");
    }
}
