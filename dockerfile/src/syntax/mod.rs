//! The text of a Dockerfile: statements, words and variables.

mod directives;
mod here_document;
mod statement;
mod variables;
mod words;

pub(crate) use here_document::HereDocument;
pub(crate) use statement::{Statement, Statements};
pub(crate) use variables::{Quotes, expand};
pub(crate) use words::{pairs, words};
