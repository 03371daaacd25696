//! For arbitrary documents of an image of containers, opening it ends without a panic, and no
//! error text contains control characters.
//!
//! The input is read as
//!
//! ```text
//! byte   0                        1 .. 3                rest
//!        even: a layout in an     n, little endian      manifest of Docker, or index,
//!        archive; odd: an         the length of         and the configuration
//!        archive of Docker        the first
//! ```
//!
//! The documents refer to one another by digests, which a fuzzer cannot compute: they are put
//! in place of the words DIGEST and SIZE.
#![no_main]

use std::{fmt::Write as _, path::PathBuf, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use sha2::{Digest as _, Sha256};
use vmcell_rootfs::oci::{ImageSource, OciImage};

/// The archive, rewritten for each input.
static ARCHIVE: LazyLock<PathBuf> = LazyLock::new(|| {
    let name = format!("vmcell-fuzz-oci-{}", std::process::id());
    std::env::temp_dir().join(name)
});

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, low, high], rest)) = input.split_first_chunk() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes([low, high]));
    let (manifest, config) = rest.split_at(rest.len().min(length));
    let file = ARCHIVE.clone();
    let (files, source) = match kind % 2 {
        0 => {
            let (config_path, config_digest) = blob(config);
            let manifest = fill(manifest, &config_digest, config.len());
            let (manifest_path, manifest_digest) = blob(&manifest);
            let index = br#"{"schemaVersion":2,"manifests":[{"mediaType":
                "application/vnd.oci.image.manifest.v1+json","digest":"DIGEST","size":SIZE}]}"#;
            let index = fill(index, &manifest_digest, manifest.len());
            let layout = br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec();
            let files = vec![
                ("oci-layout".to_owned(), layout),
                ("index.json".to_owned(), index),
                (manifest_path, manifest),
                (config_path, config.to_vec()),
            ];
            (files, ImageSource::LayoutArchive { file, tag: None })
        }
        _ => {
            let files = vec![
                ("manifest.json".to_owned(), manifest.to_vec()),
                ("config.json".to_owned(), config.to_vec()),
            ];
            (files, ImageSource::DockerArchive { file, tag: None })
        }
    };
    write(&files);
    if let Err(error) = OciImage::open(&source) {
        let text = error.to_string();
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
});

/// Returns the path of a blob, and its digest.
fn blob(bytes: &[u8]) -> (String, String) {
    let hex = Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
    (format!("blobs/sha256/{hex}"), format!("sha256:{hex}"))
}

fn fill(document: &[u8], digest: &str, size: usize) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(document) else {
        return document.to_vec();
    };
    text.replace("DIGEST", digest)
        .replace("SIZE", &size.to_string())
        .into_bytes()
}

fn write(files: &[(String, Vec<u8>)]) {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, contents) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, path, &**contents)
            .expect("names are short");
    }
    let bytes = archive.into_inner().expect("it is in memory");
    std::fs::write(&*ARCHIVE, bytes).expect("the folder for temporary files can be written");
}
