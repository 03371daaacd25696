use std::sync::Arc;

use tokio::{io::AsyncWriteExt, net::unix::OwnedWriteHalf};

use super::{Lost, Shared};

/// Writes to the link whatever is added, until that fails.
pub(super) async fn run(mut link: OwnedWriteHalf, shared: Arc<Shared>) {
    loop {
        for piece in shared.outgoing.take().await {
            if let Err(error) = link.write_all(&piece).await {
                shared.fail(Lost::from(error));
                return;
            }
        }
    }
}
