//! Programs that try to use up the host, or to have a network of their own.

use std::{
    net::Ipv4Addr,
    process,
    time::{Duration, Instant},
};

use tokio::time::timeout;
use vmcell::{
    Command, Vm,
    network::{NetworkLimits, NetworkPolicy},
};

use super::{
    FixedResolver, RecordingDialer, WebServer, debian_with, fetch, policy_for, python, shell,
    vm_with,
};
use crate::builder;

/// Makes connections as fast as it can.
const FLOOD: &str = include_str!("flood.py");

/// Set in the process that has the flood for itself.
const ALONE: &str = "VMCELL_TEST_ALONE";

const TEST_TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn a_flood_of_connections_gets_what_the_limit_allows_and_leaves_nothing() {
    // Its memory is measured, which the other tests of a process would change.
    let program = process::Command::new(std::env::current_exe().unwrap())
        .args(["network::attacks::the_host_of_a_flood", "--exact"])
        .arg("--nocapture")
        .env(ALONE, "1")
        .status();
    assert!(program.unwrap().success());
}

#[tokio::test]
async fn the_host_of_a_flood() {
    const ATTEMPTS: usize = 100_000;
    const SECONDS: usize = 25;
    const ALLOWED: usize = 500;
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let server = WebServer::start().await;
    let port = server.port();
    let dialer = RecordingDialer::to(server.address);
    let limits = NetworkLimits::new().per_minute(ALLOWED as u32);
    let vm = debian_with(policy_for(port).limits(limits)).dialer(dialer.clone());
    let vm = vm.vcpus(2).start().await.unwrap();
    let arguments = [usize::from(port), ATTEMPTS, 4 * ALLOWED, SECONDS];
    let began = Instant::now();
    let before = resident_kib(&std::fs::read_to_string("/proc/self/status").unwrap());
    let agent_before = agent_kib(&vm).await;
    let output = python(&vm, FLOOD, &arguments.map(|it| it.to_string())).await;
    assert!(output.success(), "{output:?}");
    let counts = output.stdout_text();
    let attempts: usize = counts.lines().map(|it| it.parse::<usize>().unwrap()).sum();

    // As soon as the guest has closed them, so has the host.
    let mut log = vm.network_log().await.unwrap();
    while !vm.network_status().await.unwrap().connections.is_empty() {
        timeout(TEST_TIMEOUT, log.next()).await.unwrap();
    }
    let after = resident_kib(&std::fs::read_to_string("/proc/self/status").unwrap());
    let grown = after.saturating_sub(before);
    let agent_grown = agent_kib(&vm).await.saturating_sub(agent_before);
    let dialled = dialer.dialled().len();
    let minutes = began.elapsed().as_secs() as usize / 60 + 1;
    let decisions = vm.network_status().await.unwrap().totals.decisions;
    println!("{attempts} attempts, {decisions} decisions, {dialled} dialled");
    println!("the host grew by {grown} KiB, the agent by {agent_grown} KiB");
    assert!(attempts >= 4 * ALLOWED, "{attempts}");
    assert!(dialled <= ALLOWED * minutes, "{dialled} in {minutes} min");
    assert!(grown < 8 << 10 && agent_grown < 1 << 10);
    assert!(vm.health().await.is_healthy());
    assert!(vm.exec(["true"]).await.unwrap().success());

    let more = NetworkLimits::new().per_minute(ATTEMPTS as u32);
    vm.network()
        .unwrap()
        .set_policy(policy_for(port).limits(more));
    let line = format!("curl -s http://web.test:{port}/");
    let output = shell(&vm, &line).await;
    assert_eq!(output.stdout_text(), "hello\n", "{output:?}");
    vm.kill().await.unwrap();
}

/// Returns the resident memory of the agent.
async fn agent_kib(vm: &Vm) -> usize {
    let status = vm.exec(["cat", "/proc/1/status"]).await.unwrap();
    resident_kib(&status.stdout_text())
}

/// Returns the resident memory of a process: proc_pid_status(5).
fn resident_kib(status: &str) -> usize {
    let mut lines = status.lines();
    let line = lines.find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_network_namespace_in_a_guest_has_no_way_out() {
    let server = WebServer::start().await;
    let port = server.port();
    let resolver = FixedResolver::to(&["1.1.1.1"]);
    let dialer = RecordingDialer::to(server.address);
    // All is allowed.
    let vm = builder()
        .network(NetworkPolicy::public())
        .resolver(resolver.clone())
        .dialer(dialer.clone())
        .start()
        .await
        .unwrap();
    // A program of the namespace knows the address of a name.
    assert!(fetch(&vm, "web.test", port).await.is_there);
    assert!(fetch(&vm, "198.18.1.1", port).await.is_there);
    let reached = (resolver.asked(), dialer.dialled());

    let connect = format!(
        "for host in 198.18.1.1 198.18.0.53 1.1.1.1 2606:4700::1111 web.test; do \
         printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc $host {port} 2>&1; done"
    );
    let own_routes = "ip link set lo up && ip addr add 198.18.0.1/32 dev lo && \
                      ip route add local 0.0.0.0/0 dev lo && ip route add local ::/0 dev lo";
    let unreachable = "nc: can't connect to remote host (198.18.1.1): Network is unreachable\n\
                       nc: can't connect to remote host (198.18.0.53): Network is unreachable\n\
                       nc: can't connect to remote host (1.1.1.1): Network is unreachable\n\
                       nc: can't connect to remote host: Cannot assign requested address\n\
                       nc: bad address 'web.test'\n";
    let refused = unreachable
        .replace("Network is unreachable", "Connection refused")
        .replace("Cannot assign requested address", "Connection refused");
    for (user, unshare) in [("root", "unshare -n"), ("cell", "unshare -Urn")] {
        let command = Command::shell(format!("{unshare} sh -c \"$SCRIPT\""))
            .env("SCRIPT", format!("{connect}; {own_routes}; {connect}"))
            .user(user)
            .timeout(TEST_TIMEOUT);
        let output = vm.exec_command(command).await.unwrap();
        assert_eq!(output.stdout_text(), format!("{unreachable}{refused}"));
        assert!(output.stderr_text().is_empty(), "{output:?}");
    }
    assert_eq!((resolver.asked(), dialer.dialled()), reached);
    assert!(fetch(&vm, "web.test", port).await.is_there);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_network_namespace_that_is_joined_to_the_first_one_reaches_what_the_policy_allows() {
    let server = WebServer::start().await;
    let port = server.port();
    let dialer = RecordingDialer::to(server.address);
    let vm = vm_with(policy_for(port)).dialer(dialer.clone());
    let vm = vm.start().await.unwrap();
    assert!(fetch(&vm, "web.test", port).await.is_there);
    // The kernel names the other end veth0.
    let script = format!(
        "set -e; unshare -n sleep 1000 & pid=$!; \
         while [ $(readlink /proc/$pid/ns/net) = $(readlink /proc/self/ns/net) ]; do :; done; \
         echo 1 >/proc/sys/net/ipv4/ip_forward; \
         ip link add joined type veth; ip link set veth0 netns $pid; \
         ip addr add 10.9.0.1/24 dev joined; ip link set joined up; \
         nsenter -t $pid -n ip addr add 10.9.0.2/24 dev veth0; \
         nsenter -t $pid -n ip link set veth0 up; \
         nsenter -t $pid -n ip route add default via 10.9.0.1; \
         for host in 1.1.1.1 169.254.169.254 10.0.0.1 198.18.77.77 other.test web.test; do \
         echo $host; printf 'GET / HTTP/1.0\\r\\n\\r\\n' | \
         nsenter -t $pid -n nc -w 20 $host {port} 2>&1 | tail -n 1; done; kill $pid"
    );
    let output = shell(&vm, &script).await;
    let stdout = output.stdout_text();
    assert_eq!(stdout.matches("hello").count(), 1, "{output:?}");
    assert!(stdout.ends_with("web.test\nhello\n"), "{output:?}");
    let denied = [
        format!("1.1.1.1:{port}"),
        format!("169.254.169.254:{port}"),
        "other.test".to_owned(),
    ];
    assert_eq!(output.network_denials, denied, "{output:?}");
    let own = (Ipv4Addr::LOCALHOST.into(), port);
    assert_eq!(dialer.dialled(), [own, own]);
    vm.kill().await.unwrap();
}
