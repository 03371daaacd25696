//! Services of workspaces, and their ports.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    time::Duration,
};

use tokio::time::timeout;
use vmcell::{
    Command, Error,
    network::NetworkPolicy,
    port::PortError,
    service::{Probe, ServiceSpec},
    workspace::{Workspace, WorkspaceState},
};

use crate::{Store, new, shell};

/// How long what does not take long may take.
const ENOUGH: Duration = Duration::from_secs(60);

/// A server of the files of a workspace.
fn web() -> ServiceSpec {
    let httpd = ["httpd", "-f", "-p", "8080", "-h", "/workspace"];
    ServiceSpec::new(Command::from_argv(httpd)).ready(Probe::tcp(8080))
}

/// Returns what a server on a port of this machine answers. Fails if there is none.
fn get(port: u16) -> std::io::Result<String> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    connection.write_all(b"GET /page HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Starts a service, and returns its port of this machine. This program is not attached any
/// more then.
async fn start(store: &Store, workspace: &Workspace, spec: ServiceSpec) -> u16 {
    let workspace = store.workspaces.get(workspace.id()).await.unwrap();
    let vm = workspace.vm().await.unwrap();
    let service = vm.services().start("web", spec).await.unwrap();
    let status = service.ready().await.unwrap();
    let [port] = status.published[..] else {
        panic!("{status:?}");
    };
    assert_eq!(port.guest, 8080);
    port.host.unwrap()
}

#[tokio::test]
async fn the_ports_of_services_are_open_as_long_as_the_services_run() {
    let store = Store::kept();
    let policy = NetworkPolicy::off().published_ports(true);
    let workspace = store.workspaces.create(new().network(policy)).await;
    let workspace = workspace.unwrap();
    shell(&workspace, "echo hello > page").await;
    let port = start(&store, &workspace, web().publish(8080)).await;
    assert!(get(port).unwrap().ends_with("hello\n"));
    let services = workspace.info().await.unwrap().services.unwrap();
    assert_eq!((services.total, services.running), (1, 1));

    // They are open again after a pause.
    workspace.pause().await.unwrap();
    get(port).unwrap_err();
    let services = workspace.info().await.unwrap().services.unwrap();
    assert_eq!((services.total, services.running), (1, 0));
    let vm = workspace.start().await.unwrap();
    assert!(get(port).unwrap().ends_with("hello\n"));
    let list = vm.services().list().await.unwrap();
    assert_eq!(list[0].published[0].host, Some(port));

    // Unless another program has taken the port meanwhile.
    workspace.pause().await.unwrap();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let vm = workspace.start().await.unwrap();
    let web_service = vm.services().get("web").await.unwrap().unwrap();
    let other = web_service.status().await.unwrap().published[0];
    let other = other.host.unwrap();
    assert_ne!(other, port);
    assert!(get(other).unwrap().ends_with("hello\n"));
    drop(taken);

    // A client that stops it finds the port free.
    web_service.stop().await.unwrap();
    TcpListener::bind((Ipv4Addr::LOCALHOST, other)).unwrap();
    let services = workspace.info().await.unwrap().services.unwrap();
    assert_eq!((services.total, services.running), (1, 0));
    let port = start(&store, &workspace, web().publish((other, 8080))).await;
    assert_eq!(port, other);

    // And so they are when it ends by itself.
    let status = web_service.status().await.unwrap();
    shell(&workspace, &format!("kill {}", status.pid.unwrap())).await;
    web_service.wait().await.unwrap();
    // The keeper learns it at the same time.
    let freeing = async {
        while TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(ENOUGH, freeing).await.unwrap();
    workspace.stop().await.unwrap();
    let services = workspace.info().await.unwrap().services.unwrap();
    assert_eq!((services.total, services.running), (0, 0));
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_service_whose_port_cannot_be_published_is_not_started() {
    let store = Store::kept();
    let policy = NetworkPolicy::off().published_ports(true);
    let workspace = store.workspaces.create(new().network(policy)).await;
    let workspace = workspace.unwrap();
    let services = workspace.vm().await.unwrap().services();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = services.start("web", web().publish((port, 8080))).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, Error::Port(PortError::HostPortTaken { port: it }) if it == port),
        "{error}"
    );
    // The other port is free again.
    let two = web().publish((port, 8080)).publish(8081);
    services.start("web", two).await.unwrap_err();
    let error = services.start("web", web().publish(0)).await.unwrap_err();
    assert_eq!(error.code(), "bad-port-mapping");
    assert!(services.list().await.unwrap().is_empty());
    // Nor are ports published for one that cannot be started.
    drop(taken);
    let absent = ServiceSpec::new(Command::new("does-not-exist")).publish((port, 8080));
    services.start("absent", absent).await.unwrap_err();
    let web_service = services.start("web", web().publish((port, 8080))).await;
    web_service.unwrap().ready().await.unwrap();
    // The same one has its port already.
    let again = services.ensure_started("web", web().publish((port, 8080)));
    let again = again.await.unwrap().status().await.unwrap();
    assert_eq!(again.published.len(), 1);
    workspace.delete().await.unwrap();
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();

    let off = store.workspaces.create(new()).await.unwrap();
    let services = off.vm().await.unwrap().services();
    let error = services.start("web", web().publish(8080)).await;
    let error = error.unwrap_err();
    assert!(
        error.to_string().contains("egress+published-ports"),
        "{error}"
    );
    off.delete().await.unwrap();
}

#[tokio::test]
async fn somebody_who_only_looks_does_not_use_a_workspace() {
    let store = Store::kept();
    let new = new().pause_when_idle(Duration::from_secs(3));
    let workspace = store.workspaces.create(new).await.unwrap();
    // Far more often than it would have to be used.
    let looking = async {
        loop {
            let list = store.workspaces.list().await.unwrap();
            match list[0].state {
                WorkspaceState::Running => tokio::task::yield_now().await,
                state => break assert_eq!(state, WorkspaceState::Paused),
            }
        }
    };
    timeout(ENOUGH, looking).await.unwrap();
    workspace.delete().await.unwrap();
}
