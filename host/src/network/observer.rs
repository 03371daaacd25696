use std::fmt;

use super::{ConnectionEnd, Decision};

/// Is told of everything that programs of a guest want of the network. Its methods are
/// called by a task of the VM, so they must not block.
pub trait NetworkObserver: fmt::Debug + Send + Sync {
    /// Something was decided.
    fn decided(&self, decision: &Decision);

    /// A connection has ended.
    fn ended(&self, connection: &ConnectionEnd) {
        let _ = connection;
    }
}
