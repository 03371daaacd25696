use std::{
    fmt,
    io::{self, Read},
};

use super::{
    ReceiptEntry, ReceiptPublicKey,
    entry::NO_PREVIOUS,
    head::Head,
    key::signed_digest,
    lines::{Line, Lines},
};

/// What a check of all receipts has found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// How many receipts are right, from the first one on.
    pub receipts: u64,
    /// How many of them are signed.
    pub signed: u64,
    /// How many of them are after the head: a crash has left them, and the next receipt counts
    /// them.
    pub uncounted: u64,
    /// The digest of the last of them. Keep it elsewhere to find that an older log was put
    /// back.
    pub head: String,
    /// The first thing that is wrong.
    pub problem: Option<ReceiptProblem>,
}

/// What is wrong with a log of receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiptProblem {
    /// A line was changed.
    Changed {
        /// Its number.
        line: u64,
    },
    /// A line does not follow the one before it: one was removed, repeated, inserted or moved.
    OutOfOrder {
        /// Its number.
        line: u64,
    },
    /// A line is not signed, or not with this key.
    Signature {
        /// Its number.
        line: u64,
    },
    /// The last line has no end: a program has died that wrote it, or it was cut off.
    Torn {
        /// Its number.
        line: u64,
    },
    /// Lines at the end are missing.
    CutOff {
        /// How many lines there should be.
        expected: u64,
    },
    /// The head is missing, was changed, or is not signed with this key.
    Head,
}

impl Verification {
    /// Returns whether nothing is wrong.
    pub fn is_valid(&self) -> bool {
        self.problem.is_none()
    }
}

impl ReceiptProblem {
    /// Returns a name of the kind of problem that never changes, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Changed { .. } => "changed",
            Self::OutOfOrder { .. } => "out-of-order",
            Self::Signature { .. } => "signature",
            Self::Torn { .. } => "torn",
            Self::CutOff { .. } => "cut-off",
            Self::Head => "head",
        }
    }

    /// Returns the number of the line, if it is about one.
    pub fn line(&self) -> Option<u64> {
        match *self {
            Self::Changed { line }
            | Self::OutOfOrder { line }
            | Self::Signature { line }
            | Self::Torn { line } => Some(line),
            Self::CutOff { .. } | Self::Head => None,
        }
    }
}

impl fmt::Display for ReceiptProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { line } => write!(f, "line {line} was changed"),
            Self::OutOfOrder { line } => write!(
                f,
                "line {line} does not follow the one before it: a line was removed, repeated, \
                 inserted or moved"
            ),
            Self::Signature { line } => write!(f, "line {line} is not signed with this key"),
            Self::Torn { line } => write!(
                f,
                "line {line} has no end: a program died that wrote it, or it was cut off. The next \
                 receipt sets it aside"
            ),
            Self::CutOff { expected } => {
                write!(f, "lines at the end are missing: there were {expected}")
            }
            Self::Head => f.write_str(
                "the file `head` is missing, was changed, or is not signed with this key",
            ),
        }
    }
}

/// Checks all lines, and that they are those of the head.
pub(super) fn verify(
    lines: Option<Lines<impl Read>>,
    head: io::Result<Option<Head>>,
    key: Option<ReceiptPublicKey>,
) -> io::Result<Verification> {
    let mut found = Verification {
        receipts: 0,
        signed: 0,
        uncounted: 0,
        head: NO_PREVIOUS.to_owned(),
        problem: None,
    };
    let head = match head {
        Ok(head) => head.filter(|head| is_signed_as_it_should_be(head, key)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
        Err(error) => return Err(error),
    };
    let signed_from = head.as_ref().and_then(|head| head.signed_from);
    // The digest at the head, when its line was reached, and the bytes until then.
    let mut at_head = (NO_PREVIOUS.to_owned(), 0);
    let mut bytes: u64 = 0;
    let mut lines = lines;
    while let Some(line) = lines.as_mut().map_or(Ok(None), Lines::next)? {
        let number = found.receipts.saturating_add(1);
        let line = match line {
            Line::Whole(line) => line,
            Line::Torn(_) => {
                found.problem = Some(ReceiptProblem::Torn { line: number });
                return Ok(found);
            }
        };
        let must_be_signed = signed_from.is_some_and(|from| from <= number);
        match check(&line, number, &found.head, key, must_be_signed) {
            Ok(entry) => {
                bytes = bytes.saturating_add(line.len() as u64 + 1);
                found.receipts = number;
                found.signed += u64::from(entry.signature.is_some());
                found.head = entry.digest;
                if head.as_ref().is_some_and(|head| head.count == number) {
                    at_head = (found.head.clone(), bytes);
                }
            }
            Err(problem) => {
                found.problem = Some(problem);
                return Ok(found);
            }
        }
    }
    found.problem = match head {
        None if found.receipts == 0 && key.is_none() => None,
        None => Some(ReceiptProblem::Head),
        Some(head) if found.receipts < head.count => Some(ReceiptProblem::CutOff {
            expected: head.count,
        }),
        Some(head) if (&head.digest, head.bytes) != (&at_head.0, at_head.1) => {
            Some(ReceiptProblem::Head)
        }
        Some(head) => {
            found.uncounted = found.receipts.saturating_sub(head.count);
            None
        }
    };
    Ok(found)
}

/// With a key, a head is signed. Without one, there may be a signature that nobody can check.
fn is_signed_as_it_should_be(head: &Head, key: Option<ReceiptPublicKey>) -> bool {
    let Some(key) = key else {
        return head.signed_from.is_some() == head.signature.is_some();
    };
    let signature = head.signature.as_deref().unwrap_or_default();
    let bytes = head.signed_bytes();
    head.signed_from.is_some() && bytes.is_ok_and(|bytes| key.verifies(&bytes, signature))
}

fn check(
    line: &[u8],
    number: u64,
    previous: &str,
    key: Option<ReceiptPublicKey>,
    must_be_signed: bool,
) -> Result<ReceiptEntry, ReceiptProblem> {
    let changed = ReceiptProblem::Changed { line: number };
    let entry = ReceiptEntry::parse(line).ok_or(changed)?;
    if entry.computed_digest().ok().as_ref() != Some(&entry.digest) {
        return Err(changed);
    }
    if (entry.sequence, entry.previous.as_str()) != (number, previous) {
        return Err(ReceiptProblem::OutOfOrder { line: number });
    }
    let is_right = match (&entry.signature, key) {
        (None, _) => !must_be_signed,
        (Some(_), None) => true,
        (Some(signature), Some(key)) => key.verifies(&signed_digest(&entry.digest), signature),
    };
    match is_right {
        true => Ok(entry),
        false => Err(ReceiptProblem::Signature { line: number }),
    }
}
