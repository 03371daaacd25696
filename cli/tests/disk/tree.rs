//! `vmcell-disk tree`.

use serde_json::json;

use crate::{program::disk, sample::Sample};

#[test]
fn branches_end_where_directories_do() {
    let sample = Sample::new();
    let image = sample.image();
    let tree = |more: &[&str]| {
        let first = ["tree".as_ref(), image.as_os_str()];
        disk(
            first
                .into_iter()
                .chain(more.iter().map(std::ffi::OsStr::new)),
        )
    };
    let drawn = "\
/src
├── deep
│   └── er
│       └── lib.rs
├── empty
├── main.rs
└── same.rs

2 directories, 4 files
";
    assert_eq!(tree(&["/src"]).printed(), drawn);
    let drawn = "\
/src
├── deep
├── empty
├── main.rs
└── same.rs

1 directory, 3 files
";
    assert_eq!(tree(&["/src", "--depth", "1"]).printed(), drawn);
    let whole = tree(&[]).printed();
    assert!(
        whole.starts_with("/\n├── bin\n│   └── tool\n├── etc\n"),
        "{whole}"
    );
    assert!(whole.contains("├── link -> etc/group\n"), "{whole}");
    assert!(
        whole.contains("└── src\n    ├── deep\n    │   └── er\n"),
        "{whole}"
    );
    // A name cannot add a line to the tree, even in a file.
    assert!(whole.contains("── new\u{fffd}line\n"), "{whole}");
    let entries = tree(&["/src", "--json"]).json();
    assert_eq!(entries.len(), 6);
    assert_eq!(entries[2]["path"], json!("/src/deep/er/lib.rs"));
    tree(&["/nowhere"]).assert_failed(125, "nothing at /nowhere");
}
