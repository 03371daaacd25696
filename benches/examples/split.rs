use std::time::Instant;
use vmcell::Vm;
use vmcell_benches::baseline::{Baseline, Machine};
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let image = std::env::args()
        .nth(4)
        .map(Into::into)
        .unwrap_or(vmcell_rootfs::recipe::base().cached()?.path);
    let extra = std::env::args().nth(1).unwrap_or_default();
    let n: usize = std::env::args().nth(2).unwrap_or("9".into()).parse()?;
    let vm = Vm::builder()
        .image(&image)
        .kernel_arguments(extra.clone())
        .start()
        .await?;
    let machine = Machine::of(&vm, &image)?;
    vm.kill().await;
    let (mut starts, mut firsts, mut seconds, mut bases) = (vec![], vec![], vec![], vec![]);
    for _ in 0..n {
        bases.push(Baseline::boot_time(&machine)?);
        let t = Instant::now();
        let vm = Vm::builder()
            .image(&image)
            .kernel_arguments(extra.clone())
            .start()
            .await?;
        starts.push(t.elapsed());
        let t = Instant::now();
        vm.exec([std::env::args().nth(3).unwrap_or("true".into())])
            .await?;
        firsts.push(t.elapsed());
        let t = Instant::now();
        vm.exec([std::env::args().nth(3).unwrap_or("true".into())])
            .await?;
        seconds.push(t.elapsed());
        vm.kill().await;
    }
    println!(
        "base {:?} start {:?} first {:?} second {:?}",
        bases.iter().min().unwrap(),
        starts.iter().min().unwrap(),
        firsts.iter().min().unwrap(),
        seconds.iter().min().unwrap()
    );
    Ok(())
}
