//! Single files.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    scene::Scene,
    streams::pattern,
    unmet::{Seen, Unmet, demand, same},
};
use crate::{
    error::Error,
    files::{
        Entry, EntryKind, FileEventKind, FileFailureKind, ReadOptions, WalkOptions, Watch,
        WriteOptions,
    },
};

pub(super) async fn write_and_read(scene: Scene) -> Seen {
    let files = scene.folder("write").await?;
    let bytes = pattern(300_000);
    files.write("deep/down/file", bytes.clone()).await?;
    demand(files.read("deep/down/file").await? == bytes, || {
        "what is read is not what was written".to_owned()
    })?;
    let part = ReadOptions::new().range(1000, 5);
    let part = files.read_with("deep/down/file", part).await?;
    demand(bytes.get(1000..1005) == Some(&part[..]), || {
        format!("the part is {part:?}")
    })?;
    files.write("log", "one\n").await?;
    files
        .write_with("log", "two\n", WriteOptions::new().append())
        .await?;
    same("the log", files.read("log").await?, b"one\ntwo\n".to_vec())?;
    let absent = WriteOptions::new().only_if_absent();
    let refused = files.write_with("log", "three\n", absent).await;
    refused_as("writing what is there", refused, FileFailureKind::Conflict)?;
    files.sync("log").await?;
    let seen = scene.shell("cat /tmp/conformance/write/log").await?;
    same("what the guest sees", seen, "one\ntwo\n".to_owned())
}

pub(super) async fn stat(scene: Scene) -> Seen {
    let files = scene.folder("stat").await?;
    files.write("file", "hello\n").await?;
    let entry = files.stat("file").await?;
    same("the kind", entry.kind, EntryKind::File)?;
    same("the size", entry.size, 6)?;
    same("whether it exists", files.exists("file").await?, true)?;
    same(
        "whether another exists",
        files.exists("other").await?,
        false,
    )?;
    let digest = files.sha256("file").await?;
    same(
        "the digest begins",
        digest.get(..2),
        Some(&[0x58, 0x91][..]),
    )?;
    let usage = files.usage("").await?;
    demand(usage.bytes >= 6, || format!("the usage is {usage:?}"))
}

pub(super) async fn list(scene: Scene) -> Seen {
    let files = scene.folder("list").await?;
    for name in ["b.txt", "a.txt", "sub/c.txt", "sub/d.rs"] {
        files.write(name, name).await?;
    }
    same(
        "the list",
        paths(files.list("").await?),
        names(&["a.txt", "b.txt", "sub"]),
    )?;
    same(
        "the glob",
        paths(files.glob("**/*.rs").await?),
        names(&["sub/d.rs"]),
    )?;
    let mut walk = files.walk("", WalkOptions::new()).await?;
    let mut walked = Vec::new();
    while let Some(entry) = walk.next().await? {
        walked.push(entry);
    }
    let all = ["a.txt", "b.txt", "sub", "sub/c.txt", "sub/d.rs"];
    same("the walk", paths(walked), names(&all))
}

pub(super) async fn rename_and_copy(scene: Scene) -> Seen {
    let files = scene.folder("rename").await?;
    files.make_directory("directory").await?;
    files.write("directory/one", "1").await?;
    files.rename("directory/one", "directory/two").await?;
    files.write("directory/one", "2").await?;
    let taken = files.rename_new("directory/one", "directory/two").await;
    refused_as(
        "renaming to what is there",
        taken,
        FileFailureKind::Conflict,
    )?;
    files.copy("directory/two", "copy").await?;
    files.symlink("directory/two", "link").await?;
    same(
        "the link",
        files.read_link("link").await?,
        PathBuf::from("directory/two"),
    )?;
    same("what it leads to", files.read("link").await?, b"1".to_vec())?;
    same(
        "itself",
        files.stat_link("link").await?.kind,
        EntryKind::Symlink,
    )?;
    files.remove("link").await?;
    same("the copy", files.read("copy").await?, b"1".to_vec())?;
    files.remove_tree("directory").await?;
    same(
        "what is left",
        paths(files.list("").await?),
        names(&["copy"]),
    )
}

pub(super) async fn attributes(scene: Scene) -> Seen {
    let files = scene.folder("attributes").await?;
    files.write("file", "").await?;
    same("the mode", files.set_mode("file", 0o640).await?.mode, 0o640)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    same("the time", files.touch("file", time).await?.modified, time)?;
    let made = files.make_directory_with_mode("private", 0o700).await?;
    same("the mode of a directory", made.mode, 0o700)?;
    let owned = files.set_owner("file", "0:0").await?;
    same("the owner", (owned.uid, owned.gid), (0, 0))
}

pub(super) async fn watch(scene: Scene) -> Seen {
    let files = scene.folder("watch").await?;
    let mut watcher = files
        .watch("", Watch::new().debounce(Duration::ZERO))
        .await?;
    files.write("file", "1").await?;
    while let Some(change) = watcher.next().await? {
        if change.kind == FileEventKind::Created && change.path == Path::new("file") {
            return Ok(());
        }
    }
    Err(Unmet::failed("the watcher ended"))
}

pub(super) async fn refusals(scene: Scene) -> Seen {
    let files = scene.folder("refusals").await?;
    refused_as(
        "a missing file",
        files.read("missing").await,
        FileFailureKind::NotFound,
    )?;
    files.symlink("/etc", "out").await?;
    refused_as(
        "a link that leads out",
        files.read("out/passwd").await,
        FileFailureKind::Denied,
    )?;
    let climbing = files.read("../../../etc/passwd").await;
    demand(climbing.is_err(), || "`..` leads out".to_owned())
}

fn refused_as<T>(what: &str, result: Result<T, Error>, kind: FileFailureKind) -> Seen {
    match result {
        Ok(_) => Err(Unmet::failed(format!("{what} worked"))),
        Err(Error::File(failure)) => same(what, failure.kind, kind),
        Err(error) => Err(Unmet::failed(format!("{what} is {error:?}"))),
    }
}

fn paths(entries: Vec<Entry>) -> Vec<PathBuf> {
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path).collect();
    paths.sort();
    paths
}

fn names(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}
