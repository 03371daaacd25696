//! Policies that change, limit and are shown.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{io::AsyncReadExt, net::TcpListener, time::timeout};
use vmcell::{
    Command, Error, Vm,
    network::{
        ConnectionEnd, Decision, NetworkEvent, NetworkLimits, NetworkObserver, NetworkPolicy,
    },
    port::PortError,
};

use super::{WebServer, fetch, policy_for, shell, vm_with};
use crate::{builder, start};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_change_takes_effect_at_once_and_ends_what_it_does_not_allow() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let vm = vm_with(policy_for(port)).start().await.unwrap();
    let client = Command::shell(format!("nc web.test {port}"));
    let client = vm.spawn(client).await.unwrap();
    let (mut connection, _) = timeout(TEST_TIMEOUT, listener.accept())
        .await
        .unwrap()
        .unwrap();
    let mut log = vm.network_log().await.unwrap();
    log.next().await.unwrap();
    assert_eq!(vm.network_status().await.unwrap().connections.len(), 1);
    // Another policy that allows it does not end it.
    let network = vm.network().unwrap();
    network.set_policy(policy_for(port).allow("more.test").unwrap());
    // Decided with the new policy, so the open connection has seen it, too.
    assert!(fetch(&vm, "web.test", 1).await.denials.len() == 1);
    assert_eq!(vm.network_status().await.unwrap().connections.len(), 1);
    network.set_policy(NetworkPolicy::rules());
    let ended = timeout(TEST_TIMEOUT, connection.read_u8()).await.unwrap();
    assert!(ended.is_err());
    timeout(TEST_TIMEOUT, client.wait()).await.unwrap().unwrap();
    let status = vm.network_status().await.unwrap();
    assert!(status.connections.is_empty());
    let page = fetch(&vm, "web.test", port).await;
    assert_eq!(page.denials, ["web.test"]);
    // A program may still know its address.
    let page = fetch(&vm, "198.18.1.1", port).await;
    assert!(!page.is_there, "{page:?}");
    assert_eq!(page.denials, [format!("web.test:{port}")]);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_network_can_be_given_to_a_vm_that_had_none_and_taken_again() {
    let server = WebServer::start().await;
    let vm = start().await;
    assert!(!fetch(&vm, "web.test", server.port()).await.is_there);
    let network = vm.network().unwrap();
    network.set_policy(policy_for(server.port()));
    let mut page = fetch(&vm, "web.test", server.port()).await;
    while !page.is_there {
        page = fetch(&vm, "web.test", server.port()).await;
    }
    assert!(page.is_there);
    network.set_policy(NetworkPolicy::off());
    assert!(!fetch(&vm, "web.test", server.port()).await.is_there);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn limits_hold() {
    let server = WebServer::start().await;
    let limits = NetworkLimits::new().per_minute(3);
    let vm = vm_with(policy_for(server.port()).limits(limits));
    let vm = vm.start().await.unwrap();
    for number in 1..=5 {
        let page = fetch(&vm, "web.test", server.port()).await;
        assert_eq!(page.is_there, number <= 3, "{number}: {page:?}");
    }
    assert_eq!(server.clients(), 3);
    vm.network()
        .unwrap()
        .set_policy(policy_for(server.port()).limits(NetworkLimits::new().bytes(10)));
    let page = fetch(&vm, "web.test", server.port()).await;
    assert!(!page.is_there, "{page:?}");
    assert_eq!(server.clients(), 3);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn ports_are_published_only_if_the_policy_says_so() {
    for (policy, expected) in [
        (NetworkPolicy::off(), false),
        (NetworkPolicy::rules(), false),
        (NetworkPolicy::rules().published_ports(true), true),
    ] {
        let vm = builder().network(policy).start().await.unwrap();
        let visitor = Vm::attach(vm.id()).await.unwrap();
        for vm in [&vm, &visitor] {
            match vm.ports().publish(80).await {
                Ok(_) => assert!(expected),
                Err(error) => {
                    assert!(!expected);
                    assert!(matches!(error, Error::Port(PortError::NotAllowed)));
                    let text = error.to_string();
                    assert!(text.contains("egress+published-ports"), "{text}");
                }
            }
        }
        vm.kill().await.unwrap();
    }
}

/// Remembers what it is told.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Vec<String>>>);

impl NetworkObserver for Memory {
    fn decided(&self, decision: &Decision) {
        let text = format!("{} {}", decision.wanted, decision.verdict);
        self.0.lock().unwrap().push(text);
    }

    fn ended(&self, connection: &ConnectionEnd) {
        let text = format!("{} ended", connection.number);
        self.0.lock().unwrap().push(text);
    }
}

#[tokio::test]
async fn everything_is_told_to_an_observer_and_to_attached_programs() {
    let server = WebServer::start().await;
    let port = server.port();
    let memory = Memory::default();
    let vm = vm_with(policy_for(port))
        .network_observer(memory.clone())
        .start()
        .await
        .unwrap();
    let visitor = Vm::attach(vm.id()).await.unwrap();
    let mut log = visitor.network_log().await.unwrap();
    fetch(&vm, "web.test", port).await;
    shell(&vm, "nslookup other.test").await;
    let mut events = Vec::new();
    while events.len() < 3 {
        events.push(timeout(TEST_TIMEOUT, log.next()).await.unwrap().unwrap());
    }
    assert!(matches!(&events[1], NetworkEvent::Ended(end) if end.number == 1));
    let told = memory.0.lock().unwrap().clone();
    assert_eq!(
        told[..2],
        [
            format!("web.test:{port} allowed by web.test:{port}"),
            "1 ended".to_owned()
        ]
    );
    assert_eq!(told[2], "other.test denied: no rule allows it");
    let status = visitor.network_status().await.unwrap();
    assert_eq!(status.allow, [format!("web.test:{port}")]);
    assert!(matches!(visitor.network(), Err(Error::NotOwner { .. })));
    // Who attaches later gets what has happened.
    let mut log = visitor.network_log().await.unwrap();
    assert!(log.take_recent().len() >= 3);
    vm.kill().await.unwrap();
    assert_eq!(timeout(TEST_TIMEOUT, log.next()).await.unwrap(), None);
}
