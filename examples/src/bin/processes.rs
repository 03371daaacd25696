//! Runs a process in the background, and ends it with all its descendants.

use vmcell::{Command, ExecEvent, ReadFrom, Vm, printable};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let image = vmcell_rootfs::recipe::base().cached_async().await?.path;
    let vm = Vm::builder().image(image).memory_mib(256).start().await?;
    let server = Command::shell("echo started; sleep 1000 & exec httpd -f -p 8080")
        .memory_max(64 << 20)
        .tag("web");
    vm.spawn(server).await?;
    // Every byte, or a gap with its length.
    let mut log = vm.processes().attach("web", ReadFrom::Start)?;
    while let Some(event) = log.next().await? {
        if let ExecEvent::Stdout(bytes) = event {
            print!("{}", printable(&bytes));
            break;
        }
    }
    let exit = vm.processes().kill("web").await?;
    println!(
        "{}, and all its descendants: {:?}",
        exit.cause, exit.tree_ended
    );
    vm.stop().await?;
    Ok(())
}
