//! HTTPS requests with a secret that the host puts in, compared with requests that only pass.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::Runtime;
use vmcell::{
    Command, Vm,
    broker::BrokeredSecret,
    network::{BoxFuture, Destination, Dialer, DirectDialer, NetworkPolicy, Upstream},
    secret::Secret,
};
use vmcell_benches::summary::{Bound, median_round, row};

use crate::server::{Authority, Server};

const ROUNDS: usize = 9;

/// Makes 100 requests on one connection, after one that is not measured.
const REQUESTS: &str = "
import http.client, ssl, sys, time
context = ssl.create_default_context()
context.load_verify_locations('/tmp/authority.pem')
connection = http.client.HTTPSConnection(sys.argv[1], context=context)
def get():
    connection.request('GET', '/', headers={'Authorization': sys.argv[2]})
    assert connection.getresponse().read()
get()
begun = time.monotonic()
for _ in range(100):
    get()
print(int((time.monotonic() - begun) * 1e6))
";

/// Connects to a server of this machine.
#[derive(Debug)]
struct Local(SocketAddr);

impl Dialer for Local {
    fn dial<'a>(&'a self, host: &'a Destination) -> BoxFuture<'a, io::Result<Upstream>> {
        let mut host = host.clone();
        host.port = self.0.port();
        Box::pin(async move { DirectDialer.dial(&host).await })
    }
}

pub(crate) fn measure(runtime: &Runtime) -> Result<()> {
    let image = vmcell_rootfs::recipe::debian().cached()?.path;
    runtime.block_on(async {
        let authority = Authority::new();
        let name = "api.test";
        let server = Server::start(Some((&authority, name))).await;
        let policy = NetworkPolicy::rules()
            .allow("api.test:443")?
            .host(name, Ipv4Addr::LOCALHOST)?;
        let secret = Secret::new("token", "a-token-of-thirty-two-characters".to_owned())?;
        let grant = BrokeredSecret::header(&secret, name, "authorization")?;
        let start = async |grant: Option<&BrokeredSecret>| -> Result<Vm> {
            let mut vm = Vm::builder()
                .image(&image)
                .memory_mib(384)
                .network(policy.clone())
                .dialer(Local(server.address));
            if let Some(grant) = grant {
                vm = vm.broker(grant).broker_root(authority.pem());
            }
            let vm = vm.start().await?;
            let files = vm.files();
            files.write("/tmp/authority.pem", authority.pem()).await?;
            files.write("/tmp/requests.py", REQUESTS).await?;
            Ok(vm)
        };
        let (with, without) = (start(Some(&grant)).await?, start(None).await?);
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let brokered = request_time(&with, name, grant.placeholder()).await?;
            let plain = request_time(&without, name, grant.placeholder()).await?;
            rounds.push((brokered, plain));
        }
        let (brokered, plain) = median_round(rounds);
        row(
            "a brokered HTTPS request, keep-alive on",
            &format!("{:.2} ms", brokered.as_secs_f64() * 1e3),
            &format!(
                "{:.2} ms (through the plain egress)",
                plain.as_secs_f64() * 1e3
            ),
            brokered.as_secs_f64() / plain.as_secs_f64(),
            Bound::AtMost(1.3),
        );
        with.kill().await?;
        without.kill().await?;
        Ok(())
    })
}

/// Returns the time of one request.
async fn request_time(vm: &Vm, host: &str, token: &str) -> Result<Duration> {
    let command = Command::new("python3")
        .args(["/tmp/requests.py", host, token])
        .timeout(Duration::from_secs(120));
    let output = vm.exec_command(command).await?;
    ensure!(output.success(), "{output:?}");
    let time: u64 = output.stdout_text().trim().parse().context("not a time")?;
    Ok(Duration::from_micros(time) / 100)
}
