//! The tools that people install software with, against servers of this machine.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use vmcell::{Command, Vm, network::NetworkPolicy};

use crate::builder_with_link;

/// Makes what the servers serve: an index of Python packages, a repository of Debian's,
/// one of git, a registry of npm, and one of cargo.
const MAKE_SITE: &str = include_str!("site.sh");

fn image() -> PathBuf {
    let debian = vmcell_rootfs::recipe::debian_dev();
    debian.packages(["cargo"]).cached().unwrap().path
}

async fn run(vm: &Vm, line: &str) -> vmcell::Output {
    let command = Command::shell(line).timeout(Duration::from_secs(600));
    vm.exec_command(command).await.unwrap()
}

/// Serves the files of a folder to everybody.
async fn serve(folder: &Path) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let folder: Arc<Path> = folder.into();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve_client(client, folder.clone()));
        }
    });
    address
}

async fn serve_client(mut client: TcpStream, folder: Arc<Path>) -> io::Result<()> {
    let mut lines = BufReader::new(&mut client).lines();
    let request = lines.next_line().await?.unwrap_or_default();
    while lines
        .next_line()
        .await?
        .is_some_and(|line| !line.is_empty())
    {}
    let path = request.split([' ', '?']).nth(1).unwrap_or_default();
    let mut file = folder.join(path.trim_start_matches('/'));
    if file.is_dir() {
        file.push("index.html");
    }
    let (status, body) = match std::fs::read(file) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let kind = match path.ends_with('/') {
        true => "text/html",
        false => "application/octet-stream",
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await?;
    if !request.starts_with("HEAD") {
        client.write_all(&body).await?;
    }
    client.shutdown().await
}

#[tokio::test]
async fn software_is_installed_from_the_names_that_are_allowed() {
    let image = image();
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().canonicalize().unwrap().join("site");
    let server = serve(&site).await;
    let port = server.port();
    let mut policy = NetworkPolicy::rules();
    for name in ["pypi", "apt", "git", "npm", "crates", "www"] {
        let name = format!("{name}.test");
        policy = policy.allow(&format!("{name}:{port}")).unwrap();
        policy = policy.host(&name, Ipv4Addr::LOCALHOST).unwrap();
    }
    let vm = builder_with_link().image(image).memory_mib(1024);
    let vm = vm.network(policy).start().await.unwrap();
    let made = run(&vm, &MAKE_SITE.replace("@PORT@", &port.to_string())).await;
    assert!(made.success(), "{made:?}");
    vm.files().pull("/srv/site", &site).run().await.unwrap();

    let tools = "for tool in gcc g++ make git jq node npm pip rg; do $tool --version || exit 1; \
                 done; python3 -m venv /tmp/venv && /tmp/venv/bin/pip --version";
    let tools = run(&vm, tools).await;
    assert!(tools.success(), "{tools:?}");
    for (tool, line) in [
        (
            "curl",
            "curl -fsS http://www.test:@PORT@/hello && test $(curl -fsS http://www.test:@PORT@/hello) = hello",
        ),
        (
            "apt-get",
            "echo 'deb [trusted=yes] http://apt.test:@PORT@/apt ./' >/etc/apt/sources.list && \
             rm /etc/apt/sources.list.d/* && apt-get update && apt-cache show demo",
        ),
        (
            "git",
            "git clone http://git.test:@PORT@/demo.git /tmp/clone && cat /tmp/clone/hello",
        ),
        (
            "pip",
            "pip install --disable-pip-version-check --target /tmp/pip \
             --index-url http://pypi.test:@PORT@/simple --trusted-host pypi.test demo && \
             PYTHONPATH=/tmp/pip python3 -c 'import demo; print(demo.text)'",
        ),
        (
            "npm",
            "mkdir /tmp/npm && cd /tmp/npm && npm install --no-audit --no-fund \
             --registry http://npm.test:@PORT@/npm demo && node -e 'console.log(require(\"demo\"))'",
        ),
        (
            "cargo",
            "mkdir -p /tmp/cargo/src && cd /tmp/cargo && cp -r /srv/project/. . && \
             cargo fetch && cargo check --offline",
        ),
    ] {
        let output = run(&vm, &line.replace("@PORT@", &port.to_string())).await;
        assert!(output.success(), "{tool}: {output:?}");
        assert_eq!(output.network_denials, <[String; 0]>::default(), "{tool}");
    }
    // Nothing else, and all of them say so at once.
    for (tool, line, expected) in [
        (
            "curl",
            "curl -sS http://other.test/",
            "Could not resolve host",
        ),
        (
            "git",
            "git clone http://other.test/demo.git /tmp/other",
            "Could not resolve host",
        ),
        ("curl", "curl -sS http://www.test:1/", "reset by peer"),
    ] {
        let output = run(&vm, line).await;
        assert!(!output.success(), "{tool}");
        let stderr = output.stderr_text();
        assert!(stderr.contains(expected), "{tool}: {stderr}");
        assert_eq!(output.network_denials.len(), 1, "{tool}: {output:?}");
    }
    vm.kill().await.unwrap();
}
