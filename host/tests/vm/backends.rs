//! Third-party backends with bugs.

use vmcell::{
    Error, VmBuilder,
    backend::{Backend, BackendHealth, Backends, Launched, Machine},
};

use crate::builder;

/// A backend that panics in `health` or in `launch`.
#[derive(Debug)]
struct Panicking {
    in_health: bool,
}

impl Backend for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn health(&self) -> BackendHealth {
        assert!(!self.in_health, "it has no health");
        BackendHealth::available("it is here")
    }

    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        panic!("{} processors are too many", machine.vcpus());
    }
}

fn panicking(in_health: bool) -> VmBuilder {
    let backends = Backends::new().with(Panicking { in_health });
    builder().backends(backends).backend("panicking")
}

#[tokio::test]
async fn a_panic_of_a_backend_is_reported_as_what_it_is() {
    let error = panicking(false).start().await.unwrap_err();
    assert_eq!(error.code(), "backend-panicked");
    assert_eq!(
        error.to_string(),
        "the backend panicking panicked: 1 processors are too many"
    );
    let error = panicking(true).start().await.unwrap_err();
    assert_eq!(error.code(), "backend-unavailable");
    assert!(error.to_string().contains("panicked: it has no health"));
}
