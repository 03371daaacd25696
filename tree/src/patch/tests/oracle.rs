//! Comparison with the results of `git` and `patch`.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use proptest::prelude::*;

use super::{super::Strip, *};
use crate::{
    diff::{Diff, DiffOptions, FileDiff, Manifest, ManifestEntry, ManifestKind},
    patch::TreeFile,
};

type Tree = BTreeMap<PathBuf, TreeFile>;

const SYMLINK: u32 = 0o120_000;

/// Simple names, and names that need quoting or contain spaces.
const NAMES: [&str; 6] = ["x", "dir/y", "dir/with blank", "dir\"\\/\n\t", "ü", "z b/z"];

fn text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => "[a-f]\n",
        1 => "[a-f]\r\n",
        1 => prop::sample::select(&["\n", "-- \n", "--- a/x\n", "+++ b/x\n", "@@ -1 +1 @@\n", "\\\n"][..])
            .prop_map(str::to_owned),
    ];
    (prop::collection::vec(line, 0..25), "[a-c]?")
        .prop_map(|(lines, end)| format!("{}{end}", lines.concat()).into_bytes())
}

fn file() -> impl Strategy<Value = TreeFile> {
    prop_oneof![
        4 => (text(), prop::sample::select(&[0o100_644, 0o100_755][..]))
            .prop_map(|(content, mode)| TreeFile { mode, content }),
        1 => "[a-z]{1,5}".prop_map(|target| TreeFile {
            mode: SYMLINK,
            content: target.into_bytes(),
        }),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    let name = prop::sample::select(&NAMES[..]).prop_map(PathBuf::from);
    prop::collection::btree_map(name, file(), 0..5)
}

/// Returns a digest of a content. The tests need no cryptographic one.
fn digest(content: &[u8]) -> [u8; 32] {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&hasher.finish().to_le_bytes());
    digest
}

fn our_diff(old: &Tree, new: &Tree) -> Vec<u8> {
    let manifest = |tree: &Tree| {
        let mut manifest = Manifest::new();
        for (path, TreeFile { mode, content }) in tree {
            let kind = match *mode {
                SYMLINK => ManifestKind::Symlink {
                    target: content.clone(),
                },
                _ => ManifestKind::File {
                    size: content.len() as u64,
                    sha256: digest(content),
                },
            };
            let mode = *mode;
            manifest.insert(path, ManifestEntry { kind, mode }).unwrap();
        }
        manifest
    };
    let content = |tree: &Tree, path: &Path| tree.get(path).map(|file| file.content.clone());
    let changes = Manifest::compare(&manifest(old), &manifest(new));
    let diff: Diff = changes
        .into_iter()
        .map(|change| {
            let (old, new) = (content(old, &change.path), content(new, &change.path));
            let options = DiffOptions::default();
            FileDiff::new(change, old.as_deref(), new.as_deref(), options)
        })
        .collect();
    let mut patch = Vec::new();
    diff.write_patch(&mut patch).unwrap();
    // The texts of these tests are UTF-8.
    assert_eq!(diff.to_string().as_bytes(), patch);
    patch
}

fn apply(patch: &[u8], strip: Strip, old: &Tree) -> Tree {
    let patch = Patch::parse_with(patch, strip).unwrap();
    let mut tree = old.clone();
    for (path, file) in patch.apply(old, ApplyOptions::default()).unwrap() {
        match file {
            Some(file) => tree.insert(path, file),
            None => tree.remove(&path),
        };
    }
    tree
}

fn write(root: &Path, tree: &Tree) {
    fs::create_dir_all(root).unwrap();
    for (path, TreeFile { mode, content }) in tree {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if *mode == SYMLINK {
            symlink(str::from_utf8(content).unwrap(), path).unwrap();
            continue;
        }
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o777)).unwrap();
    }
}

/// Reads the files at the paths that the tests use.
fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    for name in NAMES {
        let path = root.join(name);
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        let file = if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            TreeFile {
                mode: SYMLINK,
                content: target.into_os_string().into_encoded_bytes(),
            }
        } else {
            TreeFile {
                // The other bits that git sets depend on the umask.
                mode: 0o100_644 | (metadata.permissions().mode() & 0o111),
                content: fs::read(&path).unwrap(),
            }
        };
        tree.insert(name.into(), file);
    }
    tree
}

/// Runs a program with a text on its standard input. Returns `None` if the
/// machine does not have the program; git must exist.
fn run(directory: &Path, program: &str, arguments: &[&str], input: &[u8]) -> Option<Output> {
    let text = tempfile::NamedTempFile::new().unwrap();
    fs::write(text.path(), input).unwrap();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::from(fs::File::open(text.path()).unwrap()))
        .output();
    match output {
        Err(error) if error.kind() == ErrorKind::NotFound && program != "git" => None,
        output => Some(output.unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_diff_of_ours_makes_the_new_tree_by_our_hands_and_gits(old in tree(), new in tree()) {
        let patch = our_diff(&old, &new);
        prop_assume!(!patch.is_empty());
        prop_assert_eq!(&apply(&patch, Strip::Automatic, &old), &new);
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("tree");
        write(&directory, &old);
        let output = run(&directory, "git", &["apply", "--whitespace=nowarn", "-"], &patch).unwrap();
        prop_assert!(output.status.success(), "{}", String::from_utf8_lossy(&patch));
        prop_assert_eq!(read(&directory), new);
    }

    #[test]
    fn a_diff_of_gits_makes_the_new_tree(old in tree(), new in tree()) {
        prop_assume!(old != new);
        let root = tempfile::tempdir().unwrap();
        write(&root.path().join("old"), &old);
        write(&root.path().join("new"), &new);
        let arguments = [
            "diff", "--no-index", "--no-color", "-M20%", "-C20%", "--find-copies-harder", "old", "new",
        ];
        let output = run(root.path(), "git", &arguments, b"").unwrap();
        prop_assert_eq!(&apply(&output.stdout, Strip::Exactly(2), &old), &new);

        // Printed, it is a patch for git.
        let patch = Patch::parse_with(&output.stdout, Strip::Exactly(2)).unwrap();
        let mut printed = Vec::new();
        patch.write_patch(&mut printed).unwrap();
        prop_assert_eq!(&apply(&printed, Strip::Automatic, &old), &new);
        let directory = root.path().join("old");
        let arguments = ["apply", "--whitespace=nowarn", "-"];
        let output = run(&directory, "git", &arguments, &printed).unwrap();
        prop_assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&printed), String::from_utf8_lossy(&output.stderr));
        prop_assert_eq!(read(&directory), new);
    }

    /// Context diffs say the same as unified ones.
    #[test]
    fn a_context_diff_makes_the_new_file(old in text(), new in text()) {
        prop_assume!(old != new);
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("old"), &old).unwrap();
        fs::write(root.path().join("new"), &new).unwrap();
        for lines in ["0", "1", "3"] {
            let arguments = ["-a", "-C", lines, "--label=x", "--label=x", "old", "new"];
            if let Some(output) = run(root.path(), "diff", &arguments, b"") {
                let made = patched(&output.stdout, &old);
                prop_assert_eq!(made.ok(), Some(new.clone()), "{}", String::from_utf8_lossy(&output.stdout));
            }
        }
    }

    /// Where git or patch find a place for the hunks, we find the same.
    #[test]
    fn a_file_that_has_changed_meanwhile_is_patched_as_others_do_it(
        count in 1..40usize,
        edits in prop::collection::btree_map(0..40usize, "[A-Z]{0,2}\n", 1..4),
        meanwhile in prop::collection::btree_map(0..40usize, "[v-z]\n", 0..4),
    ) {
        let lines: Vec<String> = (0..count).map(|line| format!("{line}\n")).collect();
        let with = |edits: &BTreeMap<usize, String>, kept: bool| {
            let lines = lines.iter().enumerate();
            let lines = lines.map(|(index, line)| match edits.get(&index) {
                Some(edit) if kept => format!("{edit}{line}"),
                Some(edit) => edit.clone(),
                None => line.clone(),
            });
            lines.collect::<String>().into_bytes()
        };
        let tree = |content: Vec<u8>| {
            Tree::from([("x".into(), TreeFile { mode: 0o100_644, content })])
        };
        let patch = our_diff(&tree(lines.concat().into_bytes()), &tree(with(&edits, false)));
        prop_assume!(!patch.is_empty());
        let now = with(&meanwhile, true);
        let ours = patched(&patch, &now);

        for (program, arguments) in [
            ("git", &["apply", "--whitespace=nowarn", "-"][..]),
            ("patch", &["-p1", "--fuzz=0", "--force", "--silent"]),
        ] {
            let root = tempfile::tempdir().unwrap();
            let directory = root.path().join("tree");
            write(&directory, &tree(now.clone()));
            let output = run(&directory, program, arguments, &patch);
            if output.is_some_and(|output| output.status.success()) {
                let theirs = fs::read(directory.join("x")).unwrap();
                prop_assert_eq!(ours.as_ref().ok(), Some(&theirs), "{}", program);
            }
        }
    }
}
