use std::sync::Arc;

use super::{Dialer, DirectDialer, NetworkObserver, Resolver, SystemResolver};

/// What a program does itself for the network of a VM.
#[derive(Clone, Debug)]
pub(crate) struct NetworkHooks {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) dialer: Arc<dyn Dialer>,
    pub(crate) observer: Option<Arc<dyn NetworkObserver>>,
    /// Puts secrets into requests. Each VM has its own.
    #[cfg(feature = "broker")]
    pub(crate) broker: Option<Arc<crate::broker::Broker>>,
}

impl Default for NetworkHooks {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            dialer: Arc::new(DirectDialer),
            observer: None,
            #[cfg(feature = "broker")]
            broker: None,
        }
    }
}
