//! Disks of stopped VMs, compared with other readers: `7z`, `debugfs`, and a kernel
//! mount if this user may mount.
//!
//! Prints a table; the figures of one run are in `benches/README.md`. Both sides
//! are measured alternately, with everything in the page cache.

use std::{
    fs,
    io::{self, BufWriter, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use vmcell::{
    disk::{Comparison, DiffSide, Disk, image},
    files::{EntryKind, WalkOptions},
    printable,
};
use vmcell_benches::{
    memory,
    summary::{Bound, fact, head, median, median_round, row},
};

const DIRECTORIES: usize = 500;
const SMALL_FILES: usize = 24;
const LARGE_FILES: usize = 16;
const LARGE: usize = 10 << 20;
const ROUNDS: usize = 7;
const MEMORY_LIMIT: usize = 64 << 20;

fn main() -> Result<()> {
    // Cargo adds words of its own, with hyphens.
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join("tree");
    create_tree(&tree)?;
    let image = make_image(&tree, folder.path(), "600M")?;
    let sparse = make_image(&tree, folder.path(), "100G")?;
    let usage = Disk::open(&image)?.usage("/")?;
    eprintln!("{} entries, {} MB", usage.entries, usage.bytes / 1_000_000);
    memory::reset_peak()?;

    head();
    let mount = Mount::new(&image, &folder.path().join("mount"));
    if wanted("list") {
        list(&image, &sparse, mount.as_ref())?;
    }
    if wanted("read") {
        read(&image, &sparse, mount.as_ref())?;
    }
    if wanted("export") {
        export(&image, folder.path())?;
    }
    if wanted("diff") {
        diff(&image, folder.path())?;
    }
    let peak = memory::peak()?;
    let measured = format!("{} MiB", peak >> 20);
    fact(
        "peak memory in all of it",
        &measured,
        "< 64 MiB",
        peak < MEMORY_LIMIT,
    );
    Ok(())
}

/// Creates a tree of texts of 4 to 20 KB and some large files.
fn create_tree(tree: &Path) -> Result<()> {
    let mut state = 1_u64;
    let mut noise = |length: usize| -> Vec<u8> {
        let next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            b"abcdefghijklmno\n"[(state >> 60) as usize]
        };
        std::iter::repeat_with(next).take(length).collect()
    };
    for number in 0..DIRECTORIES {
        let directory = tree.join(format!("{:02}/{number:04}", number % 23));
        fs::create_dir_all(&directory)?;
        for file in 0..SMALL_FILES {
            let text = noise(4000 + (number * 7919 + file * 104_729) % 16_000);
            fs::write(directory.join(format!("file-{file:03}.txt")), text)?;
        }
    }
    for number in 0..LARGE_FILES {
        fs::write(tree.join(format!("large-{number}")), noise(LARGE))?;
    }
    Ok(())
}

fn make_image(tree: &Path, folder: &Path, size: &str) -> Result<PathBuf> {
    let image = folder.join(format!("{size}.ext4"));
    let mut command = tool("mke2fs");
    command.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-d"]);
    run(command.arg(tree).arg(&image).arg(size))?;
    Ok(image)
}

/// Writes a recursive list with all fields of `find -ls`.
fn list_all(image: &Path) -> Result<()> {
    let disk = Disk::open(image)?;
    let mut out = BufWriter::new(fs::File::create("/dev/null")?);
    for entry in disk.walk("/", WalkOptions::new())? {
        let entry = entry?;
        let owner = entry.owner.as_deref().unwrap_or("?");
        let path = printable(entry.path.as_os_str().as_encoded_bytes());
        writeln!(
            out,
            "{} {} {} {owner} {} {:?} {path}",
            entry.inode,
            entry.permissions(),
            entry.links,
            entry.size,
            entry.modified,
        )?;
    }
    Ok(out.flush()?)
}

fn list(image: &Path, sparse: &Path, mount: Option<&Mount>) -> Result<()> {
    let name = "recursive list with metadata";
    let ours = || list_all(image);
    compare(name, ours, "`7z l`", Bound::AtMost(1.0), || {
        run(tool("7z").args(["l", "-ba"]).arg(image))
    })?;
    // debugfs lists one directory at a time.
    let mut commands = String::new();
    for entry in Disk::open(image)?.walk("/", WalkOptions::new().with_top())? {
        let entry = entry?;
        if entry.kind == EntryKind::Directory {
            commands += &format!("ls -l /{}\n", entry.path.display());
        }
    }
    let script = image.with_extension("list");
    fs::write(&script, commands)?;
    compare(name, ours, "`debugfs`", Bound::AtMost(1.0), || {
        run(tool("debugfs").arg("-f").arg(&script).arg(image))
    })?;
    let find = "`find -ls` on a kernel mount";
    match mount {
        Some(mount) => compare(name, ours, find, Bound::AtMost(3.0), || {
            run(tool("find").arg(&mount.at).arg("-ls"))
        })?,
        None => print_skipped(name, find),
    }
    let name = "recursive list of a 100 GiB sparse image";
    let sparse = || list_all(sparse);
    compare(name, sparse, "the small one", Bound::AtMost(1.3), ours)
}

/// Reads every file.
fn read_all(image: &Path) -> Result<()> {
    let disk = Disk::open(image)?;
    let mut out = fs::File::create("/dev/null")?;
    let mut buffer = vec![0; 256 << 10];
    for entry in disk.walk("/", WalkOptions::new().without_names())? {
        let entry = entry?;
        if entry.kind == EntryKind::File {
            copy(disk.reader_of(&entry)?, &mut out, &mut buffer)?;
        }
    }
    Ok(())
}

fn copy(mut from: impl io::Read, out: &mut fs::File, buffer: &mut [u8]) -> Result<()> {
    loop {
        match from.read(buffer)? {
            0 => return Ok(()),
            count => out.write_all(&buffer[..count])?,
        }
    }
}

fn read(image: &Path, sparse: &Path, mount: Option<&Mount>) -> Result<()> {
    let name = "reading every file";
    let ours = || read_all(image);
    let cat = "`cat` over a kernel mount";
    match mount {
        Some(mount) => compare(name, ours, cat, Bound::AtMost(1.25), || {
            let line = "find . -type f -exec cat {} + | cat >/dev/null";
            run(tool("sh").current_dir(&mount.at).args(["-c", line]))
        })?,
        None => print_skipped(name, cat),
    }
    compare(name, ours, "the raw image, 600 MiB", Bound::None, || {
        let mut out = fs::File::create("/dev/null")?;
        let mut buffer = vec![0; 256 << 10];
        copy(fs::File::open(image)?, &mut out, &mut buffer)
    })?;
    let name = "reading every file of a 100 GiB sparse image";
    let sparse = || read_all(sparse);
    compare(name, sparse, "the small one", Bound::AtMost(1.3), ours)
}

fn export(image: &Path, folder: &Path) -> Result<()> {
    let mut rounds = Vec::new();
    for round in 0..5 {
        // A new folder in each round: ext4 is slow to reuse inodes that were just
        // freed.
        let to = folder.join(format!("ours-{round}"));
        let (ours, exported) = timed(|| Ok(Disk::open(image)?.export("/", &to).run()?))?;
        ensure!(exported.problem_count == 0, "{exported:?}");
        let to = folder.join(format!("theirs-{round}"));
        fs::create_dir(&to)?;
        let command = format!("rdump / {}", to.display());
        let (theirs, ()) = timed(|| run(tool("debugfs").args(["-R", &command]).arg(image)))?;
        rounds.push((ours, theirs));
    }
    let rdump = "`debugfs rdump`";
    print_row("export of the tree", rdump, Bound::AtMost(1.0), rounds);
    Ok(())
}

/// Creates a child image in which ten files are changed.
fn make_child(image: &Path, folder: &Path) -> Result<PathBuf> {
    let changed = folder.join("changed.ext4");
    run(tool("cp").arg("--sparse=always").arg(image).arg(&changed))?;
    let text = folder.join("text");
    fs::write(&text, "changed\n")?;
    let mut commands = String::new();
    for number in (0..20).step_by(2) {
        let path = format!("/{number:02}/{number:04}/file-003.txt");
        commands += &format!("rm {path}\nwrite {} {path}\n", text.display());
    }
    let script = folder.join("script");
    fs::write(&script, commands)?;
    run(tool("debugfs")
        .args(["-w", "-f"])
        .arg(&script)
        .arg(&changed))?;
    let child = folder.join("child.qcow2");
    image::create_child(image, &child, image::OpenOptions::new())?;
    let mut write = tool("qemu-io");
    write.args(["-f", "qcow2"]).arg(&child);
    for (number, piece) in differing(image, &changed)? {
        let file = folder.join(format!("cluster-{number}"));
        let command = format!("write -q -s {} {number} {}", file.display(), piece.len());
        fs::write(file, piece)?;
        write.args(["-c", &command]);
    }
    run(&mut write)?;
    Ok(child)
}

/// Returns the clusters of 64 KiB in which two files of the same length differ,
/// with their offsets.
fn differing(old: &Path, new: &Path) -> Result<Vec<(u64, Vec<u8>)>> {
    const CLUSTER: u64 = 64 << 10;
    let (old, new) = (fs::File::open(old)?, fs::File::open(new)?);
    let mut found = Vec::new();
    let mut pieces = [vec![0; CLUSTER as usize], vec![0; CLUSTER as usize]];
    for offset in (0..old.metadata()?.len()).step_by(CLUSTER as usize) {
        old.read_exact_at(&mut pieces[0], offset)?;
        new.read_exact_at(&mut pieces[1], offset)?;
        if pieces[0] != pieces[1] {
            found.push((offset, pieces[1].clone()));
        }
    }
    Ok(found)
}

fn diff(image: &Path, folder: &Path) -> Result<()> {
    let child = make_child(image, folder)?;
    let ours = || {
        let (old, new) = (Disk::open(image)?, Disk::open(&child)?);
        let sides = (DiffSide::disk(&old, "/"), DiffSide::disk(&new, "/"));
        let diff = Comparison::new(sides.0, sides.1).ignore_owners().run()?;
        ensure!(
            diff.changes().len() == 10,
            "{} changes",
            diff.changes().len()
        );
        Ok(())
    };
    let listings = || {
        let digests = |path: &Path| -> Result<Vec<_>> {
            let disk = Disk::open(path)?;
            let walk = WalkOptions::new().with_sha256().without_names();
            let entries = disk.walk("/", walk)?.map(|entry| {
                let entry = entry?;
                Ok((entry.path, entry.kind, entry.sha256))
            });
            entries.collect()
        };
        let (old, new) = (digests(image)?, digests(&child)?);
        let differing = old.iter().zip(&new).filter(|(old, new)| old != new);
        ensure!(differing.count() == 10);
        Ok(())
    };
    let name = "diff of a child, ten files changed";
    let two = "two full listings with contents";
    compare(name, ours, two, Bound::AtMost(0.1), listings)?;

    let times = (0..100).map(|number| {
        let child = folder.join(format!("child-{number}.qcow2"));
        let options = image::OpenOptions::new();
        let (time, _) = timed(|| Ok(image::create_child(image, &child, options.clone())?))?;
        Ok(time)
    });
    let time = median(times.collect::<Result<_>>()?);
    let measured = format!("{:.2} ms", time.as_secs_f64() * 1e3);
    let kept = time < Duration::from_millis(10);
    fact("a new child", &measured, "milliseconds", kept);
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let begun = Instant::now();
    let result = work()?;
    Ok((begun.elapsed(), result))
}

/// Measures both alternately, and prints the round with the median ratio.
fn compare(
    name: &str,
    ours: impl Fn() -> Result<()>,
    baseline: &str,
    bound: Bound,
    theirs: impl Fn() -> Result<()>,
) -> Result<()> {
    // Fills the page cache.
    ours()?;
    theirs()?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push((timed(&ours)?.0, timed(&theirs)?.0));
    }
    print_row(name, baseline, bound, rounds);
    Ok(())
}

fn print_row(name: &str, baseline: &str, bound: Bound, rounds: Vec<(Duration, Duration)>) {
    let (ours, theirs) = median_round(rounds);
    let text = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    let theirs = format!("{} ({baseline})", text(theirs));
    row(name, &text(ours), &theirs, ratio, bound);
}

fn print_skipped(name: &str, baseline: &str) {
    println!("| {name} | | {baseline} | | | skipped: it cannot be mounted here |");
}

fn tool(name: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("DEBUGFS_PAGER", "cat")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// The image, mounted by the kernel until this is dropped.
struct Mount {
    at: PathBuf,
}

impl Mount {
    /// Returns `None` if mounting fails, for example for lack of privileges.
    fn new(image: &Path, at: &Path) -> Option<Self> {
        fs::create_dir(at).ok()?;
        let mut command = tool("mount");
        command.args(["-o", "ro,loop,noload"]).arg(image).arg(at);
        run(&mut command).ok()?;
        Some(Self { at: at.to_owned() })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = run(tool("umount").arg(&self.at)) {
            eprintln!("{error:#}");
        }
    }
}
