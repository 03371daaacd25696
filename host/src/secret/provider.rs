use std::error::Error;

use super::SecretValue;
use crate::network::BoxFuture;

/// Where an application keeps its secrets: a vault, a key ring, a file of its own.
///
/// ```
/// use std::error::Error;
/// use vmcell::{network::BoxFuture, secret::{SecretProvider, SecretValue}};
///
/// struct Vault;
///
/// impl SecretProvider for Vault {
///     fn value<'a>(
///         &'a self,
///         name: &'a str,
///     ) -> BoxFuture<'a, Result<SecretValue, Box<dyn Error + Send + Sync>>> {
///         Box::pin(async move {
///             let value = fetch(name).await?;
///             Ok(SecretValue::from(value))
///         })
///     }
/// }
/// # async fn fetch(_: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
/// #     Ok(String::new())
/// # }
/// ```
pub trait SecretProvider: Send + Sync {
    /// Returns the value of the secret with this name. The error must not contain it.
    fn value<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<SecretValue, Box<dyn Error + Send + Sync>>>;
}
