//! The memory that diffs take on the host.

use std::time::Duration;

use vmcell::{Command, diff::PatchDetail, files::ManifestOptions};

use crate::start;

/// With hard links a guest can have one text under thousands of names without
/// using space.
#[tokio::test]
async fn a_text_with_many_names_does_not_fill_the_memory() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let options = ManifestOptions::new();
    let before = files.manifest("", options.clone()).await.unwrap();
    // Each round doubles the names: in the end 128 names share one text of 1
    // MiB.
    let script = "cd /workspace && mkdir top && seq 1000000 | head -c 1048576 > top/text &&
        for round in 1 2 3 4 5 6 7; do cp -rl top more && mv more top/$round; done";
    let command = Command::shell(script).timeout(Duration::from_secs(180));
    let output = vm.exec_command(command).await.unwrap();
    assert_eq!(output.stderr_text(), "");

    let diff = files.diff("", &before, options.clone()).await.unwrap();
    let texts: Vec<_> = diff
        .files()
        .iter()
        .filter(|file| file.change().path.ends_with("text"))
        .collect();
    assert_eq!(texts.len(), 128);
    let shown = |how| texts.iter().filter(|text| text.detail() == how).count();
    assert!(
        (32..64).contains(&shown(PatchDetail::Full)),
        "{}",
        shown(PatchDetail::Full)
    );
    assert_eq!(shown(PatchDetail::Full) + shown(PatchDetail::NameOnly), 128);
    let sum: usize = diff.files().iter().map(|file| file.patch().len()).sum();
    assert!(sum < 65 << 20, "{sum}");
}
