//! Starts a server that the guest supervises, and connects to it.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use vmcell::{
    Command, Vm,
    service::{Probe, Restart, ServiceSpec},
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let image = vmcell_rootfs::recipe::base().cached_async().await?.path;
    let vm = Vm::builder().image(image).memory_mib(256).start().await?;
    vm.files()
        .write("/srv/index.html", "hello from the guest\n")
        .await?;
    let spec = ServiceSpec::new(Command::shell("exec httpd -f -p 8080 -h /srv"))
        .ready(Probe::http(8080, "/"))
        .restart(Restart::on_failure());
    // Or why not, with its last log lines.
    vm.services().start("web", spec).await?.ready().await?;
    let port = vm.ports().publish(8080).await?;
    let page = tokio::task::spawn_blocking(move || get(&port.address().to_string())).await??;
    println!("{page}");
    vm.stop().await?;
    Ok(())
}

/// Requests a page as simply as possible.
fn get(address: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    connection.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}
