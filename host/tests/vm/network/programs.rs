//! Programs that use the network as usual.

use std::net::Ipv4Addr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use vmcell::network::{NetworkEvent, NetworkPolicy, Verdict};

use super::{FixedResolver, RecordingDialer, WebServer, fetch, policy_for, shell, vm_with};
use crate::{builder, start};

#[tokio::test]
async fn an_allowed_name_is_reached_and_its_neighbour_is_not() {
    let server = WebServer::start().await;
    let port = server.port();
    let vm = vm_with(policy_for(port)).start().await.unwrap();
    let page = fetch(&vm, "web.test", port).await;
    assert!(page.is_there, "{page:?}");
    assert!(page.denials.is_empty(), "{page:?}");

    let page = fetch(&vm, "other.test", port).await;
    assert!(!page.is_there);
    let stderr = page.output.stderr_text();
    assert!(stderr.contains("bad address"), "{stderr}");
    assert_eq!(page.denials, ["other.test"]);
    // Another port of an allowed name.
    let page = fetch(&vm, "web.test", 1).await;
    assert!(!page.is_there);
    assert_eq!(page.denials, ["web.test:1"]);
    let console = vm.console().unwrap();
    let expected = "vmcell: not allowed by policy: web.test:1";
    assert!(console.contains(expected), "{console}");
    assert_eq!(server.clients(), 1);

    let status = vm.network_status().await.unwrap();
    assert_eq!(status.policy, "egress");
    assert_eq!(status.allow, [format!("web.test:{port}")]);
    assert!(status.totals.sent > 0 && status.totals.received > 6);
    let mut log = vm.network_log().await.unwrap();
    let recent = log.take_recent();
    let denied = recent.iter().filter_map(|event| match event {
        NetworkEvent::Decided(decision) if decision.is_denied() => Some(decision),
        _ => None,
    });
    let denied: Vec<_> = denied.map(|decision| decision.wanted.to_string()).collect();
    assert_eq!(status.totals.denials, denied.len() as u64);
    // On a busy machine the resolver of the guest asks again before it has its answer.
    let (last, names) = denied.split_last().unwrap();
    assert_eq!(last, "web.test:1");
    assert!(!names.is_empty() && names.iter().all(|name| name == "other.test"));
    let allowed = recent.iter().find_map(|event| match event {
        NetworkEvent::Decided(decision) if !decision.is_denied() => Some(decision),
        _ => None,
    });
    let allowed = allowed.unwrap();
    assert_eq!(allowed.wanted.to_string(), format!("web.test:{port}"));
    let expected = Verdict::Allowed {
        rule: Some(format!("web.test:{port}")),
        address: Some(Ipv4Addr::LOCALHOST.into()),
    };
    assert_eq!(allowed.verdict, expected);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn without_a_policy_there_is_nothing_of_a_network() {
    let vm = start().await;
    for (line, expected) in [
        ("wc -l </proc/net/route", "1\n"),
        ("grep -c . /proc/net/tcp", "1\n"),
        ("mount | grep -c resolv", "0\n"),
    ] {
        let output = shell(&vm, line).await;
        assert_eq!(output.stdout_text(), expected, "{line}");
    }
    let page = fetch(&vm, "198.18.0.1", 80).await;
    let stderr = page.output.stderr_text();
    assert!(stderr.contains("unreachable"), "{stderr}");
    let status = vm.network_status().await.unwrap();
    assert_eq!(
        (status.policy.as_str(), status.totals.decisions),
        ("off", 0)
    );
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn any_resolver_that_a_program_knows_gives_the_same_answers() {
    let policy = policy_for(80);
    let vm = vm_with(policy).start().await.unwrap();
    let address = shell(&vm, "nslookup web.test | tail -n +3 | grep -o '198[.0-9]*'").await;
    let address = address.stdout_text();
    assert!(address.starts_with("198."), "{address}");
    for resolver in ["8.8.8.8", "1.1.1.1", "2606:4700::1111", ""] {
        let line = format!("nslookup web.test {resolver} | tail -n +3 | grep -o '198[.0-9]*'");
        let output = shell(&vm, &line).await;
        assert_eq!(output.stdout_text(), address, "{resolver}: {output:?}");
        let output = shell(&vm, &format!("nslookup other.test {resolver}")).await;
        assert!(output.stdout_text().contains("NXDOMAIN"), "{output:?}");
    }
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn services_of_the_guest_are_not_disturbed() {
    let server = WebServer::start().await;
    let port = server.port();
    let vm = vm_with(policy_for(port)).start().await.unwrap();
    // On the same port, on all addresses of the guest.
    let script = format!(
        "nc -ll -p {port} -e echo own & \
         while ! nc 127.0.0.1 {port} </dev/null; do :; done; \
         printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc web.test {port} | tail -n 1; \
         nc 127.0.0.1 {port} </dev/null; nc ::1 {port} </dev/null"
    );
    let output = shell(&vm, &script).await;
    assert_eq!(output.stdout_text(), "own\nhello\nown\nown\n", "{output:?}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn with_all_public_hosts_allowed_addresses_and_names_are_reached() {
    let server = WebServer::start().await;
    let dialer = RecordingDialer::to(server.address);
    let vm = builder()
        .network(NetworkPolicy::public().deny("9.9.9.9").unwrap())
        .resolver(FixedResolver::to(&["93.184.216.34"]))
        .dialer(dialer.clone())
        .start()
        .await
        .unwrap();
    for host in ["1.1.1.1", "2606:4700::1111", "any.test"] {
        let page = fetch(&vm, host, 8080).await;
        assert!(page.is_there, "{host}: {page:?}");
    }
    let page = fetch(&vm, "9.9.9.9", 80).await;
    assert!(!page.is_there);
    assert_eq!(page.denials, ["9.9.9.9:80"]);
    let dialled = dialer.dialled();
    let expected = ["1.1.1.1", "2606:4700::1111", "93.184.216.34"];
    assert_eq!(
        dialled,
        expected.map(|address| (address.parse().unwrap(), 8080))
    );
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn what_a_program_sends_before_the_connection_is_made_arrives() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let vm = vm_with(policy_for(port)).start().await.unwrap();
    let talking = async {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        client
            .write_all(text.to_uppercase().as_bytes())
            .await
            .unwrap();
    };
    let line = format!("echo hello | nc web.test {port}");
    let (output, ()) = tokio::join!(shell(&vm, &line), talking);
    assert_eq!(output.stdout_text(), "HELLO\n", "{output:?}");
    vm.kill().await.unwrap();
}
