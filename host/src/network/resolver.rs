use std::{fmt, future::Future, io, net::IpAddr, pin::Pin};

use super::HostName;

/// A future that a [`Resolver`] or a [`Dialer`](super::Dialer) returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Finds the addresses of a name that a policy allows.
///
/// What it returns is checked before anything is connected to it.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Returns the addresses of a host, the best first. It is called once for each
    /// connection.
    ///
    /// # Errors
    /// There is no such host, or its addresses cannot be found out now.
    fn resolve<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of this system: getaddrinfo(3).
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // With a dot at its end, no domain of this machine is added to the name.
            let name = format!("{name}.");
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
