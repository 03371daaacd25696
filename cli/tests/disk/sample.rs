//! A tree with many kinds of entries, and an image of it.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, symlink},
    },
    path::{Path, PathBuf},
};

pub(crate) use crate::sample_image::{Sample, pattern, run, tool};
use crate::sample_image::{create_common_entries, create_image, write};

/// The options of `mke2fs`.
const OPTIONS: [&str; 4] = ["-t", "ext4", "-b", "4096"];

/// Names with escape sequences, line breaks, invalid UTF-8 and other oddities.
pub(crate) const ODD_NAMES: [&[u8]; 6] = [
    b"esc\x1b[31m",
    b"new\nline",
    b"bad\xff",
    b"back\\slash",
    b"lone\x9b31m",
    "bidi\u{202e}txt.exe".as_bytes(),
];

impl Sample {
    pub(crate) fn new() -> Self {
        Self::create(&OPTIONS, create_tree)
    }

    /// Creates an image of a tree.
    pub(crate) fn make(&self, tree: &Path, name: &str) -> PathBuf {
        let image = self.path(name);
        create_image(&OPTIONS, tree, &image);
        image
    }

    /// Returns the number of entries in the temporary directory.
    pub(crate) fn count(&self) -> usize {
        fs::read_dir(self.path("")).unwrap().count()
    }
}

fn create_tree(tree: &Path) {
    create_common_entries(tree, b"fn main() {\n    hello();\n}\n");
    write(tree, "etc/group", b"root:x:0:\n", 0o644);
    write(tree, "bin/tool", &pattern(300_000), 0o755);
    fs::create_dir(tree.join("odd")).unwrap();
    for name in ODD_NAMES {
        let path = tree.join("odd").join(OsStr::from_bytes(name));
        fs::write(path, b"odd\n").unwrap();
    }
    let sparse = fs::File::create(tree.join("sparse")).unwrap();
    sparse.write_all_at(b"in the middle", 1_500_000).unwrap();
    sparse.set_len(6_000_000).unwrap();
    symlink("etc/group", tree.join("link")).unwrap();
}
