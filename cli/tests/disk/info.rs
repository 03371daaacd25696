//! `vmcell-disk info`.

use serde_json::json;

use crate::{
    program::disk,
    sample::{Sample, run, tool},
};

#[test]
fn a_disk_tells_what_it_is() {
    let sample = Sample::new();
    let image = sample.image();
    let uuid = "01234567-89ab-cdef-0123-456789abcdef";
    let mut tune = tool("tune2fs");
    run(tune.args(["-U", uuid, "-L", "my\tdisk"]).arg(&image));
    let text = disk(["info".as_ref(), image.as_os_str()]).printed();
    for line in [
        "size           33554432 (32M)\n",
        "label          my\u{fffd}disk\n",
        "uuid           01234567-89ab-cdef-0123-456789abcdef\n",
        "block size     4096\n",
        "last mount     never\n",
        "clean          yes\n",
        "journal        clean\n",
        "LAYER  SIZE  ALLOCATED  SEALED  PATH\nraw    32M ",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let parsed = disk(["info".as_ref(), image.as_os_str(), "--json".as_ref()]).json();
    assert_eq!(parsed.len(), 1);
    let file_system = &parsed[0]["file_system"];
    assert_eq!(file_system["uuid"], json!(uuid));
    assert_eq!(file_system["blocks"], json!(8192));
    assert_eq!(file_system["clean"], json!(true));
    let mut features = file_system["features"].as_array().unwrap().iter();
    assert!(features.any(|feature| feature == "extent"));
    assert_eq!(parsed[0]["layers"][0]["format"], json!("raw"));
    assert_eq!(parsed[0]["partitions"], json!([]));
}

#[test]
fn of_a_disk_that_cannot_be_read_the_rest_is_told() {
    let sample = Sample::new();
    let image = sample.path("empty.raw");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    let ended = disk(["info".as_ref(), image.as_os_str()]);
    ended.assert_failed(
        1,
        "neither an ext2, ext3 or ext4 file system nor partitions",
    );
    assert!(ended.stdout().contains("size           1048576 (1.0M)\n"));
    let parsed = disk(["info".as_ref(), image.as_os_str(), "--json".as_ref()]).json();
    assert_eq!(parsed[0]["problem"]["code"], json!("disk-partition"));
    assert_eq!(parsed[0]["size"], json!(1 << 20));
}
