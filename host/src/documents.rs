//! Compiles the Rust examples of the README and of `docs` as doctests, and runs those that start no VM. Exists only
//! for doctests, because packages do not contain the pages.

#[doc = include_str!("../../README.md")]
mod readme {}

#[doc = include_str!("../../docs/guide.md")]
mod guide {}

#[doc = include_str!("../../docs/tool.md")]
mod tool {}
