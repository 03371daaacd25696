//! When the backend is chosen.

use vmcell::{
    LinkKind, Vm,
    backend::{Backend as _, Backends, HostProcess},
    network::NetworkPolicy,
};

use crate::{base, builder, start};

#[tokio::test]
async fn it_is_used_only_where_the_caller_allows_it() {
    let vm = Vm::builder().image(base()).backend("process");
    let error = vm.start().await.unwrap_err();
    assert_eq!(error.code(), "backend-unavailable");
    assert!(error.to_string().contains("host-compat"), "{error}");
}

#[test]
fn it_is_the_last_that_would_be_chosen() {
    let backends = Backends::new();
    let last = backends.iter().last().unwrap();
    assert_eq!(last.name(), "process");
    assert!(!last.is_vm());
    assert!(!HostProcess::new().health().reason.is_empty());
}

#[tokio::test]
async fn it_cannot_be_paused_and_says_which_backend_can() {
    assert!(HostProcess::new().health().features.is_empty());
    let Some(vm) = start().await else { return };
    let error = vm.pause().await.unwrap_err();
    assert_eq!(error.code(), "backend-lacks", "{error}");
    assert_eq!(
        error.to_string(),
        "the backend process cannot pause a VM: choose the backend qemu"
    );
    assert!(vm.health().await.is_healthy());
}

#[tokio::test]
async fn it_has_no_other_link() {
    let Some(builder) = builder() else { return };
    let error = builder.link(LinkKind::Serial).start().await.unwrap_err();
    assert_eq!(error.code(), "invalid");
    assert!(error.to_string().contains("socket"), "{error}");
}

#[tokio::test]
async fn a_network_policy_is_refused() {
    let Some(builder) = builder() else {
        return;
    };
    let policy = NetworkPolicy::rules().allow("web.test:443").unwrap();
    let error = builder.clone().network(policy).start().await.unwrap_err();
    assert_eq!(error.code(), "unsupported", "{error}");
    assert!(error.to_string().contains("network"), "{error}");
    // One that allows nothing can be kept.
    let vm = builder.network(NetworkPolicy::off()).start().await.unwrap();
    vm.kill().await.unwrap();
}
