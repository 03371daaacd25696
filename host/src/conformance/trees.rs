//! Directory trees.

use std::{fs, os::unix::fs::symlink, path::Path};

use super::{
    check::{CheckResult, ensure, ensure_eq},
    context::CheckContext,
    streams::pattern,
};
use crate::{
    diff::ChangeKind,
    files::{ManifestOptions, PatchOptions},
};

pub(super) async fn round_trip(context: CheckContext) -> CheckResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().canonicalize()?;
    let (there, back) = (path.join("there"), path.join("back"));
    fs::create_dir_all(there.join("sub"))?;
    fs::write(there.join("sub/large"), pattern(2_000_000))?;
    fs::write(there.join("empty"), "")?;
    symlink("sub/large", there.join("link"))?;
    let files = context.vm.files();
    let guest = "/tmp/conformance/tree";
    files.push(&there, guest).run().await?;
    files.pull(guest, &back).run().await?;
    let same_bytes = |name: &str| -> Result<bool, std::io::Error> {
        Ok(fs::read(there.join(name))? == fs::read(back.join(name))?)
    };
    ensure(same_bytes("sub/large")? && same_bytes("empty")?, || {
        "a file came back changed".to_owned()
    })?;
    ensure_eq(
        "the link",
        fs::read_link(back.join("link"))?,
        Path::new("sub/large").to_owned(),
    )
}

pub(super) async fn changes(context: CheckContext) -> CheckResult {
    let files = context.folder("changes").await?;
    files.write("kept", "1").await?;
    files.write("changed", "1").await?;
    let options = ManifestOptions::new();
    let before = files.manifest("", options.clone()).await?;
    files.write("changed", "2").await?;
    files.write("new", "1").await?;
    let diff = files.diff("", &before, options).await?;
    let mut changes: Vec<_> = diff
        .files()
        .iter()
        .map(|file| {
            (
                file.change().path.to_string_lossy().into_owned(),
                file.change().kind(),
            )
        })
        .collect();
    changes.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = vec![
        ("changed".to_owned(), ChangeKind::Modified),
        ("new".to_owned(), ChangeKind::Added),
    ];
    ensure_eq("what changed", changes, expected)
}

pub(super) async fn patch(context: CheckContext) -> CheckResult {
    let files = context.folder("patch").await?;
    files.write("greeting", "hello\n").await?;
    let patch = "--- a/greeting\n+++ b/greeting\n@@ -1 +1 @@\n-hello\n+goodbye\n";
    files.apply_patch("", patch, PatchOptions::new()).await?;
    ensure_eq(
        "the file",
        files.read("greeting").await?,
        b"goodbye\n".to_vec(),
    )?;
    let again = files.apply_patch("", patch, PatchOptions::new()).await;
    ensure(again.is_err(), || "it was applied twice".to_owned())
}
