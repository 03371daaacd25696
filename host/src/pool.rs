//! VMs that are kept ready.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::Notify,
    task::AbortHandle,
    time::{Instant, sleep_until},
};

use crate::{
    error::Error,
    template::Template,
    vm::{Vm, VmState},
};

/// Keeps VMs of a [template](crate::template) ready, and hands one out at once.
///
/// The VMs are paused: they use memory, and no processor. Each is handed out once; the
/// pool starts another one in its place, in the background. VMs that die in the pool
/// are replaced. Dropping the pool ends those that were not handed out.
///
/// ```no_run
/// # async fn example(template: vmcell::Template) -> Result<(), vmcell::Error> {
/// use vmcell::Pool;
///
/// let pool = Pool::builder(template).size(4).start();
/// let vm = pool.take().await?;
/// vm.exec(["true"]).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    filling: AbortHandle,
}

/// The configuration of a [`Pool`].
#[derive(Clone, Debug)]
#[must_use]
pub struct PoolBuilder {
    template: Template,
    size: usize,
    shrink_after: Option<Duration>,
}

#[derive(Debug)]
struct Shared {
    template: Template,
    ready: Mutex<Ready>,
    /// Tells the task that fills the pool that a VM was taken.
    taken: Notify,
    /// Tells those who wait that a VM was added, or that one could not be started.
    added: Notify,
}

#[derive(Debug)]
struct Ready {
    vms: VecDeque<Vm>,
    /// How many VMs are kept now.
    wanted: usize,
}

/// How long to wait after a VM could not be started.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl PoolBuilder {
    /// Sets how many VMs are kept ready; 2 by default.
    pub fn size(mut self, size: usize) -> Self {
        self.size = size;
        self
    }

    /// Ends one VM of the pool whenever none was taken for this long, until none is
    /// left. The pool is filled again as soon as one is taken. By default it does not
    /// shrink.
    pub fn shrink_after(mut self, idle: Duration) -> Self {
        self.shrink_after = Some(idle);
        self
    }

    /// Creates the pool, which is filled in the background. It needs the tokio runtime
    /// on which this is called.
    pub fn start(self) -> Pool {
        let shared = Arc::new(Shared {
            template: self.template,
            ready: Mutex::new(Ready {
                vms: VecDeque::new(),
                wanted: self.size,
            }),
            taken: Notify::new(),
            added: Notify::new(),
        });
        let filling = fill(Arc::downgrade(&shared), self.size, self.shrink_after);
        let filling = tokio::spawn(filling).abort_handle();
        Pool { shared, filling }
    }
}

impl Pool {
    /// Returns a builder of a pool of VMs of this template.
    pub fn builder(template: Template) -> PoolBuilder {
        PoolBuilder {
            template,
            size: 2,
            shrink_after: None,
        }
    }

    /// Returns how many VMs are ready now.
    pub fn ready(&self) -> usize {
        self.shared.lock().vms.len()
    }

    /// Waits until as many VMs are ready as the pool is to keep.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn filled(&self) {
        loop {
            let added = self.shared.added.notified();
            {
                let ready = self.shared.lock();
                if ready.vms.len() >= ready.wanted {
                    return;
                }
            }
            added.await;
        }
    }

    /// Takes a VM out of the pool, which runs. If none is ready, starts one.
    ///
    /// # Errors
    /// Those of [`Template::start`], if none is ready.
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM that it would have returned ends.
    pub async fn take(&self) -> Result<Vm, Error> {
        while let Some(vm) = self.shared.pop() {
            match vm.resume().await {
                Ok(()) => return Ok(vm),
                Err(error) => tracing::debug!(%error, "a VM has ended in the pool"),
            }
        }
        self.shared.taken.notify_one();
        self.shared.template.start().await
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.filling.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self) -> Option<Vm> {
        let vm = self.lock().vms.pop_front()?;
        self.taken.notify_one();
        Some(vm)
    }

    /// Removes the VMs that have ended. Returns whether one is missing.
    fn lacks_one(&self) -> bool {
        let mut ready = self.lock();
        ready.vms.retain(|vm| vm.state() == VmState::Paused);
        ready.vms.len() < ready.wanted
    }
}

/// Fills the pool, until it is dropped.
async fn fill(shared: Weak<Shared>, size: usize, shrink_after: Option<Duration>) {
    let mut idle_since = Instant::now();
    while let Some(pool) = shared.upgrade() {
        if pool.lacks_one() {
            match ready_vm(&pool.template).await {
                Ok(vm) => pool.lock().vms.push_back(vm),
                Err(error) => {
                    tracing::warn!(%error, "a pool cannot start a VM");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
            pool.added.notify_waiters();
            continue;
        }
        let shrink_at = shrink_after.map(|idle| idle_since + idle);
        tokio::select! {
            () = pool.taken.notified() => {
                idle_since = Instant::now();
                pool.lock().wanted = size;
            }
            () = any_ended(&pool) => {}
            () = sleep_until_some(shrink_at) => {
                idle_since = Instant::now();
                let unused = {
                    let mut ready = pool.lock();
                    ready.wanted = ready.wanted.saturating_sub(1);
                    ready.vms.pop_back()
                };
                drop(unused);
            }
        }
    }
}

/// Starts a VM, runs a command in it so that the next one is faster, and pauses it.
async fn ready_vm(template: &Template) -> Result<Vm, Error> {
    let vm = template.start().await?;
    // Not every image has this program. The attempt is enough.
    let _ = vm.exec(["true"]).await;
    vm.pause().await?;
    Ok(vm)
}

/// Waits until a VM in the pool has ended.
async fn any_ended(pool: &Shared) {
    let vms: Vec<_> = pool.lock().vms.iter().map(Vm::watch_end).collect();
    let mut waiting = tokio::task::JoinSet::new();
    for end in vms {
        waiting.spawn(end);
    }
    match waiting.is_empty() {
        true => std::future::pending().await,
        false => drop(waiting.join_next().await),
    }
}

async fn sleep_until_some(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
