//! The HTTP proxy for programs that want one.

use std::time::Duration;

use vmcell::{
    Command, Output, Vm,
    network::{NetworkEvent, NetworkPolicy, PROXY_VARIABLES},
};

use super::{WebServer, policy_for, shell, vm_with};
use crate::builder_with_link;

async fn curl(vm: &Vm, arguments: &str) -> Output {
    let command = Command::shell(format!("curl -sS {arguments}"))
        .envs(PROXY_VARIABLES)
        .timeout(Duration::from_secs(120));
    vm.exec_command(command).await.unwrap()
}

#[tokio::test]
async fn programs_that_use_the_proxy_reach_what_is_allowed_and_are_told_what_is_not() {
    let server = WebServer::start().await;
    let port = server.port();
    let image = vmcell_rootfs::recipe::debian().cached().unwrap().path;
    let vm = builder_with_link().image(image);
    let vm = vm
        .network(policy_for(port).proxy(true))
        .start()
        .await
        .unwrap();
    // Passed on, and through a tunnel.
    for options in ["", "--proxytunnel"] {
        let page = curl(&vm, &format!("{options} http://web.test:{port}/")).await;
        assert_eq!(page.stdout_text(), "hello\n", "{page:?}");
    }
    assert_eq!(server.clients(), 2);
    let status = vm.network_status().await.unwrap();
    assert_eq!(status.totals.denials, 0, "{status:?}");

    let denied = curl(&vm, "http://other.test/").await;
    assert_eq!(
        denied.stdout_text(),
        "not allowed by policy: other.test:80\n"
    );
    assert_eq!(denied.network_denials, ["other.test:80"]);
    let denied = curl(&vm, "https://10.0.0.1/").await;
    assert!(denied.stderr_text().contains("403"), "{denied:?}");
    assert_eq!(denied.network_denials, ["10.0.0.1:443"]);
    let absent = curl(&vm, "http://web.test:1/").await;
    assert_eq!(absent.stdout_text(), "not allowed by policy: web.test:1\n");
    assert_eq!(server.clients(), 2);

    // The proxy itself is not in the log, but what it was asked for.
    let mut log = vm.network_log().await.unwrap();
    let recent = log.take_recent().into_iter();
    let wanted: Vec<_> = recent
        .filter_map(|event| match event {
            NetworkEvent::Decided(decision) => Some(decision.wanted.to_string()),
            _ => None,
        })
        .collect();
    let web = format!("web.test:{port}");
    let expected = [&web, &web, "other.test:80", "10.0.0.1:443", "web.test:1"];
    assert_eq!(wanted, expected);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn there_is_no_proxy_unless_the_policy_has_it() {
    let vm = vm_with(policy_for(80)).start().await.unwrap();
    let output = shell(&vm, "nc proxy.vmcell.internal 3128 </dev/null").await;
    let stderr = output.stderr_text();
    assert!(stderr.contains("bad address"), "{stderr}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn the_proxy_copes_with_what_is_no_request_and_its_tunnels_end_with_the_policy() {
    let server = WebServer::start().await;
    let port = server.port();
    let vm = vm_with(policy_for(port).proxy(true)).start().await.unwrap();
    for request in [
        r"hello\r\n\r\n",
        r"GET / HTTP/1.1\r\n\r\n",
        r"CONNECT :1 HTTP/1.1\r\n\r\n",
    ] {
        let line = format!("printf '{request}' | nc proxy.vmcell.internal 3128");
        let output = shell(&vm, &line).await;
        let answer = output.stdout_text();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request}: {answer}");
    }
    let line = "tr '\\0' a </dev/zero | nc proxy.vmcell.internal 3128";
    let answer = shell(&vm, line).await;
    assert!(answer.stdout_text().contains("400"), "{answer:?}");
    // A connection to another port is an ordinary one, which no rule allows.
    let output = shell(&vm, "nc proxy.vmcell.internal 80 </dev/null").await;
    assert_eq!(output.network_denials, ["proxy.vmcell.internal:80"]);

    // Nothing is said in the tunnel, and it is open until the policy changes.
    let line = format!(
        "mkfifo /tmp/requests; exec 3<>/tmp/requests; \
         printf 'CONNECT web.test:{port} HTTP/1.1\\r\\n\\r\\n' >&3; \
         nc proxy.vmcell.internal 3128 <&3; echo ended"
    );
    let mut log = vm.network_log().await.unwrap();
    let _ = log.take_recent();
    let tunnel = shell(&vm, &line);
    let change = async {
        let opened = log.next().await.unwrap();
        assert!(matches!(&opened, NetworkEvent::Decided(it) if !it.is_denied()));
        vm.network().unwrap().set_policy(NetworkPolicy::off());
    };
    let (output, ()) = tokio::join!(tunnel, change);
    assert!(output.stdout_text().ends_with("ended\n"), "{output:?}");
    assert!(vm.network_status().await.unwrap().connections.is_empty());
    vm.kill().await.unwrap();
}
