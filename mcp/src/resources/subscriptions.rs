use std::{
    collections::HashMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::SubscriptionContext,
};
use tokio::task::{JoinHandle, JoinSet};
use vmcell::files::{Watch, Watcher};

use super::{files, not_found, uri::Uri};
use crate::{failure::Failure, shared::Shared};

/// The resources that a client wants to hear of. They end with its session.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<String, Subscription>>);

/// A task that watches a file, which ends when this is dropped.
struct Subscription(JoinHandle<()>);

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How many resources a client may watch.
const MAX: usize = 100;

impl Subscriptions {
    pub(crate) async fn add(
        &self,
        shared: &Shared,
        peer: Peer<RoleServer>,
        uri: String,
    ) -> Result<(), ErrorData> {
        if self.lock().len() >= MAX {
            return Err(too_many());
        }
        let mut watcher = watch(shared, &uri).await.map_err(not_found)?;
        let task = tokio::spawn({
            let uri = uri.clone();
            async move {
                // It ends with the VM, and when the file is removed.
                while let Ok(Some(_)) = watcher.next().await {
                    let updated = ResourceUpdatedNotificationParam::new(uri.clone());
                    if peer.notify_resource_updated(updated).await.is_err() {
                        return;
                    }
                }
            }
        });
        self.lock().insert(uri, Subscription(task));
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.lock().remove(uri);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Subscription>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what can be watched of what a client wants to hear of.
pub(crate) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let files = uris.filter(|uri| matches!(Uri::parse(uri), Some(Uri::File { .. })));
    SubscriptionFilter::builder()
        .resource_subscriptions(files)
        .build()
}

/// Tells a client of changes until it cancels the request, or until all that it watches is
/// gone.
pub(crate) async fn listen(
    shared: &Shared,
    context: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let uris = context.accepted().resource_subscriptions.as_deref();
    let uris = uris.unwrap_or_default();
    if uris.len() > MAX {
        return Err(too_many());
    }
    // Its tasks end when it is dropped.
    let mut watching = JoinSet::new();
    for uri in uris {
        let mut watcher = watch(shared, uri).await.map_err(not_found)?;
        let (sink, uri) = (context.sink().clone(), uri.clone());
        watching.spawn(async move {
            while let Ok(Some(_)) = watcher.next().await {
                if sink.notify_resource_updated(&uri).await.is_err() {
                    return;
                }
            }
        });
    }
    tokio::select! {
        () = context.cancelled() => {}
        () = async { while watching.join_next().await.is_some() {} } => {}
    }
    Ok(())
}

fn too_many() -> ErrorData {
    let message = format!("more than {MAX} resources cannot be watched");
    ErrorData::invalid_request(message, None)
}

async fn watch(shared: &Shared, uri: &str) -> Result<Watcher, Failure> {
    let Some(Uri::File { workspace, path }) = Uri::parse(uri) else {
        return Err(Failure::invalid(format!(
            "{uri:?} cannot be watched: files can, as vmcell://WORKSPACE/PATH"
        )));
    };
    let vm = shared.workspace(&workspace).await?.vm().await?;
    let path = Path::new(OsStr::from_bytes(&path));
    Ok(files(&vm).watch(path, Watch::new().recursive()).await?)
}
