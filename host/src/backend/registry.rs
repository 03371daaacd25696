use std::{fmt, sync::Arc};

use super::{Backend, CloudHypervisor, Feature, Firecracker, HostProcess, Qemu, guarded_call};
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
pub struct RejectedBackend {
    /// Its name.
    pub backend: String,
    /// Why, for people.
    pub reason: String,
}

impl fmt::Display for RejectedBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.backend, self.reason)
    }
}

impl Backends {
    /// Returns all backends of the library, in order of preference:
    ///
    /// - `qemu`, which runs everywhere, supports every link and persistent disks;
    /// - `firecracker` and `cloud_hypervisor`, where there is no QEMU: they need
    ///   KVM;
    /// - `process`, which is not a VM, where that is
    ///   [allowed](crate::VmBuilder::allow_host_compat) and no other can be used.
    pub fn new() -> Self {
        Self {
            backends: vec![
                Arc::new(Qemu::new()),
                Arc::new(Firecracker::new()),
                Arc::new(CloudHypervisor::new()),
                Arc::new(HostProcess::new()),
            ],
        }
    }

    /// Adds a backend of your own after the others, or replaces the one with
    /// the same name.
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

    /// Iterates over all of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Backend>> {
        self.backends.iter()
    }

    /// Returns the backend with this name, if it can run a VM.
    pub(crate) async fn get(
        &self,
        name: &str,
        host_compat: bool,
    ) -> Result<Arc<dyn Backend>, Error> {
        let found = self.iter().find(|backend| backend.name() == name);
        let backend = found.ok_or_else(|| Error::NoSuchBackend {
            name: name.to_owned(),
            known: self.names(),
        })?;
        match unavailable_reason(backend, host_compat).await {
            None => Ok(backend.clone()),
            Some(reason) => Err(Error::BackendUnavailable {
                name: name.to_owned(),
                reason,
            }),
        }
    }

    /// Returns the first backend that can run a VM, and why those before it
    /// cannot.
    pub(crate) async fn choose(
        &self,
        host_compat: bool,
    ) -> Result<(Arc<dyn Backend>, Vec<RejectedBackend>), Error> {
        let mut rejected_backends = Vec::new();
        for backend in self.iter() {
            match unavailable_reason(backend, host_compat).await {
                None => return Ok((backend.clone(), rejected_backends)),
                Some(reason) => rejected_backends.push(RejectedBackend {
                    backend: backend.name().to_owned(),
                    reason,
                }),
            }
        }
        let reasons: Vec<_> = rejected_backends
            .iter()
            .map(RejectedBackend::to_string)
            .collect();
        Err(Error::BackendUnavailable {
            name: "auto".to_owned(),
            reason: reasons.join("; "),
        })
    }

    /// Returns the backend that a VM would run on, and what it can do.
    pub(crate) async fn chosen(
        &self,
        name: Option<&str>,
        host_compat: bool,
    ) -> Result<(Arc<dyn Backend>, Vec<Feature>), Error> {
        let backend = match name {
            Some(name) if name != "auto" => self.get(name, host_compat).await?,
            _ => self.choose(host_compat).await?.0,
        };
        let features = guarded_call::health(&backend).await.features;
        Ok((backend, features))
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.iter().map(|backend| backend.name()).collect();
        names.join(", ")
    }
}

/// Returns why a backend cannot be used; `None` if it can.
async fn unavailable_reason(backend: &Arc<dyn Backend>, host_compat: bool) -> Option<String> {
    if !backend.is_vm() && !host_compat {
        return Some("it is not a VM: allow host-compat to use it".to_owned());
    }
    let health = guarded_call::health(backend).await;
    (!health.is_available).then_some(health.reason)
}

impl Default for Backends {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BackendHealth, Launched, Machine};

    #[derive(Debug)]
    struct Fake {
        name: &'static str,
        is_available: bool,
        is_vm: bool,
    }

    impl Backend for Fake {
        fn name(&self) -> &str {
            self.name
        }

        fn health(&self) -> BackendHealth {
            match self.is_available {
                true => BackendHealth::available("it is here"),
                false => BackendHealth::unavailable(format!("install {}", self.name)),
            }
        }

        fn is_vm(&self) -> bool {
            self.is_vm
        }

        fn launch(&self, _: Machine) -> Result<Launched, Error> {
            Err(Error::Busy("a fake"))
        }
    }

    fn backends(fakes: &[(&'static str, bool, bool)]) -> Backends {
        let none = Backends { backends: vec![] };
        fakes
            .iter()
            .fold(none, |backends, (name, is_available, is_vm)| {
                backends.with(Fake {
                    name,
                    is_available: *is_available,
                    is_vm: *is_vm,
                })
            })
    }

    #[tokio::test]
    async fn the_first_that_can_is_chosen_and_those_before_it_say_why_not() {
        let some = backends(&[
            ("missing", false, true),
            ("namespaces", true, false),
            ("good", true, true),
            ("better", true, true),
        ]);
        let (chosen, rejected_backends) = some.choose(false).await.unwrap();
        assert_eq!(chosen.name(), "good");
        let reasons: Vec<_> = rejected_backends
            .iter()
            .map(RejectedBackend::to_string)
            .collect();
        assert_eq!(
            reasons,
            [
                "missing: install missing",
                "namespaces: it is not a VM: allow host-compat to use it"
            ]
        );
        let (chosen, rejected_backends) = some.choose(true).await.unwrap();
        assert_eq!((chosen.name(), rejected_backends.len()), ("namespaces", 1));
    }

    #[tokio::test]
    async fn where_none_can_each_says_why() {
        let none = backends(&[("one", false, true), ("other", false, true)]);
        let error = none.choose(true).await.unwrap_err();
        assert_eq!(error.code(), "backend-unavailable");
        assert_eq!(
            error.to_string(),
            "the backend auto cannot be used: one: install one; other: install other"
        );
    }

    #[tokio::test]
    async fn a_name_that_is_unknown_or_of_no_use_here_is_its_own_error() {
        let some = backends(&[("good", true, true), ("missing", false, true)]);
        let error = some.get("other", false).await.unwrap_err();
        assert_eq!(error.code(), "no-such-backend");
        assert!(error.to_string().contains("good, missing"), "{error}");
        let error = some.get("missing", false).await.unwrap_err();
        assert_eq!(error.code(), "backend-unavailable");
        assert!(error.to_string().contains("install missing"), "{error}");
        assert_eq!(some.get("good", false).await.unwrap().name(), "good");
    }

    #[tokio::test]
    async fn one_of_your_own_takes_the_place_of_its_name() {
        let some = backends(&[
            ("one", false, true),
            ("other", true, true),
            ("one", true, true),
        ]);
        let names: Vec<_> = some
            .iter()
            .map(|backend| backend.name().to_owned())
            .collect();
        assert_eq!(names, ["one", "other"]);
        assert_eq!(some.choose(false).await.unwrap().0.name(), "one");
    }
}
