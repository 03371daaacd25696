//! Many snapshots: the layers that they leave behind are merged.

use std::{fs, path::PathBuf};

use vmcell::{
    disk::image::{Image, OpenOptions},
    workspace::{BASELINE, Workspace},
};

use crate::{Store, new, shell};

/// Returns the files of the layers.
fn files(store: &Store, workspace: &Workspace) -> Vec<PathBuf> {
    let folder = store.root.path().join("workspaces").join(workspace.id());
    let entries = fs::read_dir(folder.join("layers")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Returns how many layers the longest chain has, by the headers of the files and without
/// the image.
fn longest_chain(store: &Store, workspace: &Workspace) -> usize {
    let length = |path: PathBuf| {
        let options = OpenOptions::new().allow_backing("/").allow_in_use(true);
        let image = Image::open(path, options).unwrap();
        image.layers().unwrap().len() - 1
    };
    let files = files(store, workspace).into_iter();
    files.map(length).max().unwrap()
}

#[tokio::test]
async fn thirty_snapshots_that_are_taken_and_deleted_leave_a_short_chain() {
    const LINE: &str = "cat file; cat data | md5sum";
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    let mut kept = Vec::new();
    for number in 0..30 {
        // Each has its own file, a part of a file that all write to, and a file that the
        // next one removes.
        let line = format!(
            "echo {number} > file; touch own-{number}; rm -f gone-*; \
             head -c 200000 /dev/urandom > gone-{number}; \
             dd if=/dev/urandom of=data bs=4k count=20 seek={} conv=notrunc 2>/dev/null",
            number % 7 * 10
        );
        shell(&workspace, &line).await;
        let expected = shell(&workspace, LINE).await;
        // Some are taken while it is stopped.
        if number % 6 == 5 {
            workspace.stop().await.unwrap();
            workspace.snapshot(&format!("s{number}")).await.unwrap();
            workspace.start().await.unwrap();
        } else {
            workspace.snapshot(&format!("s{number}")).await.unwrap();
        }
        kept.push((number, expected));
        // Three are kept, not always the last ones.
        if kept.len() > 3 {
            let (old, _) = kept.remove(number % 3);
            workspace.delete_snapshot(&format!("s{old}")).await.unwrap();
        }
        let (longest, files) = (
            longest_chain(&store, &workspace),
            files(&store, &workspace).len(),
        );
        assert!(longest <= 16, "{number}: {longest}");
        assert!(files <= 20, "{number}: {files}");
        if number % 10 == 9 {
            for (number, expected) in &kept {
                workspace.reset(&format!("s{number}")).await.unwrap();
                assert_eq!(shell(&workspace, LINE).await, *expected, "{number}");
                let names = shell(&workspace, "ls").await;
                assert!(names.contains(&format!("own-{number}\n")), "{names}");
                assert!(names.contains(&format!("gone-{number}\n")), "{names}");
                assert_eq!(names.matches("gone-").count(), 1, "{names}");
                assert_eq!(names.matches("own-").count(), number + 1, "{names}");
            }
        }
    }

    // A fork of one that was merged, which then goes on without it.
    let (number, expected) = kept.first().unwrap();
    let fork = workspace.fork(&format!("s{number}"), |new| new).await;
    let fork = fork.unwrap();
    workspace.stop().await.unwrap();
    let disk = workspace.disk().await.unwrap();
    let (last, _) = kept.last().unwrap();
    let text = disk.read("/workspace/file").unwrap();
    assert_eq!(text, format!("{last}\n").as_bytes());
    drop(disk);
    fork.start().await.unwrap();
    assert_eq!(shell(&fork, LINE).await, *expected);
    workspace.delete().await.unwrap();
    fork.reset(BASELINE).await.unwrap();
    assert_eq!(shell(&fork, LINE).await, *expected);
    fork.delete().await.unwrap();
    assert!(store.files().is_empty());
}

#[tokio::test]
async fn a_workspace_that_never_stops_has_room_for_15_snapshots_and_more_when_it_was_started_again()
{
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    let take = async |number: usize| {
        shell(&workspace, &format!("echo {number} > file")).await;
        workspace.snapshot(&number.to_string()).await
    };
    for number in 0..14 {
        take(number).await.unwrap();
    }
    assert_eq!(longest_chain(&store, &workspace), 16);
    let error = take(14).await.unwrap_err();
    assert_eq!(error.code(), "too-many-layers");
    assert!(error.to_string().contains("delete snapshots"), "{error}");
    // A fork is made while all of them are there.
    let fork = workspace.fork("7", |new| new).await.unwrap();

    for number in 3..13 {
        workspace
            .delete_snapshot(&number.to_string())
            .await
            .unwrap();
    }
    let error = take(14).await.unwrap_err();
    assert!(error.to_string().contains("stop and start it"), "{error}");
    assert_eq!(shell(&workspace, "cat file").await, "14\n");
    workspace.stop().await.unwrap();
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "14\n");
    // The baseline, 0, 1, 2, 13 and the top.
    assert_eq!(files(&store, &workspace).len(), 6);
    assert_eq!(longest_chain(&store, &workspace), 6);
    take(14).await.unwrap();
    for number in [13, 2, 14, 0] {
        workspace.reset(&number.to_string()).await.unwrap();
        assert_eq!(shell(&workspace, "cat file").await, format!("{number}\n"));
    }
    fork.start().await.unwrap();
    assert_eq!(shell(&fork, "cat file").await, "7\n");
    // It had the old files, and has merged them for itself.
    assert_eq!(files(&store, &fork).len(), 2);
    workspace.delete().await.unwrap();
    assert_eq!(shell(&fork, "cat file").await, "7\n");
    fork.delete().await.unwrap();
}
