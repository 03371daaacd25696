use super::name::BadName;

/// What is wrong with the text of a patch. Nothing of it was applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {kind}")]
#[non_exhaustive]
pub struct PatchError {
    /// The line of the patch, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub kind: PatchErrorKind,
}

/// What can be wrong with the text of a patch. Names of files in it are quoted
/// as git does it, and safe to print.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchErrorKind {
    /// There is no patch in the text.
    #[error("there is no unified patch in the text: make one with `git diff` or `diff -u`")]
    NoPatch,
    /// The patch is too long to be worked on.
    #[error("the patch has more than {limit} {what}: cut it into several")]
    TooLong {
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: usize,
    },
    /// A name is missing, or cannot be used.
    #[error("{0}")]
    BadName(#[from] BadName),
    /// No line tells which file is meant.
    #[error("no line tells which file this is for")]
    NoName,
    /// Two lines name different files where they should name the same.
    #[error("the lines above name two files, {first} and {second}, for one")]
    NamesDiffer {
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// A file is changed, or made, by two parts of the patch.
    #[error("{path} is changed twice: apply one patch after the other")]
    Twice {
        /// The file.
        path: String,
    },
    /// A file is made beneath another file.
    #[error("{path} is to be made beneath a file of this patch")]
    BeneathFile {
        /// The file.
        path: String,
    },
    /// The mode is no number, or not that of a file or a symlink.
    #[error("not the mode of a file or a symlink")]
    BadMode,
    /// The content of the file is binary; only text can be patched.
    #[error("{path} is binary, and cannot be patched: copy the file instead")]
    Binary {
        /// The file.
        path: String,
    },
    /// The part for a file changes nothing.
    #[error("{path} is named, but nothing is said to change: is the patch cut off?")]
    NoChange {
        /// The file.
        path: String,
    },
    /// Lines of a hunk without a file that they are for.
    #[error("a hunk without `---` and `+++` lines above it")]
    HunkWithoutFile,
    /// `---` and `+++` lines without a hunk.
    #[error("no hunk (`@@ -1 +1 @@`) follows the `+++` line")]
    FileWithoutHunk,
    /// The line that begins a hunk makes no sense.
    #[error("not a hunk's first line: it should look like `@@ -1,2 +1,3 @@`")]
    BadHunk,
    /// The numbers of a hunk are impossible.
    #[error("impossible line numbers")]
    BadRange,
    /// A hunk begins before the one above it ends.
    #[error("the hunk begins before the end of the one above it")]
    OutOfOrder,
    /// A hunk has less lines than it says.
    #[error("the hunk ends here, but its first line tells of more lines")]
    HunkTooShort,
    /// A hunk has more lines than it says.
    #[error("the hunk has more lines than its first line tells")]
    HunkTooLong,
    /// `\ No newline at end of file` where it cannot be.
    #[error("a line without newline must be the last of its file")]
    NewlineMissing,
    /// A file that is to be added has lines already, or one that is to be
    /// removed keeps some.
    #[error("a file that does not exist cannot have lines")]
    LinesOfNothing,
}
