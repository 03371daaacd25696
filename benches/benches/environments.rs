//! Environments from images of containers, compared with the programs that others use.
//!
//! Prints a table; the figures of one run are in `benches/README.md`. Needs `umoci`.

use std::{
    env, fs,
    io::Write as _,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use vmcell_benches::summary::{Bound, fact, head, median_round, row};
use vmcell_rootfs::{
    Cache,
    oci::{ImageSource, OciImage},
};

const ROUNDS: usize = 3;
/// The larger image, and the one with more files.
const LAYERS: usize = 10;
const LARGE: [usize; 2] = [20_000_000, 8192];
const MANY_FILES: [usize; 2] = [2_500_000, 100];
const MAX_MEMORY_KIB: u64 = 128 << 10;

/// Makes this program import an image, and print how much memory it took at most.
const IMPORT: &str = "--import";

fn main() -> Result<()> {
    let mut arguments = env::args().skip_while(|argument| argument != IMPORT);
    if let (Some(_), Some(layout), Some(cache)) =
        (arguments.next(), arguments.next(), arguments.next())
    {
        return import(&layout, &cache);
    }
    head();
    let folder = tempfile::tempdir()?;
    let layout = folder.path().join("large");
    make_image(&layout, LARGE)?;
    let mut rounds = Vec::new();
    let mut memory = 0;
    for _ in 0..ROUNDS {
        let (ours, peak) = time_import(&layout)?;
        memory = memory.max(peak);
        rounds.push((ours, time_others(&layout)?));
    }
    let (ours, others) = median_round(rounds);
    row(
        "import of an image of 200 MB in 10 layers",
        &format!("{:.2} s", ours.as_secs_f64()),
        &format!(
            "{:.2} s (`umoci unpack`, `mke2fs -d`)",
            others.as_secs_f64()
        ),
        ours.as_secs_f64() / others.as_secs_f64(),
        Bound::AtMost(1.5),
    );
    show_memory("memory of that", memory);
    let layout = folder.path().join("many");
    make_image(&layout, MANY_FILES)?;
    let (_, peak) = time_import(&layout)?;
    show_memory("memory for an image of 250,000 files", peak);
    Ok(())
}

fn show_memory(what: &str, kib: u64) {
    let text = format!("{} MiB", kib >> 10);
    fact(what, &text, "< 128 MiB", kib < MAX_MEMORY_KIB);
}

/// Imports an image in a process of its own, and returns how long that took, and its memory.
fn time_import(layout: &Path) -> Result<(Duration, u64)> {
    let cache = TempDir::new()?;
    let begun = Instant::now();
    let output = Command::new(env::current_exe()?)
        .arg(IMPORT)
        .args([layout, cache.path()])
        .output()?;
    let time = begun.elapsed();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let peak = String::from_utf8(output.stdout)?;
    Ok((time, peak.trim().parse()?))
}

fn import(layout: &str, cache: &str) -> Result<()> {
    let source = ImageSource::parse(format!("oci:{layout}").as_ref()).context("no source")?;
    Cache::at(cache).image(&OciImage::open(&source)?)?;
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    println!("{}", peak.context("the kernel does not say")?);
    Ok(())
}

fn time_others(layout: &Path) -> Result<Duration> {
    let folder = TempDir::new()?;
    let bundle = folder.path().join("bundle");
    let begun = Instant::now();
    let unpacked = Command::new("umoci")
        .args(["unpack", "--rootless", "--image"])
        .arg(format!("{}:latest", layout.display()))
        .arg(&bundle)
        .output()
        .context("umoci")?;
    ensure!(unpacked.status.success(), "umoci: {unpacked:?}");
    let made = Command::new("mke2fs")
        .args(["-q", "-t", "ext4", "-d"])
        .arg(bundle.join("rootfs"))
        .arg(folder.path().join("image.ext4"))
        .arg("2g")
        .output()
        .context("mke2fs")?;
    let time = begun.elapsed();
    ensure!(made.status.success(), "mke2fs: {made:?}");
    Ok(time)
}

/// Makes an image whose layers each have so many bytes, in files of so many.
fn make_image(layout: &Path, [bytes, size]: [usize; 2]) -> Result<()> {
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let store = |bytes: &[u8]| -> Result<Value> {
        let digest: String = Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        fs::write(blobs.join(&digest), bytes)?;
        Ok(json!({ "digest": format!("sha256:{digest}"), "size": bytes.len() }))
    };
    let with_type = |mut descriptor: Value, kind: &str| {
        descriptor["mediaType"] = format!("application/vnd.oci.image.{kind}").into();
        descriptor
    };
    let (mut layers, mut unpacked) = (Vec::new(), Vec::new());
    for layer in 0..LAYERS {
        let archive = archive(layer, bytes, size)?;
        let digest = Sha256::digest(&archive);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        unpacked.push(format!("sha256:{digest}"));
        let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
        compressed.write_all(&archive)?;
        layers.push(with_type(
            store(&compressed.finish()?)?,
            "layer.v1.tar+gzip",
        ));
    }
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {},
        "rootfs": { "type": "layers", "diff_ids": unpacked },
    });
    let config = with_type(store(config.to_string().as_bytes())?, "config.v1+json");
    let manifest = json!({ "schemaVersion": 2, "config": config, "layers": layers });
    let mut manifest = with_type(store(manifest.to_string().as_bytes())?, "manifest.v1+json");
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": "latest" });
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    fs::write(layout.join("index.json"), index.to_string())?;
    fs::write(
        layout.join("oci-layout"),
        r#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    Ok(())
}

/// Returns an archive of files whose bytes compress about as programs do.
fn archive(layer: usize, bytes: usize, size: usize) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut random = layer as u64 + 1;
    for number in 0..bytes / size {
        let mut content = Vec::with_capacity(size);
        while content.len() < size {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let word = (random >> 33).to_le_bytes();
            content.extend_from_slice(&word[..4]);
            content.extend_from_slice(b"text of a program");
        }
        content.truncate(size);
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_mtime(1_700_000_000);
        header.set_size(size as u64);
        let path = format!("usr/lib/part-{layer}/folder-{}/file-{number}", number / 50);
        archive.append_data(&mut header, path, &content[..])?;
    }
    Ok(archive.into_inner()?)
}
