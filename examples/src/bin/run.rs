//! Runs one command in a VM.

use vmcell::Vm;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let image = vmcell_rootfs::recipe::base().cached_async().await?.path;
    let vm = Vm::builder().image(image).memory_mib(256).start().await?;
    let output = vm.exec(["uname", "-a"]).await?;
    println!("{}", output.stdout_text());
    vm.stop().await?;
    Ok(())
}
