//! What callers are told after the link to a VM was closed.

use std::time::Duration;

use tokio::{sync::watch, time};

use super::*;
use crate::{End, Error, Vm, VmEnd, VmState};

/// Returns the error after the link was closed, if the VM is known to have been
/// killed so much later.
async fn error_if_killed_after(delay: Duration) -> Error {
    let (session, guest) = connect().await;
    let (state, seen) = watch::channel(VmState::Running);
    let vm = Vm::on_session_in(session, seen);
    drop(guest);
    let mut closed = vm.session().link_error();
    let error = closed.wait_for(Option::is_some).await.unwrap().unwrap();
    time::pause();
    let end = async {
        time::sleep(delay).await;
        let end = VmEnd {
            reason: End::Killed,
            status: None,
        };
        state.send_replace(VmState::Ended(end));
    };
    tokio::join!(vm.explain(error), end).0
}

#[tokio::test]
async fn a_vmm_that_takes_seconds_to_end_is_a_vm_that_is_gone() {
    let error = error_if_killed_after(Duration::from_secs(4)).await;
    assert!(matches!(error, Error::Gone(End::Killed)), "{error}");
}

#[tokio::test]
async fn a_vm_that_does_not_end_is_out_of_reach() {
    let error = error_if_killed_after(Duration::from_secs(60)).await;
    assert!(matches!(error, Error::Transport(_)), "{error}");
}
