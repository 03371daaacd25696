//! Finding VMs in the system's list of sockets.

use std::os::{
    linux::net::SocketAddrExt as _,
    unix::net::{SocketAddr, UnixListener, UnixStream},
};

use super::{
    VmName,
    listener::{ConnectOutcome, Listener, by_connecting, by_owner},
};

fn name(test: &str) -> VmName {
    VmName::new(&format!("{test}-{}", std::process::id())).unwrap()
}

fn listen(name: &VmName) -> UnixListener {
    let address = SocketAddr::from_abstract_name(name.address()).unwrap();
    UnixListener::bind_addr(&address).unwrap()
}

/// By a kernel that reports owners, and by one that does not.
#[test]
fn a_listener_of_our_own_user_is_listed_once_in_either_way() {
    let name = name("listed");
    let listener = listen(&name);
    let address = SocketAddr::from_abstract_name(name.address()).unwrap();
    let _client = UnixStream::connect_addr(&address).unwrap();
    let _accepted = listener.accept().unwrap();
    for list in [by_owner, by_connecting] {
        let mut listeners = list().unwrap();
        listeners.retain(|listener| listener.name == name);
        assert_eq!(listeners, [Listener::at_default_address(&name)]);
    }
    drop(listener);
    for list in [by_owner, by_connecting] {
        let listeners = list().unwrap();
        assert!(listeners.iter().all(|listener| listener.name != name));
    }
}

#[tokio::test]
async fn connecting_finds_nobody_or_who_it_is() {
    let name = name("connected");
    let found = Listener::at_default_address(&name).connect().unwrap();
    assert!(matches!(found, ConnectOutcome::NotOurs));
    let _listener = listen(&name);
    let found = Listener::at_default_address(&name).connect().unwrap();
    let ConnectOutcome::Connected(connection) = found else {
        panic!("not connected");
    };
    assert_eq!(connection.owner, Some(std::process::id()));
}
