//! Calls into backends, whose code may be somebody else's: it may take long, and
//! it may panic.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::{sync::oneshot, task::JoinError, time::timeout};

use super::{Backend, BackendHealth};
use crate::error::Error;

/// How long a backend may take to say whether it can run a VM.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks a backend whether it can run a VM.
///
/// Cancel safe.
pub(super) async fn health(backend: &Arc<dyn Backend>) -> BackendHealth {
    health_within(backend, HEALTH_TIMEOUT).await
}

async fn health_within(backend: &Arc<dyn Backend>, limit: Duration) -> BackendHealth {
    let (answer, answered) = oneshot::channel();
    let asked = backend.clone();
    // Not a thread of the runtime, whose end would wait for it.
    let asking = thread::Builder::new()
        .name("vmcell-health".to_owned())
        .spawn(move || {
            // Nothing of the backend is used after a panic but its name.
            let health = catch_unwind(AssertUnwindSafe(|| asked.health()));
            // It fails if nobody waits any more.
            let _ = answer.send(health);
        });
    if let Err(error) = asking {
        return BackendHealth::unavailable(format!("it cannot be asked: {error}"));
    }
    match timeout(limit, answered).await {
        Ok(Ok(Ok(health))) => health,
        Ok(Ok(Err(panic))) => {
            BackendHealth::unavailable(format!("it panicked: {}", panic_text(&*panic)))
        }
        // Its thread always answers.
        Ok(Err(_)) => BackendHealth::unavailable("it cannot be asked"),
        Err(_) => BackendHealth::unavailable(format!(
            "it does not say within {} s whether it can run a VM",
            limit.as_secs_f32()
        )),
    }
}

/// Why a launch has no result.
pub(crate) fn launch_error(backend: &str, error: JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => Error::BackendPanicked {
            name: backend.to_owned(),
            message: panic_text(&*panic),
        },
        Err(_) => Error::Busy("the runtime is shutting down: no VM can be started"),
    }
}

/// What a panic says.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => "it does not say why".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::backend::{Launched, Machine};

    /// One whose health is what a function makes of it.
    struct Fake<F>(F);

    impl<F> std::fmt::Debug for Fake<F> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Fake")
        }
    }

    impl<F: Fn() -> BackendHealth + Send + Sync> Backend for Fake<F> {
        fn name(&self) -> &str {
            "fake"
        }

        fn health(&self) -> BackendHealth {
            (self.0)()
        }

        fn launch(&self, _: Machine) -> Result<Launched, Error> {
            Err(Error::Busy("a fake"))
        }
    }

    fn fake(health: impl Fn() -> BackendHealth + Send + Sync + 'static) -> Arc<dyn Backend> {
        Arc::new(Fake(health))
    }

    /// On one thread, which must stay free for other tasks meanwhile.
    #[tokio::test]
    async fn a_backend_that_takes_long_holds_up_no_task() {
        let (sender, receiver) = mpsc::channel::<()>();
        let receiver = std::sync::Mutex::new(receiver);
        let slow = fake(move || {
            // Until another task of the same thread says so.
            receiver.lock().unwrap().recv().unwrap();
            BackendHealth::available("at last")
        });
        let other = async move { sender.send(()).unwrap() };
        let (health, ()) = tokio::join!(health(&slow), other);
        assert_eq!(health, BackendHealth::available("at last"));
    }

    #[tokio::test]
    async fn a_backend_that_never_answers_or_panics_is_unavailable() {
        let (_sender, receiver) = mpsc::channel::<()>();
        let receiver = std::sync::Mutex::new(receiver);
        let silent = fake(move || {
            let _ = receiver.lock().unwrap().recv();
            BackendHealth::available("never")
        });
        let health = health_within(&silent, Duration::from_millis(50)).await;
        assert!(!health.is_available);
        assert!(health.reason.contains("within 0.05 s"), "{health:?}");

        let panicking = fake(|| panic!("out of {}", "luck"));
        let health = super::health(&panicking).await;
        let expected = BackendHealth::unavailable("it panicked: out of luck");
        assert_eq!(health, expected);
    }
}
