use std::{fmt, io, net::IpAddr, net::SocketAddr};

use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig},
    net::runtime::TokioRuntimeProvider,
};

use super::{HostName, Resolver, resolver::BoxFuture};

/// A resolver that asks DNS servers of its own, and nothing of this system: neither its
/// servers nor `/etc/hosts`. It keeps answers as long as they say.
///
/// ```
/// use vmcell::{Vm, network::{DnsResolver, NetworkPolicy}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let resolver = DnsResolver::new(["9.9.9.9:53".parse()?, "[2620:fe::fe]:53".parse()?])?;
/// let vm = Vm::builder()
///     .network(NetworkPolicy::rules().allow("pypi.org:443")?)
///     .resolver(resolver);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DnsResolver(TokioResolver);

impl DnsResolver {
    /// Creates it from the addresses of DNS servers, which are asked over UDP and TCP.
    ///
    /// # Errors
    /// There is no server.
    pub fn new(servers: impl IntoIterator<Item = SocketAddr>) -> io::Result<Self> {
        let servers: Vec<_> = servers.into_iter().map(server).collect();
        if servers.is_empty() {
            let error = "a resolver needs the address of a DNS server";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let config = ResolverConfig::from_name_servers(servers);
        let provider = TokioRuntimeProvider::default();
        let mut builder = TokioResolver::builder_with_config(config, provider);
        builder.options_mut().use_hosts_file = ResolveHosts::Never;
        Ok(Self(builder.build().map_err(io::Error::other)?))
    }
}

fn server(address: SocketAddr) -> NameServerConfig {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = address.port();
    }
    NameServerConfig::new(address.ip(), true, connections)
}

impl Resolver for DnsResolver {
    fn resolve<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // With a dot at its end, no domain is added to the name.
            let found = self.0.lookup_ip(format!("{name}.")).await;
            Ok(found.map_err(io::Error::other)?.iter().collect())
        })
    }
}

impl fmt::Debug for DnsResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DnsResolver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UdpSocket;

    use super::*;

    /// Answers each query for an IPv4 address with 192.0.2.7, and says of all other
    /// records that there are none. Returns the queries.
    async fn serve(socket: UdpSocket) {
        let mut packet = [0; 512];
        loop {
            let (length, client) = socket.recv_from(&mut packet).await.unwrap();
            let name_end = 12
                + packet[12..length]
                    .iter()
                    .position(|byte| *byte == 0)
                    .unwrap();
            let question_end = name_end + 5;
            let is_a = packet[name_end + 1..name_end + 3] == [0, 1];
            let mut answer = packet[..question_end].to_vec();
            // An answer from a recursive resolver, to one question, without other records.
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
            if is_a {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7]);
            }
            socket.send_to(&answer, client).await.unwrap();
        }
    }

    #[tokio::test]
    async fn its_own_servers_are_asked() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let resolver = DnsResolver::new([socket.local_addr().unwrap()]).unwrap();
        let server = tokio::spawn(serve(socket));
        // Those of /etc/hosts, too.
        for name in ["index.test", "localhost.test"] {
            let found = resolver.resolve(&HostName::new(name).unwrap()).await;
            assert_eq!(found.unwrap(), [IpAddr::from([192, 0, 2, 7])]);
        }
        server.abort();
    }

    #[test]
    fn a_resolver_without_servers_is_refused() {
        let error = DnsResolver::new([]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
