//! Watching files.

use std::{collections::BTreeSet, path::Path, time::Duration};

use vmcell::files::{FileEventKind, FileFailureKind, Watch, Watcher};

use super::kind;
use crate::start;

/// Waits until all of these events were reported.
async fn expect(watcher: &mut Watcher, wanted: &[(FileEventKind, &str)]) {
    let mut wanted: BTreeSet<_> = wanted
        .iter()
        .map(|(kind, path)| (format!("{kind:?}"), Path::new(path).to_owned()))
        .collect();
    let all_reported = async {
        while !wanted.is_empty() {
            let change = watcher.next().await.unwrap().unwrap();
            wanted.remove(&(format!("{:?}", change.kind), change.path));
        }
    };
    let outcome = tokio::time::timeout(Duration::from_secs(60), all_reported).await;
    assert!(outcome.is_ok(), "never reported: {wanted:?}");
}

#[tokio::test]
async fn what_changes_below_a_directory_is_told() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    files.make_directory("w/sub").await.unwrap();
    let watch = Watch::new().recursive().debounce(Duration::from_millis(20));
    let mut watcher = files.watch("w", watch).await.unwrap();
    files.write("w/sub/file", "x").await.unwrap();
    expect(&mut watcher, &[(FileEventKind::Created, "w/sub/file")]).await;
    // A new directory is watched too, including what was in it before that.
    vm.exec([
        "sh",
        "-c",
        "mkdir -p /workspace/w/new/deep && echo x > /workspace/w/new/deep/a",
    ])
    .await
    .unwrap();
    expect(
        &mut watcher,
        &[
            (FileEventKind::Created, "w/new"),
            (FileEventKind::Created, "w/new/deep/a"),
        ],
    )
    .await;
    vm.exec([
        "sh",
        "-c",
        "echo y >> /workspace/w/new/deep/a; chmod 600 /workspace/w/sub/file",
    ])
    .await
    .unwrap();
    expect(
        &mut watcher,
        &[
            (FileEventKind::Modified, "w/new/deep/a"),
            (FileEventKind::Metadata, "w/sub/file"),
        ],
    )
    .await;
    files.rename("w/sub/file", "w/moved").await.unwrap();
    expect(
        &mut watcher,
        &[
            (FileEventKind::Removed, "w/sub/file"),
            (FileEventKind::Created, "w/moved"),
        ],
    )
    .await;
    files.remove_tree("w").await.unwrap();
    expect(&mut watcher, &[(FileEventKind::Removed, "w")]).await;
    while let Some(_change) = watcher.next().await.unwrap() {}
    let error = files.watch("nothing", Watch::new()).await.unwrap_err();
    assert_eq!(kind(error), FileFailureKind::NotFound);
}
