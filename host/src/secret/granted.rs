use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use super::SecretValue;
use crate::redaction::SecretSet;

/// The secrets that programs of a VM have got. All that comes back is searched for them,
/// also what other programs print: a secret may be in a file by then.
#[derive(Default)]
pub(crate) struct GrantedSecrets {
    values: Mutex<Vec<SecretValue>>,
    /// `None` if there are none.
    set: RwLock<Option<Arc<SecretSet>>>,
}

impl GrantedSecrets {
    /// Adds values. When this returns, they are masked in what is read from now on.
    pub(crate) fn grant<'a>(&self, new: impl IntoIterator<Item = &'a SecretValue>) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let count = values.len();
        for value in new {
            if values.iter().all(|known| known.expose() != value.expose()) {
                values.push(value.clone());
            }
        }
        if values.len() > count {
            let bytes = values.iter().map(|value| value.expose().as_bytes());
            let set = Arc::new(SecretSet::new(bytes, []));
            *self.set.write().unwrap_or_else(PoisonError::into_inner) = Some(set);
        }
    }

    /// Returns what to mask, or `None` if nothing was granted.
    pub(crate) fn set(&self) -> Option<Arc<SecretSet>> {
        let set = self.set.read();
        set.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for GrantedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantedSecrets").finish_non_exhaustive()
    }
}
