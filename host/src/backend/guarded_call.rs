//! Calls into backends, which may be third-party code: they may block, and they
//! may panic.

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

/// How long [`Backend::health`] may take.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// Calls [`Backend::health`] on a separate thread, with a timeout.
///
/// Cancel safe.
pub(super) async fn health(backend: &Arc<dyn Backend>) -> BackendHealth {
    health_within(backend, HEALTH_TIMEOUT).await
}

async fn health_within(backend: &Arc<dyn Backend>, limit: Duration) -> BackendHealth {
    let (sender, receiver) = oneshot::channel();
    let called = backend.clone();
    // Not a thread of the runtime, whose shutdown would wait for it.
    let thread = thread::Builder::new()
        .name("vmcell-health".to_owned())
        .spawn(move || {
            // After a panic only the name of the backend is used.
            let health = catch_unwind(AssertUnwindSafe(|| called.health()));
            // It fails if nobody waits any more.
            let _ = sender.send(health);
        });
    if let Err(error) = thread {
        return BackendHealth::unavailable(format!("it cannot be called: {error}"));
    }
    match timeout(limit, receiver).await {
        Ok(Ok(Ok(health))) => health,
        Ok(Ok(Err(panic))) => {
            BackendHealth::unavailable(format!("it panicked: {}", panic_text(&*panic)))
        }
        // Its thread always answers.
        Ok(Err(_)) => BackendHealth::unavailable("it cannot be called"),
        Err(_) => BackendHealth::unavailable(format!(
            "its health check did not return within {} s",
            limit.as_secs_f32()
        )),
    }
}

/// Converts the error of a launch task.
pub(crate) fn launch_error(backend: &str, error: JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => Error::BackendPanicked {
            name: backend.to_owned(),
            message: panic_text(&*panic),
        },
        Err(_) => Error::Busy("the runtime is shutting down: no VM can be started"),
    }
}

/// Returns the message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => "no message".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::backend::{Launched, Machine};

    /// A backend whose health is the result of a function.
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

    /// Runs on one thread, which must stay free for other tasks meanwhile.
    #[tokio::test]
    async fn a_backend_that_takes_long_holds_up_no_task() {
        let (sender, receiver) = mpsc::channel::<()>();
        let receiver = std::sync::Mutex::new(receiver);
        let slow = fake(move || {
            // Blocks until another task of the same thread sends.
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
