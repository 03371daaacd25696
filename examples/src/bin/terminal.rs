//! Types on a terminal, and looks at its screen.

use vmcell::{
    Vm,
    terminal::{Status, TerminalOptions},
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let image = vmcell_rootfs::recipe::base().cached_async().await?.path;
    let vm = Vm::builder().image(image).memory_mib(256).start().await?;
    let terminal = vm
        .terminals()
        .session("work", TerminalOptions::new())
        .await?;
    let reply = terminal.run("cd /tmp && pwd").await?;
    assert_eq!(reply.status, Status::Ready);
    println!("{}", reply.text);
    println!("{}", terminal.screen().text());
    vm.stop().await?;
    Ok(())
}
