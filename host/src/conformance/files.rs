//! Single files.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    check::{CheckError, CheckResult, ensure, ensure_eq},
    context::CheckContext,
    streams::pattern,
};
use crate::{
    error::Error,
    files::{
        Entry, EntryKind, FileEventKind, FileFailureKind, ReadOptions, WalkOptions, Watch,
        WriteOptions,
    },
};

pub(super) async fn write_and_read(context: CheckContext) -> CheckResult {
    let files = context.folder("write").await?;
    let bytes = pattern(300_000);
    files.write("deep/down/file", bytes.clone()).await?;
    ensure(files.read("deep/down/file").await? == bytes, || {
        "what is read is not what was written".to_owned()
    })?;
    let part = ReadOptions::new().range(1000, 5);
    let part = files.read_with("deep/down/file", part).await?;
    ensure(bytes.get(1000..1005) == Some(&part[..]), || {
        format!("the part is {part:?}")
    })?;
    files.write("log", "one\n").await?;
    files
        .write_with("log", "two\n", WriteOptions::new().append())
        .await?;
    ensure_eq("the log", files.read("log").await?, b"one\ntwo\n".to_vec())?;
    let absent = WriteOptions::new().only_if_absent();
    let refused = files.write_with("log", "three\n", absent).await;
    ensure_kind("writing what is there", refused, FileFailureKind::Conflict)?;
    files.sync("log").await?;
    let seen = context.shell("cat /tmp/conformance/write/log").await?;
    ensure_eq("what the guest sees", seen, "one\ntwo\n".to_owned())
}

pub(super) async fn stat(context: CheckContext) -> CheckResult {
    let files = context.folder("stat").await?;
    files.write("file", "hello\n").await?;
    let entry = files.stat("file").await?;
    ensure_eq("the kind", entry.kind, EntryKind::File)?;
    ensure_eq("the size", entry.size, 6)?;
    ensure_eq("whether it exists", files.exists("file").await?, true)?;
    ensure_eq(
        "whether another exists",
        files.exists("other").await?,
        false,
    )?;
    let digest = files.sha256("file").await?;
    ensure_eq(
        "the digest begins",
        digest.get(..2),
        Some(&[0x58, 0x91][..]),
    )?;
    let usage = files.usage("").await?;
    ensure(usage.bytes >= 6, || format!("the usage is {usage:?}"))
}

pub(super) async fn list(context: CheckContext) -> CheckResult {
    let files = context.folder("list").await?;
    for name in ["b.txt", "a.txt", "sub/c.txt", "sub/d.rs"] {
        files.write(name, name).await?;
    }
    ensure_eq(
        "the list",
        paths(files.list("").await?),
        names(&["a.txt", "b.txt", "sub"]),
    )?;
    ensure_eq(
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
    ensure_eq("the walk", paths(walked), names(&all))
}

pub(super) async fn rename_and_copy(context: CheckContext) -> CheckResult {
    let files = context.folder("rename").await?;
    files.make_directory("directory").await?;
    files.write("directory/one", "1").await?;
    files.rename("directory/one", "directory/two").await?;
    files.write("directory/one", "2").await?;
    let taken = files.rename_new("directory/one", "directory/two").await;
    ensure_kind(
        "renaming to what is there",
        taken,
        FileFailureKind::Conflict,
    )?;
    files.copy("directory/two", "copy").await?;
    files.symlink("directory/two", "link").await?;
    ensure_eq(
        "the link",
        files.read_link("link").await?,
        PathBuf::from("directory/two"),
    )?;
    ensure_eq("what it leads to", files.read("link").await?, b"1".to_vec())?;
    ensure_eq(
        "itself",
        files.stat_link("link").await?.kind,
        EntryKind::Symlink,
    )?;
    files.remove("link").await?;
    ensure_eq("the copy", files.read("copy").await?, b"1".to_vec())?;
    files.remove_tree("directory").await?;
    ensure_eq(
        "what is left",
        paths(files.list("").await?),
        names(&["copy"]),
    )
}

pub(super) async fn attributes(context: CheckContext) -> CheckResult {
    let files = context.folder("attributes").await?;
    files.write("file", "").await?;
    ensure_eq("the mode", files.set_mode("file", 0o640).await?.mode, 0o640)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    ensure_eq("the time", files.touch("file", time).await?.modified, time)?;
    let made = files.make_directory_with_mode("private", 0o700).await?;
    ensure_eq("the mode of a directory", made.mode, 0o700)?;
    let owned = files.set_owner("file", "0:0").await?;
    ensure_eq("the owner", (owned.uid, owned.gid), (0, 0))
}

pub(super) async fn watch(context: CheckContext) -> CheckResult {
    let files = context.folder("watch").await?;
    let mut watcher = files
        .watch("", Watch::new().debounce(Duration::ZERO))
        .await?;
    files.write("file", "1").await?;
    while let Some(change) = watcher.next().await? {
        if change.kind == FileEventKind::Created && change.path == Path::new("file") {
            return Ok(());
        }
    }
    Err(CheckError::failed("the watcher ended"))
}

pub(super) async fn refusals(context: CheckContext) -> CheckResult {
    let files = context.folder("refusals").await?;
    ensure_kind(
        "a missing file",
        files.read("missing").await,
        FileFailureKind::NotFound,
    )?;
    files.symlink("/etc", "out").await?;
    ensure_kind(
        "a link that leads out",
        files.read("out/passwd").await,
        FileFailureKind::Denied,
    )?;
    let climbing = files.read("../../../etc/passwd").await;
    ensure(climbing.is_err(), || "`..` leads out".to_owned())
}

fn ensure_kind<T>(what: &str, result: Result<T, Error>, kind: FileFailureKind) -> CheckResult {
    match result {
        Ok(_) => Err(CheckError::failed(format!("{what} worked"))),
        Err(Error::File(failure)) => ensure_eq(what, failure.kind, kind),
        Err(error) => Err(CheckError::failed(format!("{what} is {error:?}"))),
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
