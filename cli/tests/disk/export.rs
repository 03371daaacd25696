//! `vmcell-disk export`.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use serde_json::json;

use crate::{
    destination_cases::{Cases, Existing, IS_SYMLINK, Method, THROUGH_SYMLINK},
    program::{Ended, command, disk},
    sample::{Sample, run, tool},
};

fn export(sample: &Sample, path: &str, to: &Path, more: &[&str]) -> Ended {
    let image = sample.image();
    let first = [
        "export".as_ref(),
        image.as_os_str(),
        path.as_ref(),
        to.as_os_str(),
    ];
    disk(first.into_iter().chain(more.iter().map(OsStr::new)))
}

#[test]
fn a_tree_comes_out_as_it_went_in() {
    let sample = Sample::new();
    let out = sample.path("out");
    let ended = export(&sample, "/", &out, &["--exclude", "/lost+found/"]);
    assert_eq!(ended.code(), 0);
    assert_eq!(
        ended.stderr(),
        "vmcell-disk: left out pipe: it is a named pipe\n"
    );
    fs::remove_file(sample.tree().join("pipe")).unwrap();
    run(tool("diff")
        .args(["-r", "--no-dereference"])
        .arg(sample.tree())
        .arg(&out));
    let at = |path: &str| fs::metadata(out.join(path)).unwrap();
    assert_eq!(at("src/main.rs").mtime(), 1_500_000_000);
    assert_eq!(at("etc/secret.conf").permissions().mode() & 0o777, 0o600);
}

#[test]
fn copies_land_where_cp_puts_them() {
    let sample = Sample::new();
    let there = sample.path("there");
    fs::create_dir(&there).unwrap();
    export(&sample, "/etc/group", &there, &[]).printed();
    export(&sample, "/src", &there, &[]).printed();
    export(&sample, "/src", &sample.path("new"), &[]).printed();
    let slash = sample.path("slash/");
    export(&sample, "/link", &slash, &["--allow-symlink"]).printed();
    assert!(there.join("group").is_file());
    assert!(there.join("src/main.rs").is_file());
    assert!(sample.path("new/main.rs").is_file());
    let target = fs::read_link(sample.path("slash/link")).unwrap();
    assert_eq!(target, Path::new("etc/group"));
}

#[test]
fn the_name_of_an_archive_tells_its_format() {
    let sample = Sample::new();
    for name in ["a.tar", "a.tar.gz", "a.tgz"] {
        let archive = sample.path(name);
        export(&sample, "/src", &archive, &[]).printed();
        let unpacked = sample.path("unpacked");
        fs::create_dir(&unpacked).unwrap();
        let mut unpack = tool("tar");
        run(unpack.arg("-xf").arg(&archive).arg("-C").arg(&unpacked));
        let text = fs::read_to_string(unpacked.join("deep/er/lib.rs")).unwrap();
        assert_eq!(text, "//! A library.\n", "{name}");
        fs::remove_dir_all(unpacked).unwrap();
    }
    // zstd may not be installed here, so only the magic number is checked.
    let archive = sample.path("a.tar.zst");
    export(&sample, "/src", &archive, &[]).printed();
    assert!(fs::read(archive).unwrap().starts_with(b"\x28\xb5\x2f\xfd"));
    let piped = export(&sample, "/src", Path::new("-"), &[]);
    piped.printed();
    assert!(piped.0.stdout == fs::read(sample.path("a.tar")).unwrap());
}

#[test]
fn a_part_of_a_tree_can_be_chosen_and_machines_are_told() {
    let sample = Sample::new();
    let out = sample.path("out");
    let parsed = export(&sample, "/", &out, &["--include", "*.rs", "--json"]).json();
    assert_eq!(parsed[0]["entries"], json!(7), "{parsed:?}");
    assert_eq!(parsed[0]["problem_count"], json!(0));
    assert!(out.join("src/deep/er/lib.rs").is_file());
    assert!(!out.join("etc").exists());
}

#[test]
fn what_fails_leaves_nothing_behind() {
    let sample = Sample::new();
    let before = sample.count();
    let out = sample.path("out");
    export(&sample, "/nowhere", &out, &[]).assert_failed(125, "nothing at /nowhere");
    export(&sample, "/pipe", &out, &[]).assert_failed(125, "named pipe");
    let archive = sample.path("out.tar.gz");
    export(&sample, "/", &archive, &["--limit-entries", "3"])
        .assert_failed(125, "limit of 3 entries");
    let exclude = sample.path("no-file");
    let exclude = ["--exclude-from", exclude.to_str().unwrap()];
    export(&sample, "/", &out, &exclude).assert_failed(125, "exclude file");
    assert_eq!(sample.count(), before);
}

#[test]
fn a_file_above_the_limit_is_left_out_and_its_neighbours_are_not() {
    let sample = Sample::new();
    let (out, archive) = (sample.path("out"), sample.path("out.tar"));
    for to in [&out, &archive] {
        let ended = export(&sample, "/", to, &["--limit-bytes", "200k"]);
        ended.assert_failed(1, "bin/tool exceeds the limit of 204800 bytes");
        ended.assert_failed(1, "with --limit-bytes SIZE");
    }
    assert!(!out.join("bin/tool").exists());
    assert!(out.join("src/deep/er/lib.rs").is_file());
    let listed = run(tool("tar").arg("-tf").arg(&archive));
    assert!(listed.contains("src/deep/er/lib.rs\n"), "{listed}");
    assert!(!listed.contains("bin/tool"), "{listed}");
    let parsed = export(&sample, "/", &out, &["--limit-bytes", "200k", "--json"]).json();
    assert_eq!(parsed[0]["problem"]["code"], json!("limit"));
    export(&sample, "/bin/tool", &out, &["--limit-bytes", "200k"])
        .assert_failed(125, "with --limit-bytes SIZE");
}

#[test]
fn a_reader_that_leaves_ends_an_archive_quietly() {
    let sample = Sample::new();
    let image = sample.image();
    let arguments = [
        "export".as_ref(),
        image.as_os_str(),
        "/".as_ref(),
        "-".as_ref(),
    ];
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = Ended(command(arguments).stdout(writer).output().unwrap());
    assert_eq!((ended.code(), ended.stderr().as_str()), (128 + 13, ""));
}

fn image_of(tree: &Path, image: &Path) {
    let mut make = tool("mke2fs");
    make.args(["-q", "-F", "-t", "ext4", "-d"]);
    run(make.arg(tree).arg(image).arg("8M"));
}

#[test]
fn whatever_is_exported_wherever_nothing_outside_of_dest_changes() {
    for method in [Method::LikeCp, Method::Archive] {
        let cases = Cases::new(method);
        let image = cases.path("image.ext4");
        image_of(&cases.create_sources(), &image);
        for case in cases.all() {
            let is_directory = matches!(
                case.existing,
                Existing::EmptyDirectory | Existing::FullDirectory
            );
            if method == Method::Archive && is_directory {
                // The copy goes into the directory, even if its name ends with .tar.
                continue;
            }
            let from = Path::new("/").join(case.incoming.name());
            let words = [&image, &from, &case.destination].map(|path| path.as_os_str());
            let ended = disk([OsStr::new("export")].into_iter().chain(words));
            let result = match ended.code() {
                0 => Ok(()),
                _ => Err(ended.stderr()),
            };
            cases.check(&case, result);
        }
    }
}

/// The first disk has a link where the second one has a directory.
#[test]
fn the_link_of_one_export_does_not_lead_the_next_one_outside() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["ssh", "work", "first", "second/y"] {
        fs::create_dir_all(path(name)).unwrap();
    }
    fs::write(path("ssh/authorized_keys"), "the user's\n").unwrap();
    std::os::unix::fs::symlink(path("ssh"), path("first/y")).unwrap();
    fs::write(path("second/y/authorized_keys"), "the guest's\n").unwrap();
    for name in ["first", "second"] {
        image_of(&path(name), &path(&format!("{name}.ext4")));
    }
    let export = |image: &str, more: &[&str]| {
        let words = ["export", image, "/y", "./out"];
        let mut command = command(words.iter().chain(more));
        Ended(command.current_dir(path("work")).output().unwrap())
    };

    export("../first.ext4", &[]).assert_failed(125, IS_SYMLINK);
    assert_eq!(fs::read_dir(path("work")).unwrap().count(), 0);
    export("../first.ext4", &["--allow-symlink"]).printed();
    assert_eq!(fs::read_link(path("work/out")).unwrap(), path("ssh"));
    for _ in 0..2 {
        export("../second.ext4", &[]).assert_failed(125, THROUGH_SYMLINK);
    }
    let keys = fs::read_to_string(path("ssh/authorized_keys")).unwrap();
    assert_eq!(keys, "the user's\n");
    assert_eq!(fs::read_dir(path("ssh")).unwrap().count(), 1);
    // Once the link is removed, the export succeeds.
    fs::remove_file(path("work/out")).unwrap();
    export("../second.ext4", &[]).printed();
    assert!(path("work/out/authorized_keys").is_file());
}
