//! Error messages, and errors as JSON.

use std::path::Path;

use serde_json::{Value, json};
use vmcell::disk::{
    DiskError, DiskLimit,
    ext4::{self, Damage, DamageKind, Structure},
    image::{ImageError, partition::PartitionError},
};
use vmcell::tree::{TreeError, TreeLimit};
use vmcell_cli::{
    exit::TOOL_FAILED,
    show::{SafeStdout, message},
};

/// Prints an error as text or JSON, and returns the exit code.
pub(crate) fn report_error(error: &anyhow::Error, json: bool) -> u8 {
    let object = match error.downcast_ref::<DiskError>() {
        Some(error) => as_json(error),
        None => {
            let ours = error.downcast_ref::<vmcell::Error>();
            json!({ "code": ours.map_or("host", vmcell::Error::code), "message": format!("{error:#}") })
        }
    };
    if !json {
        report(object["message"].as_str().unwrap_or_default());
        return TOOL_FAILED;
    }
    let mut out = SafeStdout::new();
    let written = out.json(&json!({ "error": object }));
    // There is nowhere to report that standard output cannot be written.
    let _ = out.finish(written);
    TOOL_FAILED
}

/// Prints a message on standard error, prefixed with the program's name.
pub(crate) fn report(text: &str) {
    message::report("vmcell-disk", text);
}

pub(crate) fn as_json(error: &DiskError) -> Value {
    json!({ "code": error.code(), "message": describe(error) })
}

/// Returns the message of an error, with what to do next in terms of this
/// program.
pub(crate) fn describe(error: &DiskError) -> String {
    message::with_causes(&message_with_advice(error), error)
}

fn message_with_advice(error: &DiskError) -> String {
    match error {
        DiskError::Image(error) => describe_image_error(error),
        // Paths are printed from the root of the disk, as the user gives them.
        DiskError::NotFound { path } => {
            let path = path.trim_start_matches('/');
            format!("there is nothing at /{path}: check the path")
        }
        DiskError::DanglingLink { path, target } => {
            let path = path.trim_start_matches('/');
            format!("/{path} is a symlink to {target}, which does not exist")
        }
        DiskError::IsDirectory { path } => {
            let path = path.trim_start_matches('/');
            format!("/{path} is a directory: `ls` lists it, `export` copies it")
        }
        DiskError::WrongKind { path, wanted } => {
            let path = path.trim_start_matches('/');
            format!("/{path} is not a {wanted}: check the path")
        }
        DiskError::Partition(PartitionError::Ambiguous(_)) => {
            format!("{error}: choose with --partition N")
        }
        DiskError::FileSystem(cause) => match option_to_open(cause) {
            Some(advice) => format!("{error}: {advice}"),
            None => error.to_string(),
        },
        DiskError::Damaged { path, source } if is_readable_anyway(source) => {
            format!("{path} is damaged: --ignore-checksums reads it anyway")
        }
        DiskError::Tree(TreeError::Limit { what, .. }) => match tree_option_to_raise(*what) {
            Some(option) => format!("{error}, with {option}"),
            None => error.to_string(),
        },
        DiskError::Limit { what, .. } => match option_to_raise(*what) {
            Some(option) => format!("{error}, with {option}"),
            None => error.to_string(),
        },
        _ => error.to_string(),
    }
}

/// Returns the message about damage of a whole disk that can be read all the
/// same.
pub(crate) fn describe_disk_damage(damage: &Damage) -> String {
    match damage.structure {
        Structure::Journal => format!(
            "{damage}: the newest changes may be missing (--ignore-checksums replays what is left, \
             --ignore-journal nothing)"
        ),
        _ => format!("{damage}: the kernel would not mount this file system"),
    }
}

/// Returns the option that opens a file system nevertheless. Apart from the
/// superblock, only the journal is read to open it.
fn option_to_open(error: &ext4::Error) -> Option<&'static str> {
    match error {
        ext4::Error::Damaged(Damage {
            structure: Structure::Superblock,
            ..
        }) => Some("--backup-superblock reads the backup copy"),
        ext4::Error::Damaged(Damage {
            problem: DamageKind::Checksum,
            ..
        }) => {
            Some("--ignore-checksums reads it anyway, --ignore-journal does not replay the journal")
        }
        ext4::Error::Limit {
            what: ext4::Limit::Time,
            ..
        } => Some("--limit-time SECONDS allows more, --ignore-journal does not replay the journal"),
        ext4::Error::Damaged(_)
        | ext4::Error::UnsupportedJournal { .. }
        | ext4::Error::Limit { .. } => {
            Some("--ignore-journal reads it as it was before the journal's changes")
        }
        _ => None,
    }
}

/// Returns whether something damaged can be read with `--ignore-checksums`.
fn is_readable_anyway(damage: &Damage) -> bool {
    matches!(
        damage.problem,
        DamageKind::Checksum | DamageKind::Deleted | DamageKind::Flags(_)
    ) || damage.structure == Structure::Attributes
}

fn describe_image_error(error: &ImageError) -> String {
    match error {
        ImageError::Read { path, .. } => {
            format!("cannot read {path:?}: check the path and the permissions")
        }
        ImageError::InUse { path } => format!(
            "{path:?} is in use: stop the VM that uses it, or read it with --torn (the data may be \
             inconsistent)"
        ),
        ImageError::Lock { path, .. } => {
            format!("cannot determine whether {path:?} is in use: if it is not, use --torn")
        }
        ImageError::BackingNotAllowed { path } => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            format!(
                "the backing file {path:?} is not in an allowed directory: if it may be read, \
                 allow it with --allow-backing {folder:?}"
            )
        }
        ImageError::Foreign { .. } => format!("{error} (--format raw reads it as it is)"),
        ImageError::TooManyLayers { limit } => {
            format!("the image has more than {limit} layers, too many to be read")
        }
        ImageError::Limit { limit } => {
            format!("the image holds more than {limit} bytes of data: --limit-bytes allows more")
        }
        _ => error.to_string(),
    }
}

/// Returns the option that raises a limit of an export.
fn tree_option_to_raise(limit: TreeLimit) -> Option<&'static str> {
    match limit {
        TreeLimit::Bytes | TreeLimit::Length => Some("--limit-bytes SIZE"),
        TreeLimit::Entries => Some("--limit-entries N"),
        _ => None,
    }
}

/// Returns the option that raises a limit.
fn option_to_raise(limit: DiskLimit) -> Option<&'static str> {
    match limit {
        DiskLimit::Entries => Some("--limit-entries N"),
        DiskLimit::Depth => Some("--limit-depth N"),
        DiskLimit::Bytes => Some("--limit-bytes SIZE"),
        DiskLimit::Time => Some("--limit-time SECONDS"),
        DiskLimit::Memory => Some("--limit-memory SIZE"),
        _ => None,
    }
}
