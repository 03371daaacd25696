//! What programs of a guest reach by name, and what they do not.

mod attacks;
mod denials;
mod names;
mod policies;
mod programs;
mod proxy;
mod streams;
mod tools;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};
use vmcell::{
    Command, Output, Vm, VmBuilder,
    network::{
        BoxFuture, Destination, Dialer, DirectDialer, HostName, NetworkPolicy, Resolver, Upstream,
    },
};

use crate::{builder, builder_with_link};

/// A web server on the loopback of this machine. It counts its clients.
pub(crate) struct WebServer {
    pub(crate) address: SocketAddr,
    clients: Arc<Mutex<usize>>,
    task: AbortHandle,
}

impl WebServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let clients = Arc::new(Mutex::new(0));
        let count = clients.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                *count.lock().unwrap() += 1;
                tokio::spawn(serve(client));
            }
        });
        Self {
            address,
            clients,
            task: task.abort_handle(),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn clients(&self) -> usize {
        *self.clients.lock().unwrap()
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut client: TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(client.read_u8().await?);
    }
    let answer = "HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}

/// Returns a policy with which `web.test` is this machine, and may be reached on a port.
fn policy_for(port: u16) -> NetworkPolicy {
    let policy = NetworkPolicy::rules().allow(&format!("web.test:{port}"));
    let policy = policy.unwrap().host("web.test", Ipv4Addr::LOCALHOST);
    policy.unwrap()
}

fn vm_with(policy: NetworkPolicy) -> VmBuilder {
    builder().network(policy)
}

/// Returns a builder for the environment with Python.
fn debian_with(policy: NetworkPolicy) -> VmBuilder {
    let image = vmcell_rootfs::recipe::debian().cached().unwrap().path;
    builder_with_link().image(image).network(policy)
}

async fn shell(vm: &Vm, line: &str) -> Output {
    let command = Command::shell(line).timeout(Duration::from_secs(120));
    vm.exec_command(command).await.unwrap()
}

/// Runs a program in Python with arguments in the guest.
async fn python(vm: &Vm, program: &str, arguments: &[String]) -> Output {
    let command = Command::from_argv(["python3", "-c", program]).args(arguments);
    let command = command.timeout(Duration::from_secs(240));
    vm.exec_command(command).await.unwrap()
}

/// Fetches a page in the guest. (The wget of a static busybox crashes on host names.)
async fn fetch(vm: &Vm, host: &str, port: u16) -> Page {
    let request = r"printf 'GET / HTTP/1.0\r\n\r\n'";
    let output = shell(vm, &format!("{request} | nc {host} {port}")).await;
    Page {
        is_there: output.stdout_text().ends_with("\r\n\r\nhello\n"),
        denials: output.network_denials.clone(),
        output,
    }
}

/// What a program in the guest got of a page.
#[derive(Debug)]
struct Page {
    is_there: bool,
    denials: Vec<String>,
    output: Output,
}

/// Resolves every name to the same addresses, and remembers the names.
#[derive(Clone, Debug, Default)]
pub(crate) struct FixedResolver {
    addresses: Vec<IpAddr>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl FixedResolver {
    pub(crate) fn to(addresses: &[&str]) -> Self {
        Self {
            addresses: addresses.iter().map(|it| it.parse().unwrap()).collect(),
            asked: Arc::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for FixedResolver {
    fn resolve<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_string());
        Box::pin(async { Ok(self.addresses.clone()) })
    }
}

/// Remembers what it is asked to connect to, and connects to a server of this machine in
/// its place.
#[derive(Clone, Debug)]
pub(crate) struct RecordingDialer {
    server: SocketAddr,
    dialled: Arc<Mutex<Vec<Destination>>>,
}

impl RecordingDialer {
    pub(crate) fn to(server: SocketAddr) -> Self {
        Self {
            server,
            dialled: Arc::default(),
        }
    }

    fn dialled(&self) -> Vec<(IpAddr, u16)> {
        let dialled = self.dialled.lock().unwrap();
        dialled.iter().map(|it| (it.address, it.port)).collect()
    }
}

impl Dialer for RecordingDialer {
    fn dial<'a>(&'a self, host: &'a Destination) -> BoxFuture<'a, io::Result<Upstream>> {
        self.dialled.lock().unwrap().push(host.clone());
        let mut host = host.clone();
        host.address = self.server.ip();
        host.port = self.server.port();
        Box::pin(async move { DirectDialer.dial(&host).await })
    }
}
