//! Progress of a build.

/// A stage of a build.
///
/// ```
/// assert_eq!(vmcell_rootfs::Stage::Fill.to_string(), "copying files");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// The recipe assembles its tree.
    Gather,
    /// `mke2fs` writes an empty file system.
    Format,
    /// `debugfs` copies the tree into it.
    Fill,
    /// `e2fsck` checks the result.
    Check,
    /// The image is flushed to disk and renamed to its destination.
    Publish,
    /// The image is complete.
    Done,
}

impl Stage {
    /// Returns the fraction of the build that is done when this stage begins, and when it ends.
    /// Tuned for recipes that take long to assemble, such as `debian`.
    fn span(self) -> (f32, f32) {
        match self {
            Self::Gather => (0.0, 0.9),
            Self::Format => (0.9, 0.92),
            Self::Fill => (0.92, 0.97),
            Self::Check => (0.97, 0.98),
            Self::Publish => (0.98, 1.0),
            Self::Done => (1.0, 1.0),
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Gather => "gathering files",
            Self::Format => "formatting",
            Self::Fill => "copying files",
            Self::Check => "checking",
            Self::Publish => "saving",
            Self::Done => "done",
        })
    }
}

/// One report of a build's progress. Within a build, `fraction` never falls.
///
/// ```no_run
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let base = vmcell_rootfs::recipe::base()
///     .cached_with(|progress| eprintln!("{:3.0}% {}", progress.fraction * 100.0, progress.stage))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The current stage.
    pub stage: Stage,
    /// The fraction of the build that is done, from 0 to 1.
    pub fraction: f32,
}

impl Progress {
    /// Returns the report for a stage of which the fraction `within` (0 to 1) is done.
    pub(crate) fn at(stage: Stage, within: f32) -> Self {
        let (start, end) = stage.span();
        Self {
            stage,
            fraction: start + (end - start) * within.clamp(0.0, 1.0),
        }
    }
}
