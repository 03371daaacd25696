use serde::{Deserialize, Serialize};

use super::SecretSource;

/// A secret as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SecretInfo {
    /// Its name.
    pub name: String,
    /// Where its value comes from.
    pub source: SecretSource,
}
