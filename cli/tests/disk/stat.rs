//! `vmcell-disk stat`.

use serde_json::json;

use crate::{program::disk, sample::Sample};

#[test]
fn everything_about_an_entry_is_told() {
    let sample = Sample::new();
    let image = sample.changed(
        "changed.ext4",
        "ea_set /src/main.rs user.colour blue\nea_set /src/main.rs user.raw -f /dev/null\n\
         set_inode_field /src/main.rs uid 1234\n",
    );
    let stat = |more: &[&str]| {
        let first = ["stat".as_ref(), image.as_os_str()];
        disk(
            first
                .into_iter()
                .chain(more.iter().map(std::ffi::OsStr::new)),
        )
    };
    let text = stat(&["/src/main.rs", "--sha256"]).printed();
    for line in [
        "path       /src/main.rs\n",
        "type       file\n",
        "size       27\n",
        "mode       0644 -rw-r--r--\n",
        "owner      1234 (1234)\n",
        "modified   2017-07-14 02:40:00 UTC\n",
        "links      2\n",
        "inode      ",
        "accessed   20",
        "created    20",
        "flags      0x80000\n",
        "xattr      user.colour = \"blue\"\n",
        "sha256     ",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let both = stat(&["link", "/pipe"]).printed();
    assert!(
        both.starts_with("path       /link -> etc/group\ntype       symlink\n"),
        "{both}"
    );
    assert!(
        both.contains("\n\npath       /pipe\ntype       fifo\n"),
        "{both}"
    );

    let parsed = stat(&["/src/main.rs", "/link", "--json"]).json();
    assert_eq!(parsed[0]["uid"], json!(1234));
    let colour = json!({ "name": "user.colour", "value": "blue" });
    let mut attributes = parsed[0]["xattrs"].as_array().unwrap().iter();
    assert!(
        attributes.any(|attribute| *attribute == colour),
        "{parsed:?}"
    );
    assert_eq!(parsed[1]["type"], json!("symlink"));
    let ended = stat(&["/nowhere", "/link"]);
    ended.assert_failed(1, "nothing at /nowhere");
    assert!(ended.stdout().contains("type       symlink\n"));
    let parsed = stat(&["/nowhere", "--json"]).json();
    assert_eq!(parsed[0]["problem"]["path"], json!("/nowhere"));
}
