//! Formatting with `mke2fs`.

use std::path::Path;

use crate::digest::Digest;
use crate::size::{BLOCK, Layout};
use crate::{Error, Tools, Uuid};

/// Everything a guest with Linux 6.1 gains from, and `ext4-view` 1.0 reads. Left out:
/// - `orphan_file`: unknown to kernels before 5.15, and of use on many CPUs only;
/// - `metadata_csum_seed`: lets the UUID of a mounted file system change, which nobody does;
/// - `inline_data`, `ea_inode`, `casefold`, `encrypt`, `verity`, `quota`, `project`, `fast_commit`:
///   not needed, and each one is more for offline readers to know.
///
/// `resize_inode` stays, so that a running guest can grow its disk.
const FEATURES: &str = "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,\
    flex_bg,sparse_super,large_file,huge_file,dir_nlink,extra_isize,metadata_csum";

/// Changes whenever the file systems that this module makes change.
pub(crate) const FORMAT_GENERATION: &str = "1";

/// What `mke2fs` is told, besides the constants.
#[derive(Debug)]
pub(crate) struct Format<'a> {
    pub(crate) label: &'a str,
    pub(crate) uuid: Uuid,
    pub(crate) hash_seed: Uuid,
    pub(crate) layout: Layout,
    pub(crate) epoch: u32,
}

/// The UUID and the hash seed that follow from a digest.
pub(crate) fn identities(digest: &Digest) -> (Uuid, Uuid) {
    let mut reversed = *digest;
    reversed.0.reverse();
    (Uuid::from_digest(digest), Uuid::from_digest(&reversed))
}

impl Format<'_> {
    /// Makes an empty file system in `image`, which must be a file of the right length that
    /// holds nothing but zeros.
    pub(crate) fn run(&self, tools: &Tools, image: &Path) -> Result<(), Error> {
        let mut tool = tools.tool("mke2fs")?;
        let Self {
            uuid,
            hash_seed,
            layout,
            epoch,
            label,
        } = self;
        // `assume_storage_prezeroed`: the inode tables of a new sparse file are zero already.
        // mke2fs marks them so and writes nothing, the file stays small, and no guest spends
        // its first minutes zeroing them (ext4lazyinit), which would also copy them into the
        // top layer of every VM. `-m 0`: there is no daemon to keep a reserve for.
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
