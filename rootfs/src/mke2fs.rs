//! Formats an image with `mke2fs`.

use std::path::Path;

use crate::digest::Digest;
use crate::size::{BLOCK, Layout};
use crate::{Error, Tools, Uuid};

/// The file system features: those that help a guest with Linux 6.1 and that `ext4-view` 1.0
/// can read. Left out:
/// - `orphan_file`: unknown to kernels before 5.15, and helps only with many CPUs;
/// - `metadata_csum_seed`: allows changing the UUID of a mounted file system, which is not needed;
/// - `inline_data`, `ea_inode`, `casefold`, `encrypt`, `verity`, `quota`, `project`, `fast_commit`:
///   not needed, and offline readers would have to support each of them.
///
/// `resize_inode` is included so that a running guest can grow its disk.
const FEATURES: &str = "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,\
    flex_bg,sparse_super,large_file,huge_file,dir_nlink,extra_isize,metadata_csum";

/// Part of every digest. To be changed whenever the output of this module changes.
pub(crate) const FORMAT_GENERATION: &str = "1";

/// The parameters of a run of `mke2fs`.
#[derive(Debug)]
pub(crate) struct Mke2fs<'a> {
    pub(crate) label: &'a str,
    pub(crate) uuid: Uuid,
    pub(crate) hash_seed: Uuid,
    pub(crate) layout: Layout,
    pub(crate) epoch: u32,
}

/// Derives the UUID and the hash seed from a digest.
pub(crate) fn uuid_and_hash_seed(digest: &Digest) -> (Uuid, Uuid) {
    let mut reversed = *digest;
    reversed.0.reverse();
    (Uuid::from_digest(digest), Uuid::from_digest(&reversed))
}

impl Mke2fs<'_> {
    /// Writes an empty file system to `image`, which must be a file of `layout.bytes` zeros.
    pub(crate) fn run(&self, tools: &Tools, image: &Path) -> Result<(), Error> {
        let mut tool = tools.e2fsprogs("mke2fs")?;
        let Self {
            uuid,
            hash_seed,
            layout,
            epoch,
            label,
        } = self;
        // `assume_storage_prezeroed`: the inode tables of a new sparse file are zero already.
        // mke2fs marks them so and writes nothing. The file stays small, and no guest zeroes
        // them in its first minutes (ext4lazyinit), which would also copy them into the overlay
        // of every VM. `-m 0`: no blocks are reserved for root.
        let extended =
            format!("hash_seed={hash_seed},root_owner=0:0,nodiscard,assume_storage_prezeroed=1");
        tool.command
            .env("E2FSPROGS_FAKE_TIME", epoch.to_string())
            .env("MKE2FS_CONFIG", "/dev/null")
            .args([
                "-q",
                "-F",
                "-t",
                "ext4",
                "-m",
                "0",
                "-I",
                "256",
                "-G",
                "16",
                "-e",
                "remount-ro",
            ])
            .args(["-O", FEATURES, "-E", &extended, "-L", label])
            .args(["-U", &uuid.to_string(), "-b", &BLOCK.to_string()])
            .args([
                "-N",
                &layout.inodes.to_string(),
                "-J",
                &format!("size={}", layout.journal_mib),
            ])
            .arg("--")
            .arg(image)
            .arg((layout.bytes / BLOCK).to_string());
        let output = tool
            .command
            .output()
            .map_err(|source| tool.unusable(source))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(tool.failed(&output.stderr))
        }
    }
}
