use super::name::BadName;

/// The text is not a valid patch. Nothing was applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {kind}")]
#[non_exhaustive]
pub struct PatchError {
    /// The line of the patch, counted from 1.
    pub line: u64,
    /// The kind of error.
    pub kind: PatchErrorKind,
}

/// The kind of a [`PatchError`]. Names of files are quoted as in git, and safe
/// to print.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchErrorKind {
    /// The text contains no patch.
    #[error("there is no patch in the text: make one with `git diff` or `diff -u`")]
    NoPatch,
    /// The patch exceeds a limit.
    #[error("the patch has more than {limit} {what}: split it into several")]
    TooLong {
        /// The unit of the limit.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A name is missing or invalid.
    #[error("{0}")]
    BadName(#[from] BadName),
    /// No line names the file.
    #[error("no line names the file that this is for")]
    NoName,
    /// Two lines that must name the same file name different ones.
    #[error("the lines above name different files, {first} and {second}")]
    NamesDiffer {
        /// One name.
        first: String,
        /// The other name.
        second: String,
    },
    /// A file is to be renamed or copied to its own name.
    #[error("{path} would be renamed or copied to itself")]
    SamePath {
        /// The file.
        path: String,
    },
    /// A path of the new tree is below another file of the patch.
    #[error("{path} would be below a file of this patch")]
    PathBelowFile {
        /// The file.
        path: String,
    },
    /// The mode is not a number, or not that of a file or a symlink.
    #[error("not the mode of a file or a symlink")]
    BadMode,
    /// The patch has only binary files. Only text can be patched.
    #[error("{path} is binary, so it cannot be patched: copy the file instead")]
    Binary {
        /// The file.
        path: String,
    },
    /// The part for a file changes nothing.
    #[error("the patch names {path}, but has no change for it: is the patch truncated?")]
    NoChange {
        /// The file.
        path: String,
    },
    /// A hunk without `---` and `+++` lines before it.
    #[error("a hunk without `---` and `+++` lines above it")]
    HunkWithoutFile,
    /// `---` and `+++` lines without a hunk.
    #[error("no hunk (`@@ -1 +1 @@`) follows the `+++` line")]
    FileWithoutHunk,
    /// The header line of a hunk is malformed.
    #[error("not a valid hunk header: it should look like `@@ -1,2 +1,3 @@`")]
    BadHeader,
    /// The header of one half of a hunk of a context diff is malformed.
    #[error("not a valid header in a context diff: it should look like `*** 1,2 ****`")]
    BadContextHeader,
    /// The old and the new half of a hunk of a context diff have other lines in
    /// common than they state.
    #[error("the old and the new half of the hunk have different context")]
    HalvesDiffer,
    /// The line numbers of a hunk are out of range.
    #[error("the line numbers are out of range")]
    BadRange,
    /// A hunk begins before the one above it ends.
    #[error("the hunk begins before the end of the one above it")]
    OutOfOrder,
    /// A hunk has fewer lines than its header states.
    #[error("the hunk ends here, but its header states more lines")]
    HunkTooShort,
    /// A hunk has more lines than its header states.
    #[error("the hunk has more lines than its header states")]
    HunkTooLong,
    /// `\ No newline at end of file` follows a line that is not the last.
    #[error("a line without newline must be the last of its file")]
    NoNewline,
    /// The patch adds a file but has old lines, or deletes it but has new
    /// lines.
    #[error("a file that does not exist cannot have lines")]
    LinesInMissingFile,
}
