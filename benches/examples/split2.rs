use std::time::{Duration, Instant};
use vmcell::{Command, ExecEvent, Vm};
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let vm = Vm::builder().image(&image).start().await?;
    for _ in 0..100 {
        vm.exec(["/bin/true"]).await?;
    }
    let (mut total, mut started, mut walls, mut pings) = (vec![], vec![], vec![], vec![]);
    for _ in 0..400 {
        let t = Instant::now();
        let mut s = vm.exec_stream(Command::new("/bin/true"))?;
        let mut wall = Duration::ZERO;
        while let Some(e) = s.next().await? {
            match e {
                ExecEvent::Started { .. } => started.push(t.elapsed()),
                ExecEvent::Exited(x) => wall = x.wall_time,
                _ => {}
            }
        }
        total.push(t.elapsed());
        walls.push(wall);
        pings.push(vm.health().await.round_trip.unwrap());
    }
    for (n, mut v) in [
        ("total", total),
        ("started", started),
        ("wall", walls),
        ("ping", pings),
    ] {
        v.sort();
        println!("{n} p50 {:?} min {:?}", v[v.len() / 2], v[0]);
    }
    Ok(())
}
