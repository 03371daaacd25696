//! Secrets that the host puts into requests, and that no guest has.

mod server;

use std::{
    collections::HashMap,
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::Version;
use vmcell::{
    Command, ExecEvent, Output, Vm, VmBuilder,
    broker::BrokeredSecret,
    network::{
        BoxFuture, Destination, Dialer, DirectDialer, NetworkPolicy, PROXY_VARIABLES, Upstream,
    },
    secret::Secret,
};

use server::{Authority, LARGE, Server};

const VALUE: &str = "canary-Zm9v/8qLx+tR2w=7Yp";

fn token() -> Secret {
    Secret::new("token", VALUE.to_owned()).unwrap()
}

/// Connects to servers of this machine in place of hosts.
#[derive(Debug)]
struct Hosts(HashMap<&'static str, SocketAddr>);

impl Dialer for Hosts {
    fn dial<'a>(&'a self, host: &'a Destination) -> BoxFuture<'a, io::Result<Upstream>> {
        let name = host.name.as_ref().unwrap().as_str();
        let mut host = host.clone();
        host.port = self.0[name].port();
        Box::pin(async move { DirectDialer.dial(&host).await })
    }
}

/// Returns a policy that allows these hosts, which are this machine.
fn policy(hosts: &[&str]) -> NetworkPolicy {
    let policy = NetworkPolicy::rules().proxy(true);
    hosts.iter().fold(policy, |policy, host| {
        let (name, _) = host.split_once(':').unwrap();
        let policy = policy.allow(host).unwrap();
        policy.host(name, Ipv4Addr::LOCALHOST).unwrap()
    })
}

/// Returns a VM with the default link, which can be saved.
fn debian() -> VmBuilder {
    let image = vmcell_rootfs::recipe::debian().cached().unwrap().path;
    Vm::builder().image(image).memory_mib(384)
}

/// Their placeholders are the variables HEADER, BASIC, QUERY and PLAIN of commands.
struct Grants {
    header: BrokeredSecret,
    basic: BrokeredSecret,
    query: BrokeredSecret,
    plain: BrokeredSecret,
}

impl Grants {
    fn new() -> Self {
        let host = "api.test";
        Self {
            header: BrokeredSecret::header(&token(), host, "authorization").unwrap(),
            basic: BrokeredSecret::basic(&token(), host).unwrap(),
            query: BrokeredSecret::query(&token(), host, "key").unwrap(),
            plain: BrokeredSecret::header(&token(), "plain.test", "authorization")
                .unwrap()
                .also_plain_http(80),
        }
    }

    async fn run_command(&self, vm: &Vm, command: Command) -> Output {
        let command = command
            .env("HEADER", self.header.placeholder())
            .env("BASIC", self.basic.placeholder())
            .env("QUERY", self.query.placeholder())
            .env("PLAIN", self.plain.placeholder())
            .timeout(Duration::from_secs(240));
        let output = vm.exec_command(command).await.unwrap();
        assert!(!output.stdout_text().contains(VALUE), "{output:?}");
        output
    }

    async fn run(&self, vm: &Vm, line: &str) -> Output {
        self.run_command(vm, Command::shell(line)).await
    }
}

/// Returns whether a file below a folder contains a text.
fn is_in_folder(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let content = fs::read(entry.unwrap().path()).unwrap();
        content
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    })
}

/// The hosts, and the VM that reaches them.
struct Setup {
    authority: Authority,
    api: Server,
    other: Server,
    plain: Server,
    grants: Grants,
}

const HOSTS: [&str; 4] = [
    "api.test:443",
    "other.test:443",
    "wrong.test:443",
    "plain.test:80",
];

impl Setup {
    async fn new() -> Self {
        let authority = Authority::new();
        Self {
            api: Server::start(Some((&authority, "api.test"))).await,
            other: Server::start(Some((&authority, "other.test"))).await,
            plain: Server::start(None).await,
            grants: Grants::new(),
            authority,
        }
    }

    /// Lets a VM reach the hosts, and grants it the values.
    fn connect(&self, vm: VmBuilder) -> VmBuilder {
        let grant = |host| BrokeredSecret::header(&token(), host, "authorization").unwrap();
        let hosts = Hosts(HashMap::from([
            ("api.test", self.api.address),
            ("other.test", self.other.address),
            // It has the certificate of another host.
            ("wrong.test", self.other.address),
            ("plain.test", self.plain.address),
        ]));
        vm.network(policy(&HOSTS))
            .dialer(hosts)
            .broker_root(self.authority.pem())
            .broker(&self.grants.header)
            .broker(&self.grants.basic)
            .broker(&self.grants.query)
            .broker(&grant("wrong.test"))
            .broker(&self.grants.plain)
            // A grant opens nothing.
            .broker(&grant("denied.test"))
    }

    async fn curl(&self, vm: &Vm, arguments: &str) -> Output {
        self.grants.run(vm, &format!("curl -sS {arguments}")).await
    }
}

#[tokio::test]
async fn the_host_puts_a_value_in_and_the_guest_never_has_it() {
    let setup = Setup::new().await;
    let (api, grants) = (&setup.api, &setup.grants);
    let vm = setup.connect(debian()).start().await.unwrap();
    let placeholder = grants.header.placeholder();

    // With both protocols, in all places, and masked in what comes back.
    let bearer = format!("Bearer {}", "*".repeat(VALUE.len()));
    let encoded = STANDARD.encode(VALUE);
    for (option, version) in [("1.1", Version::HTTP_11), ("2", Version::HTTP_2)] {
        let line = format!(
            "--http{option} -D - 'https://api.test/a?x=1&key='$QUERY \
             -H \"Authorization: Bearer $HEADER\" -H \"X-Other: $HEADER\" -d \"$HEADER\" \
             --next -sS --http{option} https://api.test/ -u me:$BASIC"
        );
        let output = setup.curl(&vm, &line).await;
        assert!(output.success(), "{output:?}");
        let text = output.stdout_text();
        assert!(text.contains(&format!("x-echo: {bearer}\r\n")), "{text}");
        assert!(text.contains(&format!("\n{bearer}\n")), "{text}");
        assert!(!text.contains(&encoded[4..16]), "{text}");
        let seen = api.take_seen();
        let [first, second] = &seen[..] else {
            panic!("{seen:?}");
        };
        assert_eq!((first.version, second.version), (version, version));
        // One connection of the guest is one to the host.
        assert_eq!(first.connection, second.connection);
        let target = "/a?x=1&key=canary-Zm9v%2F8qLx%2BtR2w%3D7Yp";
        assert_eq!(first.target, target);
        assert_eq!(first.header("authorization"), format!("Bearer {VALUE}"));
        assert_eq!(first.header("x-other"), placeholder);
        assert_eq!(first.header("accept-encoding"), "identity");
        assert_eq!(first.body, placeholder.len());
        let basic = STANDARD.encode(format!("me:{VALUE}"));
        assert_eq!(second.header("authorization"), format!("Basic {basic}"));
    }

    // Another host, whose certificate comes as it is, gets the placeholder as it is.
    let program = "import os, ssl, urllib.request as r; \
        context = ssl.create_default_context(cadata=os.environ['ROOT']); \
        headers = {'Authorization': os.environ['HEADER']}; \
        r.urlopen(r.Request('https://other.test/', headers=headers), context=context)";
    let command = Command::from_argv(["python3", "-c", program]);
    let command = command.env("ROOT", setup.authority.pem());
    let output = grants.run_command(&vm, command).await;
    assert!(output.success(), "{output:?}");
    let seen = setup.other.take_seen();
    assert_eq!(seen[0].header("authorization"), placeholder, "{seen:?}");
    // Python trusts the broker by itself, and so does who has no variables.
    let program = "import urllib.request as r; r.urlopen('https://api.test/')";
    let line = format!("python3 -c \"{program}\" && env -i curl -sS https://api.test/");
    let output = grants.run(&vm, &line).await;
    assert!(output.success(), "{output:?}");
    assert_eq!(api.take_seen().len(), 2);
    let command = Command::shell("echo $SSL_CERT_FILE $GIT_SSL_CAINFO");
    let command = command.env("SSL_CERT_FILE", "/own");
    let output = grants.run_command(&vm, command).await;
    let expected = "/own /run/vmcell-trust/ca-bundle.pem\n";
    assert_eq!(output.stdout_text(), expected);

    // None of these reaches a host.
    for (arguments, status) in [
        ("-H 'Host: other.test' https://api.test/", "421"),
        ("--http1.1 -H 'Host: other.test' https://api.test/", "421"),
        (
            "--http1.1 -H 'Connection: upgrade' -H 'Upgrade: websocket' https://api.test/",
            "501",
        ),
        ("https://wrong.test/", "502"),
        (
            "--connect-to other.test:443:api.test:443 -k https://other.test/",
            "000",
        ),
        ("https://denied.test/", "000"),
    ] {
        let line =
            format!("-o /dev/null -w '%{{http_code}}' -H \"Authorization: $HEADER\" {arguments}");
        let output = setup.curl(&vm, &line).await;
        assert_eq!(output.stdout_text(), status, "{output:?}");
        let seen = (api.take_seen(), setup.other.take_seen());
        assert!(seen.0.is_empty() && seen.1.is_empty(), "{seen:?}");
    }
    let output = setup.curl(&vm, "https://api.test/compressed").await;
    assert!(output.stdout_text().contains("compressed"), "{output:?}");

    // The value is nowhere in the guest, and so are not the certificates in a VM without
    // grants that goes on from there.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    vm.snapshot(&path).await.unwrap();
    assert!(is_in_folder(&path, placeholder));
    for text in [VALUE, &encoded[4..16], "canary-Zm9v%2F8qLx"] {
        assert!(!is_in_folder(&path, text), "{text}");
    }
    grants.header.revoke();
    setup
        .curl(&vm, "https://api.test/ -H \"Authorization: $HEADER\"")
        .await;
    assert_eq!(
        api.take_seen().last().unwrap().header("authorization"),
        placeholder
    );
    vm.kill().await.unwrap();

    let show = "echo ${SSL_CERT_FILE-none}; grep -c vmcell-trust /proc/mounts";
    let restored = Vm::builder().snapshot(&path).start().await.unwrap();
    let output = grants.run(&restored, show).await;
    assert_eq!(output.stdout_text(), "none\n0\n", "{output:?}");
    restored.kill().await.unwrap();
    api.take_seen();
    let restored = setup
        .connect(Vm::builder().snapshot(&path))
        .start()
        .await
        .unwrap();
    let line = "env -i curl -sS https://api.test/ && curl -sS https://api.test/ -u :$BASIC";
    let output = grants.run(&restored, line).await;
    assert!(output.success(), "{output:?}");
    let basic = STANDARD.encode(format!(":{VALUE}"));
    let seen = api.take_seen();
    assert_eq!(seen[1].header("authorization"), format!("Basic {basic}"));
    restored.kill().await.unwrap();
}

#[tokio::test]
async fn bodies_of_any_size_pass_and_the_policy_decides() {
    let setup = Setup::new().await;
    let vm = setup.connect(debian()).start().await.unwrap();
    let download = "-o /dev/null -w '%{size_download}' https://api.test/large";
    let output = setup.curl(&vm, download).await;
    assert_eq!(output.stdout_text(), LARGE.to_string(), "{output:?}");
    for option in ["--http1.1", "--http2"] {
        let line = format!("head -c {LARGE} /dev/zero | curl -sS {option} -T - https://api.test/");
        let output = setup.grants.run(&vm, &line).await;
        assert!(output.success(), "{output:?}");
    }
    let bodies: Vec<_> = setup.api.take_seen().iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, [0, LARGE, LARGE]);
    let sent = vm.network_status().await.unwrap().totals.sent;
    assert!(sent > 2 * LARGE as u64, "{sent}");

    // Through the proxy: in a tunnel, and passed on without TLS as the grant says.
    let header = "-H \"Authorization: $HEADER\" https://api.test/";
    let line = format!("{header} --next -sS -H \"Authorization: $PLAIN\" http://plain.test/");
    let command = Command::shell(format!("curl -sS {line}")).envs(PROXY_VARIABLES);
    let output = setup.grants.run_command(&vm, command).await;
    assert!(output.success(), "{output:?}");
    for server in [&setup.api, &setup.plain] {
        assert_eq!(server.take_seen()[0].header("authorization"), VALUE);
    }

    // A connection ends when the policy does not allow it any more.
    let endless = Command::from_argv(["curl", "-sSN", "https://api.test/endless"]);
    let mut stream = vm
        .exec_stream(endless.timeout(Duration::from_secs(240)))
        .unwrap();
    while let Some(event) = stream.next().await.unwrap() {
        match event {
            ExecEvent::Stdout(_) => vm.network().unwrap().set_policy(policy(&HOSTS[1..])),
            ExecEvent::Exited(exit) => assert!(!exit.success(), "{exit:?}"),
            _ => {}
        }
    }
    assert_eq!(vm.network_status().await.unwrap().connections.len(), 0);
    vm.kill().await.unwrap();
}
