//! Defers SIGINT and SIGTERM, so that no incomplete file is left.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    thread,
};

use anyhow::Context;
use tokio::runtime::Builder;
use vmcell_cli::signals::Signals;

/// Receives SIGINT and SIGTERM, which have no other effect once this exists.
pub(crate) struct Interrupt(Arc<AtomicU8>);

impl Interrupt {
    pub(crate) fn watch() -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot wait for signals")?;
        let entered = runtime.enter();
        let mut signals = Signals::new().context("cannot wait for signals")?;
        drop(entered);
        let code = Arc::new(AtomicU8::new(0));
        let received = Arc::clone(&code);
        thread::spawn(move || received.store(runtime.block_on(signals.next()), Ordering::Relaxed));
        Ok(Self(code))
    }

    /// Returns the exit code for the signal that was received, if any.
    pub(crate) fn code(&self) -> Option<u8> {
        Some(self.0.load(Ordering::Relaxed)).filter(|code| *code != 0)
    }
}
