//! Images with random damage. Reading must end, whatever they contain.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{sample::random_bytes, *};
use crate::ReadAt;

/// An image with some bytes replaced. Counts the bytes read.
#[derive(Clone)]
pub(super) struct DamagedImage {
    base: Arc<Vec<u8>>,
    changes: Vec<(usize, u8)>,
    read: Arc<AtomicU64>,
}

impl DamagedImage {
    pub(super) fn new(base: Vec<u8>) -> Self {
        Self {
            base: Arc::new(base),
            changes: Vec::new(),
            read: Arc::default(),
        }
    }
}

impl ReadAt for DamagedImage {
    fn size(&self) -> u64 {
        self.base.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.read
            .fetch_add(buffer.len() as u64 + 100, Ordering::Relaxed);
        self.base.read_at(offset, buffer)?;
        let start = usize::try_from(offset).unwrap();
        for (place, byte) in &self.changes {
            if let Some(at) = place.checked_sub(start)
                && let Some(found) = buffer.get_mut(at)
            {
                *found = *byte;
            }
        }
        Ok(())
    }
}

/// Uses all operations, each within bounds.
pub(super) fn exercise(ext4: &Ext4) {
    let _ = ext4.info();
    let Ok(root) = ext4.root() else { return };
    let mut buffer = vec![0; 20_000];
    for found in ext4.walk(&root).take(500).flatten() {
        assert!(!found.entry.name.is_empty());
        assert!(!found.entry.name.contains(&b'/') && !found.entry.name.contains(&0));
        let Ok(inode) = found.inode else { continue };
        let _ = ext4.read_link(&inode);
        for offset in [0, 100_000, inode.size.saturating_sub(5000)] {
            let read = ext4.read(&inode, offset, &mut buffer);
            assert!(read.is_err() || inode.kind == Kind::File);
        }
        let mut position = 0;
        for run in ext4.runs(&inode).take(100) {
            let Ok(run) = run else { break };
            assert_eq!(run.offset, position);
            assert!(run.length > 0);
            position += run.length;
            assert!(position <= inode.size);
        }
        let attributes: usize = ext4
            .attributes(&inode)
            .into_iter()
            .flatten()
            .map(|attribute| attribute.value.len())
            .sum();
        assert!(attributes <= 2 * Limits::default().attributes);
    }
    let _ = ext4.lookup(b"dir/link/../file-4097", SymlinkPolicy::All);
}

/// Creates a small tree that uses all structures.
fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("dir/below/below")).unwrap();
    for length in [0, 40, 100, 4097, 40_000] {
        let path = root.join(format!("dir/file-{length}"));
        fs::write(path, random_bytes(length, 1)).unwrap();
    }
    for number in 0..60 {
        fs::write(root.join(format!("dir/below/{number} of many")), b"").unwrap();
    }
    std::os::unix::fs::symlink("t".repeat(100), root.join("dir/long")).unwrap();
    std::os::unix::fs::symlink("below", root.join("dir/link")).unwrap();
    let alternating = fs::File::create(root.join("alternating")).unwrap();
    for index in 0..100 {
        let place = index * 8192;
        std::os::unix::fs::FileExt::write_all_at(&alternating, &[1], place).unwrap();
    }
    folder
}

fn images() -> Vec<Vec<u8>> {
    let tree = tree();
    let mut images = Vec::new();
    for options in [
        &["-t", "ext4", "-b", "1024", "-N", "128", "-J", "size=1"][..],
        &[
            "-t",
            "ext4",
            "-b",
            "1024",
            "-N",
            "128",
            "-O",
            "inline_data,ea_inode,^metadata_csum",
            "-J",
            "size=1",
        ],
        &["-t", "ext2", "-b", "1024", "-N", "128"],
    ] {
        let image = Image::new(options, 4, Some(tree.path()));
        let value = image.file("value", &random_bytes(600, 1));
        image.change(&format!(
            "ea_set dir/file-40 user.short value\n\
             ea_set -f {value} dir/file-40 user.long"
        ));
        let fixed = tool("e2fsck")
            .args(["-fyD"])
            .arg(image.path())
            .output()
            .unwrap();
        assert!(
            fixed.status.code().is_some_and(|code| code < 4),
            "{fixed:?}"
        );
        if options[1] == "ext4" {
            // Write the root directory and the inodes to the journal as well.
            let copies = image.file("copies", &image.bytes()[30 * 1024..100 * 1024]);
            image.change(&format!("jo\njw -b 30-99 {copies}\njw -r 98,99\njc\n"));
        }
        images.push(image.bytes());
    }
    images
}

#[test]
fn no_damage_makes_the_reader_fail_or_go_on_for_ever() {
    for (number, image) in images().into_iter().enumerate() {
        let sound = DamagedImage::new(image);
        exercise(&Ext4::open(sound.clone(), Options::default()).unwrap());
        let most = 20 * sound.read.load(Ordering::Relaxed) + (16 << 20);

        // Offsets with data, those in the metadata at the start four times.
        let mut places: Vec<_> = (0..sound.base.len() / 16)
            .map(|place| place * 16)
            .filter(|place| sound.base[*place..place + 16] != [0; 16])
            .collect();
        let metadata: Vec<_> = places
            .iter()
            .copied()
            .filter(|place| *place < 128 << 10)
            .collect();
        places.extend(metadata.repeat(3));

        let mut state = 0x1234_5678_9abc_def0_u64 + number as u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        for round in 0..400 {
            let mut damaged = sound.clone();
            damaged.read = Arc::default();
            for _ in 0..=random(6) {
                let place = places[random(places.len())] + random(16);
                let old = sound.base[place];
                let new = match random(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => u8::try_from(random(256)).unwrap(),
                    _ => old ^ (1 << random(8)),
                };
                damaged.changes.push((place, new));
            }
            let mut options = Options::default();
            if round % 3 > 0 {
                // Otherwise checksums would hide most of the damage.
                options.checksums = Checksums::Ignore;
            }
            let read = Arc::clone(&damaged.read);
            let changes = damaged.changes.clone();
            if let Ok(ext4) = Ext4::open(damaged, options) {
                exercise(&ext4);
            }
            let read = read.load(Ordering::Relaxed);
            assert!(
                read < most,
                "image {number}, {changes:?}: {read} bytes read, {most} allowed"
            );
        }
    }
}

#[test]
fn an_image_that_ends_too_early_is_read_as_far_as_it_goes() {
    for image in images() {
        for length in (0..image.len()).step_by(60_001) {
            if let Ok(ext4) = Ext4::open(image[..length].to_vec(), Options::default()) {
                exercise(&ext4);
            }
        }
    }
}
