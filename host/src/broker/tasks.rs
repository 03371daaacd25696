use std::sync::{Arc, Mutex, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// The tasks of one connection, which end with it.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

/// Ends the tasks of a connection when it is dropped.
pub(super) struct EndTasks(pub(super) Tasks);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

impl Drop for EndTasks {
    fn drop(&mut self) {
        let mut tasks = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.abort_all();
    }
}
