//! Files and trees.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use sha2::{Digest as _, Sha256};
use vmcell::{Vm, files::ManifestOptions};

use crate::{random::Random, setup};

type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// Copies a tree in, changes it, and copies it out again.
pub(super) async fn tree(vm: &Vm, random: &mut Random) -> Result<()> {
    let folder = setup::scratch()?;
    let source = folder.path().join("source");
    let mut tree = random_tree(random);
    write(&source, &tree)?;
    let root = format!("/tmp/tree-{}", random.name());
    let files = vm.files().at("/");
    files.push(&source, &root).run().await?;
    let options = || ManifestOptions::new().keep_texts(8 << 20);
    let before = files.manifest(&root, options()).await?;
    // Some change, and some are new.
    let changed: Vec<_> = tree.keys().filter(|_| random.one_in(3)).cloned().collect();
    for path in changed {
        let size = random.size_below(50_000);
        tree.insert(path, random.bytes(size));
    }
    tree.insert(random.name().into(), random.bytes(10));
    write(&source, &tree)?;
    files.push(&source, &root).run().await?;
    let diff = files.diff(&root, &before, options()).await?;
    ensure!(!diff.files().is_empty(), "a diff does not have a new file");
    let back = folder.path().join("back");
    files.pull(&root, &back).run().await?;
    let received = read(&back, &back)?;
    ensure!(received == tree, "a tree has come back as another one");
    files.remove_tree(&root).await?;
    ensure!(!files.exists(&root).await?, "{root} is still there");
    Ok(())
}

/// Writes files and reads them, and lets the guest compute their digests.
pub(super) async fn whole_files(vm: &Vm, random: &mut Random) -> Result<()> {
    let files = vm.files().at("/tmp");
    for _ in 0..random.below(6) + 1 {
        let name = random.name();
        let count = random.size_below(1 << 20);
        let bytes = random.bytes(count);
        files.write(&name, bytes.clone()).await?;
        ensure!(
            files.read(&name).await? == bytes,
            "{count} bytes were read as others"
        );
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        ensure!(
            files.sha256(&name).await? == digest,
            "a digest is another one"
        );
        let output = vm.exec(["sha256sum", &format!("/tmp/{name}")]).await?;
        let expected: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        ensure!(output.stdout_text().starts_with(&expected), "{output:?}");
        files.remove(&name).await?;
    }
    Ok(())
}

/// Returns files with random contents in a few folders.
pub(crate) fn random_tree(random: &mut Random) -> Tree {
    let count = random.size_below(100) + 1;
    let file = |_| {
        let folder = PathBuf::from(format!("folder-{}", random.below(5)));
        let size = random.size_below(100_000);
        (folder.join(random.name()), random.bytes(size))
    };
    (0..count).map(file).collect()
}

pub(crate) fn write(folder: &Path, tree: &Tree) -> Result<()> {
    for (path, bytes) in tree {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// Reads all files below a folder.
pub(crate) fn read(root: &Path, folder: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => tree.extend(read(root, &path)?),
            false => {
                let bytes = fs::read(&path)?;
                tree.insert(path.strip_prefix(root)?.to_owned(), bytes);
            }
        }
    }
    Ok(tree)
}
