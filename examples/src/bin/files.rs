//! Copies a directory into a VM, shows what a command has changed, and copies
//! the result out.

use vmcell::{Vm, files::ManifestOptions};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let here = tempfile::tempdir()?;
    let project = here.path().join("project");
    std::fs::create_dir(&project)?;
    std::fs::write(project.join("words"), "b\na\n")?;

    let image = vmcell_rootfs::recipe::base().cached_async().await?.path;
    let vm = Vm::builder().image(image).memory_mib(256).start().await?;
    let files = vm.files().at("/workspace");
    files.push(&project, "").exclude("target/").run().await?;
    let options = ManifestOptions::new().keep_texts(32 << 20);
    let before = files.manifest("", options.clone()).await?;
    vm.exec(["sort", "-o", "/workspace/words", "/workspace/words"])
        .await?;
    let diff = files.diff("", &before, options).await?;
    print!("{diff}"); // `git apply` takes it
    let result = here.path().join("sorted");
    files.pull("words", &result).run().await?;
    println!("{:?}", std::fs::read_to_string(result)?);
    vm.stop().await?;
    Ok(())
}
