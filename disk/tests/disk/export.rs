use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use vmcell_disk::{
    ArchiveFormat, Comparison, DiffSide, DiskError, DiskProblem, EntryKind, Find, TreeError,
    TreeLimits,
};

use crate::{
    destination_cases::{Cases, Method},
    sample::{Sample, has_xattrs, open, run, tool},
};

#[test]
fn an_exported_tree_is_the_tree_that_the_image_was_made_of() {
    let sample = Sample::new();
    let disk = sample.open();
    let to = sample.path("out");
    let mut last_progress = 0;
    let exported = disk
        .export("/", &to)
        .exclude("/lost+found/")
        .keep_special_bits()
        .progress(|progress| last_progress = last_progress.max(progress.entries))
        .run()
        .unwrap();
    assert_eq!(exported.problem_count, 0, "{:?}", exported.problems);
    // The pipe.
    assert_eq!(exported.received.skipped, 1);
    assert_eq!(exported.received.entries, last_progress);

    let (old, new) = (DiffSide::folder(sample.tree()), DiffSide::folder(&to));
    let diff = Comparison::new(old, new).run().unwrap();
    let changed: Vec<_> = diff.changes().iter().map(|change| change.path()).collect();
    assert_eq!(changed, [Path::new("pipe")]);

    let at = |path: &str| fs::metadata(to.join(path)).unwrap();
    assert_eq!(at("src/main.rs").ino(), at("src/same.rs").ino());
    assert_eq!(at("data/large").ino(), at("large-too").ino());
    assert_eq!(at("src/main.rs").mtime(), 1_500_000_000);
    let allocated = at("data/sparse").blocks() * 512;
    assert!(allocated < 200_000, "holes are holes: {allocated}");
    if has_xattrs(&to) {
        let mut value = [0; 8];
        let count = rustix::fs::getxattr(to.join("src/main.rs"), "user.colour", &mut value);
        assert_eq!(&value[..count.unwrap()], b"blue");
    } else {
        eprintln!("skipped the attributes: the host's file system has none");
    }
}

#[test]
fn special_bits_go_unless_they_are_to_stay_and_one_file_can_be_exported() {
    let sample = Sample::new();
    let disk = sample.open();
    let to = sample.path("deep/er/tool");
    disk.export("bin/tool", &to).run().unwrap();
    let mode = fs::metadata(&to).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    let link = sample.path("link");
    let error = disk.export("absolute", &link).run().unwrap_err();
    assert!(error.to_string().contains("allow_symlink()"), "{error}");
    assert!(!link.is_symlink());
    disk.export("absolute", &link)
        .allow_symlink()
        .run()
        .unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("/etc/passwd"));

    let error = disk.export("pipe", sample.path("pipe")).run().unwrap_err();
    let is_left_out = matches!(error, DiskError::Tree(TreeError::NotTransferable { .. }));
    assert!(is_left_out, "{error}");
    let error = disk.export("nowhere", sample.path("no")).run().unwrap_err();
    assert_eq!(error.code(), "not-found");
    assert!(!sample.path("no").exists() && !sample.path("pipe").exists());
}

#[test]
fn directories_that_were_not_asked_for_come_only_with_what_is_in_them() {
    let sample = Sample::new();
    let to = sample.path("out");
    let disk = sample.open();
    disk.export("/", &to).include("lib.rs").run().unwrap();
    assert!(to.join("src/deep/er/lib.rs").is_file());
    let names: Vec<_> = fs::read_dir(&to)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["src"]);
}

#[test]
fn an_archive_has_the_same_files() {
    let sample = Sample::new();
    let disk = sample.open();
    let path = sample.path("out.tar");
    let export = disk.export_archive("src", &path, ArchiveFormat::Tar);
    assert_eq!(export.run().unwrap().received.entries, 8);

    let mut archive = tar::Archive::new(fs::File::open(&path).unwrap());
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.insert(entry.path().unwrap().to_path_buf(), bytes);
    }
    let main = fs::read(sample.tree().join("src/main.rs")).unwrap();
    assert_eq!(files[&PathBuf::from("main.rs")], main);
    assert!(files.contains_key(Path::new("deep/er/lib.rs")));
}

#[test]
fn an_archive_is_compressed_with_zstd_if_that_is_compiled_in() {
    let sample = Sample::new();
    let path = sample.path("out.tar.zst");
    let disk = sample.open();
    let exported = disk
        .export_archive("src", &path, ArchiveFormat::TarZst)
        .run();
    if cfg!(feature = "zstd") {
        assert_eq!(exported.unwrap().received.entries, 8);
        let plain = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(tar::Archive::new(&*plain).entries().unwrap().count(), 8);
    } else {
        let error = messages_of(&exported.unwrap_err());
        assert!(
            error.contains("compile with the feature \"zstd\""),
            "{error}"
        );
        assert!(!path.exists());
    }
}

/// Returns the messages of an error and its sources.
fn messages_of(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    let messages: Vec<_> = sources.map(ToString::to_string).collect();
    messages.join(": ")
}

#[test]
fn a_tree_with_too_many_entries_is_cut_off_and_no_file_is_half_there() {
    let sample = Sample::new();
    let disk = sample.open();
    let mut limits = TreeLimits::default();
    limits.entries = 1;
    let to = sample.path("out");
    let error = disk.export("data", &to).limits(limits).run().unwrap_err();
    let is_limit = matches!(error, DiskError::Tree(TreeError::Limit { .. }));
    assert!(is_limit, "{error}");
    assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    let archive = sample.path("out.tar");
    let export = disk.export_archive("data", &archive, ArchiveFormat::Tar);
    assert!(export.limits(limits).run().is_err());
    assert!(!archive.exists());
}

#[test]
fn a_file_that_is_too_large_is_left_out_and_its_neighbours_are_whole() {
    let sample = Sample::new();
    let disk = sample.open();
    let mut limits = TreeLimits::default();
    limits.bytes = 1_000_000;
    let to = sample.path("out");
    let exported = disk.export("/", &to).limits(limits).run().unwrap();
    let is_limit = |problem: &DiskProblem| problem.error.code() == "limit";
    assert!(exported.problems.iter().all(is_limit));
    let left_out: Vec<_> = exported.problems.iter().map(|it| &it.path).collect();
    assert!(left_out.contains(&&"data/large".into()), "{left_out:?}");
    for entry in disk.find("/", Find::new().kind(EntryKind::File)).unwrap() {
        let path = entry.unwrap().path;
        match left_out.contains(&&path) {
            true => assert!(!to.join(&path).exists(), "{path:?}"),
            false => assert!(fs::read(to.join(&path)).unwrap() == disk.read(&path).unwrap()),
        }
    }
    // An archive stores holes as zeros, so that the sparse file is too large.
    let archive = sample.path("out.tar");
    let export = disk.export_archive("/", &archive, ArchiveFormat::Tar);
    let exported = export.limits(limits).run().unwrap();
    let left_out: Vec<_> = exported.problems.iter().map(|it| &it.path).collect();
    assert!(left_out.contains(&&"data/sparse".into()), "{left_out:?}");
    assert!(exported.received.entries > 5 && archive.exists());
}

#[test]
fn whatever_is_exported_wherever_nothing_outside_of_the_destination_changes() {
    for method in [Method::Exact, Method::AllowSymlink, Method::Archive] {
        let cases = Cases::new(method);
        let image = cases.path("image.ext4");
        let mut command = tool("mke2fs");
        command.args(["-q", "-F", "-t", "ext4", "-d"]);
        run(command.arg(cases.create_sources()).arg(&image).arg("8M"));
        let disk = open(&image);
        for case in cases.all() {
            let (from, to) = (case.incoming.name(), &case.destination);
            let export = match method {
                Method::Archive => disk.export_archive(from, to, ArchiveFormat::Tar),
                Method::AllowSymlink => disk.export(from, to).allow_symlink(),
                _ => disk.export(from, to),
            };
            let exported = export.run().map(drop);
            cases.check(&case, exported.map_err(|error| error.to_string()));
        }
    }
}
