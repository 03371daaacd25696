//! Comparisons with other readers of the same images.

use super::{sample::sample, *};

const IMAGES: [&[&str]; 5] = [
    &["-t", "ext4"],
    &["-t", "ext4", "-b", "1024", "-O", "^metadata_csum"],
    &[
        "-t",
        "ext4",
        "-b",
        "4096",
        "-I",
        "128",
        "-O",
        "^extra_isize",
    ],
    &["-t", "ext3", "-b", "1024"],
    &["-t", "ext2"],
];

#[test]
fn debugfs_says_the_same_about_every_inode() {
    let tree = sample();
    for options in IMAGES {
        let image = Image::new(options, 24, Some(tree.path()));
        image.change(
            "set_inode_field file-1 atime @0xf0000000\n\
             set_inode_field file-1 atime_extra 0x7735940\n\
             set_inode_field file-60 uid 100000\n\
             set_inode_field file-60 gid 2000000000\n\
             mknod character c 5 1\n\
             mknod block b 300 60000",
        );
        let ext4 = image.open();
        let inodes: BTreeMap<_, _> = everything(&ext4)
            .into_values()
            .map(|inode| (inode.number, inode))
            .collect();
        let commands: String = inodes
            .keys()
            .map(|number| format!("stat <{number}>\n"))
            .collect();
        let script = image.file("stat", commands.as_bytes());
        let said = run(tool("debugfs").arg("-f").arg(script).arg(image.path())).0;
        let said = String::from_utf8_lossy(&said);
        let mut compared = 0;
        for text in said.split("debugfs: stat <").skip(1) {
            let number = text.split_once('>').unwrap().0.parse().unwrap();
            compare(&inodes[&number], text);
            compared += 1;
        }
        assert_eq!(compared, inodes.len());
    }
}

fn compare(inode: &Inode, text: &str) {
    let words: Vec<_> = text.split_whitespace().collect();
    let after = |name: &str| {
        let place = words.iter().position(|word| *word == name);
        place.map(|place| words[place + 1])
    };
    let number = |name: &str| after(name).unwrap().parse::<u64>().unwrap();
    let mode = after("Mode:").unwrap();
    assert_eq!(u16::from_str_radix(mode, 8), Ok(inode.mode), "{text}");
    assert_eq!(after("Flags:").unwrap(), format!("{:#x}", inode.flags));
    assert_eq!(number("User:"), u64::from(inode.uid), "{text}");
    assert_eq!(number("Group:"), u64::from(inode.gid));
    assert_eq!(number("Links:"), u64::from(inode.links));
    assert_eq!(number("Blockcount:") * 512, inode.allocated);
    assert_eq!(number("Generation:"), u64::from(inode.generation));
    if let Some((major, minor)) = inode.device {
        assert!(text.contains(&format!("{major:02}:{minor:02}")), "{text}");
    } else {
        assert_eq!(number("Size:"), inode.size);
    }
    for (name, time) in [
        ("atime:", Some(inode.accessed)),
        ("mtime:", Some(inode.modified)),
        ("ctime:", Some(inode.changed)),
        ("crtime:", inode.created),
    ] {
        let said = after(name).map(|said| {
            let (seconds, extra) = said.split_once(':').unwrap_or((said, "0"));
            let seconds = u32::from_str_radix(seconds.trim_start_matches("0x"), 16).unwrap();
            Timestamp::of_inode(seconds, u32::from_str_radix(extra, 16).unwrap())
        });
        assert_eq!(said, time, "{name} {text}");
    }
}

#[test]
fn ext4_view_reads_the_same() {
    let tree = sample();
    for options in IMAGES {
        // It supports neither small inodes nor holes in the block maps of ext2
        // and ext3.
        if options.contains(&"128") || !options.contains(&"ext4") {
            continue;
        }
        let image = Image::new(options, 24, Some(tree.path()));
        let other = ext4_view::Ext4::load(Box::new(image.bytes())).unwrap();
        let ext4 = image.open();
        for (path, inode) in everything(&ext4) {
            let path = [b"/", &path[..]].concat();
            let theirs = other.symlink_metadata(&path[..]).unwrap();
            assert_eq!(theirs.mode(), inode.mode);
            assert_eq!((theirs.uid(), theirs.gid()), (inode.uid, inode.gid));
            match inode.kind {
                Kind::File => {
                    assert_eq!(theirs.len(), inode.size);
                    assert!(content(&ext4, &inode) == other.read(&path[..]).unwrap());
                }
                Kind::Symlink => {
                    let target = other.read_link(&path[..]).unwrap();
                    assert_eq!(ext4.read_link(&inode).unwrap(), target.as_ref() as &[u8]);
                }
                Kind::Directory => {
                    let names = other.read_dir(&path[..]).unwrap();
                    let mut theirs: Vec<_> = names
                        .map(|entry| entry.unwrap().file_name().as_ref().to_vec())
                        .filter(|name| name != b"." && name != b"..")
                        .collect();
                    let directory = ext4.directory(&inode).unwrap();
                    let mut ours: Vec<_> = directory.map(|entry| entry.unwrap().name).collect();
                    theirs.sort_unstable();
                    ours.sort_unstable();
                    assert_eq!(ours, theirs);
                }
                _ => {}
            }
        }
    }
}
