use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use vmcell_wire::{
    Request, SecretVariable, Start,
    service::{ServiceRequest, Spec},
    terminal::TerminalRequest,
};
use zeroize::Zeroizing;

use super::Secret;
use crate::redaction::SecretSet;

/// The secrets that programs of a VM have got. All that comes back is searched for them,
/// also what other programs print: a secret may be in a file by then.
#[derive(Default)]
pub(crate) struct GrantedSecrets {
    values: Mutex<Vec<Value>>,
    /// `None` if there are none.
    set: RwLock<Option<Arc<SecretSet>>>,
}

type Value = Zeroizing<Vec<u8>>;

/// There are too many secrets to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManySecrets;

/// The most bytes of all values together. What is needed to find one in all its encodings
/// takes about 300 bytes for each of its own.
const MAX_TOTAL: usize = 4 * Secret::MAX_LENGTH;

/// The most values.
const MAX_COUNT: usize = 1024;

impl GrantedSecrets {
    /// Adds values. When this returns, they are masked in what is read from now on.
    ///
    /// # Errors
    /// There are too many; then none of them was added.
    pub(crate) fn grant(&self, new: impl IntoIterator<Item = Value>) -> Result<(), TooManySecrets> {
        let mut new = new.into_iter().peekable();
        if new.peek().is_none() {
            return Ok(());
        }
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let count = values.len();
        for value in new {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let total: usize = values.iter().map(|value| value.len()).sum();
        if total > MAX_TOTAL || values.len() > MAX_COUNT {
            values.truncate(count);
            return Err(TooManySecrets);
        }
        if values.len() > count {
            let set = SecretSet::new(values.iter().map(|value| value.as_slice()), []);
            *self.set.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(set));
        }
        Ok(())
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

/// Returns the values that a program gets by a request.
pub(crate) fn secrets_of(request: &Request<'_>) -> Vec<Value> {
    let of = |start: &Start<'_>| {
        start
            .env
            .iter()
            .filter_map(|it| value(it.to_bytes()))
            .collect()
    };
    match request {
        Request::Start(start) => of(start),
        Request::Terminal(TerminalRequest::Open(open)) => of(&open.start),
        Request::Service(ServiceRequest::Start(service)) => {
            let spec = Spec::from_bytes(service.spec);
            spec.map_or_else(|_| Vec::new(), |spec| of(&spec.start))
        }
        _ => Vec::new(),
    }
}

/// Returns the value of a variable if it is a secret.
fn value(entry: &[u8]) -> Option<Value> {
    let variable = SecretVariable::parse(entry)?;
    let mut value = Zeroizing::new(Vec::with_capacity(variable.byte_len()));
    let after_name = variable.bytes().skip_while(|byte| *byte != b'=');
    value.extend(after_name.skip(1));
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(texts: &[&str]) -> Vec<Value> {
        let texts = texts.iter();
        texts.map(|text| text.as_bytes().to_vec().into()).collect()
    }

    #[test]
    fn each_value_is_searched_for_once_and_not_too_many() {
        let granted = GrantedSecrets::default();
        assert!(granted.set().is_none());
        granted.grant(values(&["one", "two"])).unwrap();
        let set = granted.set().unwrap();
        granted.grant(values(&["two"])).unwrap();
        assert!(Arc::ptr_eq(&set, &granted.set().unwrap()));

        let large = "x".repeat(MAX_TOTAL);
        assert_eq!(granted.grant(values(&[&large])), Err(TooManySecrets));
        let many: Vec<_> = (0..MAX_COUNT).map(|number| number.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(granted.grant(values(&many)), Err(TooManySecrets));
        assert!(Arc::ptr_eq(&set, &granted.set().unwrap()));
    }

    #[test]
    fn the_value_begins_after_the_name() {
        let entry = SecretVariable::mask(b"TOKEN=a=b", 3);
        assert_eq!(value(&entry).unwrap().as_slice(), b"a=b");
        assert!(value(b"TOKEN=a=b").is_none());
    }
}
