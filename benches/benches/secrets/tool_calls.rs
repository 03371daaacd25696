//! Calls of the tool, compared with a restored VM that runs the same command.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;
use vmcell::{
    Template, Vm,
    tool::{Tool, ToolImage, ToolPolicy, ToolRequest},
};
use vmcell_benches::summary::{Bound, median_round, row};

const ROUNDS: usize = 25;

const REQUEST: &str = r#"{
    "image": "small",
    "command": ["true"],
    "network": { "mode": "none" },
    "state": { "retention": "destroy" }
}"#;

pub(crate) fn measure(runtime: &Runtime) -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let folder = tempfile::tempdir()?;
    runtime.block_on(async {
        let small = ToolImage {
            memory_mib: Some(128),
            ..ToolImage::environment("base")
        };
        let path = image.clone();
        let tool = Tool::builder(ToolPolicy::new().image("small", small))
            .state_folder(folder.path())
            .environments(move |_| Ok::<_, std::io::Error>(path.clone()))
            .build()?;
        let request: ToolRequest = serde_json::from_str(REQUEST)?;
        let vm = Vm::builder().image(&image).memory_mib(128);
        let template = Template::builder(vm).get().await?;
        let mut rounds = Vec::new();
        for round in 0..=ROUNDS {
            let begun = Instant::now();
            let result = tool.run(request.clone()).await?;
            let called = begun.elapsed();
            ensure!(result.output.success(), "{result:?}");
            let begun = Instant::now();
            let vm = template.start().await?;
            ensure!(vm.exec(["true"]).await?.success());
            let restored = begun.elapsed();
            vm.kill().await?;
            // The first call makes the template.
            if round > 0 {
                rounds.push((called, restored));
            }
        }
        let (called, restored) = median_round(rounds);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        row(
            "`Tool::run` of `true` from a warm template, destroy and receipt included",
            &format!("{:.0} ms", ms(called)),
            &format!("{:.0} ms (restore and exec)", ms(restored)),
            called.as_secs_f64() / restored.as_secs_f64(),
            Bound::AtMost(1.3),
        );
        Ok(())
    })
}
