//! Images of containers that mean no good.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use vmcell_rootfs::oci::{ImageProblem, ImageSource, OciImage};
use vmcell_rootfs::{Cache, Error, Recipe as _, Tree};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A layout that is written by hand.
struct Layout(TempDir);

impl Layout {
    fn new() -> Self {
        let layout = Self(TempDir::new().unwrap());
        fs::create_dir_all(layout.0.path().join("blobs/sha256")).unwrap();
        layout
    }

    fn digest(bytes: &[u8]) -> String {
        let digest = Sha256::digest(bytes);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Writes a blob, and returns its descriptor.
    fn blob(&self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = Self::digest(bytes);
        fs::write(self.0.path().join("blobs/sha256").join(&digest), bytes).unwrap();
        json!({
            "mediaType": media_type,
            "digest": format!("sha256:{digest}"),
            "size": bytes.len(),
        })
    }

    /// Writes an image with one layer, an archive, after a function has changed its manifest and
    /// its configuration.
    fn image(&self, archive: &[u8], change: impl FnOnce(&mut Value, &mut Value)) {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(archive).unwrap();
        let layer = self.blob(LAYER, &gzip.finish().unwrap());
        let mut config = json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", Self::digest(archive))] },
        });
        let mut manifest = json!({ "schemaVersion": 2, "layers": [layer] });
        change(&mut manifest, &mut config);
        let config = config.to_string();
        if manifest.get("config").is_none() {
            let media_type = "application/vnd.oci.image.config.v1+json";
            manifest["config"] = self.blob(media_type, config.as_bytes());
        }
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = self.blob(media_type, manifest.to_string().as_bytes());
        self.index(&json!({ "schemaVersion": 2, "manifests": [manifest] }));
    }

    fn index(&self, index: &Value) {
        fs::write(self.0.path().join("index.json"), index.to_string()).unwrap();
    }

    fn open(&self) -> Result<OciImage, Error> {
        let text = format!("oci:{}", self.0.path().display());
        OciImage::open(&ImageSource::parse(OsStr::new(&text)).unwrap())
    }

    fn tree(&self) -> Result<Tree, Error> {
        self.open()?.tree()
    }

    #[track_caller]
    fn assert_refused(&self, said: &str) {
        let error = self.tree().unwrap_err();
        assert!(matches!(error, Error::Image { .. }), "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
        // Nor is there a disk, or a part of one.
        let cache = TempDir::new().unwrap();
        let image = self.open();
        let image = image.and_then(|image| Cache::at(cache.path()).image(&image));
        assert!(image.is_err());
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    }
}

fn header(name: &[u8], kind: tar::EntryType, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(size);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_cksum();
    header.as_bytes().to_vec()
}

const END: [u8; 1024] = [0; 1024];

#[test]
fn documents_are_checked_before_they_are_believed() {
    let layout = Layout::new();
    layout.image(&END, |_, _| {});
    assert_eq!(layout.tree().unwrap().iter().count(), 1);
    type Change = fn(&mut Value, &mut Value);
    let changes: [(Change, &str); 8] = [
        (
            |manifest, _| manifest["layers"][0]["mediaType"] = "text/plain".into(),
            "unknown type",
        ),
        (
            |manifest, _| {
                let foreign = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";
                manifest["layers"][0]["mediaType"] = foreign.into();
            },
            "does not allow",
        ),
        (
            |manifest, _| {
                manifest["layers"][0]["digest"] = format!("sha512:{}", "a".repeat(128)).into();
            },
            "none of SHA-256",
        ),
        (
            |manifest, _| manifest["layers"][0]["size"] = 1.into(),
            "in place of 1",
        ),
        (
            |manifest, _| manifest["layers"] = json!([]),
            "number of layers",
        ),
        (
            |manifest, _| manifest["layers"] = json!({}),
            "manifest is wrong",
        ),
        (
            |_, config| config["architecture"] = "s390x".into(),
            "linux/s390x",
        ),
        (
            |_, config| {
                config["rootfs"]["diff_ids"][0] = format!("sha256:{}", "0".repeat(64)).into();
            },
            "in place of sha256:000",
        ),
    ];
    for (change, said) in changes {
        layout.image(&END, change);
        layout.assert_refused(said);
    }
}

/// The texts of errors name what an image contains.
#[test]
fn names_in_an_image_cannot_change_a_terminal() {
    let name = "a\u{1b}[2J\u{7f}\n";
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("archive");
    let manifests = [
        json!([{ "Config": name, "RepoTags": ["a:latest"], "Layers": ["layer"] }]),
        json!([
            { "Config": "c", "RepoTags": [format!("{name}:1")], "Layers": ["layer"] },
            { "Config": "c", "RepoTags": [format!("{name}:2")], "Layers": ["layer"] },
        ]),
    ];
    for manifest in manifests {
        let manifest = manifest.to_string();
        let size = manifest.len() as u64;
        let mut archive = header(b"manifest.json", tar::EntryType::Regular, size);
        archive.extend_from_slice(manifest.as_bytes());
        archive.resize(archive.len().next_multiple_of(512), 0);
        archive.extend_from_slice(&END);
        fs::write(&file, archive).unwrap();
        for tag in [None, Some("none".to_owned())] {
            let source = ImageSource::DockerArchive {
                file: file.clone(),
                tag,
            };
            let error = OciImage::open(&source).unwrap_err().to_string();
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }
    let layout = Layout::new();
    layout.image(&END, |manifest, _| {
        manifest["layers"][0]["mediaType"] = name.into()
    });
    let error = layout.tree().unwrap_err().to_string();
    assert!(!error.contains(char::is_control), "{error:?}");
}

#[test]
fn large_documents_are_not_read() {
    let layout = Layout::new();
    let manifest = json!({
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": format!("sha256:{}", "a".repeat(64)),
        "size": 4_u64 << 30,
    });
    layout.index(&json!({ "schemaVersion": 2, "manifests": [manifest] }));
    layout.assert_refused("manifest has more than 4194304 bytes");
    let index = File::create(layout.0.path().join("index.json")).unwrap();
    index.set_len(4 << 30).unwrap();
    layout.assert_refused("index has more than 4194304 bytes");
}

#[test]
fn indexes_end() {
    let layout = Layout::new();
    let media_type = "application/vnd.oci.image.index.v1+json";
    let mut index = json!({ "schemaVersion": 2, "manifests": [] });
    layout.index(&index);
    layout.assert_refused("nothing for linux/amd64");
    for _ in 0..10 {
        let inner = layout.blob(media_type, index.to_string().as_bytes());
        index = json!({ "schemaVersion": 2, "manifests": [inner] });
    }
    layout.index(&index);
    layout.assert_refused("indexes in indexes");
    let mut other = layout.blob(media_type, b"{}");
    other["platform"] = json!({ "os": "linux", "architecture": "arm64" });
    layout.index(&json!({ "schemaVersion": 2, "manifests": [other] }));
    layout.assert_refused("linux/arm64");
}

#[test]
fn layers_neither_lead_out_nor_fill_the_disk() {
    let file = tar::EntryType::Regular;
    let layout = Layout::new();
    for (entries, said) in [
        (vec![header(b"../../etc/cron.d/x", file, 0)], "without `..`"),
        (vec![header(b"a/../../x", file, 0)], "without `..`"),
        (vec![header(b".wh.", file, 0)], "empty"),
        (vec![header(b"huge", file, 100 << 30)], "64 GiB"),
        (
            vec![header(b"unknown", tar::EntryType::new(b'Z'), 0)],
            "only files",
        ),
        (vec![header(b"short", file, 5000)], "layer 1 is wrong"),
    ] {
        layout.image(&[entries.concat(), END.to_vec()].concat(), |_, _| {});
        let said_error = layout.tree().unwrap_err().to_string();
        assert!(said_error.contains(said), "{said_error}");
        layout.assert_refused("");
    }
    // A small layer that unpacks to more zeros than anybody needs.
    layout.image(&vec![0; 32 << 20], |_, _| {});
    layout.assert_refused("too much follows");
}

#[test]
fn names_take_bounded_memory() {
    let layout = Layout::new();
    let archive_of = |count: usize, name: fn(usize) -> String| {
        let mut archive = tar::Builder::new(Vec::new());
        for number in 0..count {
            let mut header = tar::Header::new_gnu();
            header.set_size(0);
            header.set_mode(0o644);
            let name = name(number);
            archive.append_data(&mut header, name, &[][..]).unwrap();
        }
        archive.into_inner().unwrap()
    };
    // Directories that nobody has written down, long names, and names that need programs of
    // their own.
    for archive in [
        archive_of(100, |number| format!("{number}/{}", "a/".repeat(2000))),
        archive_of(30_000, |number| format!("{number}{}", "/long".repeat(600))),
        archive_of(2000, |number| format!("{number}\n")),
    ] {
        layout.image(&archive, |_, _| {});
        layout.assert_refused("too many files, or too long names");
    }
    // As many as real images have are no problem.
    layout.image(
        &archive_of(60_000, |number| format!("usr/{}/{number}", number / 50)),
        |_, _| {},
    );
    assert!(layout.tree().unwrap().iter().count() > 60_000);
}

#[test]
fn zeros_become_holes() {
    let layout = Layout::new();
    let size = 64 << 20;
    let mut archive = header(b"zeros", tar::EntryType::Regular, size);
    archive.resize(archive.len() + size as usize, 0);
    archive.extend(END);
    layout.image(&archive, |_, _| {});
    let tree = layout.tree().unwrap();
    let Some(vmcell_rootfs::Kind::File(vmcell_rootfs::Content::HostFile(path))) =
        tree.get("/zeros").map(|node| &node.kind)
    else {
        panic!("{tree:?}");
    };
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(path).unwrap();
    assert_eq!((found.len(), found.blocks()), (size, 0));
}

#[test]
fn what_is_no_problem_of_the_image_is_told_apart() {
    assert!(matches!(
        OciImage::open(&ImageSource::parse("oci:/nowhere".as_ref()).unwrap()),
        Err(Error::Image {
            problem: ImageProblem::Source(_),
            ..
        })
    ));
}
