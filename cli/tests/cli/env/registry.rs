//! Environments from a real registry.

use std::{
    fs,
    io::{BufRead, BufReader, Read as _, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    process::Command,
    thread,
};

use super::{Store, with_shell};
use crate::{container_registry::Registry, vmcell::Vmcell};

/// The user `user` with the password `secret`.
const USERS: &str = "user:$2y$05$sLaQ0mUF/lJktEZhDSMqJeyQ6rADVxy3vj5Te5SuhKipeGDjgK2z2\n";
/// Of these, in base64.
const LOGIN: &str = "dXNlcjpzZWNyZXQ=";

/// Pushes an image of a store.
fn push(store: &Store, registry: &Registry, tag: &str, name: &str) {
    let copied = Command::new("skopeo")
        .args([
            "copy",
            "--dest-tls-verify=false",
            "--dest-creds=user:secret",
        ])
        .arg(format!("oci:image:{tag}"))
        .arg(format!("docker://{}/{name}", registry.address))
        .current_dir(store.0.path())
        .output()
        .expect("`make vsock` installs what the tests need, skopeo, too");
    let errors = String::from_utf8_lossy(&copied.stderr);
    assert!(copied.status.success(), "{errors}");
}

/// Writes what `docker login` would.
fn log_in(store: &Store, registry: SocketAddr, login: &str) {
    write_login(store, registry, &format!(r#""auth": "{login}""#));
}

fn write_login(store: &Store, registry: SocketAddr, fields: &str) {
    let folder = store.0.path().join("docker");
    fs::create_dir_all(&folder).unwrap();
    let config = format!(r#"{{ "auths": {{ "{registry}": {{ {fields} }} }} }}"#);
    fs::write(folder.join("config.json"), config).unwrap();
}

fn cli<'a>(store: &Store, arguments: impl IntoIterator<Item = &'a str>) -> Vmcell {
    let docker = store.0.path().join("docker");
    store.cli(arguments).env("DOCKER_CONFIG", docker)
}

#[test]
fn an_image_is_pulled_with_a_password_and_runs() {
    let store = Store::new();
    store.image(
        "one",
        with_shell,
        &[
            "--config.cmd=/bin/sh",
            "--config.cmd=-c",
            "--config.cmd=echo pulled",
        ],
    );
    let registry = Registry::start(Some(USERS));
    push(&store, &registry, "one", "team/tool:1");
    let image = format!("{}/team/tool:1", registry.address);
    let pull = ["env", "pull", &image, "--plain-http"];
    let refused = cli(&store, pull).finish();
    refused.assert_failed(125, "wants credentials: `docker login");
    log_in(&store, registry.address, "dXNlcjp3cm9uZw==");
    cli(&store, pull)
        .finish()
        .assert_failed(125, "refuses access");
    log_in(&store, registry.address, LOGIN);
    cli(&store, pull).finish().assert_printed("tool\n");
    let ran = cli(&store, ["run", "tool", "--mem-mib", "128"]).finish();
    ran.assert_printed("pulled\n");
    // What was pulled is not asked for again.
    drop(registry);
    let ran = cli(&store, ["run", &image, "--mem-mib", "128"]).finish();
    ran.assert_printed("pulled\n");
    let gone = cli(&store, pull).finish();
    gone.assert_failed(125, "cannot be reached");
    // What was pulled stays with its name.
    let blobs = || {
        let folder = store.0.path().join("cache/vmcell/images/blobs/sha256");
        fs::read_dir(folder).unwrap().count()
    };
    let pulled = blobs();
    assert!(pulled >= 3);
    cli(&store, ["env", "prune"]).finish();
    assert_eq!(blobs(), pulled);
    cli(&store, ["env", "remove", "tool"]).finish();
    assert_eq!(blobs(), 0);
}

/// Stands in front of a registry, and serves only those with a token that it has given.
fn token_server(registry: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || serve(client, address, registry));
        }
    });
    address
}

fn serve(mut client: TcpStream, own: SocketAddr, registry: SocketAddr) {
    let mut head = String::new();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    let authorization = header("authorization").map(|(_, value)| value.to_owned());
    let answer = |status: &str, headers: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let length = header("content-length").and_then(|(_, length)| length.parse().ok());
    let mut form = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut form).unwrap();
    let answer = if head.starts_with("POST /token ") {
        let form = String::from_utf8(form).unwrap();
        let parts: Vec<_> = form.split('&').collect();
        let is_right = parts.contains(&"grant_type=refresh_token")
            && parts.contains(&"refresh_token=1dentity")
            && parts.contains(&"service=stand-in");
        match is_right {
            true => answer("200 OK", "", r#"{ "access_token": "t0ken" }"#),
            false => answer("403 Forbidden", "", ""),
        }
    } else if head.starts_with("GET /token?") {
        let is_user = authorization == Some(format!("Basic {LOGIN}"));
        let is_scope = head.contains("scope=repository%3Ateam%2Ftool%3Apull")
            && head.contains("service=stand-in");
        match is_user && is_scope {
            true => answer("200 OK", "", r#"{ "token": "t0ken", "expires_in": 60 }"#),
            false => answer("403 Forbidden", "", ""),
        }
    } else if authorization.as_deref() == Some("Bearer t0ken") {
        let mut server = TcpStream::connect(registry).unwrap();
        let basic = format!("Basic {LOGIN}");
        let head = head.replace("Bearer t0ken", &basic);
        let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        server.write_all(head.as_bytes()).unwrap();
        let _ = std::io::copy(&mut server, &mut client);
        return;
    } else {
        let challenge = format!(
            "WWW-Authenticate: Bearer realm=\"http://{own}/token\",service=\"stand-in\",\
             scope=\"repository:team/tool:pull\"\r\n"
        );
        answer("401 Unauthorized", &challenge, "")
    };
    let _ = client.write_all(answer.as_bytes());
}

#[test]
fn an_image_is_pulled_with_a_token() {
    let store = Store::new();
    store.image("one", with_shell, &["--config.cmd=/bin/sh"]);
    let registry = Registry::start(Some(USERS));
    push(&store, &registry, "one", "team/tool:1");
    let front = token_server(registry.address);
    let image = format!("{front}/team/tool:1");
    let pull = ["env", "pull", &image, "other", "--plain-http"];
    cli(&store, pull)
        .finish()
        .assert_failed(125, "gives no token");
    log_in(&store, front, LOGIN);
    cli(&store, pull).finish().assert_printed("other\n");
    // A login that is good for tokens only, of another registry.
    let identity = token_server(registry.address);
    write_login(
        &store,
        identity,
        r#""auth": "PHRva2VuPjo=", "identitytoken": "1dentity""#,
    );
    let by_identity = format!("{identity}/team/tool:1");
    let by_identity = ["env", "pull", &by_identity, "fourth", "--plain-http"];
    cli(&store, by_identity).finish().assert_printed("fourth\n");
    log_in(&store, front, LOGIN);
    let entry = cli(&store, ["env", "inspect", "other", "--json"])
        .finish()
        .json();
    assert_eq!(entry["source"], image, "{entry}");
    // The same from a mirror, by the name of another registry, and with what is for the mirror.
    let mirror = front.to_string();
    let pull = [
        "env",
        "pull",
        "registry.example/team/tool:1",
        "third",
        "--plain-http",
    ];
    let mirrored = pull.into_iter().chain(["--mirror", &mirror]);
    let mirrored = cli(&store, mirrored).finish();
    mirrored.assert_printed("third\n");
}
