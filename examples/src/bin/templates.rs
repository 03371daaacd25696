//! A Python interpreter with its packages loaded, in twenty VMs.

use vmcell::{Command, Template, Vm, terminal::TerminalOptions};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let image = vmcell_rootfs::recipe::debian().cached_async().await?.path;
    let python = || TerminalOptions::command(Command::new("python3"));
    let template = Template::builder(Vm::builder().image(image).memory_mib(512))
        .prepare("python with json and sqlite3", move |vm| async move {
            let python = vm.terminals().session("python", python()).await?;
            python.run("import json, sqlite3").await?;
            Ok(())
        })
        .get() // made once, then taken from the cache
        .await?;
    for number in 0..20 {
        let vm = template.start().await?; // the interpreter runs already
        let python = vm.terminals().session("python", python()).await?;
        let reply = python.run(format!("json.dumps([{number}])")).await?;
        let answer = reply.text.lines().rev().nth(1).unwrap_or_default();
        println!("{}: {answer}", vm.id());
    }
    Ok(())
}
