//! A VM that consists of a session only, for tests with hostile guests.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use super::{
    Vm, VmState,
    handle::{Control, Shared},
};
use crate::{
    attach::VmName,
    console::Console,
    link::{LinkChoice, LinkKind},
    session::Session,
};

impl Vm {
    /// Creates a VM that stays in the state `Running`.
    pub(crate) fn on_session(session: Session) -> Self {
        let (_, state) = watch::channel(VmState::Running);
        Self::on_session_in(session, state)
    }

    /// Creates a VM with this state.
    pub(crate) fn on_session_in(session: Session, state: watch::Receiver<VmState>) -> Self {
        Self::new(Shared {
            id: "test".to_owned(),
            session: Arc::new(session),
            state,
            control: Control::Attached(VmName::new("test").unwrap()),
            backend: "test".to_owned(),
            rejected_backends: None,
            confinement: None,
            quotas: None,
            warnings: Vec::new(),
            acceleration: None,
            link: LinkChoice::new(LinkKind::Relay, "a test"),
            console: Console::default(),
            keeps_disk: false,
            facts: None,
            baseline: Arc::default(),
            file_permits: Arc::new(Semaphore::new(Vm::FILE_PERMITS)),
            ports: Arc::default(),
            network: None,
            metrics: None,
            #[cfg(feature = "terminal")]
            terminals: crate::terminal::Followers::default(),
        })
    }
}
