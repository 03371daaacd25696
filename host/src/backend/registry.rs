use std::{fmt, sync::Arc};

use super::{Backend, Qemu};
use crate::error::Error;

/// Backends by name.
///
/// ```
/// use vmcell::backend::Backends;
///
/// let names: Vec<_> = Backends::new().iter().map(|backend| backend.name().to_owned()).collect();
/// assert_eq!(names[0], "qemu");
/// ```
#[derive(Clone, Debug)]
pub struct Backends {
    backends: Vec<Arc<dyn Backend>>,
}

/// A backend that was not chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// Its name.
    pub backend: String,
    /// Why, for people.
    pub reason: String,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.backend, self.reason)
    }
}

impl Backends {
    /// All that come with the library, those first that are chosen first.
    pub fn new() -> Self {
        Self {
            backends: vec![Arc::new(Qemu::new())],
        }
    }

    /// Adds one of your own behind the others, or in place of one that has its
    /// name.
    #[must_use]
    pub fn with(mut self, backend: impl Backend + 'static) -> Self {
        let backend: Arc<dyn Backend> = Arc::new(backend);
        let mut same = self.backends.iter_mut();
        match same.find(|other| other.name() == backend.name()) {
            Some(other) => *other = backend,
            None => self.backends.push(backend),
        }
        self
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Backend>> {
        self.backends.iter()
    }

    /// The one with a name, if it could run a VM.
    pub(crate) fn get(&self, name: &str, host_compat: bool) -> Result<Arc<dyn Backend>, Error> {
        let found = self.iter().find(|backend| backend.name() == name);
        let backend = found.ok_or_else(|| Error::NoSuchBackend {
            name: name.to_owned(),
            known: self.names(),
        })?;
        match why_not(&**backend, host_compat) {
            None => Ok(backend.clone()),
            Some(reason) => Err(Error::BackendUnavailable {
                name: name.to_owned(),
                reason,
            }),
        }
    }

    /// The first one that could run a VM, and why those before it could not.
    pub(crate) fn choose(
        &self,
        host_compat: bool,
    ) -> Result<(Arc<dyn Backend>, Vec<PassedOver>), Error> {
        let mut passed_over = Vec::new();
        for backend in self.iter() {
            match why_not(&**backend, host_compat) {
                None => return Ok((backend.clone(), passed_over)),
                Some(reason) => passed_over.push(PassedOver {
                    backend: backend.name().to_owned(),
                    reason,
                }),
            }
        }
        let reasons: Vec<_> = passed_over.iter().map(PassedOver::to_string).collect();
        Err(Error::BackendUnavailable {
            name: "auto".to_owned(),
            reason: reasons.join("; "),
        })
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.iter().map(|backend| backend.name()).collect();
        names.join(", ")
    }
}

/// Why a backend cannot be used. None: it can.
fn why_not(backend: &dyn Backend, host_compat: bool) -> Option<String> {
    if !backend.is_vm() && !host_compat {
        return Some("it is no VM: allow host-compat if that will do".to_owned());
    }
    let health = backend.health();
    (!health.is_available).then_some(health.reason)
}

impl Default for Backends {
    fn default() -> Self {
        Self::new()
    }
}
