//! The syntax of terminal output: which characters are text, and which are part
//! of control sequences (ECMA-48, 5.3 to 5.6, and xterm's extensions).
//!
//! All code that reads a guest's terminal output uses this module, so that what
//! is text for one part of a program is text for all others.
//!
//! # Why not a crate
//! The crate `vte` 0.15 was tested in the screen model. It has the same state
//! machine, but:
//!
//! - Only without its feature `std` the length of an OSC is limited. Cargo unifies
//!   features, so any other crate of a program can remove the limit.
//! - A character is lost if the one before it is split between two pieces
//!   (alacritty/vte#159), and U+0080 to U+009F arrive as text or as controls,
//!   depending on where the pieces are split (alacritty/vte#156).
//! - Its state is private. The redactor and the sanitizer must know for each byte
//!   whether it is text, and the terminal filter passes sequences unchanged;
//!   `vte` keeps neither their bytes nor an OSC with more than 16 parts.
//! - Text arrives one character at a time. Printable ASCII was collected for
//!   `write_ascii`, and it took more instructions (Cachegrind, millions):
//!
//! | input of the screen | parser of its own | this module | `vte` |
//! |---|---|---|---|
//! | recorded programs, 1.3 MB | 72.6 | 72.8 | 100.5 |
//! | plain text, 0.9 MB | 27.3 | 28.5 | 43.1 |
//! | colours, 0.7 MB | 54.5 | 54.8 | 74.9 |
//! | text that is not ASCII, 0.9 MB | 127.9 | 121.3 | 105.2 |

mod tokenizer;
mod utf8_decoder;

#[cfg(test)]
mod tests;

pub use tokenizer::{SequenceKind, Token, Tokenizer};
pub use utf8_decoder::Utf8Decoder;
